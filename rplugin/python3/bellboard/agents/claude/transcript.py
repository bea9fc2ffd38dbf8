"""Decode the entries of a transcript: their kinds of events, and their facts.

A transcript holds whole prompts, files and answers.  Only a short line of each is kept, and the
state of the turn.

Unknown types are ignored, and so are sidechains, which belong to subagents.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

import msgspec

from ...core.events import Event
from ...core.last_turn import Touched, TurnLog, created_file, merged
from ...core.text import cut, files_of, line, plain, prompt_line, tool_detail, whole
from ...core.untrusted import LARGEST, Facts, list_of, number_of, object_of, text_of, time_of

HEAD: Final = 200  # bytes that include an entry's type, which the CLI writes first
INTERRUPTED: Final = "[Request interrupted by user"
SENT_ON: Final = "Stop hook feedback:"
#: Words of the CLI for a prompt that a hook refused. Until 2.1.119, the second is in a user entry.
TURNED_AWAY: Final = ("UserPromptSubmit operation blocked by hook", "Operation stopped by hook")
PROMPT_FIELDS: Final = frozenset({"permissionMode", "todos"})  # of a prompt that was typed
WRITES: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
TAKEN: Final = frozenset({"remove", "dequeue", "popAll"})  # ways to leave the prompt queue
REJECTED: Final = "The user doesn't want to proceed with this tool use"
_LIMIT: Final = re.compile(r"^You've (?:hit|reached) your (?=.* · resets )")
ATTEMPT: Final = "api-request"  # in 2.1.328, only this shows a retry: there is one per attempt
_REQUEST: Final = re.compile(rb'\{"type":"api-request",[^{}]*?"timestamp":"([^"]+)"')
#: Starts of user entries that the CLI wrote.
NOT_TYPED: Final = ("<command-", "<local-command-", "<bash-", "<system-reminder>", "Caveat:")


#: Starts of messages that no person typed: from tasks, and from agents of a team.
BY_PROGRAM: Final = (
    *("<task-notification>", "<teammate-message", "Another Claude session sent a message:"),
)


#: Around what the user pasted, since 2.1.332.
_PASTE: Final = re.compile(r"\n?</?pasted_content\b[^>]{0,40}>\n?")


def unwrapped(prompt: str) -> str:
    """Return a prompt as the user wrote it."""
    return _PASTE.sub("\n", prompt).strip() if "pasted_content" in prompt else prompt


def member_of(name: str, team: str) -> Facts:
    """Return the member and the team of a name: a team is named after the session of its lead."""
    lead = team.removeprefix("session-")
    return {"member": f"{name}@{team}", "lead": lead} if name and lead != team else {}


def is_noise(raw: bytes) -> bool:
    """Return whether to skip a line: a request to the API, or an entry of a subagent."""
    head = raw[:HEAD]
    return b'"type":"api-request' in head or b'"isSidechain":true' in head


def head_of(raw: bytes) -> Facts | None:
    """Return type and time of a request to the API, of which nothing else is read."""
    found = _REQUEST.match(raw[:HEAD])
    return {"type": ATTEMPT, "timestamp": found[1].decode(errors="replace")} if found else None


def transcript_event(session_id: str, entry: Facts, t: float, now: float) -> Event:
    """Decode an entry; `t` is its time, if the entry itself has none."""
    kind, facts = entry_of(entry)
    name, at = f"transcript {kind.removeprefix('said ')}", time_of(entry.get("timestamp")) or t
    return Event(kind, name, at, now, session_id=session_id, **facts)


def entry_of(entry: Facts) -> tuple[str, Facts]:
    """Return the kind of an entry, and its facts."""
    if entry.get("isSidechain"):
        return "note", {}
    kind, subtype = entry.get("type"), entry.get("subtype")
    if kind == "user":
        return _user(entry)
    if kind == "assistant":
        return _assistant(entry)
    if kind == "system":
        if subtype == "turn_duration":
            return "said end", {}
        if subtype == "stop_hook_summary":
            return ("said feedback" if _sent_on(entry) else "said stop"), {}
        if subtype == "api_error":
            return "said retry", {"detail": _retry(entry)}
        if subtype == "informational" and text_of(entry, "content").startswith(TURNED_AWAY):
            return "said refusal", {}
        if subtype == "local_command":
            return _command(entry)
    if kind == ATTEMPT:
        return "said attempt", {}
    if kind == "queue-operation" and text_of(entry, "operation") in TAKEN:
        return "said queue", {"status": text_of(entry, "operation")}
    for name, named in (("custom-title", True), ("ai-title", False), ("summary", False)):
        if kind == name:
            text = next((text_of(entry, k) for k in TITLES if text_of(entry, k)), "")
            return "note", {"title": line(text), "named": named}
    return "note", {}


TITLES: Final = ("customTitle", "aiTitle", "title", "summary")


def blocks_of(entry: Facts) -> list[Facts]:
    """Return the blocks of an entry's message."""
    content = object_of(entry.get("message")).get("content")
    return [block for block in list_of(content) if isinstance(block, dict)]


