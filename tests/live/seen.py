"""Record what a version of the CLI does, and compare it with another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from live.account import Line
from rig.fetched import claude_code
from rig.fetched.claude_code import numbers

#: A file for each version that was played completely, with a topic on each line.
FOLDER: Final = Path(__file__).with_name("seen")
SCREEN: Final = "screen, "  # how the notes of Stage about dialogs begin
HOOK_NAMES: Final = re.compile(rb'\["PreToolUse","PostToolUse"(?:,"[A-Za-z]+")+\]')
RULE: Final = re.compile(r"(?m)^[─╭╰▔━]{20,}.*$")
OF_A_RUN: Final = re.compile(
    r"/\S*bb-\S+|\d+|\.{3}|…"
)  # paths and numbers are not specific to a version

Shapes = Mapping[str, frozenset[str]]


def shapes(traces: Iterable[Path], knows: Iterable[str] = ()) -> Shapes:
    """Return what was seen, by topic; `knows`: the hooks that its program names."""
    seen: dict[str, set[str]] = {"hooks that it knows": set(knows)}
    for path in traces:
        for text in path.read_text().splitlines():
            for topic, what in _shapes_of(json.loads(text)):
                seen.setdefault(topic, set()).update(what)
    return {topic: frozenset(what) for topic, what in sorted(seen.items())}


def _shapes_of(x: Line) -> Iterable[tuple[str, Iterable[str]]]:
    if "hook" in x:
        name = x["hook"]["hook_event_name"]
        yield "hooks that came", [name]
        yield f"fields of {name}", x["hook"]
        for task in x["hook"].get("background_tasks") or ():
            yield "background tasks", [str(task.get("type"))]
    elif record := x.get("registry", {}).get("record"):
        yield "fields of the session file", record
        for key in ("status", "waitingFor", "kind", "entrypoint"):
            yield f"{key} in the session file", [str(record[key])] if key in record else []
    elif entry := x.get("transcript", {}).get("entry"):
        kind = "/".join(str(entry[key]) for key in ("type", "subtype") if entry.get(key))
        yield "entries of the transcript", [kind]
        yield f"fields of {kind} entries", entry
    elif str(x.get("note", "")).startswith(SCREEN):
        why, _, screen = x["note"].removeprefix(SCREEN).partition("\n")
        yield f"dialog, {why}", dialog(screen)


def dialog(screen: str) -> list[str]:
    """Return the lines below the last rule, without what differs between runs."""
    below = RULE.split(screen.rstrip())
    part = next((p for p in reversed(below) if re.search(r"❯|Esc to", p)), below[-1])
    lines = (OF_A_RUN.sub("#", line).strip("│ ❯\t") for line in part.splitlines())
    return [line for line in lines if line]


def hook_names(version: str) -> list[str]:
    """Return the longest list of hook names in its program."""
    lists = HOOK_NAMES.findall(claude_code.executable(version).read_bytes())
    return list(json.loads(max(lists, key=len))) if lists else []


def keep(version: str, seen: Shapes) -> None:
    """Write it for comparison with the next version."""
    FOLDER.mkdir(exist_ok=True)
    rows = ({"topic": topic, "seen": sorted(what)} for topic, what in seen.items())
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (FOLDER / f"{version}.jsonl").write_text("".join(lines))


def before(version: str) -> tuple[str, Shapes] | None:
    """Return the newest older version that was played completely, and what was seen."""
    older = sorted(
        (p.stem for p in FOLDER.glob("*.jsonl") if numbers(p.stem) < numbers(version)),
        key=numbers,
    )
    if not older:
        return None
    lines = (FOLDER / f"{older[-1]}.jsonl").read_text().splitlines()
    rows = map(json.loads, lines)
    return older[-1], {row["topic"]: frozenset(row["seen"]) for row in rows}


def differences(old: Shapes, new: Shapes) -> list[str]:
    """Return in words, by topic, what only one of them showed."""
    told = []
    for topic in sorted(old.keys() | new.keys()):
        was, now = old.get(topic, frozenset()), new.get(topic, frozenset())
        told += [f"{topic}: + {what}" for what in sorted(now - was)]
        told += [f"{topic}: - {what}" for what in sorted(was - now)]
    return told
