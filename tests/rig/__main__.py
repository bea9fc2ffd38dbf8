"""The rig's commands, each a line of shell next to this file: `python3 tests/rig nvim 0.10`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
from rig.fetched import cache, claude_code, neovim, tools  # noqa: E402

COMMANDS = {
    "nvim": (neovim.executable, None),
    "peer": (neovim.peer, None),
    "claude": (claude_code.executable, claude_code.VERSION),
    "tool": (tools.executable, None),
}
TRIES = 2  # mirrors and registries fail sometimes
PAUSE = 2.0


def fetch(*layers: str) -> None:
    """Fetch what the tests need, with `live` also old CLIs; report what is missing, and fail."""
    versions = claude_code.VERSIONS if "live" in layers else (claude_code.VERSION,)
    needed: list[tuple[str, Callable[[str], Path], str]] = [
        *(("Neovim ", neovim.executable, line) for line in neovim.wanted()),
        ("", neovim.peer, neovim.PEERS[0]),
        *(("Claude Code ", claude_code.executable, which) for which in versions),
        *(("", tools.executable, tool) for tool in tools.TESTED),
    ]
    cache.remembered = 0.0
    missed: list[str] = []
    for kind, find, which in needed:
        tries = TRIES if not missed else 1
        if not fetched(kind + which, lambda: find(which), tries):  # noqa: B023 (called at once)
            missed.append(kind + which)
    if missed:
        print(f"tests/rig/fetch: left out: {', '.join(missed)}", file=sys.stderr)
    raise SystemExit(bool(missed))


def fetched(name: str, find: Callable[[], Path], tries: int) -> bool:
    """Fetch an item; return whether it is here now."""
    for left in reversed(range(tries)):
        try:
            print(find())
            return True
        except cache.Missing as missing:
            if not left or " failed: " not in str(missing):  # trying again would not help
                print(f"tests/rig/fetch: {name}: {missing}", file=sys.stderr)
                return False
            time.sleep(PAUSE)
    return False


def main(command: str, *given: str) -> None:
    """Print the path of a tool; with further arguments, run it."""
    if command == "fetch":
        fetch(*given)
    find, default = COMMANDS[command]
    # An argument that is not a version is for the default one: `tests/rig/claude --help`.
    if default and (not given or not given[0][:1].isdigit()):
        given = (default, *given)
    if not given:
        raise SystemExit(f"usage: tests/rig/{command} WHICH [argument…]")
    try:
        path = find(given[0])
    except cache.Missing as missing:
        raise SystemExit(f"tests/rig/{command}: {missing}") from None
    if given[1:]:
        os.execv(path, [str(path), *given[1:]])
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
