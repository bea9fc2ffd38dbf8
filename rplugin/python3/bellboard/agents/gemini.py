"""Gemini CLI, which waits for its hooks, so only keys can answer it.

AfterAgent also runs after Esc and after errors: its log says how the turn ended.  PreCompress runs
before every request to the model, and compacts nothing.  No hook says that a dialog was answered:
the title does.  A line of the log may repeat the whole chat, and entries may be written again; only
the kinds that end a turn are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..core.events import Event, Origin
from ..core.observing import Want
from ..core.request import Request
from ..core.session import Session
from ..core.text import line, marked
from ..core.untrusted import Facts, object_of, storable, text_of, time_of
from .agent import NAMED, NOTES, Abilities, Ability, Agent, Prompt, Seen, timeouts_of
from .inputs import after_mark
from .installing.hookline import Environ, GlobalHooks, HooksFile
from .parts import Input, part, readable, unanswerable
from .words import FIELDS, Reader, Words, from_key, kind_in, typed_prompt

if TYPE_CHECKING:
    from .need import Observing

TERMINAL: Final = "gemini terminal"  # observed because a process may outlive its terminal
#: Hook → kind.
KINDS: Final[dict[str, str]] = {
    "SessionStart": "start",  # or resume: by its source
    "SessionEnd": "end",
    "BeforeAgent": "prompt",
    "AfterAgent": "rest",
    "BeforeTool": "tool",
    "AfterTool": "tool end",  # or interrupt: by its result
    "Notification": "note",  # or request: by its type
    "PreCompress": "note",
    "BeforeModel": "note",
    "AfterModel": "note",
    "BeforeToolSelection": "note",
}
PERMISSION: Final = "ToolPermission"
QUESTION: Final = "ask_user"
TOOL_CANCELLED: Final = "Command cancelled by user."
#: Fields with the subject of a dialog, best first.
ABOUT: Final = ("command", "filePath", "title")


def about(top: Facts) -> Facts:
    """Return the details of a notification."""
    return object_of(top.get("details"))


def _answer(top: Facts, facts: Facts) -> None:
    facts["message"] = text_of(top, "prompt_response")
    facts.pop("prompt", None)


def _tool_end(top: Facts, facts: Facts) -> str | None:
    shown = text_of(object_of(top.get("tool_response")), "returnDisplay")
    return "interrupt" if shown == TOOL_CANCELLED else None


def _notification(top: Facts, facts: Facts) -> str | None:
    facts["source"] = text_of(top, "notification_type")
    if facts["source"] != PERMISSION:
        return None
    details = about(top)
    is_question = text_of(details, "type") == QUESTION
    facts["asks"] = "question" if is_question else "permission"
    facts["detail"] = next(filter(None, (text_of(details, key) for key in ABOUT)), "")
    return "request"


READ: Final[Mapping[str, Reader]] = {
    "SessionStart": kind_in({"resume": "resume"}, "source"),
    "SessionEnd": from_key("source", "reason"),
    "BeforeAgent": typed_prompt,
    "AfterAgent": _answer,
    "AfterTool": _tool_end,
    "Notification": _notification,
}
WORDS: Final = Words(KINDS, READ, FIELDS)
#: First character of the terminal's title → the state.
SIGNS: Final = {
    "\u2726": Seen("busy"),
    "\u23f2": Seen("busy"),  # a command that prints nothing
    "\u270b": Seen("waiting", "choice"),
    "\u25c7": Seen("idle"),
}
CANCELLED: Final = "Request cancelled."
#: Words of the CLI for a prompt that a user's hook refused, or a turn that it stopped.
STOPPED: Final = ("Agent execution blocked:", "Agent execution stopped:")
HEAD: Final = 200  # bytes that include the type of an entry
TELLING: Final = (b'"type":"error"', b'"type":"info"', b'"type":"warning"')
MARK: Final = re.compile(" [>*] ")  # before its input; the second allows everything
HOOKS: Final = Ability("hooks")
LOG: Final = Ability("log")
#: Measured on 0.61.0.
ABILITIES: Final[Abilities] = {
    "unprompted": HOOKS,
    "working": HOOKS,
    "permission": HOOKS,
    "question": HOOKS,
    "granted": Ability("title", when="in tmux and Neovim; elsewhere when the tool has finished"),
    "denied": LOG,
    "completed": Ability("hooks, log"),
    "interrupted": LOG,
    "failed": LOG,
    "ended": Ability("hooks, processes"),
    "itself": Ability(""),
    "answer": Ability(""),
}

PATIENCE: Final = 10000  # milliseconds that a hook may take


def _folder(environ: Environ) -> Path:
    return Path(environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "")) / ".gemini"


def _obstacles(looked: GlobalHooks) -> Iterator[str]:
    settings = json.loads(looked.text)
    config = settings.get("hooksConfig", {})
    if config.get("enabled") is False:
        yield "disabled by hooksConfig.enabled"
    if (disabled := config.get("disabled")) and isinstance(disabled, list):  # set by /hooks
        names = list(_names(settings["hooks"], looked.ours))
        if off := [name for name in names if name in disabled]:
            yield f"{len(off)} of {len(names)} hooks disabled by hooksConfig.disabled"


def _names(hooks: dict[str, Any], ours: Callable[[str], bool]) -> Iterator[str]:
    """Yield Gemini's name of each handler of ours: its own name, or else its command."""
    groups = (each for listed in hooks.values() if isinstance(listed, list) for each in listed)
    for group in groups:
        for handler in group.get("hooks", ()):
            command = str(handler.get("command"))
            if ours(command):
                yield handler.get("name") or command


