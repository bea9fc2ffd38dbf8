"""Whether Codex runs our hooks, and its remarks about them.

Codex asks the user first, and notes trusted hooks by their hash.  The notes are in config.toml:
`[hooks.state."FILE:EVENT:GROUP:HANDLER"]` with the hash of the definition, as Codex 0.171 computes
it.  Python 3.10 reads no TOML; then nothing is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ...system import files
from ...system.files import real
from ..installing.hookline import GlobalHooks

CONFIG: Final = "config.toml"
FEATURE: Final = ("hooks", "codex_hooks")  # its names; the first counts
_INNER_CAPITAL: Final = re.compile(r"(?<!^)([A-Z])")


def obstacles(looked: GlobalHooks) -> Iterator[str]:
    """Yield the reasons why Codex does not run our hooks, as far as its configuration has them."""
    config = _config(looked.path.with_name(CONFIG))
    if config is None:
        return
    given = config.get("features")
    features = given if isinstance(given, dict) else {}
    switch = next((name for name in FEATURE if name in features), "")
    if features.get(switch) is False:
        yield f"switched off in {CONFIG}: [features] {switch}"
    notes = _notes(config)
    places = {str(looked.path), real(looked.path)}
    wanted = dict(_hashes(looked))
    doubted, disabled = [], []
    for key, digest in wanted.items():
        note = next((notes[n] for place in places if (n := f"{place}:{key}") in notes), {})
        if note.get("trusted_hash") != digest:
            doubted.append(key)
        elif note.get("enabled") is False:
            disabled.append(key)
    if doubted:
        yield (
            f"{len(doubted)} of {len(wanted)} hooks not trusted yet: "
            'Codex asks at its next start; choose "Trust all", or review them with /hooks'
        )
    if disabled:
        yield f"{len(disabled)} of {len(wanted)} hooks disabled in Codex's /hooks"


def remarks(looked: GlobalHooks) -> Iterator[str]:
    """Yield faults of hooks that Codex runs nevertheless."""
    hooks = (_config(looked.path.with_name(CONFIG)) or {}).get("hooks")
    if isinstance(hooks, dict) and hooks.keys() - {"state"}:
        yield f"Codex warns at each start that {CONFIG} has hooks too: move those into this file"


def _hashes(looked: GlobalHooks) -> Iterator[tuple[str, str]]:
    """Yield the place of each handler of ours, and the hash of its definition."""
    for event, groups in json.loads(looked.text)["hooks"].items():
        name = _INNER_CAPITAL.sub(r"_\1", event).lower()
        for g, group in enumerate(groups):
            for h, handler in enumerate(group.get("hooks", ())):
                if "matcher" not in group and looked.ours(str(handler.get("command"))):
                    defined = {"event_name": name, "hooks": [{"async": False, **handler}]}
                    packed = json.dumps(
                        defined, sort_keys=True, separators=(",", ":"), ensure_ascii=False
                    )
                    digest = hashlib.sha256(packed.encode()).hexdigest()
                    yield f"{name}:{g}:{h}", f"sha256:{digest}"


def _config(path: Path) -> dict[str, Any] | None:
    if sys.version_info >= (3, 11):
        import tomllib

        with contextlib.suppress(OSError, ValueError, RecursionError):
            return tomllib.loads((files.content(path) or b"").decode())
    return None


def _notes(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    hooks = config.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    found = state.items() if isinstance(state, dict) else ()
    return {str(place): note for place, note in found if isinstance(note, dict)}
