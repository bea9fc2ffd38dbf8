"""Chats inside Neovim: the events that their plugins document, and what the board then shows."""

from __future__ import annotations

from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.waiting import eventually
from test_editor_live import hosted

pytestmark = pytest.mark.editor

#: Makes the buffer of a chat, which stays hidden.
CHAT = "return vim.api.nvim_create_buf(true, true)"
SAY = """
local name, data = ...
vim.api.nvim_exec_autocmds('User', { pattern = 'CodeCompanion' .. name, data = data })"""
SHOWN = """
return vim.tbl_map(function(s)
  return { s.status, s.agent, s.detail or s.tool or '' }
end, require('bellboard').sessions())"""

#: Stand-ins with the state that the plugins keep: `set` changes it, and writes into the chat.
PLUGINS = {
    "avante": """
_G.chat = vim.api.nvim_create_buf(false, true)
local sidebar = { containers = { result = { bufnr = chat } }, chat_history = { messages = {} } }
package.loaded.avante = { sidebars = { [vim.api.nvim_get_current_tabpage()] = sidebar } }
local helpers = {}
package.loaded['avante.llm_tools.helpers'] = helpers
vim.bo[chat].filetype = 'Avante'
local in_popup = false
local printed = '\\n\\nError: { code = "x", message = "quota exceeded", status = "INTERNAL" }'
local errors = { '\\n\\nError: quota exceeded', printed }
function _G.set(state)
  local states = { stopped = 'cancelled', failed = 'failed', done = 'succeeded' }
  sidebar.current_state = states[state] or 'generating'
  if state == 'failed' then
    table.insert(errors, 1, table.remove(errors)) -- one after the other
  end
  sidebar.chat_history.messages = { { message = { content = errors[1] } } }
  sidebar.permission_handler, helpers.confirm_popup = nil, nil
  if state == 'asking' and in_popup then
    helpers.confirm_popup = { _container_winid = vim.api.nvim_get_current_win() }
  elseif state == 'asking' then
    sidebar.permission_handler, in_popup = function() end, true
  end
  if state == 'working' then
    vim.api.nvim_buf_set_lines(chat, -1, -1, false, { 'more' })
  end
end""",
    "agentic": """
_G.chat = vim.api.nvim_create_buf(false, true)
local session = { widget = { buf_nrs = { chat = chat } }, permission_manager = { pending = {} } }
package.loaded['agentic.session_registry'] = { sessions = { session } }
vim.bo[chat].filetype = 'AgenticChat'
local ends = {
  stopped = '### x Generation stopped by the user request',
  failed = '### x Agent finished with error: quota exceeded',
}
local is_old = false -- how it keeps what it asks: versions differ
function _G.set(state)
  session.is_generating = state == 'working' or state == 'asking'
  local asked = state == 'asking' and { request = { toolCall = { title = 'Run ls' } } } or nil
  local now = is_old and { current_request = asked } or { pending = { id = asked } }
  session.permission_manager = now
  is_old = is_old or state == 'asking'
  local said = vim.split(state == 'working' and 'more' or ends[state] or '### done', '\\n')
  vim.api.nvim_buf_set_lines(chat, -1, -1, false, state == 'asking' and {} or { '', unpack(said) })
end""",
}


