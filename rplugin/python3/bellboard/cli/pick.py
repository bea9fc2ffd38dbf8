"""The command `pick`: choose a session in the terminal, and go there or answer it."""

from __future__ import annotations

from .arguments import Args, Subcommands, add
from .goto import CLIENT, flashing, jump_to
from .home import Problem, has_terminal, icons, listed, opened, paints, with_pane_names


def add_to(commands: Subcommands) -> None:
    made = add(commands, "pick", pick, "choose a session in the terminal and jump to it")
    made.add_argument("--client", metavar="NAME", default="", help=CLIENT)
    made.add_argument("--print", action="store_true", help="print the chosen id and do not jump")


def pick(args: Args) -> int:
    from ..screen.picker import Selection, operate

    if not (has_terminal() and paints()):
        raise Problem(
            "`bellboard pick` needs a terminal whose cursor can be moved; "
            "use `bellboard list` instead"
        )
    with opened() as shared:
        shown, worn = [p for p in listed(shared) if not p["hidden"]], icons(shared)
    selection = Selection(with_pane_names(shown), worn, can_answer=not args.print)
    operate(selection)
    if (chosen := selection.taken) is None:
        return 1
    if args.print:
        print(chosen["session_id"])
        return 0
    with flashing(args.client):
        if selection.answers:
            from .popup import answer_full_screen

            return answer_full_screen(chosen["session_id"], args.client)
        jump_to(chosen, args.client)
    return 0
