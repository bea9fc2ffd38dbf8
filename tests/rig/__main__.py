"""The rig's commands, each a line of shell beside this file: `python3 tests/rig nvim 0.10`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
from rig import cache, claude_code, neovim, tools  # noqa: E402

COMMANDS = {
    "nvim": (neovim.executable, None),
    "peer": (neovim.peer, None),
    "claude": (claude_code.executable, claude_code.VERSION),
    "tool": (tools.executable, None),
}
TRIES = 3  # a mirror or a registry fails now and then


def fetch() -> None:
    """Have everything that the tests need; say of each what cannot be had, and fail."""
    needed: list[tuple[Callable[[str], Path], str]] = [
        *((neovim.executable, line) for line in neovim.LINES),
        (neovim.peer, neovim.PEERS[0]),
        *((claude_code.executable, version) for version in claude_code.VERSIONS),
    ]
    failed = False
    for find, which in needed:
        for left in reversed(range(TRIES)):
            try:
                print(find(which))
                break
            except cache.Missing as missing:
                print(f"tests/rig/fetch: {which}: {missing}", file=sys.stderr)
                if " failed: " not in str(missing) or not left:  # another try changes nothing
                    failed = True
                    break
                time.sleep(5)
    raise SystemExit(failed)


def main(command: str, *given: str) -> None:
    """Print the path of what is wanted; with further arguments, run it."""
    if command == "fetch":
        fetch()
    find, default = COMMANDS[command]
    # Any argument that is no version belongs to the default one: `tests/rig/claude --help`.
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