class Gemini(Agent):
    """See `Agent`."""

    key = "gemini"
    name = "Gemini CLI"
    program = "gemini"
    prompting = ("--prompt-interactive=",)
    variable = "GEMINI_CLI_HOME"
    tested = (0, 61, 0)
    abilities = ABILITIES
    words = WORDS
    has_titles = True
    queues = True
    timeouts = timeouts_of(WORDS, PATIENCE, "Notification", spared=NOTES)
    named = NAMED
    hooks = HooksFile(folder=_folder, name="settings.json", comments=True, obstacles=_obstacles)

    def observing(self, environ: Environ, brief: bool) -> Observing:
        from .need import Observing
        from .tailing import Logs, observe_terminal

        logs = Logs(self, brief)

        def wanted(s: Session, now: float) -> Iterator[Want]:
            yield from logs.wanted(s, now)
            for pid in s.processes if s.tty else ():
                yield Want(TERMINAL, (str(pid),))

        observe = {logs.kind: logs.observe, TERMINAL: observe_terminal}
        return Observing(observe, wanted, forget=logs.forget)

    def is_noise(self, raw: bytes) -> bool:
        """Return whether a line says nothing about the end of a turn."""
        head = raw[:HEAD].replace(b'": "', b'":"')
        return not any(kind in head for kind in TELLING)

    def entry(self, session_id: str, entry: Facts, t: float, now: float) -> Event:
        """Decode a line; `t` is its time, if the line itself has none."""
        kind, facts = "note", Facts()
        name, said = text_of(entry, "type"), text_of(entry, "content")
        if name == "error":
            kind, facts["error"] = "said failure", line(said) or "unknown"
        elif name == "info" and said == CANCELLED:
            kind = "said cancel"
        elif name in ("info", "warning") and said.startswith(STOPPED):
            kind = "said refusal"
        at = time_of(entry.get("timestamp")) or t
        return Event(kind, f"transcript {name[:60]}", at, now, session_id, **facts)

    def titled(self, text: str) -> Seen | None:
        return SIGNS.get(text[:1])

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        return after_mark(screen, MARK, "Type your message or @path/to/file", below=3)

    def request(
        self, payload: bytes, name: str, t: float, origin: Origin, truncated: bool = False
    ) -> Request | None:
        top = readable(payload, truncated)
        if text_of(top, "notification_type") != PERMISSION:
            return None
        shown = Input(storable(about(top)))
        kind, title, command = (shown.text(name) for name in ("type", "title", "command"))
        return unanswerable(
            top,
            name,
            text_of(top, "session_id"),
            t,
            origin,
            "question" if kind == QUESTION else "permission",
            "",
            marked(title) or "Use a tool",
            (*((part("command", command),) if command else ()), *shown.rest()),
        )
