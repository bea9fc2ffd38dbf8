"""Diagnose the installation: a list of facts, each with a level and advice.

`bellboard doctor` and `:checkhealth bellboard` both show these facts.  A diagnosis only reads: it
never creates, folds or changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path

from . import claude_code, state, surroundings
from .fact import Fact, run_apart

__all__ = ["Fact", "diagnose", "is_well"]


def diagnose(home: Path, environ: Mapping[str, str], folder: Path) -> list[Fact]:
    """Return all facts by section; `folder` is the current directory."""
    checks: dict[str, Callable[[], Iterable[Fact]]] = {
        "versions": state.versions,
        "state": lambda: state.state(home),
        "database": lambda: state.database(home),
        "sessions": lambda: state.sources(home),
        "Claude Code": lambda: claude_code.installed(environ),
        "hooks": lambda: chain(
            surroundings.hooks(home, environ, folder), claude_code.hooks(environ)
        ),
        "what Claude Code reports": lambda: claude_code.abilities_seen(environ),
        "what other agents report": lambda: surroundings.other_abilities(environ),
        "system": lambda: surroundings.system(environ),
    }
    return run_apart(checks)


def is_well(facts: Iterable[Fact]) -> bool:
    """Return whether no fact is a warning or an error."""
    return not any(fact.level in ("warn", "error") for fact in facts)
