"""The command that turns answers on and off."""

from __future__ import annotations

from .adding import Args, Commands, add
from .home import opened, share

ON = """\
Hooks wait for answers. While Neovim or `bellboard serve` is running, you can answer a permission,
a question or a plan from anywhere. The terminal asks as before, and the first answer counts.
No hook waits for subagents, forms and headless runs: they show no dialog while one does.
Turn this off with `bellboard answers off`."""
OFF = "Hooks do not wait for answers: an answer is typed into the session's terminal."


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
        is_on = args.state == "on" if args.state else clerk.store.option(OPTION) is True
        if args.state:
            share(clerk, OPTION, is_on)
            pipes = clerk.spool.pipes
            for name in () if is_on else pipes.found():
                pipes.dismiss(name)
    print(ON if is_on else OFF)
