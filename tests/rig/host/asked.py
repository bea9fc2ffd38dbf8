"""Requests as the background process decodes them, and one that answers as it does."""

from __future__ import annotations

from typing import Any

from bellboard.core.request import with_keys
from rig.editor import Editor
from rig.host.sample import QUIET, blocked
from rig.waiting import eventually

#: Plays the background process: has requests by session, keeps answers, and says what came of them.
#: `after` is what the terminal shows once one is answered; nothing while it is `busy`.
PLAYED = """
_G.asked, _G.answers, _G.requests, _G.outcome = {}, {}, ..., {}
require('bellboard.process.talk').ask = function(what, request, done)
  table.insert(asked, what)
  vim.schedule(function()
    local found = requests[request.session_id]
    if what == 'request' then
      local same = found and not found.busy
        and (request.shown or request.id == '' or request.id == found.id)
      done(same and { ok = true, request = vim.deepcopy(found) }
        or { ok = false, why = 'answered by Neovim 4711' })
    elseif what == 'answer' then
      request.screen = nil
      table.insert(answers, request)
      requests[request.session_id] = found and found.after or found
      done(outcome[request.session_id]
        or { ok = true, way = 'hook', outcome = 'taken', text = 'it went on after 0.1 s' })
    elseif what == 'preview' then
      done({ ok = false, why = 'nothing shows it' })
    end
  end)
end
"""
CALM = {**QUIET, "float": {"enabled": False}, "answer": {"key_delay": 0}}
#: Keeps notifications in `said`.
SAID = "_G.said = {} vim.notify = function(text) table.insert(said, text) end"
#: Keeps what is asked of the background process back until `release` is called: of this kind, of
#: this session.
SLOW = """
local kind, id = ...
_G.held = {}
local host = require('bellboard.process.talk')
local ask = host.ask
host.ask = function(what, given, done)
  if what ~= kind or given.session_id ~= id then
    return ask(what, given, done)
  end
  table.insert(held, function() ask(what, given, done) end)
end
function _G.release()
  for _, reply in ipairs(held) do reply() end
end
"""
LOCAL = ".claude/settings.local.json"
DENY = {"id": "deny", "words": "No, and say why", "needs": "message?"}
STOP = {"id": "stop", "words": "No, and stop the turn"}
FOLDER = {
    "id": "folder",
    "words": "Yes, and also work in `/srv/api`",
    "note": "still asks for commands and edits; this session only",
}
EDITS = {
    "id": "edits",
    "words": "Yes, and accept ALL EDITS of this session",
    "note": "no longer asks for edits and common file commands",
}
EDIT = {"id": "edit", "words": "Yes, but run another command", "needs": "input"}


