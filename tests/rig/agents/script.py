"""What a fake model says: the last prompt with `DO:` in it is its script.

`DO: esc touch a; ask; say Done`: its steps are split by `;` and played one per request, `&` joins
two tool calls of one reply.

    say TEXT | slow SECONDS | drop (the connection breaks in the middle)
    err STATUS [TIMES] (then it says that all is done)
    run COMMAND | esc COMMAND (asks to leave the sandbox) | edit FILE | ask
    spawn PROMPT (its own steps split by `~`, its marker `DO+`) | wait SECONDS (for a subagent)

Requests without tools (for titles) get a plain line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]
Call = tuple[str, Any]  # the name of a tool, and its arguments

WORD: Final = 0.25  # seconds between two words of a slow answer
SAID: Final = ("say", "slow", "err", "drop")
OPTIONS: Final = [
    {"label": "Red", "description": "a warm one"},
    {"label": "Blue", "description": "a cold one"},
]
QUESTION: Final = {
    "id": "colour",
    "header": "Colour",
    "question": "Which colour do you want?",
    "options": OPTIONS,
}
FORM: Final = {
    "type": "object",
    "required": ["colour"],
    "properties": {"colour": {"type": "string", "title": "Colour", "enum": ["Red", "Blue"]}},
}
#: The tools of CLIs for the same purpose.
SHELLS: Final = ("exec_command", "bash", "run_shell_command", "Bash")
WRITERS: Final = ("write", "write_file", "create", "Write")
ASKERS: Final = (
    "request_user_input",
    "question",
    "ask_user_question",
    "ask_user",
    "AskUserQuestion",
)
HELPERS: Final = ("spawn_agent", "task", "agent", "Agent")
#: What they call a file.
PATHS: Final = {"write_file": "file_path", "create": "path"}


def script_of(text: str) -> list[str]:
    """Return the steps of a prompt."""
    _, found, rest = text.rpartition("DO:")
    line = rest.split("\n")[0].split("</")[0].strip().strip('"')
    return [step.strip() for step in line.split(";") if step.strip()] if found else []


def next_step(
    said: Sequence[tuple[str, str]], tools: Mapping[str, str], serial: int
) -> tuple[str, list[Call]]:
    """Return the text and the tool calls of a reply to what was said so far."""
    script: list[str] = []
    calls = 0
    for role, text in said:
        if role == "call":
            calls += 1
        elif role == "user" and script_of(text):
            script, calls = script_of(text), 0
    if not script or not tools:
        return "say A title", []
    done = 0
    for step in script:
        parts = [part.strip() for part in step.split("&")]
        if done == calls:
            if step.partition(" ")[0] in SAID:
                return step, []
            return "say Working on it.", [call(part, tools, serial) for part in parts]
        done += len(parts)
    return "say All done.", []


def call(step: str, tools: Mapping[str, str], serial: int) -> Call:
    """Return the name of a tool and its arguments, as the CLI that has these tools names them."""
    word, _, rest = step.partition(" ")
    if tools.get("exec") == "custom" and word in ("run", "esc", "edit"):  # Codex's code mode
        inner = {"exec_command": "function", "apply_patch": "custom"}
        name, given = call(step, inner, serial)
        return "exec", f"text(await tools.{name}({json.dumps(given)}));"
    if word in ("run", "esc"):
        return _shell(_first(SHELLS, tools), word, rest)
    if word == "edit" and "apply_patch" in tools:
        return "apply_patch", f"*** Begin Patch\n*** Add File: {rest}\n+hello\n*** End Patch\n"
    if word == "edit":
        name = _first(WRITERS, tools)
        path = "path" if "read" in tools and "edit" in tools and "task" not in tools else "filePath"
        text = "file_text" if name == "create" else "content"
        return name, {PATHS.get(name, path): rest, text: "hello\n"}
    if word == "ask":
        return _question(_first(ASKERS, tools), tools)
    if word == "wait":
        return "wait_agent", {"timeout_ms": int(float(rest) * 1000)}
    return _helper(_first(HELPERS, tools), rest.replace("DO+", "DO:").replace("~", ";"), serial)


def words(step: str) -> Iterator[str]:
    """Yield the words of a reply, slowly if that is asked."""
    word, _, rest = step.partition(" ")
    if word != "slow":
        yield rest or "Hello."
        return
    for n in range(int(float(rest) / WORD)):
        yield f"word{n} "
        time.sleep(WORD)


def _first(names: Sequence[str], tools: Mapping[str, str]) -> str:
    return next(name for name in names if name in tools)


def _shell(name: str, word: str, command: str) -> Call:
    if name == "exec_command":
        asks = {"sandbox_permissions": "require_escalated", "justification": "May it leave?"}
        return name, {"cmd": command, **(asks if word == "esc" else {})}
    more = {"is_background": False} if name == "run_shell_command" else {}
    return name, {"command": command, "description": "run a command", **more}


def _question(name: str, tools: Mapping[str, str]) -> Call:
    if name == "ask_user" and "run_shell_command" not in tools:  # Copilot
        return name, {"message": QUESTION["question"], "requestedSchema": FORM}
    if name == "question" and "task" not in tools:  # Pi
        return name, QUESTION
    if name == "AskUserQuestion":  # Kimi
        return name, {"questions": [{k: v for k, v in QUESTION.items() if k != "id"}]}
    more = {"ask_user": {"type": "choice"}, "ask_user_question": {}}
    single = {"multiSelect": False} if name in more else {}
    return name, {"questions": [{**QUESTION, **more.get(name, {}), **single}]}


def _helper(name: str, script: str, serial: int) -> Call:
    if name == "spawn_agent":
        return name, {"message": script, "task_name": f"helper{serial}"}
    if name == "Agent":  # Kimi
        return name, {"description": "a helper", "prompt": script, "subagent_type": "coder"}
    kind = "general" if name == "task" else "general-purpose"
    more = {"subagent_type": kind, "agent_type": "general-purpose", "name": "helper"}
    return name, {"description": "a helper", "prompt": script, **more}
