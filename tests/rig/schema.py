"""What `bellboard` prints for programs is as doc/bellboard.schema.json says.

The schema lets a reader skip what it does not know.  Here an object has no field that it does not
describe, unless it says itself that there are others: so what is printed is documented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from rig import ROOT

PATH: Final = ROOT / "doc/bellboard.schema.json"
#: What is looked at, and what is only for who reads the schema.
KEYWORDS: Final = frozenset(
    (
        *("$ref", "anyOf", "const", "enum", "type", "required", "properties"),
        *("additionalProperties", "items"),
    )
)
NOTES: Final = frozenset({"$schema", "$id", "$defs", "title", "description"})
TYPES: Final[dict[str, Any]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": int | float,
    "null": type(None),
}
#: The commands that print for programs, each with its definition.
OF_VERBS: Final = {("hooks", "check"), ("machine", "list"), ("fleet", "status")}
OF_OPTIONS: Final = {("list", "--ended"), ("history", "--notices")}
SAME: Final = {"interrupt": "send"}


@cache
def schema(path: Path = PATH) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def definition_of(arguments: Sequence[str]) -> str:
    """Return the definition of what a command prints, or "" if that is not for programs."""
    if arguments[:1] == ["feed"]:
        return "feed"
    if "--json" not in arguments:
        return ""
    command, *rest = arguments
    if (command, rest[0]) in OF_VERBS:
        return f"{command}-{rest[0]}"
    more = next((option for option in rest if (command, option) in OF_OPTIONS), "")
    return SAME.get(command, command + more.replace("--", "-"))


def check(arguments: Sequence[str], printed: str) -> None:
    """Check all that a command has printed, a line at a time."""
    if name := definition_of(list(arguments)):
        for line in printed.splitlines():
            if line.startswith("{"):  # an error may stand among the lines
                check_line(name, line)


def check_line(name: str, line: str | bytes) -> None:
    found = [*faults(json.loads(line), {"$ref": f"#/$defs/{name}"}, schema())]
    assert found == [], f"{PATH.name}, {name}: {found}: {line[:2000]!r}"


def faults(
    value: Any, rule: dict[str, Any], whole: dict[str, Any], at: str = "", closed: bool = True
) -> Iterator[str]:
    """Yield where a value is not as a schema says; with `closed`, also what it does not name."""
    if "$ref" in rule:
        yield from faults(value, whole["$defs"][rule["$ref"].split("/")[-1]], whole, at, closed)
    if "anyOf" in rule:
        tried = [[*faults(value, each, whole, at, closed)] for each in rule["anyOf"]]
        yield from min(tried, key=lambda found: (len(found), len("".join(found))))
    if "const" in rule and value != rule["const"]:
        yield f"{at} is {value!r}, not {rule['const']!r}"
    if "enum" in rule and value not in rule["enum"]:
        yield f"{at} is {value!r}, none of {rule['enum']}"
    if "type" in rule and not _is(value, rule["type"]):
        yield f"{at} is {value!r}, no {rule['type']}"
    elif isinstance(value, dict):
        yield from (f"{at} has no {key}" for key in rule.get("required", ()) if key not in value)
        named, others = rule.get("properties", {}), rule.get("additionalProperties")
        for key, each in value.items():
            if key in named:
                yield from faults(each, named[key], whole, f"{at}.{key}", closed)
            elif isinstance(others, dict):
                yield from faults(each, others, whole, f"{at}.{key}", closed)
            elif closed and named and not others:
                yield f"{at} has {key}, which is not described"
    elif isinstance(value, list) and "items" in rule:
        for n, each in enumerate(value):
            yield from faults(each, rule["items"], whole, f"{at}[{n}]", closed)


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])
