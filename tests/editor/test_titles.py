"""The titles of terminals of a real Neovim, in which a CLI shows its state."""

from __future__ import annotations

from editor.test_live import ROOT, hosted
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.waiting import eventually

STATUS = "return (require('bellboard').session('live') or {}).status"
WATCHES = "return require('bellboard').session('live').title_tells"
#: Notes the title that was sent last.
LISTEN = """
_G.sent = ''
local host = require('bellboard.process.talk')
local notify = host.notify
host.notify = function(method, ...)
  _G.sent = method == 'title' and select(3, ...) or sent
  return notify(method, ...)
end"""
SENT = "return sent"
#: A CLI that asks, goes on once Enter is pressed, which no hook says, and ends its turn after
#: another.
AGENT = r"""
said() {
  printf '{"session_id":"live","cwd":"/","hook_event_name":"%s","tool_name":"Bash",
    "tool_input":{"command":"make"}}' "$2" | "$emit" "$2" $$ "$1"
}
title() { printf '\033]2;%s\007%s\r\n' "$1" "$1"; }
title '⠋ proj'; said "$1" UserPromptSubmit
title '[ ! ] Action Required | proj'; said "$1" PermissionRequest
read -r key
for mark in ⠋ ⠙ ⠹ ⠸ ⠼ ⠴ ⠦ ⠧ ⠇ ⠏; do title "$mark proj"; sleep 0.05; done
read -r key
title proj; said "$1" Stop
read -r key
"""


def opened(editor: Editor, home: Home, agent: str) -> None:
    """Run the CLI in a hidden terminal."""
    script = home.root / "agent.sh"
    script.write_text(f"emit={ROOT / 'hooks/emit'}\n{AGENT}")
    editor.lua(
        "vim.cmd.file('here') vim.cmd.terminal('sh ' .. ...) _G.job = vim.b.terminal_job_id",
        f"{script} {agent}",
    )
    editor.lua("vim.cmd.buffer('here')")


def becomes(editor: Editor, status: str) -> None:
    """Wait until the session has that status."""
    eventually(lambda: editor.lua(STATUS) == status, status)


def test_the_title_of_a_terminal_here_says_what_its_cli_does(
    nvim: Editors, home: Home, version: str
) -> None:
    """A granted permission shows, though no hook reports it."""
    editor = hosted(nvim(version, {}))
    editor.lua(LISTEN)
    opened(editor, home, "codex")
    eventually(lambda: "Action Required" in editor.lua(SENT), "the title of a question")
    becomes(editor, "blocked")
    assert editor.lua(WATCHES)
    editor.lua("vim.fn.chansend(job, '\\r')")
    becomes(editor, "working")
    editor.lua("vim.fn.chansend(job, '\\r')")
    becomes(editor, "completed")
    editor.command("bwipeout! 2")
    assert editor.messages() == ""


def test_the_title_of_another_cli_is_not_read(nvim: Editors, home: Home, version: str) -> None:
    """Whatever the title is, nothing is watched or sent."""
    editor = hosted(nvim(version, {}))
    editor.lua(LISTEN)
    opened(editor, home, "claude")
    becomes(editor, "blocked")
    editor.lua("vim.fn.chansend(job, '\\r')")
    eventually(lambda: "⠏" in editor.lua("return vim.b[2].term_title"), "the last title")
    assert (None, "") == (editor.lua(WATCHES), editor.lua(SENT))


def test_a_new_background_process_gets_the_titles_again(nvim: Editors, home: Home) -> None:
    """The new process knows nothing that was sent to the previous one."""
    editor = hosted(nvim(config={}))
    opened(editor, home, "codex")
    becomes(editor, "blocked")
    editor.lua(LISTEN)
    editor.command("ClaudeSessions process restart")
    eventually(lambda: "Action Required" in editor.lua(SENT), "the title")
