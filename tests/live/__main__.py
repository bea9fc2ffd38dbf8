"""Everything that starts a real CLI, and compares what is shown with what is so.

`python -m live [PART] …` in `tests`, or `make live [ONLY=PART]`. Without a part: scenes, walks and
answers. Each part has options of its own: `python -m live scenes --help`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from rig import ROOT
from rig.fetched import claude_code

#: What each part does, and its module.
PARTS: Final = {
    "tests": ("the tests of the layer `live`, by pytest", ""),
    "scenes": ("scenes, in which what is shown is compared with what is so", "live.command"),
    "walks": ("random walks through Claude Code, compared throughout", "live.walks.command"),
    "answers": ("answers and prompts, compared with what the model gets", "live.answers.command"),
    "machines": ("several machines on one board", "live.machines.command"),
    "firstrun": ("the plugin as a new user installs it, with pictures", "live.firstrun.command"),
    "others": ("other plugins and colorschemes", "live.others.command"),
}


def main(argv: Sequence[str]) -> int:
    """Return 1 if a part found something wrong."""
    if argv and argv[0] in PARTS:
        return run(argv[0], argv[1:])
    told = "\n".join(f"  {name:10} {what}" for name, (what, _) in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m live",
        usage="%(prog)s [PART] [--agent NAME] [--cli VERSION] [--minutes N]",
        description=f"Without a part: scenes, walks and answers. The parts:\n{told}",
        epilog="Each part has options of its own: python -m live scenes --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agent", default="claude", help="of the scenes and answers")
    parser.add_argument("--cli", default=claude_code.VERSION, help="the version of Claude Code")
    parser.add_argument("--minutes", default="5", help="of the scenes, and of the walks")
    args = parser.parse_args(argv)
    if args.agent != "claude":
        answered = [name for name in args.agent.split(",") if name in ("codex", "opencode")]
        wrong = run("scenes", ["--agent", args.agent])
        return wrong or (run("answers", answered) if answered else 0)
    given = ["--cli", args.cli]
    timed = [*given, "--minutes", args.minutes]
    parts = {"scenes": timed, "walks": timed, "answers": given}
    codes = [run(name, options) for name, options in parts.items()]
    return int(1 in codes)  # 2: scenes are left for another time


def run(part: str, argv: Sequence[str]) -> int:
    """Run a part; return its exit status."""
    print(f"== {part}", flush=True)
    if part == "tests":
        command = [sys.executable, "-m", "pytest", "--live", "all", "-m", "live", *argv]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    start: Callable[[Sequence[str]], int] = import_module(PARTS[part][1]).main
    return start(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
