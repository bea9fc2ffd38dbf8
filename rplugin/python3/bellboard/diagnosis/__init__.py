"""The state of everything as facts: each with how well it is, and what to do about it.

Both `bellboard doctor` and `:checkhealth bellboard` show these very facts, so the words are in here
and nowhere else.  It only looks: nothing is made, folded or changed by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from . import around, own
from .apart import look_apart
from .fact import Fact

__all__ = ["Fact", "diagnose", "is_well"]


def diagnose(home: Path, environ: Mapping[str, str], folder: Path) -> list[Fact]:
    """Everything, by section; `folder` is where the user stands."""
    looks: dict[str, Callable[[], Iterable[Fact]]] = {
        "versions": own.versions,
        "state": lambda: own.state(home),
        "database": lambda: own.database(home),
        "Claude Code": lambda: around.claude_code(environ),
        "hooks": lambda: around.hooks(home, environ, folder),
        "what it can tell": lambda: around.abilities_seen(environ),
        "system": lambda: around.system(home, environ),
    }
    return look_apart(looks)


def is_well(facts: Iterable[Fact]) -> bool:
    """Whether nothing is wrong."""
    return not any(fact.level in ("warn", "error") for fact in facts)
