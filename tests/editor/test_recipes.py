"""The recipes of the help, exactly as printed, in a real Neovim.

lualine is the real one, from Debian. heirline and mini.statusline have no package: small stand-ins
implement the part of their documented interface that the recipe uses.
"""

from __future__ import annotations

import re

import pytest

from rig import ROOT
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, blocked, session
from rig.waiting import eventually

MANUAL = (ROOT / "doc/bellboard.txt").read_text()

#: heirline: components in order; one with `update` is evaluated again only after that event.
HEIRLINE = """
package.preload.heirline = function()
  return { setup = function(given)
    for _, part in ipairs(given.statusline) do
      if part.update then
        vim.api.nvim_create_autocmd(part.update[1], { pattern = part.update.pattern,
          callback = function()
            part.kept = nil
            if part.update.callback then part.update.callback() end
          end })
      end
    end
    _G.heirline_line = function()
      local line = ''
      for _, part in ipairs(given.statusline) do
        local text = type(part.provider) == 'string' and part.provider
        part.kept = text or part.update and part.kept or part.provider()
        line = line .. part.kept
      end
      return line
    end
    vim.o.statusline = '%{%v:lua.heirline_line()%}'
  end }
end
"""

#: mini.statusline: `content.active()` is the line; groups are highlighted and padded.
MINI = """
package.preload['mini.statusline'] = function()
  _G.MiniStatusline = { combine_groups = function(groups)
    return table.concat(vim.tbl_map(function(group)
      if type(group) == 'string' then return group end
      local text = table.concat(vim.tbl_filter(function(s) return s ~= '' end, group.strings), ' ')
      return ('%%#%s# %s '):format(group.hl, text)
    end, groups), '')
  end }
  return { setup = function(given)
    _G.MiniStatusline.active = given.content.active
    vim.o.statusline = '%{%v:lua.MiniStatusline.active()%}'
  end }
end
"""


def recipe(name: str) -> tuple[str, str]:
    """Return the language and code of the block after that tag."""
    found = re.search(
        rf"\*bellboard-recipe-{re.escape(name)}\*.*?>(lua|vim)\n(.*?)\n<", MANUAL, re.S
    )
    assert found, f"the manual has no recipe {name}"
    return found[1], found[2]


def follow(editor: Editor, name: str) -> Host:
    """Follow the manual, and return a host."""
    host = Host(editor)
    editor.command("set statusline= laststatus=2")
    language, code = recipe(name)
    if language == "lua":
        editor.lua(code)
    else:
        editor.nvim.request("nvim_exec2", code, {})
    return host


NAMES = re.findall(r"\*bellboard-recipe-([\w-]+)\*", MANUAL)
PREPARED = {"heirline": HEIRLINE, "mini": MINI}
WIDE = "\N{FULLWIDTH PERCENT SIGN}"
ONE, NEXT = "!1 api: 100% 2m  *1", "+1"


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("titlestring", "winbar")])
def test_a_recipe_shows_what_changes(nvim: Editors, version: str, name: str) -> None:
    """Each push is on screen at once, and text from an agent stays text."""
    peers = ["neovim-lualine"] if name == "lualine" else []
    editor = nvim(version, QUIET, peers=peers, lua=PREPARED.get(name, ""), columns=100)
    host = follow(editor, name)
    host.push(blocked(detail="100%"), session("working", project="web"))
    editor.shows(ONE)
    host.push(session("completed", project="web"))
    editor.shows(NEXT)
    editor.hides("!1")
    host.push()
    editor.hides(NEXT)
    assert editor.messages() == ""


def test_the_title_of_the_window_follows(nvim: Editors, version: str) -> None:
    """'titlestring' is evaluated again when the text changes."""
    editor = nvim(version, QUIET)
    host = follow(editor, "titlestring")
    editor.command("file notes")
    for sessions, text in (([blocked()], "!1 api: rm -rf build 2m"), ([session("working")], "*1")):
        host.push(*sessions)
        eventually(lambda text=text: titled(editor, f"notes {text}"), "the title")


def titled(editor: Editor, text: str) -> bool:
    assert text in editor.title, editor.title
    return True


TERMINAL = "vim.cmd('terminal sleep 60') return vim.api.nvim_get_chan_info(vim.bo.channel).pty"


def test_the_winbar_of_a_terminal_says_what_its_session_asks(nvim: Editors, version: str) -> None:
    """Only the session's own terminal has it; a push updates it, the session's end empties it."""
    editor = nvim(version, {**QUIET, "float": {"enabled": False}})
    host = follow(editor, "winbar")
    tty = editor.lua(TERMINAL)
    editor.command("belowright new")
    host.push(blocked(tty=tty), session("working"))
    picture = editor.shows("! Bash rm -rf build")
    assert picture.lines[0] == "! Bash rm -rf build"
    host.push(session("working", tty=tty, tool="Edit", detail="src/%{x}.py"), session("idle"))
    picture = editor.shows("* Edit src/")
    assert picture.lines[0] == f"* Edit src/{WIDE}{{x}}.py"
    host.push(session("idle"))
    eventually(lambda: editor.screen.lines[0] == "", "an empty winbar")


def test_every_recipe_is_run_here() -> None:
    """A new recipe needs no new test, only a stand-in or peer for its plugins."""
    assert {"by-hand", "lualine", "heirline", "mini", "tabline", "winbar"} <= set(NAMES)


@pytest.mark.parametrize(
    ("button", "on", "lands"),
    [
        ("left", "+1", "completed"),
        ("left", "!1", "blocked"),
        ("left", "*2", "working"),
        ("right", "*2", "pick"),
        ("middle", "*2", "board"),
    ],
)
def test_an_item_is_a_button(nvim: Editors, version: str, button: str, on: str, lands: str) -> None:
    """Left goes to the next session of that status, right to the picker, middle to the board."""
    editor = nvim(version, {**QUIET, "float": {"enabled": False}}, columns=100)
    host = follow(editor, "by-hand")
    heard(editor)
    host.push(blocked(), session("completed"), session("working"), session("working", "w", 5))
    picture = editor.shows("!1 api: rm -rf build 2m  +1 *2")
    row = len(picture.lines) - 2
    click(editor, button, row, picture.lines[row].index(on))
    eventually(lambda: editor.lua("return went") == lands, "the click")


def heard(editor: Editor) -> None:
    """Record jumps instead of making them."""
    editor.lua("""
      require('bellboard.jump').to = function(id)
        _G.went = require('bellboard').session(id).session_id:gsub('^api$', 'blocked')
      end
      require('bellboard.command').run = function(verb) _G.went = verb end
      vim.o.mouse = 'a'
    """)


def click(editor: Editor, button: str, row: int, column: int) -> None:
    editor.nvim.api.input_mouse(button, "press", "", 0, row, column)
    editor.nvim.api.input_mouse(button, "release", "", 0, row, column)
