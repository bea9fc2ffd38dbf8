"""Configuration: two equivalent ways, errors named by key, and :checkhealth."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bellboard.agents.trace_line import READERS
from bellboard.core import text
from bellboard.core.notices import policy_of
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, blocked, house
from rig.waiting import eventually

SOUND = {**QUIET, "python": sys.executable}  # :checkhealth runs it
REPORT = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
PROBLEMS = "return require('bellboard.config').problems()"


#: Options, and the faults of each kind in them.
WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"nonsense": 1}, ["nonsense: no such option"]),
    ({"max_restarts": "5"}, ['max_restarts: expected integer, got "5"']),
    ({"float": {"widht": 3}}, ['float.widht: no such option; did you mean "width"?']),
    ({"float": True}, ["float: expected table, got true"]),
    (
        {"icons": {"blocked": "a\nb", "foo": "F"}},
        [
            "icons.blocked: expected e.g. '!', got \"a\\nb\"",
            "icons.foo: no such option; choose from background, blocked, completed, error, idle,"
            " question, unknown, working",
        ],
    ),
    (
        {"icons": "emoji"},
        ["icons: expected 'ascii' or 'unicode' or 'nerd' or table, got \"emoji\""],
    ),
    ({"on": {"blocked": "echo"}}, ['on.blocked: expected function or string[], got "echo"']),
    ({"claude": ["claude", 1]}, ["claude: expected string or string[], got table"]),
    (
        {"notices": {"labels": {"MINE": {"completed": {"sound": -1}, "pin": 1}}}},
        [
            "notices.labels.MINE.completed.sound: expected at least 0, got -1",
            "notices.labels.MINE.pin: expected boolean, got 1",
        ],
    ),
    (
        {"board": {"keys": {"x": False, "<c-k>": "stop", "z": "stopp", "y": True}}},
        [
            'board.keys.z: unknown name "stopp"; did you mean "stop"?',
            "board.keys.y: expected string or false or function, got true",
        ],
    ),
    (
        {"float": {"width": -7, "max_sessions": 1.5, "seconds": float("nan")}},
        [
            "float.max_sessions: expected integer, got 1.5",
            "float.seconds: expected at most 1000000000, got nan",
            "float.width: expected at least 10, got -7",
        ],
    ),
    (
        {"board": {"keys": ["go"]}, "machines": [["ssh", "dev"]]},
        ["board.keys.1: expected a name, got 1", "machines.1: expected a name, got 1"],
    ),
    (
        {
            "host": {"approval": True, "grace": 5},
            "icons": {"blocked": "B"},
            "notices": {"labels": {"MINE": {"blocked": {"bell": True}, "pin": True}}},
            "python": ["uv", "run"],
        },
        [],
    ),
]
#: The options that take null, or have another value than their default with it.
UNCHECKED = """
  local config, found = require('bellboard.config'), {}
  local defaults = config.get()
  for _, option in ipairs(require('bellboard.config.options').options) do
    local path = option[1]:gsub('%*', (option.names or { 'x' })[1])
    local names, given = vim.split(path, '.', { plain = true }), vim.NIL
    for at = #names, 1, -1 do
      given = { [names[at]] = given }
    end
    config.set(given)
    local told = vim.startswith(config.problems()[1] or '', path .. ': expected ')
    local is_kept = vim.deep_equal(
      vim.tbl_get(config.get(), unpack(names)), vim.tbl_get(defaults, unpack(names))
    )
    if not told or #config.problems() > 1 or not is_kept then
      found[#found + 1] = path
    end
  end
  return found
"""


def test_every_option_is_checked_and_keeps_its_default(shared: Editors) -> None:
    """Members of `host` are checked by the background process."""
    editor = shared(config=QUIET)
    assert editor.lua(UNCHECKED) == ["host.x"]


def test_a_wrong_key_is_named_by_its_path(shared: Editors) -> None:
    """One notification names it; it has its default, and the valid keys still count."""
    editor = shared(config=QUIET)
    for wrong, expected in WRONG:
        editor.command("messages clear")
        editor.lua("require('bellboard').setup(...) require('bellboard.config').get()", wrong)
        assert sorted(editor.lua(PROBLEMS)) == sorted(expected)
        assert editor.lua("return require('bellboard.config').get().auto_start") is False
        if expected:
            said = eventually(editor.messages)
            assert sorted(expected)[0].partition(":")[0] in said
            assert said.endswith(":checkhealth bellboard") and "\n" not in said


def test_checkhealth_names_each_wrong_key(nvim: Editors) -> None:
    wrong: dict[str, Any] = {}
    for options, _ in WRONG[:4]:
        wrong |= options
    editor = nvim(config={**SOUND, **wrong}, ui=False)
    problems = editor.lua(PROBLEMS)
    assert len(problems) == 3
    editor.command("checkhealth bellboard")
    report = editor.lua(REPORT)
    assert [problem for problem in problems if f"ERROR {problem}" not in report] == []


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_wrong_options_do_not_hold_up_the_start(nvim: Editors, version: str, columns: int) -> None:
    """The message takes one line on any screen, so no key has to be pressed."""
    wrong = {"icons": "emoji", "board": {"layout": "a" * 50}, "float": {"widht": 3}}
    editor = nvim(version, QUIET, columns=columns)
    editor.lua("require('bellboard').setup(...) require('bellboard.config').get()", wrong)
    editor.shows("lth bellboard" if columns == 40 else ":checkhealth bellboard")
    assert editor.nvim.request("nvim_get_mode") == {"mode": "n", "blocking": False}
    assert "Press ENTER" not in editor.screen.text


@pytest.mark.parametrize(
    "hours",
    [
        *("22:00-07:30", "9:00 - 17:05", "00:00-24:00", "25:00-07:30", "22:00-07:75"),
        *("24:01-07:00", "7:60-8:00", "22:00", "22-7", ""),
    ],
)
def test_quiet_hours_that_would_be_ignored_are_wrong(shared: Editors, hours: str) -> None:
    """Lua complains about exactly those that Python does not take."""
    editor = shared(config=QUIET)
    editor.lua("require('bellboard').setup({ notices = { quiet_hours = ... } })", hours)
    editor.lua("require('bellboard.config').get()")
    taken = policy_of({"quiet_hours": hours}).quiet is not None
    assert (editor.lua(PROBLEMS) == []) is taken


def test_setup_and_the_global_are_equal(shared: Editors, version: str) -> None:
    """A table, a function or setup(): the same options, setup() over the global."""
    editor = shared(version, QUIET)
    editor.lua("vim.g.bellboard = function() return { max_restarts = 7, icons = 'unicode' } end")
    editor.lua("require('bellboard').setup({ icons = 'nerd' })")
    found = editor.lua("return require('bellboard.config').get()")
    assert (found["max_restarts"], found["icons"]) == (7, "nerd")
    editor.lua("require('bellboard').setup(function() return { max_restarts = 8 } end)")
    found = editor.lua("return require('bellboard.config').get()")
    assert (found["max_restarts"], found["icons"]) == (8, "unicode")
    editor.lua("require('bellboard').setup(5)")
    assert editor.lua(PROBLEMS) == ["expected a table or a function, got number"]
    editor.lua("vim.g.bellboard = ...", QUIET)


def test_options_that_were_put_right_are_not_complained_about(
    shared: Editors, version: str
) -> None:
    """The message comes once Neovim is free; until then, setup() may run again."""
    editor = shared(version, QUIET)
    read = "require('bellboard').setup(...) require('bellboard.config').get()"
    editor.lua(f"{read} require('bellboard').setup() require('bellboard.config').get()", {"no": 1})
    editor.lua("vim.wait(20)")
    assert editor.messages() == ""


def test_a_function_of_vim_script_does_not_get_through(nvim: Editors) -> None:
    """Neovim hands it over as null, which helps its author little."""
    editor = nvim(config=SOUND)
    editor.command("let g:bellboard = {'on': {'error': {t -> 0}}}")
    editor.lua("require('bellboard.config').read()")
    wrong = "on.error: expected function or string[], got v:null or a Vim function; set it in Lua"
    assert editor.lua(PROBLEMS) == [wrong]


CHANNEL = "return require('bellboard.process.talk').status().channel or 0"


def test_options_that_change_later_count_at_once(nvim: Editors) -> None:
    """setup() restarts the background process if its options are others; else it goes on."""
    editor = nvim(config=QUIET, ui=False)
    editor.lua("require('bellboard').start()")
    first = editor.lua(CHANNEL)
    editor.lua("require('bellboard').setup({ icons = 'unicode' })")
    assert editor.lua("return require('bellboard.highlight').icon_named('blocked')") == "▲"
    assert editor.lua(CHANNEL) == first > 0
    editor.lua("require('bellboard').setup({ notices = { mode = 'all' } })")
    eventually(lambda: editor.lua(CHANNEL) not in (0, first), "another process")


def test_a_later_order_of_the_board_counts_until_the_user_chooses(shared: Editors) -> None:
    """The user's choice stays while the option is the same."""
    editor = shared(config=QUIET)
    order = """
      local choice = require('bellboard.board.view').choice()
      return { choice.group, choice.sort }
    """
    set_up = "require('bellboard').setup({ board = ... })"
    assert editor.lua(order) == ["urgency", "urgency"]
    editor.lua(set_up, {"group": "none", "sort": "name"})
    assert editor.lua(order) == ["none", "name"]
    editor.lua("require('bellboard.board.view').choose({ sort = 'recent' })")
    editor.lua(set_up, {"group": "none", "sort": "name", "size": 9})
    assert editor.lua(order) == ["none", "recent"]


def test_what_cannot_be_sent_is_reported_as_such(nvim: Editors) -> None:
    """By tell(); the background process may well be running."""
    editor = nvim(config=QUIET, ui=False)
    editor.lua("require('bellboard').start()")
    tell = "return require('bellboard').tell({ label = { session_id = 'a', label = %s } })"
    assert editor.lua(tell % "'b'") is True
    assert editor.lua(tell % "print") is False
    assert "label failed: it holds a function, which cannot be sent" in editor.messages()


@pytest.mark.parametrize(
    ("call", "returned", "says"),
    [
        ("mode('loud')", "normal", 'no mode "loud"; there are quiet, normal and all'),
        ("mode(false)", "normal", 'no mode "false"'),
        ("tell({ nonsense = 1 })", False, 'there is no "nonsense"'),
        ("tell({})", False, "give one kind"),
        ("tell('label')", False, "give one kind"),
        ("snooze('api', 'long')", None, "api: not snoozed; give 0 to"),
        ("snooze('nobody', 5)", None, 'no session "nobody"'),
        ("run('nonsense')", None, 'no subcommand "nonsense"'),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    shared: Editors, call: str, returned: object, says: str
) -> None:
    """The background process is running, so they could be sent."""
    editor = shared(config=QUIET, columns=120)
    editor.lua("require('bellboard').start()")
    Host(editor).push(blocked("api"))
    assert editor.lua(f"return require('bellboard').{call}") == returned
    eventually(lambda: says in editor.messages(), says)


def test_the_kinds_of_evidence_are_those_of_the_background_process(nvim: Editors) -> None:
    """Kinds that only the process writes are not for `tell`."""
    editor = nvim(config=QUIET, ui=False)
    editor.lua("require('bellboard').start()")
    tell = "return require('bellboard').tell({ [...] = {} })"
    taken = {kind for kind in READERS if editor.lua(tell, kind)}
    assert READERS.keys() - taken == {"truth", "far", "link", "decoded", "clock", "submit"}


def test_a_tilde_is_the_home_directory_in_every_word(nvim: Editors) -> None:
    editor = nvim(config={**QUIET, "python": ["~/uv", "--project", "~", "a~/b"]}, ui=False)
    home = editor.lua("return vim.uv.os_homedir()")
    found = editor.lua("return require('bellboard.process.program').interpreter().command")
    assert found == [f"{home}/uv", "--project", home, "a~/b"]


def test_checkhealth_reports_editor_and_host(nvim: Editors, version: str) -> None:
    """There is no error if only a running host is missing."""
    editor = nvim(version, SOUND, columns=100, lines=50)
    Host(editor).push(
        *house(), health={"watch": "inotify", "counts": {"junk": 2}, "notes": {"home": "is far"}}
    )
    editor.command("checkhealth bellboard")
    report = editor.lua(REPORT)
    for told in (
        "OK configuration",
        "counts: junk 2",
        "watch: inotify",
        "WARNING home: is far",
    ):
        assert told in report
    assert "ERROR" not in report


HOSTILE = (
    "a\x1bb\x07c\u009bd\u202ee\u2066f\u200bg\u200dh\u2060i\u00adj\u180ek\ufeffl\U000e0041m\u3164"
)


def test_lua_and_python_clean_text_alike(shared: Editors) -> None:
    """Control, direction and invisible characters go; languages and symbols stay."""
    editor = shared(config=QUIET)
    safe = "return require('bellboard.text').safe(...)"
    odd = "".join(f"{c}x" for c in "\u070f\U00013430\U0001345f\U0001bca0\U0001bca3")
    piles = "".join(f"e{c * 9}" for c in "\u0300\u036f\u0483\u1ab0\u1aff\u1dc0\u20d0\ufe2f")
    drawn = "\ufe0fa\ufe0f\ufe0e ✓\ufe0f\ufe0f 1\ufe0f\u20e3"
    usual = "über 日本語 ✓ \U0001f600 naïve"
    for raw in (HOSTILE, usual, "héron\u2028\u0085egret", odd, piles, drawn):
        shown = editor.lua(safe, raw)
        assert shown == text.plain(raw.replace("\x1b", " ").replace("\u009b", " "))