def spoken(entries: Iterable[Facts]) -> list[str]:
    """Return the messages of entries as lines; of a tool, its name and purpose."""
    lines: list[str] = []
    for entry in entries:
        kind = entry.get("type")
        if kind not in ("user", "assistant") or entry.get("isMeta") or entry.get("isSidechain"):
            continue
        content = object_of(entry.get("message")).get("content")
        whole = [{"type": "text", "text": content}] if isinstance(content, str) else []
        for block in whole or blocks_of(entry):
            if text := unwrapped(text_of(block, "text")).strip():
                lines += [("> " if kind == "user" else "") + x for x in text.split("\n")] + [""]
            elif block.get("type") == "tool_use":
                given = object_of(block.get("input"))
                named = (text_of(given, key) for key in ("description", "file_path", "pattern"))
                purpose = next(filter(None, named), "")
                lines += [cut(plain(f"* {text_of(block, 'name')} {purpose}"), 80), ""]
    return lines


# ---------------------------------------------------------------- its last turn

#: Tools that change the file which they name.
EDITORS: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
#: Tools that change no file; any other one may.
HARMLESS: Final = frozenset(
    (
        *("Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch"),
        *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TodoWrite", "TodoRead", "Skill"),
        *("TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskOutput", "BashOutput"),
    )
)
_COMMAND: Final = re.compile(r"<command-name>([^<]*)</command-name>", re.S)
_ARGS: Final = re.compile(r"<command-args>([^<]*)</command-args>", re.S)


def last_turn(newest_first: Iterable[Facts]) -> TurnLog:
    """Return what was said and done since a person spoke last.

    What programs prompted since then, such as a task in the background that ended, belongs to it.
    """
    log, said, words = TurnLog(), "", list[str]()
    added: list[str] = []  # prompts that the turn took while it ran
    results: dict[str, Facts] = {}
    touched: dict[str, list[Touched]] = {}
    tokens: dict[str, int] = {}
    last = 0.0  # of what one prompt brought about
    is_answered = False  # since the prompt before
    for entry in newest_first:
        kind, at = entry.get("type"), time_of(entry.get("timestamp")) or 0.0
        if kind == "attachment":
            added = [*filter(None, [_added(object_of(entry.get("attachment")))]), *added]
        if kind not in ("user", "assistant") or entry.get("isSidechain"):
            continue
        message, blocks = object_of(entry.get("message")), blocks_of(entry)
        if kind == "assistant" or any(b.get("type") == "tool_result" for b in blocks):
            last, log.ended = last or at, log.ended or at
        if kind == "assistant":
            is_answered, name = True, text_of(message, "id")
            texts = [text_of(b, "text") for b in blocks if b.get("type") == "text"]
            if any(texts) and said in ("", name):
                said, words = name, [*texts, *words]
            tokens[name] = max(tokens.get(name, 0), _used(message.get("usage")))
            for block in reversed(blocks):
                tool = text_of(block, "name") if block.get("type") == "tool_use" else ""
                log.runs |= bool(tool) and tool not in EDITORS | HARMLESS
                done = results.get(text_of(block, "id")) if tool in EDITORS else None
                if done is not None and (edit := _edit(block, done)) is not None:
                    touched[edit.path] = [*touched.pop(edit.path, ()), edit]
            continue
        for block in blocks:
            if block.get("type") == "tool_result" and not block.get("is_error"):
                results[text_of(block, "tool_use_id")] = entry
        text, is_typed = _prompt(entry, is_answered)
        if text:
            log.took += max(0.0, last - at)
            log.began, last, is_answered = at, 0.0, False
        if is_typed:
            log.prompt = "\n\n".join((text, *added))
            break
    log.text = "\n\n".join(filter(None, words)).strip()
    log.tokens = sum(tokens.values())
    log.touched = [merged(edits[::-1]) for edits in reversed(touched.values())]
    return log


