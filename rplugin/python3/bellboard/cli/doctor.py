"""The `doctor` command: what works, what does not, and how to fix it."""

from __future__ import annotations

import os

from .arguments import Args, Subcommands, add
from .home import around, named_home, print_json


def add_to(commands: Subcommands) -> None:
    doctor = add(commands, "doctor", examine, "check the installation; fails if anything is wrong")
    doctor.add_argument("--json", action="store_true", help="print JSON")


def examine(args: Args) -> int:
    from ..core.version import VERSION
    from ..diagnosis import diagnose, is_well

    facts = diagnose(named_home(), os.environ, around())
    well = is_well(facts)
    if args.json:
        listed = [fact._asdict() for fact in facts]
        print_json({"version": VERSION, "well": well, "facts": listed})
    else:
        from ..screen.terminal import show_facts

        show_facts(facts)
    return 0 if well else 1
