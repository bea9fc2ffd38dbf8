"""The schema of what is printed for programs: it is whole, and a reader of today reads tomorrow's.

The rig checks everything that passes through it against this schema (`rig/schema.py`).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bellboard.cli import parser
from bellboard.cli.home import SCHEMA
from bellboard.core import feed
from bellboard.core.row import Row
from rig import DATA, ROOT
from rig.schema import KEYWORDS, NOTES, check, definition_of, faults, schema
from rig.shell import Shell, fill

#: What version 1 promised when it was first published: its objects, a line each.
FIRST = DATA / "inputs/schema-1.txt"
#: Fields of a session that only commands print: what they could not verify.
OF_COMMANDS = {"verified", "stale_since"}
#: Fields of a session that only a Neovim uses.
OF_NEOVIM = {"title_tells"}


def rules(rule: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas in it."""
    if isinstance(rule, dict):
        yield rule
        for key, each in rule.items():
            named = key in ("$defs", "properties")
            for part in each.values() if named else each if isinstance(each, list) else [each]:
                yield from rules(part)


def objects(rule: dict[str, Any], at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects that a schema describes, by their paths."""
    if "properties" in rule:
        yield at, rule
    for key, each in rule.get("properties", {}).items():
        yield from objects(each, f"{at}.{key}")
    for n, each in enumerate(rule.get("anyOf", ())):
        yield from objects(each, f"{at}/{n}")
    for key in ("items", "additionalProperties"):
        if isinstance(rule.get(key), dict):
            yield from objects(rule[key], f"{at}[]")


def shapes() -> dict[str, set[str]]:
    """Return the fields of each object, each with its type; `?`: it may be absent."""

    def shown(rule: dict[str, Any]) -> str:
        kind = rule.get("$ref") or rule.get("type") or rule.get("const") or rule.get("enum")
        items = rule["items"].get("$ref") or rule["items"].get("type") if "items" in rule else ""
        return re.sub(
            r"[#\s']|/\$defs/", "", f"{kind or rule.get('anyOf')}{items and f'[{items}]'}"
        )

    return {
        at: {
            f"{key}{'' if key in rule['required'] else '?'}:{shown(each)}"
            for key, each in rule["properties"].items()
        }
        for name, whole in schema()["$defs"].items()
        for at, rule in objects(whole, name)
    }


def test_the_rig_understands_all_of_it() -> None:
    """It skips no keyword; and no object is closed to readers."""
    found = [*rules(schema())]
    assert {key for rule in found for key in rule} <= KEYWORDS | NOTES
    assert [rule for rule in found if rule.get("additionalProperties") is False] == []
    named = {rule["$ref"].removeprefix("#/$defs/") for rule in found if "$ref" in rule}
    assert named == schema()["$defs"].keys()
    assert schema()["$id"].endswith(f":{SCHEMA}")


def test_every_command_that_prints_for_programs_has_a_definition() -> None:
    def commands(made: argparse.ArgumentParser) -> Iterator[str]:
        for action in made._actions:
            if isinstance(action, argparse._SubParsersAction):
                for each in action.choices.values():
                    yield from commands(each)
            elif "--json" in action.option_strings:
                yield made.prog

    defined = {each["$ref"].removeprefix("#/$defs/") for each in schema()["anyOf"]}
    found = {definition_of([*prog.split()[1:], "--json"]) for prog in commands(parser())}
    assert found | {"list-ended", "history-notices", "feed"} == defined


def test_sessions_and_rows_have_the_fields_that_others_document() -> None:
    types = (ROOT / "lua/bellboard/types.lua").read_text()
    body = types.partition("---@class bellboard.Session\n")[2].partition("\n\n")[0]
    in_lua = set(re.findall(r"^---@field (\w+)", body, re.M))
    described = schema()["$defs"]["session"]["properties"].keys()
    assert described - OF_COMMANDS == in_lua - OF_NEOVIM
    assert schema()["$defs"]["row"]["properties"].keys() == {*Row.__struct_fields__}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"v": 1, "t": 1, "sessions": []}', ""),
        ('{"v": 2, "t": 1, "sessions": []}', ".v is 2, not 1"),
        ('{"v": 1, "t": "now", "sessions": []}', ".t is 'now', no number"),
        ('{"v": 1, "t": true, "sessions": []}', ".t is True, no number"),
        ('{"v": 1, "sessions": []}', " has no t"),
        ('{"v": 1, "t": 1, "sessions": [], "x": 0}', " has x, which is not described"),
        ('{"v": 1, "t": 1, "sessions": [{"status": "x"}]}', ".sessions[0].status is 'x', none of"),
    ],
)
def test_the_rig_sees_what_is_not_as_described(line: str, why: str) -> None:
    if not why:
        check(["list", "--json"], line)
        return
    with pytest.raises(AssertionError, match=re.escape(why)):
        check(["list", "--json"], line)


def newer(value: Any) -> Any:
    """Return what a later version may print: each object has a field more."""
    if isinstance(value, dict):
        return {**{key: newer(each) for key, each in value.items()}, "later": {"x": [1]}}
    return [newer(each) for each in value] if isinstance(value, list) else value


def test_a_reader_of_today_reads_what_is_printed_later(shell: Shell) -> None:
    """By the schema as it is published; and the reader of feeds that others run."""
    fill(shell)
    for command in ("list", "history", "wait a1 c1 --timeout 0", "show b1"):
        argv = [*command.split(), "--json"]
        printed = shell.bellboard(*argv, code=124 * command.startswith("wait")).stdout
        for line in printed.splitlines():
            later, rule = newer(json.loads(line)), {"$ref": f"#/$defs/{definition_of(argv)}"}
            assert [*faults(later, rule, schema(), closed=False)] == []
            assert [*faults(later, rule, schema())] != []
    row = {"session_id": "a", "agent": "claude", "status": "working", "urgency": 4}
    state = {"type": "state", "now": 1.0, "cursor": "d.1", "all": ["a"], "sessions": [row]}
    assert feed.read(json.dumps(newer(state)).encode()) == feed.read(json.dumps(state).encode())
    assert feed.read(b'{"type":"later"}') is None


def test_version_1_keeps_what_it_has_promised() -> None:
    """A field of an object stays, with its type, and one that is always there stays so.

    Until the first release the promise may be changed: write `shapes()` into that file.
    """
    now, broken = shapes(), {}
    for line in FIRST.read_text().splitlines():
        at, *fields = line.split()
        kept = {y for x in now.get(at, ()) for y in (x, x.replace(":", "?:", 1))}
        if gone := set(fields) - kept:
            broken[at] = gone
    assert broken == {}
