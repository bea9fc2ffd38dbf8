"""Diagnose the installation: a list of facts, each with a level and advice.

`bellboard doctor` and `:checkhealth bellboard` both show these facts.  A diagnosis only reads: it
never creates, folds or changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from . import around, own
from .apart import run_apart
from .fact import Fact

__all__ = ["Fact", "diagnose", "is_well"]


def diagnose(home: Path, environ: Mapping[str, str], folder: Path) -> list[Fact]:
    """Return all facts by section; `folder` is the current directory."""
    checks: dict[str, Callable[[], Iterable[Fact]]] = {
        "versions": own.versions,
        "state": lambda: own.state(home),
        "database": lambda: own.database(home),
        "Claude Code": lambda: around.claude_code(environ),
        "hooks": lambda: around.hooks(home, environ, folder),
        "what Claude Code reports": lambda: around.abilities_seen(environ),
        "what other agents report": lambda: around.other_abilities(environ),
        "system": lambda: around.system(environ),
    }
    return run_apart(checks)


def is_well(facts: Iterable[Fact]) -> bool:
    """Return whether no fact is a warning or an error."""
    return not any(fact.level in ("warn", "error") for fact in facts)
