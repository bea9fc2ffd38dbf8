"""The statusline: its text, its safety and its cost."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from rig.fixtures import Editors
from rig.home import Home
from rig.waiting import eventually
from sample import QUIET, Host, blocked, house, session

pytestmark = pytest.mark.editor

PLAIN = "return require('bellboard').statusline({ plain = true })"
HOSTILE = "%{system('touch /tmp/x')}%#Error#%!v%@f@ \x1b]0;t\x07\n\u202e\u009b2J"


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ([], ""),
        ([session("idle")], ".1"),
        ([session("error")], "x1"),
        ([session("completed")], "+1"),
        ([session("unknown")], "~1"),
        ([session("working"), session("working", "b")], "*2"),
        ([session("background")], "&1"),
        ([session("idle"), session("working")], "*1"),
        ([blocked()], "!1 api: rm -rf build 2m"),
        ([blocked(ago=5)], "!1 api: rm -rf build"),
        ([blocked(), session("working"), session("idle")], "!1 api: rm -rf build 2m  *1"),
        ([blocked(), session("idle")], "!1 api: rm -rf build 2m"),
        ([blocked(kind="question", detail="Which one?")], "?1 api: Which one? 2m"),
        ([blocked(), blocked("web", ago=250)], "!2 4m"),
        ([blocked("a" * 40, "b" * 90)], "!1 aaaaaaaaaaaaaaa…: bbbbbbbbbbbbbbb… 2m"),
        ([blocked("日本語", "ファイルを全部消してもよろしいですか今すぐに")], None),
        (house(), "!1 ?1 2m  x1 +1 *1 &1"),
    ],
)
def test_it_says_who_needs_you_for_what_and_since_when(
    nvim: Editors, version: str, sessions: list[dict[str, Any]], expected: str | None
) -> None:
    """Most urgent first, empty if there is nothing, never wider than its limit."""
    editor = nvim(version, QUIET, ui=False)
    Host(editor).push(*sessions)
    text = editor.lua(PLAIN)
    if expected is not None:
        assert text == expected
    assert editor.lua("return vim.api.nvim_strwidth(...)", text) <= 40
    assert editor.lua("return vim.g.bellboard_status") == text
    shown = editor.nvim.api.eval_statusline("%{%v:lua.require'bellboard'.statusline()%}", {})
    assert shown["str"] == text


def test_it_is_coloured_by_urgency(nvim: Editors, version: str) -> None:
    """Each count in the group of its status, the rest in the statusline's own."""
    editor = nvim(version, QUIET)
    Host(editor).push(blocked(), session("working"))
    picture = editor.shows("!1 api: rm -rf build 2m  *1")
    assert picture.groups_of("!1") == ["BellboardBlockedOnStatusLine"]
    assert picture.groups_of("*1") == ["BellboardWorkingOnStatusLine"]
    assert picture.groups_of("api: rm -rf build 2m") == ["StatusLine"]


FACE = "return vim.api.nvim_get_hl(0, { name = require('bellboard.ink').on(...) })"


def test_its_colours_can_be_read_on_any_background(nvim: Editors, version: str) -> None:
    """On that of the bar, with enough contrast, in full colours and in sixteen."""
    editor = nvim(version, QUIET, columns=60)
    Host(editor).push(blocked())
    groups = ["Blocked", "Error", "Completed", "Working", "Idle", "Stale"]
    for scheme in ("default", "habamax", "retrobox", "blue", "delek", "quiet"):
        for background in ("dark", "light"):
            editor.command(f"set background={background} | colorscheme {scheme}")
            for ground in ("StatusLine", "StatusLineNC", "NormalFloat"):
                for group in groups:
                    face = editor.lua(FACE, f"Bellboard{group}", ground)
                    ends = face.get("fg"), face.get("bg", editor.lua(NORMAL, ground))
                    assert contrast(*ends) >= 3.9, (scheme, background, ground, group, face)
    editor.lua("vim.api.nvim_set_hl(0, 'StatusLine', { cterm = { reverse = true } })")
    editor.lua("vim.api.nvim_set_hl(0, 'BellboardBlocked', { ctermfg = 9 })")
    editor.command("doautocmd ColorScheme")
    face = editor.lua(FACE, "BellboardBlocked", "StatusLine")
    assert face["cterm"] == {"reverse": True}
    assert face["ctermbg"] in (1, 9)


def test_its_colours_return_after_they_were_cleared(nvim: Editors, version: str) -> None:
    """A theme that is loaded by a function may clear them, and cause no event."""
    editor = nvim(version, QUIET, columns=60)
    host = Host(editor)
    host.push(blocked())
    face = editor.lua(FACE, "BellboardBlocked", "StatusLine")
    editor.command("highlight clear")
    host.push(blocked())
    assert face and editor.lua(FACE, "BellboardBlocked", "StatusLine") == face