class Chat:
    """A chat of codecompanion.nvim."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.buf = editor.lua(CHAT)

    def says(self, event: str, **data: Any) -> None:
        self.editor.lua(SAY, event, {"bufnr": self.buf, "id": 7, **data})


def shows(editor: Editor, *statuses: str) -> list[list[str]]:
    """Wait until the sessions of the editor have these statuses, the most urgent first."""

    def look() -> list[list[str]]:
        shown: list[list[str]] = editor.lua(SHOWN)
        assert list(statuses) == [s for s, *_ in shown]
        return shown or [[]]

    return eventually(look, ", ".join(statuses))


def test_a_chat_is_on_the_board_and_jumped_to(nvim: Editors, home: Home, version: str) -> None:
    """Two chats of one Neovim are two sessions; a jump shows the one that asks."""
    editor, other = hosted(nvim(version, {})), hosted(nvim(version, {}))
    chats = [Chat(editor) for _ in range(2)]
    for chat in chats:
        chat.says("ChatCreated")
    shows(editor, "idle", "idle")
    chats[0].says("ChatSubmitted")
    shows(editor, "working", "idle")
    chats[0].says("ToolApprovalRequested", name="run_command")
    [asks, _] = shows(editor, "blocked", "idle")
    assert asks[1] == "codecompanion"
    shows(other, "blocked", "idle")
    before = editor.nvim.current.buffer.number
    editor.command("ClaudeSessions next")
    eventually(lambda: editor.nvim.current.buffer.number == chats[0].buf, "the chat")
    assert editor.nvim.request("nvim_get_mode")["mode"] == "n"
    editor.nvim.current.buffer = before
    other.command("ClaudeSessions next")
    eventually(lambda: editor.nvim.current.buffer.number == chats[0].buf, "the chat, from there")
    chats[0].says("ToolApprovalFinished", choice="Accept")
    shows(editor, "working", "idle")
    chats[1].says("ChatClosed")
    shows(editor, "working")
    assert (editor.messages(), home.root.exists()) == ("", True)
    editor.close()
    shows(other)


def test_a_chat_stays_in_the_project_where_it_began(nvim: Editors, version: str) -> None:
    """Tab pages may be in folders of their own, and the user in another one when something ends."""
    editor = hosted(nvim(version, {}))
    here, there = (editor.home.project / name for name in ("here", "there"))
    for folder in (here, there):
        folder.mkdir()
    unseen, seen = Chat(editor), Chat(editor)
    editor.command(f"tcd {here}")
    unseen.says("ChatSubmitted")
    editor.command(f"sbuffer {seen.buf}")
    editor.command(f"tabnew | tcd {there}")
    seen.says("ChatSubmitted")
    shows(editor, "working", "working")
    for chat in (unseen, seen):
        chat.says("ChatDone")
    shows(editor, "completed", "completed")
    folders = "return vim.tbl_map(function(s) return s.cwd end, require('bellboard').sessions())"
    assert editor.lua(folders) == [str(here)] * 2


def test_a_chat_that_calls_tools_completes_once(nvim: Editors, version: str) -> None:
    """Between the tools and the request with their results it works on."""
    editor = hosted(nvim(version, {}))
    editor.lua("""
      _G.seen = {}
      vim.api.nvim_create_autocmd('User', { pattern = 'BellboardTransition', callback = function(e)
        table.insert(seen, e.data.to or 'gone')
      end })""")
    chat = Chat(editor)
    chat.says("ChatSubmitted")
    shows(editor, "working")
    editor.lua(  # as the plugin does: one after the other
        f"""for _, name in ipairs({{ 'ToolsFinished', 'ChatSubmitted', 'ChatDone' }}) do
          vim.api.nvim_exec_autocmds('User', {{
            pattern = 'CodeCompanion' .. name, data = {{ bufnr = {chat.buf} }},
          }})
        end"""
    )
    shows(editor, "completed")
    eventually(lambda: "completed" in editor.lua("return seen"), "its announcement")
    assert editor.lua("return seen") == ["working", "completed"]


def test_a_chat_that_fails_or_is_stopped_has_not_completed(nvim: Editors) -> None:
    """A request for something else is none of its own."""
    editor = hosted(nvim(config={}))
    chat = Chat(editor)
    chat.says("ChatSubmitted")
    chat.says("RequestFinished", status="error", interaction="inline")
    chat.says("RequestFinished", status="error", interaction="chat", error="quota exceeded")
    chat.says("ChatDone")
    [[_, _, detail]] = shows(editor, "error")
    assert detail == "quota exceeded"
    chat.says("ChatSubmitted")
    shows(editor, "working")
    chat.says("ChatStopped")
    chat.says("ChatDone")
    shows(editor, "idle")


def test_a_question_that_is_closed_after_a_stop_does_not_go_on(nvim: Editors) -> None:
    """With an agent over ACP, a stop is announced first, then that its question is cancelled."""
    editor = hosted(nvim(config={}))
    chat = Chat(editor)
    chat.says("ChatSubmitted")
    chat.says("ToolApprovalRequested", name="edit")
    shows(editor, "blocked")
    chat.says("ChatStopped")
    chat.says("ToolApprovalFinished", choice="cancelled")
    chat.says("ChatDone")
    shows(editor, "idle")
    chat.says("ChatSubmitted")
    shows(editor, "working")


@pytest.mark.parametrize("plugin", ["avante", "agentic"])
def test_a_chat_that_announces_nothing_is_read(nvim: Editors, version: str, plugin: str) -> None:
    """Each moment of a turn, in one turn or another; a jump shows the chat, its end removes it."""
    editor = hosted(nvim(version, {}))
    editor.lua(PLUGINS[plugin])
    shows(editor, "idle")

    def becomes(state: str, *statuses: str) -> list[str]:
        editor.lua("set(...)", state)
        return shows(editor, *statuses)[0]

    becomes("working", "working")
    assert becomes("asking", "blocked")[1] == plugin
    editor.command("ClaudeSessions next")
    eventually(lambda: editor.nvim.current.buffer.number == editor.lua("return chat"), "the chat")
    for _ in range(2):
        becomes("working", "working")
        assert becomes("failed", "error")[2] == "quota exceeded"
    becomes("working", "working")
    becomes("stopped", "idle")
    becomes("working", "working")
    becomes("asking", "blocked")
    becomes("done", "completed")
    editor.command("enew | bwipeout! " + str(editor.lua("return chat")))
    shows(editor)
    assert editor.messages() == ""


def test_a_plugin_that_has_changed_is_not_read(nvim: Editors) -> None:
    """Its chats are shown at rest, and nothing breaks."""
    editor = hosted(nvim(config={}))
    for plugin in PLUGINS.values():
        editor.lua(plugin)
    shows(editor, "idle", "idle")
    editor.lua("""
      package.loaded.avante.sidebars = 1
      package.loaded['agentic.session_registry'].sessions = { { widget = 1 } }
      set('working')""")
    editor.lua("package.loaded.avante, package.loaded['agentic.session_registry'] = true, 0")
    editor.lua("set('asking')")
    shows(editor, "idle", "idle")
    assert editor.messages() == ""


def test_events_of_another_form_are_ignored(nvim: Editors) -> None:
    """A plugin may change: nothing breaks, and nothing is shown."""
    editor = hosted(nvim(config={}))
    chat = Chat(editor)
    for data in ({"bufnr": "no number"}, {"bufnr": None}):
        editor.lua(SAY, "ChatSubmitted", data)
    editor.lua("vim.api.nvim_exec_autocmds('User', { pattern = 'CodeCompanionChatDone' })")
    chat.says("SomethingNew")
    chat.says("ToolApprovalRequested", name={"not": "a text"})
    shows(editor, "blocked")
    assert editor.messages() == ""
