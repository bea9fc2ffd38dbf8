"""A file that an agent has changed, in buffers of the user."""

from __future__ import annotations

import time

from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, session
from rig.waiting import eventually

SHOWN = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, false), '|')"


def test_what_an_agent_changed_is_read_again(nvim: Editors, version: str) -> None:
    """Never over unsaved changes, against 'noautoread', while typing, or with a question."""
    editor = nvim(version, QUIET)
    project = editor.home.project
    names = ["plain", "unsaved", "kept", "typed", "linked", "other", "gone"]
    files = {name: editor.home.file(f"{name}.txt", "before\n") for name in names}
    (project / "link").symlink_to(files["linked"])
    for name in names:
        editor.command(f"edit {files[name] if name != 'linked' else project / 'link'}")
    editor.lua("vim.bo[vim.fn.bufnr('kept.txt')].autoread = false")
    editor.command("buffer unsaved.txt | call setline(1, 'mine') | buffer typed.txt")
    host = Host(editor)
    host.push(session("working", edited={str(files["plain"]): 1.0}))
    for file in files.values():
        file.write_text("after, and longer\n")
    files["gone"].unlink()
    editor.press("i")
    eventually(lambda: editor.nvim.request("nvim_get_mode")["mode"] == "i", "typing")
    named = [file for name, file in files.items() if name != "other"]
    host.push(session("working", edited={str(file): time.time() for file in named}))
    assert editor.lua(SHOWN, "typed.txt") == "before"
    editor.press("<Esc>")
    for name in ("plain.txt", "typed.txt", "link"):
        eventually(lambda name=name: editor.lua(SHOWN, name) == "after, and longer", name)
    assert editor.lua(SHOWN, "unsaved.txt") == "mine"
    assert [editor.lua(SHOWN, f"{name}.txt") for name in ("kept", "other", "gone")] == [
        "before"
    ] * 3
    assert editor.lua("return vim.bo[vim.fn.bufnr('unsaved.txt')].modified")
    assert editor.messages() == ""


#: Notes which files the disk is asked about.
LOOKED = """
_G.looked = {}
local real = vim.uv.fs_realpath
vim.uv.fs_realpath = function(name)
  table.insert(looked, vim.fs.basename(name))
  return real(name)
end
"""


def test_the_disk_is_not_asked_about_buffers_that_are_not_read(nvim: Editors) -> None:
    """Neovim waits for it: a session file may restore hundreds, on a mount that is slow."""
    editor = nvim(config=QUIET)
    files = {name: editor.home.file(f"{name}.txt", "before\n") for name in ("one", "two", "three")}
    host = Host(editor)
    host.push(session("working", edited={}))
    editor.command(f"badd {files['three']} | edit {files['two']} | edit {files['one']}")
    editor.command("terminal true")
    editor.lua(LOOKED)
    files["one"].write_text("after, and longer\n")
    host.push(session("working", edited={str(files["one"]): time.time()}))
    eventually(lambda: editor.lua(SHOWN, "one.txt") == "after, and longer", "what was changed")
    assert editor.lua("return looked") == ["two.txt"]
