"""Complete what Claude Code asks, from its transcript if no hook reported it, and from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ....core.untrusted import Facts, text_of
from ...dialect import OnDisk
from .request import asked_in
from .said import blocks_of

#: Tool → the member of its input that names its file, and what it does to that file.
FILES: Final = {
    "Read": ("file_path", "read"),
    "Write": ("file_path", "replaced"),
    "Edit": ("file_path", "changed"),
    "MultiEdit": ("file_path", "changed"),
    "NotebookEdit": ("notebook_path", "changed"),
}
PLAN: Final = "ExitPlanMode"


def asking(session_id: str, entries: Sequence[Facts]) -> bytes:
    """Return what a hook would report of the tool that asks, by the end of a transcript.

    That is the main thread's only tool without a result; return b"" if there are several.
    """
    open_tools: dict[str, tuple[Facts, str]] = {}
    for entry in entries:
        for block in [] if entry.get("isSidechain") else blocks_of(entry):
            if block.get("type") == "tool_use":
                open_tools[text_of(block, "id")] = block, text_of(entry, "cwd")
            elif block.get("type") == "tool_result":
                open_tools.pop(text_of(block, "tool_use_id"), None)
    if len(open_tools) != 1:
        return b""
    ((tool, cwd),) = open_tools.values()
    about = {"session_id": session_id, "hook_event_name": "PermissionRequest", "cwd": cwd}
    given = {"tool_name": text_of(tool, "name"), "tool_input": tool.get("input")}
    try:
        return msgspec.json.encode({**about, **given})
    except (ValueError, RecursionError):
        return b""


def on_disk(payload: bytes) -> tuple[OnDisk, ...]:
    """See `Dialect.on_disk`."""
    asked = asked_in(payload)
    if asked is None:
        return ()
    given, cwd = asked.tool_input, asked.cwd
    if asked.tool_name == PLAN:
        path = text_of(given, "planFilePath")
        return (OnDisk(path, "read", text_of(given, "plan"), cwd),) if path else ()
    name, how = FILES.get(asked.tool_name, ("", ""))
    path = text_of(given, name) if name else ""
    return (OnDisk(path, how, folder=cwd),) if path else ()