def test_its_colours_follow_the_background_of_the_default_colours(
    nvim: Editors, version: str
) -> None:
    """Neovim changes these itself as a terminal reports its background: no colorscheme is read."""
    editor = nvim(version, QUIET, columns=60)
    Host(editor).push(blocked())
    bar = "return vim.api.nvim_get_hl(0, { name = 'StatusLine', link = false })"
    seen = set()
    for background in ("light", "dark"):
        editor.command(f"set background={background}")
        face, plain = editor.lua(FACE, "BellboardBlocked", "StatusLine"), editor.lua(bar)
        assert face["bg"] == plain["bg"], background
        seen.add(face["bg"])
    assert len(seen) == 2


NORMAL = """
local own = vim.api.nvim_get_hl(0, { name = ..., link = false })
local normal = vim.api.nvim_get_hl(0, { name = 'Normal', link = false })
local bg = own.reverse and (own.fg or normal.fg) or own.bg or normal.bg
return bg or vim.o.background == 'dark' and 0 or 0xffffff
"""


def contrast(one: int, other: int) -> float:
    """As WCAG counts it."""

    def light(rgb: int) -> float:
        parts = [part / 255 for part in rgb.to_bytes(3, "big")]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_it_takes_the_background_it_stands_on(nvim: Editors, version: str) -> None:
    """Of the current window's bar, of another window's, or of the group that it is given."""
    editor = nvim(version, QUIET, columns=100, lines=12)
    Host(editor).push(session("working"))
    line = "%{%v:lua.require'bellboard'.statusline()%} "
    editor.command("vsplit | set laststatus=2")
    editor.lua("vim.o.statusline = ...", line)
    picture = editor.shows("*1")
    row = next(n for n, text in enumerate(picture.lines) if "*1" in text)
    bars = {"BellboardWorkingOnStatusLine", "BellboardWorkingOnStatusLineNC"}
    eventually(lambda: bars <= set(editor.screen.groups[row]), "both bars drawn")
    bare = "return vim.api.nvim_eval_statusline(require('bellboard').statusline(...), {}).str"
    assert editor.lua(bare, {"on": "TabLineFill"}) == "*1"
    given = editor.lua("return require('bellboard').statusline(...)", {"on": "TabLineFill"})
    assert given.endswith("%#TabLineFill#")
    assert "%#BellboardWorkingOnTabLineFill#" in given


def test_it_shows_in_the_statusline_of_neovim_itself(
    nvim: Editors, home: Home, version: str
) -> None:
    """Beside all that was there; with one of your own, a message says once how to add it."""
    shutil.rmtree(home.root / "state/nvim/bellboard")
    for its_own, said in (("", False), ("%f mine", True), ("%f mine", False)):
        editor = nvim(version, {**QUIET, "statusline": {"auto": True}}, columns=100)
        editor.lua("if ... ~= '' then vim.o.statusline = ... end", its_own)
        host = Host(editor, "require('bellboard')._attach()")
        host.push(blocked(), session("working"))
        if said:
            editor.shows("for your statusline, see :help bellboard-statusline")
        elif its_own:
            assert not editor.lua("return vim.fn.exists('#bellboard.indicator')")
            assert editor.lua("return vim.o.statusline") == its_own
        else:
            row = editor.shows("!1 api: rm -rf build 2m  *1  ").lines[-2]
            assert row.startswith("[No Name]") and row.rstrip().endswith("0,0-1          All")
        editor.close()


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


def test_the_dictionary_has_every_count(nvim: Editors) -> None:
    """g:bellboard_status_dict is for statuslines that do their own formatting."""
    editor = nvim(config=QUIET, ui=False)
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


def test_ages_advance_without_a_push(nvim: Editors) -> None:
    """The next change of a visible age is scheduled, and listeners are informed."""
    editor = nvim(config=QUIET)
    Host(editor).push(blocked(ago=58.5))
    editor.shows("!1 api: rm -rf build ")
    editor.shows("!1 api: rm -rf build 1m")


def test_a_terminal_says_what_its_session_does(nvim: Editors, version: str) -> None:
    """b:bellboard_status of the terminal buffer, found by tty, for winbar and statusline."""
    editor = nvim(version, QUIET, ui=False)
    tty = editor.lua(
        "vim.cmd('terminal sleep 60') return vim.api.nvim_get_chan_info(vim.bo.channel).pty"
    )
    Host(editor).push(blocked(tty=tty))
    assert editor.lua("return vim.b.bellboard_status") == "! Bash rm -rf build"


def test_icons_are_configurable(nvim: Editors) -> None:
    """Named sets, or a table with ASCII for what it leaves out."""
    editor = nvim(config={**QUIET, "icons": {"blocked": "B", "working": "W"}}, ui=False)
    Host(editor).push(*house())
    assert editor.lua(PLAIN) == "B1 ?1 2m  x1 +1 W1 &1"