def request(session: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the request of a session that is blocked."""
    common = {
        "id": session["request"],
        "session_id": session["session_id"],
        "agent": "claude",
        "digest": "0123456789abcdef",
        "kind": session["kind"],
        "asked_at": 0.0,
        "complete": True,
        "ways": [{"name": "hook", "words": "by its hook"}],
        "way": "hook",
    }
    asked: dict[str, Any] = with_keys({"request": {**common, **more}})["request"]
    return asked


def asks(project: str = "api", **more: Any) -> dict[str, Any]:
    """Return a session that waits for a request."""
    return blocked(project, request=f"{project}-1", asked_at=1.0, **more)


def command(session: dict[str, Any], text: str, *warnings: str) -> dict[str, Any]:
    """Return a request to run a command."""
    part = {"kind": "command", "text": text, "warnings": [*warnings]}
    return request(
        session,
        title="Run a command",
        parts=[part, {"kind": "text", "label": "Why", "text": "Build it from scratch"}],
        choices=[
            {"id": "allow", "words": "Yes, this once"},
            {
                "id": "always",
                "words": "Yes, and do not ask again for commands like `make *`",
                "note": f"written to /srv/api/{LOCAL}",
            },
            EDIT,
            DENY,
            STOP,
        ],
    )


def touch(session: dict[str, Any]) -> dict[str, Any]:
    """Return a request to run a command whose suggestions have no key of their own."""
    choices = [{"id": "allow", "words": "Yes, this once"}, FOLDER, EDITS, EDIT, DENY, STOP]
    more = ["Not offered here: setMode bypassPermissions session"]
    return {**command(session, "touch a"), "choices": choices, "more": more}


def edit(session: dict[str, Any], path: str, old: str, new: str) -> dict[str, Any]:
    """Return a request to edit a file."""
    part = {"kind": "diff", "label": "Edit", "path": path, "old": old, "new": new}
    choices = [{"id": "allow", "words": "Yes, this once"}, DENY, STOP]
    return request(session, title="Edit a file", parts=[part], choices=choices)


def questions(session: dict[str, Any]) -> dict[str, Any]:
    """Return two questions, the second with several answers."""
    return request(
        session,
        title="Answer questions",
        questions=[
            {
                "header": "Database",
                "text": "Which database should the tests use?",
                "options": [
                    {"label": "Postgres", "description": "As in production, slower to start"},
                    {"label": "SQLite", "description": "In memory"},
                ],
            },
            {
                "header": "Colours",
                "text": "Which colours?",
                "many": True,
                "options": [{"label": "Red"}, {"label": "Green"}, {"label": "Blue"}],
            },
        ],
        choices=[
            {"id": "choose", "words": "Answer", "needs": "answers"},
            {"id": "deny", "words": "Do not answer, and say why", "needs": "message?"},
            STOP,
        ],
    )


def question(session: dict[str, Any]) -> dict[str, Any]:
    """Return a question with one answer."""
    made = questions(session)
    return {**made, "title": "Answer a question", "questions": made["questions"][:1]}


def form(session: dict[str, Any]) -> dict[str, Any]:
    """Return a form of an MCP server."""
    return request(
        session,
        title="Fill in a form of tickets",
        parts=[{"kind": "text", "text": "Who takes the ticket?"}],
        fields=[
            {"name": "name", "title": "Name", "type": "string", "required": True},
            {"name": "days", "title": "Days", "type": "integer"},
            {"name": "urgent", "title": "Urgent", "type": "boolean", "default": False},
            {"name": "team", "options": [{"label": "core"}, {"label": "web"}]},
        ],
        choices=[
            {"id": "fill", "words": "Send the form", "needs": "content"},
            {"id": "decline", "words": "Decline"},
        ],
    )


def plan(session: dict[str, Any]) -> dict[str, Any]:
    """Return a plan to approve."""
    text = "# Rate limits\n\n1. Add `limits`\n2. **Test** it\n\n```python\nlimit = 10\n```"
    return request(
        session,
        title="Approve a plan",
        parts=[{"kind": "plan", "text": text}],
        choices=[
            {"id": "approve", "words": "Yes, and ask before each edit"},
            {**EDITS, "id": "approve-edits"},
            {"id": "keep", "words": "No, keep planning", "needs": "message"},
            STOP,
        ],
    )


def play(editor: Editor, *requests: dict[str, Any]) -> None:
    """Answer for the background process, with these requests."""
    editor.lua(PLAYED, {each["session_id"]: each for each in requests})


def opened(editor: Editor, name: str, title: str) -> None:
    editor.command(f"ClaudeSessions answer {name}")
    editor.shows(f"{name}: {title}")
    eventually(lambda: editor.lua("return vim.fn.mode()") == "n", "Normal mode")


def typed(editor: Editor, title: str, text: str) -> None:
    """Type into the window with that title, and send it."""
    editor.shows(f"╭ {title}")
    eventually(lambda: editor.lua("return vim.fn.mode()") == "i", "insert mode")
    editor.press(text if text.endswith("<CR>") else text + "<C-s>")


def sent(editor: Editor) -> dict[str, Any]:
    """Wait for an answer and for the end of the view; return what was chosen."""
    eventually(lambda: editor.lua("return #answers == 1"), "an answer")
    (answer,) = editor.lua("local sent = answers _G.answers = {} return sent")
    assert answer["digest"] == "0123456789abcdef"
    assert answer["request"] == f"{answer['session_id']}-1"
    eventually(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 1, "the view to close")
    about = ("digest", "request", "session_id")
    return {name: value for name, value in answer.items() if name not in about}


def unanswered(editor: Editor) -> None:
    """Nothing was sent by the keys so far."""
    pressed(editor)
    assert editor.lua("return answers") == []


def counts(editor: Editor) -> None:
    """Wait until keys count."""
    eventually(lambda: editor.lua("return require('bellboard.answer.keys').can()"), "keys to count")


def delays(editor: Editor, seconds: float) -> None:
    """Set how long a pause must be until keys count."""
    editor.lua("require('bellboard').setup({ answer = { key_delay = ... } })", seconds)


def pressed(editor: Editor) -> None:
    """Wait until all keys so far have had their effect."""
    editor.press(":let g:pressed = get(g:, 'pressed') + 1<CR>")
    eventually(lambda: editor.lua("return vim.g.pressed"), "a command")
    editor.lua("vim.g.pressed = nil")


def said(editor: Editor, text: str) -> None:
    eventually(lambda: text in str(editor.lua("return _G.said")), text)
