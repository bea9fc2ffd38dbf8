"""The list of promises: each is held by a test that exists, or is said to be held by none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from rig import ROOT

PAGE = (ROOT / "doc/promises.md").read_text()
#: The heading of the promises that no test holds.
UNHELD = "Held by nothing yet"


@cache
def names_in(path: Path) -> set[str]:
    """Return the tests in a file: `test_x`, and `TestClass::test_x` of a class."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        within = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {
            f"{within}{each.name}"
            for each in inner
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            and each.name.startswith("test_")
        }
    return found


def exists(named: str) -> bool:
    """Whether the repository has the test `tests/files/test_x.py::name`."""
    file, _, name = named.partition("::")
    return (ROOT / file).is_file() and name in names_in(ROOT / file)


def sections() -> dict[str, list[str]]:
    """Return the lines below each heading, without empty ones; the head of the page is left out."""
    _, *parts = re.split(r"^## (.+)\n", PAGE, flags=re.M)
    return {
        heading: [line for line in text.splitlines() if line]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_every_test_that_holds_a_promise_exists() -> None:
    named = re.findall(r"`(tests/[^`]*)`", PAGE)
    assert len(named) > 100
    assert [each for each in named if not exists(each)] == []


def test_every_promise_is_held_by_a_test_or_said_to_be_held_by_nothing() -> None:
    """A promise is one line, which ends with its tests; without one, it says why."""
    held = re.compile(r"- .+?: `tests/\S+::\w+`(, `tests/\S+::\w+`)*")
    found = sections()
    unheld = [line for line in found.pop(UNHELD) if line.startswith("- ")]
    assert [line for lines in found.values() for line in lines if not held.fullmatch(line)] == []
    assert [line for line in unheld if not re.fullmatch(r"- .+: .+", line)] == []
    benches = re.findall(r"`(bench/\S+)`", "\n".join(unheld))
    assert [name for name in benches if not (ROOT / name).is_file()] == []
