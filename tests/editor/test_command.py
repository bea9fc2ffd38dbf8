"""`:Bellboard`: its subcommands, their arguments and completion, and a mapping for each."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from bellboard.core.nearest import meant
from rig import ROOT
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, blocked, house, session
from rig.tmux import Server
from rig.waiting import eventually

MANUAL = (ROOT / "doc/bellboard.txt").read_text()
#: Records evidence for the host, and messages to the user.
NOTED = """
_G.told, _G.said = {}, {}
require('bellboard.process.talk').tell = function(evidence)
  table.insert(told, evidence)
  return true
end
vim.notify = function(text) table.insert(said, text) end
"""


def noted(editor: Editor) -> list[Any]:
    """Return the records since the last call."""
    found: list[Any] = editor.lua("local told = _G.told _G.told = {} return told")
    return found


def last_said(editor: Editor, text: str) -> None:
    eventually(lambda: text in (editor.lua("return _G.said[#_G.said]") or ""), text)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        *(
            (f"snooze {n} a", "a: not snoozed; give 0 to 525600 minutes")
            for n in ("inf", "nan", -5)
        ),
        ("snooze 1e300 a", "a: not snoozed; give 0 to 525600 minutes"),
        ("snooze 0 a", "a: not snoozed"),
        ("label - a", "a: no label to remove"),
    ],
)
def test_a_command_says_what_became_of_a_session(shared: Editors, command: str, said: str) -> None:
    """A command without effect says so, too."""
    editor = shared(config=QUIET, ui=False)
    Host(editor).push(session("working", "a", project="a"), session("idle", "b", label="HEAVY"))
    editor.lua("require('bellboard').session('b').words.project = 'b'")
    editor.lua(NOTED)
    editor.command(f"ClaudeSessions {command}")
    last_said(editor, said)


def test_what_a_command_printed_is_shown_though_it_failed(nvim: Editors, tmux: Server) -> None:
    """The command may have done most of its work: here all but one key."""
    tmux.open(["sh"], session="one")
    tmux.run("bind-key", "b", "display-message", "theirs")
    editor = nvim(config={**QUIET, "python": sys.executable}, columns=110, lines=30)
    editor.command(f"ClaudeSessions tmux --apply --socket {tmux.socket}")
    editor.shows("prefix B     go to the next session that needs you")
    editor.shows("prefix b     not set: already bound: display-message theirs")
    messages = editor.lua("return vim.fn.execute('messages')")
    assert "bellboard: tmux: not everything could be set" in messages


def test_a_label_is_reported_once_it_is_written(shared: Editors) -> None:
    """The report names all its sessions; "-" removes the label of a named one."""
    editor = shared(config=QUIET, ui=False)
    host, two = Host(editor), [blocked("api"), blocked("web")]
    host.push(*two, float=["api", "web"])
    editor.lua(NOTED)
    editor.command("ClaudeSessions label 100%")
    assert [line["label"]["session_id"] for line in noted(editor)] == ["api", "web"]
    host.push(*two)
    assert editor.lua("return said") == []
    host.push(*({**each, "label": "100%"} for each in two))
    last_said(editor, "bellboard: 2 sessions: labeled 100%")
    editor.command("ClaudeSessions label - web")
    told = {"label": {"session_id": "web", "label": ""}}
    assert noted(editor) == [told]
    host.push(*two)
    last_said(editor, "bellboard: web: label removed")
    assert len(editor.lua("return said")) == 2


def test_a_session_is_named_by_its_id_name_or_project(shared: Editors, version: str) -> None:
    """In every subcommand; a name may have spaces, and an ambiguous one is refused."""
    editor = shared(version, QUIET, ui=False)
    Host(editor).push(
        session("working", "a1b2", project="api", name="the build"),
        session("working", "c3d4", project="web", title="fix login"),
        session("idle", "e5f6", project="web"),
    )
    editor.lua(NOTED)
    for called, expected in {
        "a1": "a1b2",
        "api": "a1b2",
        "the build": "a1b2",
        r"the\ build": "a1b2",
        "fix login": "c3d4",
        "e5f6": "e5f6",
    }.items():
        for verb, key in {"park": "park", "snooze": "snooze", "label HEAVY": "label"}.items():
            editor.command(f"Bellboard {verb} {called}")
            assert [line[key]["session_id"] for line in noted(editor)] == [expected]
    editor.lua("vim.ui.select = function(items, _, done) done(items[#items]) end")
    for verb in ("goto", "answer", "park", "snooze", "label HEAVY"):
        if verb not in ("goto", "answer"):
            editor.command(f"Bellboard {verb} web")
            eventually(lambda: len(noted(editor)) == 1, "the choice")
        editor.command(f"Bellboard {verb} nobody")
        last_said(editor, 'no session "nobody"; :ClaudeSessions lists all')
    editor.command("Bellboard answer api")
    last_said(editor, "api: not asking anything")


MEANT = {  # what is typed, and what is asked then
    "bord": "did you mean board?",
    "baord": "did you mean board?",
    "instal": "did you mean install?",
    "stat": "did you mean status?",
    "ALL": "did you mean all?",
    "sto": "did you mean stop?",
    "nstall": "did you mean install?",
    "stall": "did you mean install or uninstall?",
    "überprüffen": "did you mean Überprüfen?",
    "a": "none",
    "": "none",
    "frobnicate": "none",
    "b" * 70: "none",
    "w": "none",
    "we": "did you mean web a, web b or web c?",
}
KNOWN = ["board", "install", "uninstall", "status", "all", "stop", "Überprüfen"]
KNOWN += ["web d", "web c", "web a", "web b", "web a"]


def test_a_mistyped_word_is_taken_for_the_same_in_neovim_and_in_a_shell(shared: Editors) -> None:
    """What begins with it comes before what is like it, and that before what contains it."""
    editor = shared(config=QUIET, ui=False)
    in_neovim = "return require('bellboard.nearest').meant(...)"
    assert {typed: editor.lua(in_neovim, typed, KNOWN, "none") for typed in MEANT} == MEANT
    assert {typed: meant(typed, KNOWN, "none") for typed in MEANT} == MEANT


def test_a_mistyped_command_or_session_is_named(shared: Editors) -> None:
    editor = shared(config=QUIET, ui=False)
    Host(editor).push(session("working", "a1b2", project="api"), blocked("web"))
    editor.lua(NOTED)
    editor.command("ClaudeSessions instal")
    last_said(editor, 'no subcommand "instal"; did you mean install?')
    editor.command("ClaudeSessions frobnicate")
    last_said(editor, 'no subcommand "frobnicate"; try :ClaudeSessions <Tab>')
    editor.command("ClaudeSessions park ap")
    last_said(editor, 'no session "ap"; did you mean api?')


def test_a_name_of_several_means_the_one_of_which_it_makes_sense(
    shared: Editors, version: str
) -> None:
    """To answer, the one that asks; to go there, the one that needs you; else the user chooses."""
    editor = shared(version, QUIET, ui=False)
    names = {"working": "w", "blocked": "b", "completed": "c"}
    sessions = [session(status, sid, project="web") for status, sid in names.items()]
    host = Host(editor)
    host.push(sessions[0], {**sessions[1], "kind": "permission"})
    editor.lua("""
      _G.went, _G.answered = {}, {}
      require('bellboard.jump').to = function(id) table.insert(went, id) end
      require('bellboard.answer').to = function(id) table.insert(answered, id) end
      vim.ui.select = function(items, opts, done)
        _G.offered = #items
        done(items[#items])
      end""")
    editor.command("Bellboard goto web")
    editor.command("Bellboard answer web")
    assert editor.lua("return { went, answered, offered or false }") == [["b"], ["b"], False]
    host.push(*sessions)
    editor.command("Bellboard answer web")
    assert editor.lua("return answered") == ["b", "b"]
    editor.command("Bellboard goto web")
    eventually(lambda: editor.lua("return #went") == 2, "the choice")
    assert editor.lua("return offered") > 1


def test_without_a_name_those_in_the_window_and_the_float_are_meant(shared: Editors) -> None:
    """Other sessions may need the user as well: the message does not deny it."""
    editor = shared(config=QUIET, ui=False)
    Host(editor).push(session("error", "a1"), session("completed", "b1"))
    editor.lua(NOTED)
    editor.command("Bellboard label HEAVY")
    last_said(editor, "no session in this window or in the float; name one")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(80, "7bf3, f4a6"), (120, "7bf3 (add rate limits…), f4a6 (add rate limits…)")],
)
def test_each_id_of_an_ambiguous_name_is_short(shared: Editors, columns: int, shown: str) -> None:
    """With as much of the titles as fits in a line; and it is accepted."""
    editor = shared(config=QUIET, columns=columns)
    ids = ["7bf3d0c1-52c8-4f0e-a3a1-d9d7", "f4a69c01-1f33-4b9e-8d4e-83b4"]
    title = "add rate limits to the gateway"
    Host(editor).push(*(session("working", sid, project="api", title=title) for sid in ids))
    editor.command("lua require('bellboard').park('api')")
    editor.shows(f'bellboard: 2 sessions match "api": {shown}; give one of these ids')
    editor.lua(NOTED)
    for start, sid in zip(("7bf3", "f4a6"), ids, strict=True):
        editor.command(f"Bellboard park {start}")
        assert [line["park"]["session_id"] for line in noted(editor)] == [sid]


def test_a_name_is_completed_so_that_it_is_read_back(shared: Editors, version: str) -> None:
    """A backslash keeps the words of any name together."""
    editor = shared(version, QUIET, ui=False)
    names = ["fix user's login", 'add "dark" mode', r"in C:\dir \ x", "plain"]
    Host(editor).push(*(session("working", f"{n}", name=name) for n, name in enumerate(names)))
    editor.lua(NOTED)
    editor.lua("require('bellboard.popup').command = function(words) _G.ran = words end")
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    for n, name in enumerate(names):
        first = name.split()[0]
        for verb in ("park", "snooze 5", "label HEAVY"):
            (found,) = editor.lua(complete, f"Bellboard {verb} {first}")
            assert editor.lua(complete, f"Bellboard {verb} {found[:-1]}") == [found]
            editor.command(f"Bellboard {verb} {found}")
            (line,) = noted(editor)
            assert line[verb.split()[0]]["session_id"] == f"{n}"
        for verb in ("explain", "forget", "history", "name", "set"):
            (found,) = editor.lua(complete, f"Bellboard {verb} {first}")
            editor.command(f"Bellboard {verb} {found}")
            assert editor.lua("return ran") == [verb, name]
            assert editor.lua(complete, f"Bellboard {verb} {found} {first}") == []


def test_a_command_that_is_wrong_says_what_it_takes(shared: Editors) -> None:
    """A command of the shell program does so, too."""
    editor = shared(config={"python": [sys.executable]}, ui=False)
    editor.lua(NOTED)
    for wrong, said in {
        "goto": "which session? <Tab> completes names, projects and ids",
        "boards": 'no subcommand "boards"; did you mean board?',
        "explain": "bellboard: explain: needs SESSION",
        "board x y": 'board takes no argument: "x y"',
        "start": 'no subcommand "start"; :ClaudeSessions process start is the background process',
        "process x": 'no "process x"; start, stop, restart or status',
    }.items():
        editor.command(f"Bellboard {wrong}")
        last_said(editor, said)


def test_subcommands_and_sessions_are_completed(shared: Editors) -> None:
    """Words; then names that only one session has, and ids."""
    editor = shared(config=QUIET, ui=False)
    Host(editor).push(*house())
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert editor.lua(complete, "ClaudeSessions p") == ["park", "path", "pick", "prev", "process"]
    assert editor.lua(complete, "Bellboard goto w") == ["web", "working"]
    assert editor.lua(complete, r"Bellboard snooze 30 login\ r") == [r"login\ redirect"]
    assert editor.lua(complete, "ClaudeSessions process st") == ["start", "stop", "status"]
    assert editor.lua(complete, "Bellboard label HEAVY inf") == ["infra"]
    assert editor.lua(complete, "Bellboard label H") == ["HEAVY"]
    assert editor.lua(complete, "ClaudeSessions answers ") == ["on", "off"]
    assert editor.lua(complete, "ClaudeSessions answers of") == ["off"]
    assert editor.lua(complete, "ClaudeSessions answers on ") == []
    for before in ("silent ", "vertical botright ", "2", "g/x/", "set nu | "):
        assert editor.lua(complete, f"{before}Bellboard bo") == ["board"]
        assert editor.lua(complete, f"{before}ClaudeS goto w") == ["web", "working"]


def test_snooze_completes_no_name_that_it_would_read_as_minutes(shared: Editors) -> None:
    """After the minutes, any name is completed."""
    editor = shared(config=QUIET, ui=False)
    Host(editor).push(
        *(session("working", f"s{n}", name=name) for n, name in enumerate(["30", "30a"]))
    )
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert editor.lua(complete, "Bellboard snooze 3") == ["30a"]
    for minutes in ("5", "0.5", "1e2"):
        assert editor.lua(complete, f"Bellboard snooze {minutes} 3") == ["30", "30a"]
    assert editor.lua(complete, "Bellboard park 3") == ["30", "30a"]


def test_what_is_before_the_cursor_is_completed(shared: Editors, version: str) -> None:
    """In the middle of a line too; what follows stays."""
    editor = shared(version, QUIET)
    Host(editor).push(*house())

    def reads(line: str) -> None:
        eventually(lambda: editor.lua("return vim.fn.getcmdline()") == line, line)

    for typed, after, completed in (
        ("Bellboard bo", " x", "Bellboard board x"),
        ("Bellboard goto inf", " x", "Bellboard goto infra x"),
        ("Bellboard label HEAVY inf", "inf", "Bellboard label HEAVY infrainf"),
    ):
        editor.press(f":{typed}{after}{'<Left>' * len(after)}<Tab>")
        reads(completed)
        editor.press("<Esc>")


def test_snooze_and_park_say_what_they_did_and_undo_it(shared: Editors) -> None:
    """The same command again ends it, even if no session is in the float."""
    editor = shared(config=QUIET, ui=False)
    host = Host(editor)
    host.push(blocked("api"), blocked("web"))
    editor.lua(NOTED)
    editor.command("Bellboard snooze")
    assert {line["snooze"]["session_id"] for line in noted(editor)} == {"api", "web"}
    last_said(editor, "bellboard: 2 sessions: snoozed until ")
    later = 4e9
    host.push(blocked("api", snoozed_until=later), blocked("web", snoozed_until=later), float=[])
    editor.command("Bellboard snooze")
    assert [line["snooze"]["until"] for line in noted(editor)] == [0, 0]
    last_said(editor, "2 sessions: snooze ended")
    editor.command("Bellboard snooze 5 web")
    assert noted(editor)[0]["snooze"]["until"] > 0
    last_said(editor, "web: snoozed until")
    host.push(blocked("api", markers=["parked"]), float=[])
    editor.command("Bellboard park")
    assert noted(editor) == [{"park": {"session_id": "api", "parked": False}}]
    last_said(editor, "api: unparked")


def test_words_arrive_as_vims_own_commands_take_them(nvim: Editors, version: str) -> None:
    """A backslash before a blank keeps words together, as in a prompt for the CLI."""
    editor = nvim(version, QUIET, ui=False)
    editor.lua("require('bellboard.jump.launch').new = function(rest) _G.got = rest end")
    editor.lua("package.loaded['bellboard.command'] = nil")
    for typed, words in {
        r"new fix\ the\ |\ tests": ["fix the | tests"],
        r"new --model opus say\ 'hi'": ["--model", "opus", "say 'hi'"],
        "new": [],
    }.items():
        editor.command(f"Bellboard {typed}")
        assert editor.lua("return _G.got") == words


def test_output_wraps_in_one_window_that_says_what_it_is(nvim: Editors, version: str) -> None:
    """The window is used again, also from another tab page; a log starts at its end."""
    options = {**QUIET, "python": [sys.executable]}
    lua = "vim.o.number, vim.o.colorcolumn = true, '20'"
    editor = nvim(version, options, columns=60, lines=24, lua=lua)
    windows = "return #vim.api.nvim_list_wins()"
    shown = "local name = vim.api.nvim_buf_get_name(0) return { name, vim.fn.line('.') }"

    def opens(name: str) -> None:
        before = editor.lua("return vim.fn.bufnr()")
        editor.command(f"ClaudeSessions {name}")
        eventually(lambda: editor.lua("return vim.fn.bufnr()") != before, f"the output of {name}")
        assert editor.lua(shown) == [f"bellboard://{name}", 1]

    opens("answers")
    text = " ".join(line.strip() for line in editor.shows("typed into").lines)
    whole = editor.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), ' ')")
    assert " ".join(whole.split()) in " ".join(text.split())
    opens("answers")
    opens("tmux")
    editor.shows("bellboard://tmux")
    assert editor.lua(windows) == 2
    editor.command("wincmd p | tabnew")
    opens("answers")
    assert editor.lua(windows) == 3
    editor.command("nnoremap qx x | set notimeout")
    editor.press("q")  # a mapping of the user that begins with it is not waited for
    eventually(lambda: editor.lua(windows) == 2, "its window is closed")
    assert editor.lua(shown)[0] == ""
    editor.lua("require('bellboard.popup').window({ 'one', 'two' }, 'explain', true)")
    assert editor.lua(shown) == ["bellboard://explain", 2]
    editor.command("ClaudeSessions board")
    for _ in range(3):  # opened, closed, opened
        editor.lua("require('bellboard.board.preview').toggle()")
    assert editor.lua("return vim.fn.bufwinid('bellboard://preview')") > 0
    assert editor.messages() == ""


def test_every_subcommand_has_a_mapping_in_every_mode(shared: Editors, version: str) -> None:
    """Except those that need an argument; each with a description, and in the manual."""
    editor = shared(version, QUIET, ui=False)
    table = editor.lua(
        "return vim.tbl_map(function(s) return { s[1], s[2] } end, "
        "require('bellboard.command').subcommands)"
    )
    verbs = {name for name, arguments in table if not arguments.startswith("{")}
    for mode in "nxit":
        maps = {
            match[1]: m.get("desc")
            for m in editor.nvim.api.get_keymap(mode)
            if (match := re.fullmatch(r"<Plug>\(bellboard-(\w+)\)", m["lhs"]))
        }
        assert (mode, set(maps)) == (mode, verbs)
        assert all(maps.values())
    assert {verb for verb in verbs if f"*<Plug>(bellboard-{verb})*" not in MANUAL} == set()
    editor.lua("require('bellboard').run = function(...) _G.ran = { ... } end")
    editor.lua("vim.keymap.set('i', '<C-g>', '<Plug>(bellboard-board)')")
    editor.press("3ix<C-g>")
    eventually(lambda: editor.lua("return _G.ran") == ["board", 1], "from insert mode")


#: What `request` and `answer` report about a session.
REPORTED = """
local got, called = {}, ...
require('bellboard').request(called, function(_, why) got[1] = why end)
require('bellboard').answer(called, 'allow', function(reply) got[2] = reply.why end)
return got
"""


def test_whoever_asks_for_a_session_that_is_not_found_gets_the_reason(shared: Editors) -> None:
    """A script that waits for the reply would wait for ever."""
    editor = shared(config=QUIET, ui=False)
    Host(editor).push(blocked("api", id="a"), blocked("api", id="b"))
    nobody = 'no session "nobody"; :ClaudeSessions lists all'
    assert editor.lua(REPORTED, "nobody") == [nobody, nobody]
    two = '2 sessions match "api": a, b; give one of these ids'
    assert editor.lua(REPORTED, "api") == [two, two]


@pytest.mark.parametrize("state", ["on", "off"])
def test_answers_is_one_message_and_opens_nothing(shared: Editors, state: str) -> None:
    """The help explains the setting; the focus stays where it is."""
    editor = shared(config={**QUIET, "python": sys.executable}, columns=80)
    editor.command(f"ClaudeSessions answers {state}")
    editor.shows(f"bellboard: answers {state}: ")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
