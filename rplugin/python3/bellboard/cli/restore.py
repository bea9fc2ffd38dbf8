"""The `restore` command: open the sessions again that went down with their terminals."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..core import words
from .arguments import Args, Subcommands, add, add_session
from .home import (
    Problem,
    find_session,
    has_terminal,
    here,
    opened,
    print_json,
    says_yes,
    verify,
    warn,
)

if TYPE_CHECKING:
    from ..hosting.restore import Lost, Windows
    from ..hosting.turn import SharedBoard


def add_to(commands: Subcommands) -> None:
    text = "open the sessions again that went down with tmux, Neovim or the machine"
    made = add(commands, "restore", restore, text)
    add_session(made, nargs="*", help="only these; default: all that went down")
    how = made.add_mutually_exclusive_group()
    how.add_argument("--yes", action="store_true", help="do not ask")
    how.add_argument("--list", action="store_true", help="only list them")
    how.add_argument("--dismiss", action="store_true", help="offer these no more")
    made.add_argument(
        "--json", action="store_true", help="print JSON; without --yes, only list them"
    )
    text = "with --yes --json: leave those that were in a Neovim to the one that asks"
    made.add_argument("--neovim", action="store_true", help=text)


def restore(args: Args) -> int:
    from ..hosting.restore import Windows
    from ..screen.terminal import show_lost

    if args.neovim and not (args.yes and args.json):
        raise Problem("--neovim needs --yes and --json")
    with opened() as shared:
        verify(shared)
        found = chosen(shared, args.session)
    if args.json and not args.yes:
        print_json({"t": time.time(), "sessions": [x.record for x in found]})
        return 0
    if args.dismiss:
        settled = settle(found)
        print(f"{words.amount(len(settled), 'session')} no longer offered")
        return 0
    windows = Windows(found, os.environ)
    found = [x if is_left(x, args) else windows.placed(x) for x in found]
    able = [x for x in found if not x.why]
    if not args.json:
        show_lost(found, time.time())
    if args.list or not (able or args.json):
        return 0
    if not args.yes:
        if not has_terminal():
            raise Problem("nothing was restored, as nobody can be asked here; give --yes")
        print()
        if not says_yes(question(len(able))):
            print("Nothing was restored; `bellboard restore --dismiss` offers these no more.")
            return 1
    return open_all(found, windows, args)


def is_left(x: Lost, args: Args) -> bool:
    """Return whether a session is left to the Neovim that asks: it was in no tmux window."""
    return bool(args.neovim) and x.place.kind != "tmux"


def question(count: int) -> str:
    return f"Restore {'this session' if count == 1 else f'these {count} sessions'}?"


def chosen(shared: SharedBoard, named: Sequence[str]) -> list[Lost]:
    """Return the sessions that went down, or those of them that are named."""
    from ..hosting.restore import lost
    from ..storage.store import SPACE
    from ..system.processes import own_space

    if (known := shared.store.option(SPACE)) and own_space() and known != own_space():
        raise Problem("the processes of sessions cannot be seen from in here; run it outside")
    found = lost(shared.board.sessions, os.environ, time.time())
    if not named:
        return found
    among, lists = {x.session_id: x.shown for x in found}, "bellboard restore --list"
    ids = {find_session(shared, name, among=among, lists=lists) for name in named}
    if missing := ids - {x.session_id for x in found}:
        raise Problem(f"{', '.join(sorted(missing))}: did not go down, or was restored since")
    return [x for x in found if x.session_id in ids]


def settle(some: Sequence[Lost]) -> set[str]:
    """Offer sessions no more; return those of them that were still offered.

    Of two commands at once, each gets its own.
    """
    from ..core.restore import CLOSED
    from ..hosting.restore import lost
    from ..system.locks import Held, locked

    ids = {x.session_id for x in some}
    try:
        with locked(here() / "restore.lock"):
            with opened() as shared:
                now = time.time()
                still = {x.session_id for x in lost(shared.board.sessions, os.environ, now)} & ids
                ends = {sid: shared.board.sessions[sid].ended for sid in still}
                write(shared, {sid: {CLOSED: end} for sid, end in ends.items()})
            with opened() as shared:
                facts = {sid: shared.board.sessions[sid].facts for sid in still}
            return {sid for sid in still if facts[sid].get(CLOSED)}
    except Held as e:
        raise Problem(str(e)) from None


def write(shared: SharedBoard, facts: Mapping[str, Mapping[str, object]]) -> None:
    """Report facts about sessions."""
    from ..core.evidence import learned

    for sid, its in facts.items():
        evidence = learned(time.time(), shared.board.sessions[sid], its)
        try:
            shared.spool.write(evidence.line)
        except OSError as e:
            raise Problem(f"cannot write to {shared.spool.new}: {e.strerror}") from None


@cache
def own_hooks(key: str) -> Sequence[str]:
    """Return the arguments that give sessions of an agent hooks of their own, if it has none."""
    from ..agents.registry import agent_of
    from ..system.mounts import near
    from .hooks import has_hooks, problems

    agent = agent_of(key)
    program = near(agent.program, os.environ.get("PATH", ""))
    if program is None or has_hooks((agent,)):
        return ()
    try:
        with problems(here()):
            return agent.own_hooks([program], here(), os.environ)
    except (Problem, ValueError) as e:
        warn(f"{agent.name} is started without hooks: {e}")
        return ()


def open_all(found: Sequence[Lost], windows: Windows, args: Args) -> int:
    """Open the sessions that can be, and report what became of each."""
    from ..core.restore import CLOSED, HOLDER, holder_words
    from ..system.failures import Declined
    from ..system.processes import started_of

    def held_by(pid: int) -> dict[str, object]:
        """Return the facts of a session whose new terminal a process holds: that may end, too."""
        return {CLOSED: 0.0, HOLDER: holder_words(pid, started_of(pid))} if pid else {}

    claimed = settle([x for x in found if not x.why])
    done: dict[str, list[Lost]] = {"restored": [], "open": [], "failed": []}
    facts: dict[str, dict[str, object]] = {}
    wrong = 0
    for lost in found:
        x = lost if lost.why else lost._replace(argv=[*lost.argv, *own_hooks(lost.agent)])
        if x.why:
            done["failed"].append(x)
        elif x.session_id not in claimed:
            done["failed"].append(x._replace(why="another command has just restored it"))
        elif is_left(x, args):
            done["open"].append(x)
            facts[x.session_id] = held_by(os.getppid())
        else:
            try:
                pid = windows.open(x)
            except Declined as e:
                done["failed"].append(lost._replace(why=str(e)))
                facts[x.session_id] = {CLOSED: 0.0}
                wrong += 1
            else:
                done["restored"].append(lost)
                facts[x.session_id] = held_by(pid)
    with opened() as shared:
        write(shared, {sid: its for sid, its in facts.items() if its})
    if args.json:
        print_json({key: [x.record for x in some] for key, some in done.items()})
    else:
        print(f"{words.amount(len(done['restored']), 'session')} restored")
        told = {x.session_id for x in found if x.why}
        for x in done["failed"]:
            if x.session_id not in told:  # by the list
                warn(f"{words.project(x.shown)}: {x.why}")
    return 1 if wrong else 0
