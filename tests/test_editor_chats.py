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
