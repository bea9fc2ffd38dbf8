"""The command that turns answers on and off."""

from __future__ import annotations

import os
import time

from .adding import Args, Commands, add
from .home import Problem, opened

ON = """\
Answers are on. While Neovim or `bellboard serve` is running, you can answer a permission, a
question or a plan from anywhere. The terminal asks as before; the first answer counts.
Subagents, forms and headless runs are not affected: they would ask nothing while a hook waits.
Turn this off with `bellboard answers off`."""
OFF = "Answers are off: no hook waits, so answers are typed into the session's terminal."


def add_to(commands: Commands) -> None:
    made = add(
        commands,
        "answers",
        answers,
        "turn waiting hooks on or off: with them, you can answer from anywhere",
    )
    made.add_argument(
        "state", nargs="?", choices=("on", "off"), help="default: print the current setting"
    )


def answers(args: Args) -> None:
    from ..hosting.waiting import OPTION

    with opened() as clerk:
        store, spool = clerk.store, clerk.spool
        if args.state and store.readonly:
            raise Problem(
                f"cannot write to {store.path}, so answers were not changed; make it writable"
            )
        is_on = args.state == "on" if args.state else store.option(OPTION) is True
        if args.state:
            with store.lock():
                store.set_option(OPTION, is_on, os.getpid(), time.time())
            if not is_on:
                for name in spool.pipes.found():
                    spool.pipes.dismiss(name)
            spool.write({"t": time.time(), "tick": {}})  # wakes the hosts
    print(ON if is_on else OFF)
