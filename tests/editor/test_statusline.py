"""The statusline: its text, its safety and its cost."""

from __future__ import annotations

import re
import shutil
from typing import Any, NamedTuple

import pytest

from rig.fixtures import Editors
from rig.home import Home
from rig.host.sample import QUIET, Host, activity, blocked, house, session
from rig.waiting import eventually

CALM = {**QUIET, "float": {"enabled": False}}
PLAIN = "return require('bellboard').statusline({ plain = true })"
HOSTILE = "%{system('touch /tmp/x')}%#Error#%!v%@f@ \x1b]0;t\x07\n\u202e\u009b2J"


class Row(NamedTuple):
    """What a statusline shows of these sessions, and the start of it that is highlighted."""

    sessions: list[dict[str, Any]]
    text: str
    urgent: str = ""
    options: dict[str, Any] | None = None


#: A new case of the statusline is a row here.
ROWS = {
    "nobody": Row([], ""),
    "idle": Row([session("idle")], ".1"),
    "error": Row([session("error", project="infra", detail="overloaded")], "x1"),
    "completed": Row([session("completed", last_message="Removed 214 unused rules")], "+1"),
    "unknown": Row([session("unknown")], "~1"),
    "two work": Row([session("working"), session("working", "b")], "*2"),
    "background": Row([session("background", background=[{"id": "s", "type": "shell"}])], "&1"),
    "idle ones are not counted": Row([session("idle"), session("working")], "*1"),
    "nor beside a question": Row([blocked(), session("idle")], "!1 api: rm -rf build 2m", "!1"),
    "quiet ones are": Row(activity(), "x1 *4 (1 quiet)"),
    "blocked": Row([blocked()], "!1 api: rm -rf build 2m", "!1"),
    "blocked just now": Row([blocked(ago=5)], "!1 api: rm -rf build", "!1"),
    "blocked comes first": Row(
        [blocked(), session("working"), session("idle")], "!1 api: rm -rf build 2m  *1", "!1"
    ),
    "question": Row(
        [blocked("web", "Which database?", kind="question", tool=None)],
        "?1 web: Which database? 2m",
        "?1",
    ),
    "two blocked, the longest": Row([blocked(), blocked("web", ago=250)], "!2 4m", "!2"),
    "a parked one does not call, and comes last": Row(
        [
            blocked(ago=250),
            blocked("web"),
            session("completed"),
            blocked("docs", ago=900, markers=["parked"]),
        ],
        "!2 4m  +1 (1 parked)",
        "!2",
    ),
    "parked ones only": Row([blocked(markers=["parked"]), session("idle")], ".1 (1 parked)"),
    "one asks beside a parked one": Row(
        [blocked(), blocked("docs", markers=["parked"])],
        "!1 api: rm -rf build 2m  (1 parked)",
        "!1",
    ),
    "long": Row([blocked("a" * 40, "b" * 90)], "!1 aaaaaaaaaaaaaaa…: bbbbbbbbbbbbbbb… 2m", "!1"),
    "wide": Row(
        [blocked("日本語", "ファイルを全部消してもよろしいですか今すぐに")],
        "!1 日本語: ファイルを全部消してもよ… 2m",
        "!1",
    ),
    "one of each": Row(house(), "!1 ?1 2m  x1 +1 *1 &1", "!1 ?1"),
    "icons of your own": Row(
        house(), "B1 ?1 2m  x1 +1 W1 &1", "B1 ?1", {"icons": {"blocked": "B", "working": "W"}}
    ),
    "without detail": Row([blocked()], "!1 2m", "!1", {"statusline": {"detail": False}}),
    "narrow": Row([blocked()], "!1 api: rm -rf b… 2m", "!1", {"statusline": {"width": 20}}),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_says_who_needs_you_for_what_and_since_when(
    shared: Editors, version: str, name: str
) -> None:
    """Never wider than its limit; all but what is urgent has the color of the bar."""
    row = ROWS[name]
    editor = shared(version, CALM, lines=8)
    options = row.options or {}
    editor.lua("require('bellboard').setup(...)", options)
    Host(editor).push(*row.sessions)
    width = editor.lua("return vim.api.nvim_strwidth(vim.g.bellboard_status)")
    assert width <= options.get("statusline", {}).get("width", 40)
    shown = editor.nvim.api.eval_statusline("%{%v:lua.require'bellboard'.statusline()%}", {})
    found = (editor.lua(PLAIN), editor.lua("return vim.g.bellboard_status"), shown["str"])
    assert found == (row.text,) * 3

    def drawn() -> bool:
        bar = editor.screen.lines[-2]
        assert bar.strip() == row.text
        return True

    eventually(drawn)
    if row.urgent:
        assert editor.screen.groups_of(row.urgent) == ["ErrorMsg"]
    if rest := row.text.removeprefix(row.urgent):
        assert editor.screen.groups_of(rest) == ["StatusLine"]


SCHEMES = "return vim.fn.getcompletion('', 'color')"
TOKEN = "vim.cmd('redraw!') vim.o.title, vim.o.titlestring = true, ..."


def test_counts_can_be_read_in_every_colorscheme_of_neovim(nvim: Editors, version: str) -> None:
    """In the statusline, on the board, also on the cursor's line, and in the float.

    Some colorschemes give their own comments and warnings no more contrast than that.
    """
    editor = nvim(version, {**QUIET, "board": {"size": 20}}, columns=160, lines=40)
    Host(editor).push(*house())
    editor.command("ClaudeSessions board")
    editor.shows("2 need you")
    editor.lua("vim.fn.search('x acme/infra')")
    counts = ["!1 ?1 2m  x1 +1 *1 &1", "2 need you"]
    counts += ["! acme/api", "? acme/web", "x acme/infra", "+ acme/web", "* cache", "& main"]
    found = {}
    for scheme in editor.lua(SCHEMES):
        for background in ("dark", "light"):
            editor.command(f"set background={background} | colorscheme {scheme}")
            token = f"{scheme} {background}"
            editor.lua(TOKEN, token)
            eventually(lambda token=token: editor.title == token, token)
            for text in counts:
                colors = editor.screen.colors_of(text)
                found[token, text] = min(contrast(fg, bg) for fg, bg in colors)
    assert len(found) > 200
    assert {row: value for row, value in found.items() if value < 2} == {}


def test_its_colors_return_after_they_were_cleared(shared: Editors, version: str) -> None:
    """A theme that is loaded by a function may clear colors without an event."""
    editor = shared(version, CALM, lines=8)
    Host(editor).push(blocked())
    link = "return vim.api.nvim_get_hl(0, { name = 'BellboardBlocked' }).link"
    assert editor.lua(link) == "ErrorMsg"
    editor.command("highlight clear")
    assert editor.lua(link) == "ErrorMsg"


def contrast(one: int, other: int) -> float:
    """The contrast of two colors as WCAG defines it."""

    def light(rgb: int) -> float:
        parts = [part / 255 for part in rgb.to_bytes(3, "big")]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_it_returns_to_the_group_around_it(shared: Editors) -> None:
    """The group is that of the bar, or a given one."""
    editor = shared(config=CALM, lines=8)
    Host(editor).push(blocked())
    text = "return require('bellboard').statusline(...)"
    assert "%#BellboardBlocked#!1%* api" in editor.lua(text)
    assert "%#BellboardBlocked#!1%#TabLineFill# api" in editor.lua(text, {"on": "TabLineFill"})


def test_the_user_may_write_it(shared: Editors) -> None:
    """By a function of all sessions; percent signs are text, and an error is reported once."""
    own = "{ statusline = { format = function(all) return #all .. '%m ' .. %s end } }"
    editor = shared(config=CALM, lines=8)
    host = Host(editor)
    editor.lua(f"require('bellboard').setup({own.replace('%s', 'all[1].words.project')})")
    host.push(blocked())
    assert editor.lua(PLAIN) == "1\N{FULLWIDTH PERCENT SIGN}m api"
    shown = editor.nvim.api.eval_statusline("%{%v:lua.require'bellboard'.statusline()%}", {})
    assert shown["str"] == "1%m api"
    editor.lua(f"require('bellboard').setup({own.replace('%s', 'nobody.words')})")
    for _ in range(2):
        host.push(blocked("web"))
        assert editor.lua(PLAIN) == "!1 web: rm -rf build 2m"
    assert editor.messages().count("statusline.format failed: ") == 1


def test_it_shows_in_the_statusline_of_neovim_itself(
    nvim: Editors, home: Home, version: str
) -> None:
    """Beside all that was there; with one of your own, a message says once how to add it."""
    shutil.rmtree(home.root / "state/nvim/bellboard")
    for its_own, said in (("", False), ("%f mine", True), ("%f mine", False)):
        editor = nvim(version, {**QUIET, "statusline": {"auto": True}}, columns=100)
        editor.lua("if ... ~= '' then vim.o.statusline = ... end", its_own)
        host = Host(editor, "require('bellboard.start').attach()")
        host.push(blocked(), session("working"))
        if said:
            editor.shows("for your statusline, see :help bellboard-statusline")
        elif its_own:
            assert not editor.lua("return vim.fn.exists('#bellboard.statusline')")
            assert editor.lua("return vim.o.statusline") == its_own
        else:
            row = editor.shows("!1 api: rm -rf build 2m  *1  ").lines[-2]
            assert row.startswith("[No Name]") and row.rstrip().endswith("0,0-1          All")
        editor.close()


def test_it_leaves_room_for_the_name_of_the_file_in_a_narrow_window(
    nvim: Editors, version: str
) -> None:
    """Each window has its own text; a statusline of all windows is as wide as they are."""
    editor = nvim(version, {**QUIET, "statusline": {"auto": True}}, columns=100, lines=8)
    Host(editor, "require('bellboard.start').attach()").push(blocked(ago=4000), session("working"))
    editor.command("file a.py | vsplit | vertical resize 40")
    row = editor.shows(" !1 api 1h  *1  0,0-1").lines[-2]
    assert re.match(r"a\.py +!1 1h  0,0-1 +All a\.py +!1 api", row)
    editor.command("set laststatus=3")
    editor.shows("!1 api: rm -rf build 1h  *1  0,0-1")


def test_nothing_from_an_agent_is_executed(nvim: Editors, version: str) -> None:
    """Hostile names and questions are text in the statusline, in g: and in a buffer."""
    editor = nvim(version, {**QUIET, "statusline": {"width": 140}}, columns=160)
    Host(editor).push(blocked(HOSTILE, HOSTILE, branch=HOSTILE, title=HOSTILE))
    shown = editor.nvim.api.eval_statusline("%{%v:lua.require'bellboard'.statusline()%}", {})
    assert "%{system('touch /tmp/x')}%#Error#%!v%@f@" in shown["str"]
    as_it_is = editor.nvim.api.eval_statusline(editor.lua("return vim.g.bellboard_status"), {})
    assert "{system('touch /tmp/x')}" in as_it_is["str"]
    assert not set("\x1b\x07\n\u202e\u009b") & set(shown["str"] + as_it_is["str"])
    editor.command("ClaudeSessions board")
    picture = editor.shows("g? help")
    assert not set("\x1b\x07\u202e\u009b") & set(picture.text)


def test_the_dictionary_has_every_count(shared: Editors) -> None:
    """g:bellboard_status_dict is for statuslines that do their own formatting."""
    editor = shared(config=CALM, lines=8)
    Host(editor).push(*house())
    given = editor.lua("return vim.g.bellboard_status_dict")
    assert given == {
        "text": "!1 ?1 2m  x1 +1 *1 &1",
        "total": 7,
        "stale": False,
        "blocked": 2,
        "error": 1,
        "completed": 1,
        "unknown": 0,
        "working": 1,
        "background": 1,
        "idle": 1,
        "project": "api",
        "asks": "rm -rf build && make all",
        "kind": "permission",
        "since": given["since"],
    }


REDRAWS = """
local real = vim.cmd.redrawstatus
_G.redraws = 0
vim.cmd.redrawstatus = function(...) redraws = redraws + 1 return real(...) end
"""


def test_it_is_redrawn_only_when_its_text_changes(nvim: Editors) -> None:
    """A push that changes nothing visible causes no redraw."""
    editor = nvim(config=QUIET)
    host = Host(editor)
    host.push(blocked(), session("working"))
    editor.lua(REDRAWS)
    host.push(blocked(), session("working", detail="another file"))
    assert editor.lua("return redraws") == 0
    host.push(session("working"))
    assert editor.lua("return redraws") == 1


def test_ages_advance_without_a_push(shared: Editors) -> None:
    """The next change of a visible age is scheduled, and listeners are informed."""
    editor = shared(config=CALM, lines=8)
    Host(editor).push(blocked(ago=58.5))
    editor.shows("!1 api: rm -rf build ")
    editor.shows("!1 api: rm -rf build 1m")


def test_a_terminal_says_what_its_session_does(shared: Editors, version: str) -> None:
    """b:bellboard_status of the terminal buffer, found by tty, for winbar and statusline."""
    editor = shared(version, CALM, lines=8)
    tty = editor.lua(
        "vim.cmd('terminal sleep 60') return vim.api.nvim_get_chan_info(vim.bo.channel).pty"
    )
    Host(editor).push(blocked(tty=tty))
    assert editor.lua("return vim.b.bellboard_status") == "! Bash rm -rf build"
