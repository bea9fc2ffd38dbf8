"""Write the completion for each shell, from the parser: `python doc/completion.py [--check]`.

shtab makes the scripts, and they are shipped; only what is listed here knows more than it does.
With --check nothing is written; the exit status says whether all of them are up to date.
"""

from __future__ import annotations

import argparse
import sys

import shtab

from bellboard.agents.registry import STARTABLE
from bellboard.cli import parser
from bellboard.cli.shell import SHELLS, script

LISTED = "bellboard completion --sessions 2>/dev/null"
#: zsh would run a command of shtab's own when it reads the script, and bash would expand what
#: describes a session.
SESSIONS = {
    **shtab.cmd(f"{LISTED} | cut -f 1"),
    "fish": f"({LISTED})",
    "zsh": "_bellboard_sessions",
}
PREAMBLE = {
    "zsh": f"""
_bellboard_sessions() {{
  local -a sessions=("${{(@f)$({LISTED} | tr '\\t' :)}}")
  _describe session sessions
}}
"""
}
#: The name of a value → what completes it.
KNOWN = {
    "SESSION": SESSIONS,
    **dict.fromkeys(("FILE", "PATH", "PATH|VERSION", "TRACE"), shtab.FILE),
}


def complete(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Say what completes the arguments of a parser and of all below it."""
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                complete(part)
        elif action.metavar == "AGENT":
            action.choices = STARTABLE
        elif action.metavar in KNOWN:
            action.complete = KNOWN[action.metavar]  # type: ignore[attr-defined]
    return made


def main() -> int:
    top = complete(parser())
    made = {script(shell): shtab.complete(top, shell=shell, preamble=PREAMBLE) for shell in SHELLS}
    if "--check" in sys.argv:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in made.items()))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
