"""Chats inside Neovim: the events that their plugins document, and what the board then shows."""

from __future__ import annotations

from typing import Any

from editor.test_live import hosted
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.waiting import eventually

#: Makes the buffer of a chat, which stays hidden.
CHAT = "return vim.api.nvim_create_buf(true, true)"
SAY = """
local name, data = ...
vim.api.nvim_exec_autocmds('User', { pattern = 'CodeCompanion' .. name, data = data })"""
SHOWN = """
return vim.tbl_map(function(s)
  return { s.status, s.agent, s.detail or s.tool or '' }
end, require('bellboard').sessions())"""

#: The chat of agentic.nvim in this tab page, and what its hooks are called with.
AGENTIC = """
_G.chat = vim.api.nvim_create_buf(false, true)
vim.bo[chat].filetype = 'AgenticChat'
vim.cmd('sbuffer ' .. chat .. ' | wincmd p')
local hooks = require('bellboard').agentic_hooks({
  on_request_permission = function(data)
    return data.request.toolCall.kind == 'read' and 'allow_once' or nil
  end,
})
local tab = vim.api.nvim_get_current_tabpage()
function _G.say(name, data)
  data.session_id, data.tab_page_id = 'acp', tab
  return hooks['on_' .. name](data)
end
function _G.update(kind, data)
  data.sessionUpdate = kind
  say('session_update', { update = data })
end"""


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


def test_a_chat_of_agentic_reports_by_its_hooks(nvim: Editors, version: str) -> None:
    """Each moment of a turn; a jump shows the chat, its end removes it."""
    editor = hosted(nvim(version, {}))
    editor.lua(AGENTIC)

    def says(name: str, **data: Any) -> Any:
        return editor.lua("return say(...)", name, data)

    def asks(kind: str) -> Any:
        call = {"toolCallId": "t1", "title": "Run ls", "kind": kind}
        return says("request_permission", request={"toolCall": call})

    says("prompt_submit", prompt="go")
    shows(editor, "working")
    assert asks("read") == "allow_once"
    assert asks("execute") is None
    [[_, agent, tool]] = shows(editor, "blocked")
    assert (agent, tool) == ("agentic", "Run ls")
    editor.command("tabnew | ClaudeSessions next")
    eventually(lambda: editor.nvim.current.buffer.number == editor.lua("return chat"), "the chat")
    update = "update(...)"
    editor.lua(update, "tool_call_update", {"toolCallId": "t2", "status": "completed"})
    editor.lua(update, "tool_call_update", {"toolCallId": "t1", "status": "in_progress"})
    shows(editor, "working")
    says("response_complete", success=False, error={"message": "quota exceeded"})
    [[_, _, detail]] = shows(editor, "error")
    assert detail == "quota exceeded"
    says("prompt_submit", prompt="again")
    shows(editor, "working")
    says("response_complete", success=True)
    editor.command("tabnew")
    shows(editor, "completed")
    editor.command("bwipeout! " + str(editor.lua("return chat")))
    shows(editor)
    assert editor.messages() == ""


def test_a_chat_reports_the_states_of_its_protocol(nvim: Editors) -> None:
    """Version 2 of the Agent Client Protocol says running, requires_action and idle."""
    editor = hosted(nvim(config={}))
    editor.lua(AGENTIC)
    for state, status in (
        ({"state": "running"}, "working"),
        ({"state": "requires_action"}, "blocked"),
        ({"state": "running"}, "working"),
        ({"state": "idle", "stopReason": "cancelled"}, "idle"),
        ({"state": "running"}, "working"),
        ({"state": "something new"}, "working"),
        ({"state": "idle", "stopReason": "end_turn"}, "completed"),
    ):
        editor.lua("update(...)", "state_update", state)
        shows(editor, status)
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
