"""doctor: what is as it should be, what is not, and what to do about it."""

from __future__ import annotations

import os
from pathlib import Path

from .home import Args, Commands, add, here, print_json


def add_to(commands: Commands) -> None:
    doctor = add(
        commands, "doctor", examine, "say what is as it should be and what is not; fails if any"
    )
    doctor.add_argument("--json", action="store_true", help="the facts, for programs")


def examine(args: Args) -> int:
    from ..core.version import VERSION
    from ..diagnosis import diagnose, is_well

    facts = diagnose(here(), os.environ, Path.cwd())
    well = is_well(facts)
    if args.json:
        told = [fact._asdict() for fact in facts]
        print_json({"v": 1, "version": VERSION, "well": well, "facts": told})
    else:
        from ..screen.terminal import show_facts

        show_facts(facts)
    return 0 if well else 1