def _added(given: Facts) -> str:
    """Return what a person typed while the turn ran, if an attachment is that."""
    is_prompt = (given.get("type"), given.get("commandMode")) == ("queued_command", "prompt")
    is_typed = object_of(given.get("origin")).get("kind", "human") == "human"
    return text_of(given, "prompt") if is_prompt and is_typed else ""


def _prompt(entry: Facts, is_answered: bool) -> tuple[str, bool]:
    """Return the whole prompt in a user entry, and whether a person typed it."""
    content = object_of(entry.get("message")).get("content")
    if not isinstance(content, str | list):
        return "", False
    blocks = [{"text": content}] if isinstance(content, str) else blocks_of(entry)
    text = "\n\n".join(filter(None, (text_of(b, "text") for b in blocks)))
    if is_answered and (named := _COMMAND.search(text)) and text.startswith("<command-"):
        args = _ARGS.search(text)
        return f"{named[1].strip()} {args[1].strip() if args else ''}".strip(), True
    kind, facts = _user(entry)
    return (unwrapped(text), bool(facts.get("prompt"))) if kind == "said prompt" else ("", False)


def _edit(block: Facts, entry: Facts) -> Touched | None:
    """Return what a tool did to its file, by its result."""
    given, done = object_of(block.get("input")), object_of(entry.get("toolUseResult"))
    path = text_of(given, "file_path") or text_of(given, "notebook_path")
    if not path:
        return None
    path = posixpath.normpath(posixpath.join(text_of(entry, "cwd") or "/", path))
    if done.get("type") == "create":
        return created_file(path, text_of(done, "content"))
    patch = done.get("structuredPatch")
    if not isinstance(patch, list):
        return Touched(path)
    return Touched(path, known=True, hunks=tuple(x for hunk in patch for x in _hunk(hunk)))


def _hunk(hunk: object) -> Iterator[str]:
    given = object_of(hunk)
    at = (number_of(given.get(k)) for k in ("oldStart", "oldLines", "newStart", "newLines"))
    yield "@@ -{:.0f},{:.0f} +{:.0f},{:.0f} @@".format(*(n or 0 for n in at))
    yield from (whole(row) for row in list_of(given.get("lines")) if isinstance(row, str))


def _used(usage: object) -> int:
    """Return the tokens that were read anew and written: what a cache had was paid before."""
    given = object_of(usage)
    fields = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
    tokens = sum(number_of(given.get(f)) or 0 for f in fields)
    return int(tokens) if 0 < tokens < LARGEST else 0


