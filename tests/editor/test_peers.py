"""Other plugins, the real ones: lualine and Telescope."""

from __future__ import annotations

from typing import Any

from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import HIDDEN_TERMINAL, QUIET, Host, blocked, session
from rig.waiting import eventually


def test_lualine_shows_the_component(nvim: Editors) -> None:
    """{ 'bellboard' } in a section; updates redraw it at once."""
    editor = nvim(config=QUIET, peers=["neovim-lualine"], lua="vim.o.tgc = true", columns=100)
    host = Host(editor)
    editor.lua(
        "require('lualine').setup({ options = { icons_enabled = false, refresh = "
        "{ statusline = 100000 } }, sections = { lualine_x = { 'bellboard' } } })"
    )
    host.push(blocked(), session("working"))
    picture = editor.shows("!1 api: rm -rf build 2m  *1")
    (ours,) = picture.groups_of("!1")
    assert "urgent" in ours
    assert picture.groups_of(" api: rm -rf build 2m") == ["lualine_c_normal"]
    assert color(editor, ours, "bg") == color(editor, "lualine_c_normal", "bg")
    host.push(session("completed"))
    editor.shows("+1")


def color(editor: Editor, group: str, part: str) -> Any:
    """Return the color of a highlight group, with links resolved."""
    return editor.lua("return vim.api.nvim_get_hl(0, { name = ..., link = false })", group).get(
        part
    )


TELESCOPE = ["neovim-plenary", "neovim-telescope"]


def opened(nvim: Editors, *sessions: dict[str, Any]) -> tuple[Editor, Host, str]:
    """Start a Neovim with a terminal, and the real Telescope showing these sessions."""
    quiet = {**QUIET, "float": {"enabled": False}}
    editor = nvim(config=quiet, peers=TELESCOPE, columns=160, lines=40)
    host = Host(editor)
    tty = editor.lua(HIDDEN_TERMINAL)
    lines = "return vim.api.nvim_buf_get_lines(terminal, 0, -1, false)"
    eventually(lambda: "what it asks" in editor.lua(lines), "what the terminal shows")
    host.push(blocked("api", "rm -rf build", tty=tty, branch="main"), *sessions)
    editor.lua("""
      _G.told = {}
      require('bellboard.process.talk').tell = function(line)
        table.insert(told, vim.json.encode(line))
      end
    """)
    editor.command("Telescope bellboard")
    editor.shows("Agent sessions")
    return editor, host, tty


def test_telescope_finds_previews_and_jumps(nvim: Editors) -> None:
    """`:Telescope bellboard`: typing filters, the terminal is previewed, <CR> jumps."""
    editor, _, tty = opened(nvim, session("working", project="web", title="login"))
    picture = editor.shows("* web")
    assert picture.groups_of("* web")[0] == "Directory"
    editor.shows("what it asks")
    editor.press("login")
    editor.hides("Bash  rm -rf build")
    editor.press("<BS>" * 5 + "rm")
    editor.shows("Bash  rm -rf build")
    editor.press("<CR>")
    eventually(lambda: editor.lua("return vim.fn.bufnr() == terminal"), "the terminal")
    assert '{"goto":{"session_id":"api"}}' in editor.lua("return told")
    editor.lua("vim.cmd.stopinsert()")
    assert editor.lua("return vim.api.nvim_get_chan_info(vim.bo[terminal].channel).pty") == tty
    assert editor.messages() == ""


def test_telescope_has_the_keys_of_the_board(nvim: Editors) -> None:
    """Alt and the letter; the open picker shows the result at once."""
    editor, host, _ = opened(nvim)
    editor.shows("api  main")
    editor.press("<M-p>")
    eventually(lambda: "park" in editor.lua("return table.concat(told)"), "parked")
    editor.press("<M-d>")
    eventually(lambda: "goto" in editor.lua("return table.concat(told)"), "seen")
    host.push(session("working", "api", project="api", branch="main", tool="Edit", detail="x.py"))
    editor.shows("Edit  x.py")
    editor.hides("Bash  rm -rf build")
    editor.press("<M-s>")
    editor.shows("Snooze api for")


def test_telescope_lists_those_that_rest(nvim: Editors) -> None:
    """To write to one of them: the latest change first; a key writes from any list."""
    rest = [session("idle", sid, ago=ago, project=sid) for sid, ago in (("old", 900), ("new", 60))]
    editor, host, _ = opened(nvim, *rest)
    editor.press("<M-r>")
    editor.shows(" to api · main · terminal")
    editor.shows("<C-s> send")
    editor.press("<Esc>q")
    editor.hides(" to api")
    open = "require('telescope').extensions.bellboard.bellboard({ filter = ..., run = function(s)"
    editor.lua(f"{open} _G.chosen = s.session_id end }})", "!status:blocked")
    editor.shows(". new")
    assert "Bash  rm -rf" not in editor.screen.text
    host.push(blocked("api"), *rest)
    editor.press("<CR>")
    eventually(lambda: editor.lua("return chosen") == "new", "the latest one")


def test_in_telescope_the_same_session_stays_selected(nvim: Editors) -> None:
    """Other rows may come above it; a search starts at the best match again."""
    others = [session("working", name, project=name) for name in ("web", "worker")]
    editor, host, _ = opened(nvim, *others)
    editor.shows("worker")
    selected = "return require('telescope.actions.state').get_selected_entry().value.session_id"
    editor.press("<C-p>")
    eventually(lambda: editor.lua(selected) == "web", "the second row")
    host.push(blocked("new", "npm publish"), blocked("api", "rm -rf build"), *others)
    editor.shows("npm publish")
    eventually(lambda: editor.lua(selected) == "web", "the same session")
    editor.press("worker")
    eventually(lambda: editor.lua(selected) == "worker", "the best match")


def test_telescope_without_sessions_says_what_to_do(nvim: Editors) -> None:
    """Like the picker: the board shows the next step."""
    editor = nvim(config={**QUIET, "claude": "sh"}, peers=TELESCOPE, columns=100)
    Host(editor).push()
    editor.command("Telescope bellboard")
    editor.shows("No sessions yet")
