"""The rig's commands, each a line of shell beside this file: `python3 tests/rig nvim 0.10`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
from rig import cache, claude_code, neovim, tools  # noqa: E402

COMMANDS = {
    "nvim": (neovim.executable, None),
    "peer": (neovim.peer, None),
    "claude": (claude_code.executable, claude_code.VERSION),
    "tool": (tools.executable, None),
}


def main(command: str, *given: str) -> None:
    """Print the path of what is wanted; with further arguments, run it."""
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