def _user(entry: Facts) -> tuple[str, Facts]:
    content = (entry.get("message") or {}).get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = [b for b in content or [] if isinstance(b, dict)]
    for block in blocks:
        if block.get("type") == "text" and text_of(block, "text").startswith(INTERRUPTED):
            return "interrupt", _turn(entry)
        if entry.get("isMeta") and text_of(block, "text").startswith(SENT_ON):
            return "said feedback", _turn(entry)
    if entry.get("isMeta") or entry.get("isCompactSummary"):
        return "note", {}
    for block in blocks:
        if block.get("type") == "tool_result":
            # The CLI writes such an entry when the session is opened again; the tool may still run.
            if entry.get("toolDenialKind") == "interrupted":
                return "note", {}
            tool = {"tool_id": text_of(block, "tool_use_id"), **_turn(entry)}
            return ("said denial" if _denied(entry, block) else "said result"), tool
    text = next((text_of(b, "text") for b in blocks if b.get("type") == "text"), "")
    if not text or text.startswith(NOT_TYPED):
        return "note", {}
    if text.startswith(TURNED_AWAY) and not PROMPT_FIELDS & entry.keys():
        return "said refusal", {}
    if text.startswith(BY_PROGRAM):
        mate = member_of(text_of(entry, "agentName"), text_of(entry, "teamName"))
        return "said prompt", {**_turn(entry), **mate}
    return "said prompt", {"prompt": prompt_line(unwrapped(text)), **_turn(entry)}


def _command(entry: Facts) -> tuple[str, Facts]:
    """Return that a command or skill was not carried out, as the CLI tells only the user."""
    named = text_of(object_of(entry.get("commandRun")), "command")
    failed = text_of(object_of(entry.get("commandOutcome")), "kind") == "failed"
    if not (named and failed):
        return "note", {}
    return "said refusal", {"source": "command", "detail": line(f"/{named}")}


def _turn(entry: Facts) -> Facts:
    """Return the turn of an entry."""
    return {"prompt_id": found} if (found := text_of(entry, "promptId")) else {}


def _sent_on(entry: Facts) -> bool:
    """Return whether a Stop hook made the session go on, and did not just fail."""
    errors, failed = entry.get("hookErrors"), entry.get("failedHookErrorIndexes")
    return isinstance(errors, list) and isinstance(failed, list) and len(errors) > len(failed)


def _denied(entry: Facts, block: Facts) -> bool:
    if entry.get("toolDenialKind") == "user-rejected":
        return True
    content = block.get("content")
    if isinstance(content, list):
        content = next((text_of(b, "text") for b in content if isinstance(b, dict)), "")
    return isinstance(content, str) and content.startswith(REJECTED)


def _assistant(entry: Facts) -> tuple[str, Facts]:
    message = entry.get("message") or {}
    content = message.get("content")
    blocks = [b for b in list_of(content) if isinstance(b, dict)]
    text = next((text_of(b, "text") for b in blocks if b.get("type") == "text"), "")
    if entry.get("isApiErrorMessage"):
        return "said error", {"error": error_of(text) or text_of(entry, "error") or "API error"}
    facts: Facts = {"message": line(text)}
    if text_of(message, "model") != "<synthetic>":
        facts["model"] = text_of(message, "model")
        facts["context"] = _context(message.get("usage"))
    for block in blocks:
        if block.get("type") == "tool_use":
            facts["tool"], facts["tool_id"] = text_of(block, "name"), text_of(block, "id")
            given = _as_json(block.get("input"))
            facts["tool_key"] = crc32(given)
            facts["detail"] = tool_detail(facts["tool"], given)
            if facts["tool"] in WRITES:
                facts["writes"] = files_of(given)
            return "said tool", facts
    return ("said last" if message.get("stop_reason") == "end_turn" else "said text"), facts


def error_of(text: str) -> str:
    """Return an error in the CLI's words; a limit without the words before its name."""
    return line(_LIMIT.sub("", text))


def _as_json(given: object) -> bytes:
    """Return a tool's input as the CLI passes it to hooks, so that both have the same key."""
    try:
        return msgspec.json.encode(given)  # 400 kB in 0.2 ms, ten times faster than `json`
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(given).encode()


def _context(usage: object) -> int:
    if not isinstance(usage, dict):
        return 0
    fields = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    tokens = sum(number_of(usage.get(f)) or 0 for f in fields)
    return int(tokens) if 0 < tokens < LARGEST else 0


def _retry(entry: Facts) -> str:
    attempt, most = number_of(entry.get("retryAttempt")), number_of(entry.get("maxRetries"))
    return f"attempt {attempt:.0f} of {most:.0f}" if attempt and most else ""
