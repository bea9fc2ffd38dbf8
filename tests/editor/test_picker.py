"""The picker's call of vim.ui.select: what it passes, and where previews come from."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.host.sample import QUIET, Host, blocked, house, session
from rig.tmux import Server
from rig.waiting import eventually

CALM = {**QUIET, "float": {"enabled": False}}

SELECT = """
vim.ui.select = function(items, opts, on_choice)
  _G.asked = { kind = opts.kind, prompt = opts.prompt, lines = {}, ids = {}, drawn = {} }
  for place, item in ipairs(items) do
    asked.lines[place] = opts.format_item(item)
    asked.drawn[place] = opts.format_item(item, true)
    asked.ids[place] = item.session_id
  end
  _G.choose = function(place) on_choice(items[place], place) end
  _G.preview = function(place)
    local given = opts.preview_item(items[place])
    vim.api.nvim_win_set_buf(0, given.buf)
    vim.api.nvim_win_set_cursor(0, given.pos)
  end
end
"""
SHOWN = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"


def asked(editor: Editor) -> dict[str, Any]:
    """Return the arguments of `:ClaudeSessions` for vim.ui.select."""
    editor.lua(SELECT)
    editor.command("ClaudeSessions")
    found: dict[str, Any] = editor.lua("return asked")
    return found


BORDERS = """
local found = {}
for _, win in ipairs(vim.api.nvim_list_wins()) do
  if vim.api.nvim_win_get_config(win).relative ~= '' then
    local group = vim.wo[win].winhighlight:match('FloatBorder:(%w+)') or 'FloatBorder'
    local face = vim.api.nvim_get_hl(0, { name = group, link = false })
    found[#found + 1] = { face.fg or -1, face.bg or -1 }
  end
end
return found
"""


def test_borders_can_be_seen_in_a_colorscheme_that_paints_them_solid(
    nvim: Editors, version: str
) -> None:
    """Such as habamax, which lazy.nvim sets while it installs."""
    editor = nvim(version, CALM, columns=110)
    editor.lua("vim.o.termguicolors = true vim.cmd.colorscheme('habamax')")
    editor.lua("vim.api.nvim_set_hl(0, 'FloatBorder', { fg = '#767676', bg = '#767676' })")
    editor.lua("vim.api.nvim_exec_autocmds('ColorScheme', {})")
    Host(editor).push(*house())
    editor.press(":ClaudeSessions<CR>")
    editor.shows("Filter:")
    editor.press("<Esc>")
    editor.lua("require('bellboard.board').open('float')")
    editor.press("g?")
    borders = eventually(lambda: editor.lua(BORDERS)[1:] and editor.lua(BORDERS), "the help")
    assert len(borders) == 2
    assert [each for each in borders if each[0] == each[1]] == []


def test_it_is_one_searchable_select(shared: Editors, version: str) -> None:
    """Most urgent first, then oldest first; a picker that can draw gets colored chunks."""
    editor = shared(version, CALM, columns=170)
    Host(editor).push(*house())
    told = asked(editor)
    assert told["kind"] == "bellboard"
    order = ["api", "web", "error", "completed", "working", "background", "idle"]
    assert told["ids"] == order
    words = [" ".join(line.split()) for line in told["lines"]]
    assert words[0] == "! acme/api main add rate limits Bash rm -rf build && make all 2m tmux %4"
    asks = "? acme/web fix/login login redirect Which database should the tests use? 1m"
    assert words[1] == asks
    assert max(map(len, told["lines"])) <= 102
    assert told["drawn"][0][0] == ["! ", "BellboardBlocked"]
    editor.lua("choose(nil)")
    assert editor.messages() == ""


@pytest.mark.parametrize("title", ["", "Build the app"])
@pytest.mark.parametrize(
    ("agents", "names"),
    [(("make", "ninja"), ["make", "ninja"]), (("make", "make"), ["6079", "6137"])],
)
def test_programs_of_one_folder_are_told_apart(
    shared: Editors, agents: list[str], names: list[str], title: str
) -> None:
    """Their names differ, or else their processes, which a long text does not cut."""
    editor = shared(config=CALM, columns=140)
    told = zip((6079, 6137), agents, ("compiling", "linking " * 30 * (not title)), strict=True)
    rows = [
        session("working", f"process-{pid}-5", project="app", agent=x, detail=text, title=title)
        for pid, x, text in told
    ]
    Host(editor).push(*rows)
    lines = asked(editor)["lines"]
    assert [line.split()[1:3] for line in lines] == [["app", name] for name in names]
    assert len({line.index("working") for line in lines}) == 1
    assert [title in line for line in lines] == [True, True]


def test_a_program_is_found_by_its_name(shared: Editors) -> None:
    editor = shared(config=CALM, columns=80)
    rows = [
        session("working", x, repository=f"src/{x}", agent=agent)
        for x, agent in (("a", "make"), ("b", "ninja"))
    ]
    Host(editor).push(*rows)
    editor.press(":ClaudeSessions<CR>")
    editor.shows("Filter:")
    editor.press("ninja")
    editor.hides("src/a")
    editor.shows("src/b")


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_lines_fit_the_screen(shared: Editors, columns: int) -> None:
    """The question fits into 40 columns, and lines are not stretched over 200."""
    editor = shared(config=CALM, columns=columns)
    Host(editor).push(*house())
    lines = asked(editor)["lines"]
    assert max(map(len, lines)) <= max(columns * 0.6, 45)
    assert "Bash  rm" in lines[0]


def test_choosing_a_session_jumps_to_it(shared: Editors, version: str) -> None:
    editor = shared(version, CALM)
    tty = terminal(editor, "echo hello")
    Host(editor).push(session("working", "a"), blocked("b", id="b", tty=tty))
    asked(editor)
    editor.lua("choose(1)")
    eventually(lambda: editor.lua("return vim.fn.bufnr() == terminal"), "the terminal")


def test_without_a_picker_the_board_opens_with_its_filter(shared: Editors, version: str) -> None:
    """Typing filters, also by words that no row shows; <CR> jumps, <Esc> closes."""
    editor = shared(version, CALM, columns=80, lines=20)
    tty = terminal(editor, "echo what it asks")
    host = Host(editor)
    rest = house()[1:]
    host.push(blocked("api", branch="main", tty=tty), *rest)
    editor.command("nnoremap gs <Cmd>ClaudeSessions<CR>")
    editor.press("gs")
    editor.shows("Filter:")
    editor.press("PERM api")
    editor.hides("infra")
    host.push(blocked("api", "npm publish", branch="main", tty=tty), *rest)
    editor.shows("npm publish")
    editor.press("<CR>")
    eventually(lambda: editor.lua("return vim.fn.bufnr() == terminal"), "the terminal")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    editor.press("<C-\\><C-n>gs")
    editor.shows("infra")  # the filter was that of this choice
    editor.press("<Esc>")
    eventually(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 1, "closed")
    assert editor.messages() == ""


@pytest.mark.parametrize("keys", ["", "i", "v", ":terminal cat<CR>i"])
def test_it_opens_from_every_mode(shared: Editors, version: str, keys: str) -> None:
    """And goes to the session that <Down> has reached."""
    editor = shared(version, CALM, columns=80, lines=20)
    editor.lua("require('bellboard.jump').to = function(id) _G.went = id end")
    editor.lua("for mode in ('nivt'):gmatch('.') do "
        "vim.keymap.set(mode, '<F2>', '<Plug>(bellboard-pick)') end")  # fmt: skip
    Host(editor).push(blocked("api"), blocked("web"), blocked("wiki"))
    editor.press(keys)
    editor.press("<F2>")
    editor.shows("Filter:")
    editor.press("<Down><Down><C-p><CR>")
    eventually(lambda: editor.lua("return went") == "web", "the session")
    assert editor.messages() == ""


def test_it_has_keys_of_the_board_under_alt(nvim: Editors, version: str) -> None:
    """Typed text stays after keys that do not close the picker."""
    editor = nvim(version, CALM, columns=80, lines=20)
    editor.lua("""
      _G.told = {}
      require('bellboard.process.talk').tell = function(line)
        table.insert(told, vim.json.encode(line))
      end
      require('bellboard.answer').to = function(id) _G.answered = id end
    """)
    Host(editor).push(blocked("api"), blocked("web"))
    editor.press(":ClaudeSessions<CR>")
    editor.shows("Filter:")
    editor.press("we")
    editor.hides("api")
    editor.press("<M-p>")
    eventually(lambda: "park" in editor.lua("return table.concat(told)"), "parked")
    editor.press("<M-d>")
    eventually(lambda: "goto" in editor.lua("return table.concat(told)"), "seen")
    editor.shows("Filter: we")
    editor.press("<M-a>")
    eventually(lambda: editor.lua("return answered") == "web", "its request")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    assert editor.lua("return vim.fn.maparg('<M-a>', 'c')") == ""


def test_an_open_board_is_the_picker(shared: Editors, version: str) -> None:
    """The board stays open, with its own filter."""
    editor = shared(version, CALM, columns=80, lines=24)
    Host(editor).push(blocked("api"), blocked("web"))
    editor.press(":ClaudeSessions board<CR>fweb<CR>")
    editor.hides("! api")
    editor.press("<C-w>p:ClaudeSessions<CR>")
    editor.shows("! api")
    editor.press("<Esc>")
    editor.hides("! api")
    editor.shows("filter: web")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 2
    assert editor.lua("return vim.bo.filetype") == ""


def terminal(editor: Editor, command: str) -> str:
    """Open a hidden terminal, wait until it shows what its command echoes, and return its device.

    A preview copies the current contents, which are empty before the shell has started.
    """
    tty: str = editor.lua(
        "vim.cmd.file('here') vim.cmd.terminal(...) _G.terminal = vim.fn.bufnr() "
        "vim.cmd.buffer('here') return vim.api.nvim_get_chan_info(vim.bo[terminal].channel).pty",
        f"{command}; sleep 600",
    )
    last = command.rpartition("echo ")[2]
    lines = "return vim.api.nvim_buf_get_lines(terminal, 0, -1, false)"
    eventually(lambda: last in editor.lua(lines), f"{last!r} in the terminal")
    return tty


def previews(editor: Editor, text: str, place: int = 1) -> str:
    """Wait until the preview shows that; return all that it shows."""

    def look() -> str:
        shown = str(editor.lua(SHOWN))
        assert text in shown, shown
        return shown

    editor.lua("vim.schedule(function() preview(...) end)".replace("...", str(place)))
    return eventually(look)


def test_a_hidden_terminal_is_copied_not_shown(shared: Editors, version: str) -> None:
    """The same text in another buffer; the agent's own screen keeps its size."""
    editor = shared(version, CALM)
    tty = terminal(editor, "stty size; echo what it asks")
    Host(editor).push(blocked("api", tty=tty))
    asked(editor)
    editor.command("botright 5new")
    text = previews(editor, "what it asks")
    size = text.split("\n", 1)[0]
    assert editor.lua("return vim.fn.win_findbuf(terminal)") == []
    assert editor.lua("return vim.bo.modifiable") is False
    assert editor.lua("return vim.fn.line('.') == vim.fn.line('$')")
    asked_now = subprocess.run(
        ["stty", "-F", tty, "size"], capture_output=True, text=True, check=True
    )
    assert asked_now.stdout.strip() == size


@pytest.mark.tmux
def test_a_pane_is_captured_only_if_it_is_the_sessions(nvim: Editors, tmux: Server) -> None:
    """By socket and target; a pane that now holds another terminal is not shown."""
    pane = tmux.open(["sh", "-c", "echo a question; sleep 600"])
    pane.shows("a question")
    editor = nvim(config=CALM, columns=110)
    host = Host(editor, serves=True)
    known = {"tmux": str(tmux.socket), "pane": pane.id}
    host.push(
        blocked("api", tty=pane.tty, ago=300, **known),
        blocked("other", tty="/dev/pts/9999", **known),
    )
    asked(editor)
    assert previews(editor, "a question") == "a question"
    previews(editor, "/dev/pts/9999", 2)
    eventually(lambda: "test:0.0" in "".join(asked(editor)["lines"]), "the pane by its name")


def test_a_terminal_of_another_neovim_is_copied_from_there(shared: Editors, version: str) -> None:
    """Over its socket, without showing anything there."""
    there, here = shared(version, CALM, ui=False), shared(config=CALM)
    tty = terminal(there, "echo over there")
    Host(here, serves=True).push(blocked("api", tty=tty, nvim=there.lua("return vim.v.servername")))
    asked(here)
    assert "over there" in previews(here, "over there")
    assert there.messages() == ""


def transcript(home: Home, *entries: dict[str, Any] | str) -> Path:
    """Write a transcript of these entries; a string is written as it is."""
    lines = [e if isinstance(e, str) else json.dumps(e, separators=(",", ":")) for e in entries]
    path = home.claude / "session.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def says(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, "message": {"content": content}}


def test_a_transcript_is_read_from_its_end(nvim: Editors, home: Home, version: str) -> None:
    """The last 128 kB: messages, and tools by name; private and subagents' lines are skipped."""
    tool = {"type": "tool_use", "name": "Bash", "input": {"command": "X", "description": "list"}}
    path = transcript(
        home,
        says("user", "out of reach"),
        says("assistant", [{"type": "text", "text": "y" * 140_000}]),
        {"type": "api-request", "message": {"content": "SECRET"}},
        says("assistant", "SUBAGENT", isSidechain=True),
        says("user", "META", isMeta=True),
        "{broken",
        says("assistant", [5, None, "x", [], True]),
        says("user", "tidy up\nplease"),
        says("assistant", [{"type": "text", "text": "I shall.\x1b[2J"}, tool]),
        says("user", [{"type": "tool_result", "content": "RESULT"}]),
    )
    editor = nvim(version, CALM)
    Host(editor, serves=True).push(session("working", agent="claude", transcript=str(path)))
    asked(editor)
    text = previews(editor, "I shall.")
    assert text == "> tidy up\n> please\n\nI shall.\n\n* Bash list"


@pytest.mark.parametrize("what", ["fifo", "folder", "missing", "relative", "empty", "foreign"])
def test_a_path_that_is_not_a_transcript_is_not_read(nvim: Editors, home: Home, what: str) -> None:
    """Never waited for: what is known of the session is shown instead."""
    path = home.root / "odd.jsonl"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "empty":
        path.touch()
    place = {"relative": "odd.jsonl", "foreign": "/proc/1/environ"}.get(what, str(path))
    editor = nvim(config=CALM)
    known = {"agent": "claude", "last_message": "all done", "cwd": "/srv"}
    Host(editor, serves=True).push(session("completed", transcript=place, **known))
    asked(editor)
    assert "last message  all done" in previews(editor, "/srv")
    assert "= 200" not in editor.lua(SHOWN)
