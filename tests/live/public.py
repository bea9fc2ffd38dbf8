"""Make a trace that can be committed: without paths of this machine, and without noise."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from live.account import Line
from rig import ROOT

LAB: Final = "/home/user/lab"  # the path shown in recordings
HOMES: Final = re.compile(r"/(?:(?:private/)?tmp|dev/shm)/bb-[A-Za-z0-9_]+")
PROJECTS: Final = re.compile(r"-(?:tmp|dev-shm)-bb-[A-Za-z0-9-]+-project")
TOLD: Final = ("user", "assistant", "system", "queue-operation", "custom-title", "ai-title")
PRIVATE: Final = ("messagingSocketPath",)
FIRST: Final = ("does ", "published ", "misplaced", "agents --json")  # notes to keep
#: What tells something of an entry in a transcript, and of the message in it.
TELLS: Final = (
    *("type", "subtype", "timestamp", "isSidechain", "isMeta", "promptId", "permissionMode"),
    *("error", "isApiErrorMessage", "isCompactSummary", "operation", "content", "retryAttempt"),
    *("maxRetries", "retryInMs", "toolDenialKind", "hookErrors", "failedHookErrorIndexes"),
    *("commandRun", "commandOutcome", "aiTitle", "customTitle", "compactMetadata", "message"),
)
SAID: Final = ("id", "role", "model", "content", "stop_reason", "usage")
COUNTED: Final = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"),
)
RULE: Final = re.compile(r"[─▔━\s]*")
TEXT: Final = re.compile(r"\b(title|msg)=([A-Za-z0-9+/=]+)")


def public(lines: Iterable[Line], also: Iterable[str] = ()) -> list[Line]:
    """Return the lines that matter; `also`: entries of a transcript that are noise elsewhere."""
    told = {*TOLD, *also}
    kept = []
    for x in lines:
        if "note" in x and not str(x["note"]).startswith(FIRST):
            continue
        entry = x.get("transcript", {}).get("entry")
        if entry is not None and entry.get("type") not in told:
            continue
        kept.append(_anywhere(x))
    return kept


def brief(lines: Iterable[Line]) -> list[Line]:
    """Return the lines of a recording that is kept for its reports, as short as possible."""
    kept = []
    for x in public(lines, ("api-request",)):
        if str(x.get("note", "")).startswith("published "):
            continue
        if "screen" in x:
            x["screen"] = [line for line in x["screen"] if not RULE.fullmatch(line)]
        if entry := x.get("transcript", {}).get("entry"):
            x["transcript"]["entry"] = _chosen(entry, TELLS)
            if isinstance(message := entry.get("message"), dict):
                said = _chosen(message, SAID)
                if "usage" in said:
                    said["usage"] = _chosen(said["usage"], COUNTED)
                x["transcript"]["entry"]["message"] = said
        kept.append(x)
    return kept


def _chosen(table: Line, keys: Iterable[str]) -> Line:
    return {key: table[key] for key in keys if key in table}


def _anywhere(x: Line) -> Line:
    line: dict[str, Any] = json.loads(_placed(json.dumps(x)))
    if report := line.get("osc7501"):
        report["body"] = TEXT.sub(_placed_inside, report["body"])
    for key in PRIVATE:
        (line.get("registry", {}).get("record") or {}).pop(key, None)
    return line


def _placed(text: str) -> str:
    """Return a text without the paths of this machine."""
    text = text.replace(str(ROOT), f"{LAB}/bellboard")
    return PROJECTS.sub("-home-user-lab-project", HOMES.sub(LAB, text))


def _placed_inside(found: re.Match[str]) -> str:
    """Do the same in a text of a report; what is not base64 stays as it is."""
    try:
        text = base64.b64decode(found[2], validate=True).decode()
    except ValueError:
        return found[0]
    return f"{found[1]}={base64.b64encode(_placed(text).encode()).decode()}"
