"""Show what a tool of Claude Code would do: each member of its input, in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....core.request import Part
from ....core.text import marked
from ....core.untrusted import Facts
from ...parts import Input, part
from .rules import BASH

EVERYWHERE: Final = "Everywhere in the file"

Shown = tuple[str, tuple[Part, ...]]  # what it does, in words; its parts


def _command(given: Input) -> Shown:
    described, command = given.text("description"), given.text("command")
    says_more = described and described != command
    parts = (part("command", command), *([part("text", described)] if says_more else ()))
    return "Run a command", parts


def _edit(given: Input) -> Shown:
    return "Edit a file", (_change(given, given.text("file_path")),)


def _edits(given: Input) -> Shown:
    path, edits = given.text("file_path"), given.left.get("edits")
    made = [part("file", "", path=path)]
    if isinstance(edits, list) and edits and all(map(_is_edit, edits)):
        del given.left["edits"]
        each = [Input(edit) for edit in edits]
        made = [_change(edit, path) for edit in each]
        if left := [edit.left for edit in each if edit.left]:
            given.left["edits"] = left
    return "Edit a file", tuple(made)


def _change(given: Input, path: str) -> Part:
    old, new = given.text("old_string"), given.text("new_string")
    where = EVERYWHERE if given.flag("replace_all") else ""
    return part("diff", "", where, path=path, old=old, new=new)


def _is_edit(edit: object) -> bool:
    texts = ("old_string", "new_string")
    return isinstance(edit, dict) and all(isinstance(edit.get(name), str) for name in texts)


def _write(given: Input) -> Shown:
    path = given.text("file_path")
    return "Write a file", (part("file", given.text("content"), path=path),)


def _notebook(given: Input) -> Shown:
    path = given.text("notebook_path")
    return "Edit a notebook", (part("file", given.text("new_source"), path=path),)


def _fetch(given: Input) -> Shown:
    wants = given.text("prompt")
    parts = (part("url", given.text("url")),)
    return "Fetch a page", (*parts, *([part("text", wants, "Prompt")] if wants else ()))


def _read(given: Input) -> Shown:
    return "Read a file", (part("file", "", path=given.text("file_path")),)


TOOLS: Final[dict[str, Callable[[Input], Shown]]] = {
    BASH: _command,
    "Edit": _edit,
    "MultiEdit": _edits,
    "Write": _write,
    "NotebookEdit": _notebook,
    "WebFetch": _fetch,
    "Read": _read,
}


def shown(tool: str, facts: Facts) -> Shown:
    """Return what a tool would do, in words, and its whole input in parts."""
    given = Input(facts)
    read = TOOLS.get(tool)
    if read is None:
        return f"Use {marked(tool) or 'a tool'}", given.rest("")
    title, parts = read(given)
    return title, (*parts, *given.rest())
