"""Wait until sessions have come to a status, with or without a background process.

A session that nobody prompts stays as it is, so what it has come to already counts at once.  Only a
prompt that was just submitted makes that old: until it has begun a turn, or it is clear that it
begins none, the rest before it is not waited for.  After that, this runs a host, as `watch` does,
and looks again at each change, so it goes on if another host is killed meanwhile.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from .arguments import Args, Subcommands, add, add_session, filled, seconds
from .home import Ambiguous, Problem, find_session, opened, print_json, verify, warn

if TYPE_CHECKING:
    from ..core.published import Published
    from ..core.records import Transition
    from ..core.session import Session
    from ..hosting.host import Host
    from ..hosting.turn import SharedBoard

ENDED: Final = "ended"
#: What needs somebody, or is over: by default, all of that is waited for.
USUAL: Final = ("blocked", "completed", "error", ENDED)
#: A turn whose end somebody has seen: its session is idle, and has still completed.
SEEN: Final = frozenset({"completed", "error"})
ASKS_OR_WORKS: Final = frozenset({"blocked", "working"})
#: Seconds in which a submitted prompt begins its turn, counted from the rest before it.
BEGINS: Final = 3.0
#: Seconds after which to say that a session rests, although that is not waited for.
QUIET: Final = 4.0
LATE: Final = 124  # the exit code of timeout(1)
GONE: Final = 3
NEWER: Final = "the board belongs to a newer bellboard: update this one"


def add_to(commands: Subcommands) -> None:
    made = add(commands, "wait", wait, "wait until sessions are done, ask something or have ended")
    made.epilog = (
        f"Exit codes: 0 reached, {LATE} timeout, {GONE} gone: a session has ended, and that was "
        "not waited for, or none matches; 1 failure, 2 usage error."
    )
    add_session(made, nargs="+")
    made.add_argument(
        "--for",
        dest="wanted",
        type=statuses,
        default=USUAL,
        metavar="STATUS,…",
        help=f"statuses that count, as in `list`, or {ENDED} (default: {','.join(USUAL)}; "
        "neither background nor idle)",
    )
    made.add_argument("--any", action="store_true", help="wait for one session, not for all")
    made.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="give up after that; 0: only look"
    )
    made.add_argument("--json", action="store_true", help="print one JSON object per session")


def statuses(text: str) -> tuple[str, ...]:
    """Take a list of statuses; refuse an unknown one."""
    from ..core.session import STATUSES

    given, known = tuple(filled(text).split(",")), (*STATUSES, ENDED)
    for status in given:
        if status not in known:
            raise argparse.ArgumentTypeError(f"{status!r} is none of {', '.join(known)}")
    return given


def wait(args: Args) -> int:
    until = None if args.timeout is None else time.monotonic() + args.timeout
    with opened() as shared:
        verify(shared)
        waited = Waiting(args, *_found(shared, args.session))
        waited.look(shared)
    if waited.code is None and args.timeout != 0:
        from .hosts import NOBODY, run_host

        ended_by = run_host(waited.push, {}, NOBODY, lambda host: waited.begin(host, until))
        if waited.problem is not None:
            raise waited.problem
        if waited.code is None and ended_by:
            return 128 + ended_by
    if waited.code is None:
        waited.give_up()
    return LATE if waited.code is None else waited.code


def _found(shared: SharedBoard, called: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the sessions of names, and the names that no session has."""
    found, unknown = {}, []
    for name in called:
        try:
            found[find_session(shared, name, also_logged=True)] = name
        except Ambiguous:
            raise
        except Problem as e:
            warn(str(e))
            unknown.append(name)
    return found, unknown


class Waiting:
    """The sessions that are still waited for; `code` is the exit code once that is over."""

    def __init__(self, args: Args, called: Mapping[str, str], unknown: Iterable[str]) -> None:
        self.code: int | None = None
        self.problem: Exception | None = None
        self._args, self._called = args, dict(called)  # session → its name, as given
        self._left: dict[str, Published | None] = dict.fromkeys(called)
        self._are_gone = False
        self._host: Host | None = None
        for name in unknown:
            self._tell(name, "", None, ENDED, "gone")
            self._lose()

    # ------------------------------------------------------------ in the event loop of a host

    def begin(self, host: Host, until: float | None) -> None:
        """Stop the host once time is up; called in its event loop."""
        import asyncio

        self._host, self._loop = host, asyncio.get_running_loop()
        if not self._args.any:
            self._loop.call_later(QUIET, self._explain)
        if until is not None:
            self._loop.call_later(max(0.0, until - time.monotonic()), host.stop)

    def _explain(self) -> None:
        """Say which sessions rest, although that is not waited for: they may do so for long."""
        for sid, p in self._left.items():
            if self.code is None and p and p["status"] not in ASKS_OR_WORKS:
                advice = f"add {p['status']} to --for if that is to count"
                warn(f"{self._called[sid]} is {p['status']}; {advice}")

    def push(self, message: Mapping[str, Any]) -> None:
        """Take a message of the host: look again if it is about a session that is waited for."""
        if message["stale"]:
            raise Problem(NEWER)
        named = {p["session_id"] for p in message["sessions"]} | {*message["removed"]}
        if message["full"] or not named.isdisjoint(self._shown()):
            self._loop.call_soon(self._look_now)

    def _shown(self) -> set[str]:
        """Return the ids of the sessions that are waited for, also those that they have now."""
        return {*self._left, *(p["session_id"] for p in self._left.values() if p)}

    def _look_now(self) -> None:
        from ..hosting.callbacks import PAUSE

        host, delay = self._host, PAUSE  # while another host is writing
        assert host is not None
        try:
            with host.connection.use() as shared:
                if shared is not None and self.code is None:
                    delay = self.look(shared)
        except Exception as e:  # standard output cannot be written to
            self.problem = e
        if self.code is not None or self.problem is not None:
            host.stop()
        elif delay < math.inf:
            self._loop.call_later(delay, self._look_now)

    # ------------------------------------------------------------ what they have come to

    def look(self, shared: SharedBoard) -> float:
        """Take out the sessions that have come to what is wanted; return when to look again."""
        from ..core.published import publish
        from ..core.session import is_listed

        delay = math.inf
        for sid in [*self._left]:
            if self.code is not None:
                break
            s = _now(shared, sid)
            self._left[sid] = p = publish(s) if s is not None and is_listed(s) else None
            if (wait := _moves(s) if p is None else _begins(p)) > 0:
                delay = min(delay, wait)
                continue
            is_idle = p is not None and p["status"] == "idle"
            history = shared.store.history(0.0, p["session_id"]) if p and is_idle else []
            been = reached(p, history[-1] if history else None)
            if status := next((x for x in self._args.wanted if x in been), ""):
                self._reach(sid, p, status)
            elif p is None:
                self._tell(self._called[sid], sid, None, ENDED, "gone")
                del self._left[sid]
                self._lose()
        return delay

    def _reach(self, sid: str, p: Published | None, status: str) -> None:
        del self._left[sid]
        self._tell(self._called[sid], sid, p, status, "reached")
        if self._args.any or not self._left:
            self.code = 0

    def _lose(self) -> None:
        """End if that cannot be reached any more."""
        if not (self._args.any and self._left):
            self.code = GONE

    def give_up(self) -> None:
        """Say which sessions have not come to what was wanted."""
        for sid, p in self._left.items():
            self._tell(self._called[sid], sid, p, p["status"] if p else ENDED, "timeout")

    def _tell(self, called: str, sid: str, p: Published | None, status: str, outcome: str) -> None:
        from ..core import words

        sid = p["session_id"] if p else sid
        if self._args.json:
            line = {"t": time.time(), "outcome": outcome, "status": status}
            line |= {"called": called, "session_id": sid, "session": words.worded(p) if p else None}
            print_json({key: value for key, value in line.items() if value not in ("", None)})
            sys.stdout.flush()
        elif outcome == "reached":
            _, text = words.doing(p) if p else ("", "")
            named = _named(p) if p else words.plain(called)
            print(f"{words.plain(sid)} {status} {named}{f': {text}' if text else ''}", flush=True)
        elif sid:  # of the others, it was said that none matches
            warn(f"{called} has ended" if outcome == "gone" else f"{called} is still {status}")


def reached(p: Published | None, last: Transition | None) -> tuple[str, ...]:
    """Return the statuses that a session has come to; None: it is not listed.

    `last` is its newest change of status, if that is known.
    """
    if p is None:
        return (ENDED,)
    if p["status"] == "idle" and last is not None and last.after == "idle" and last.before in SEEN:
        return ("idle", last.before)
    return (p["status"],)


def _named(p: Published) -> str:
    """Return the project of a session, and the name that it has within that, if it has one."""
    from ..core import words

    own = words.plain(p.get("name") or p.get("worktree"))
    return " ".join(dict.fromkeys(filter(None, (words.project(p), own))))


def _now(shared: SharedBoard, sid: str) -> Session | None:
    """Return a session, or the one in which it goes on under another id."""
    from ..core.session import is_listed

    sessions = shared.board.sessions
    s = sessions.get(sid)
    if s is not None and is_listed(s):
        return s
    later = (x for x in sessions.values() if sid in x.previous and is_listed(x))
    return max(later, key=lambda x: x.previous[::-1].index(sid), default=s)


def _begins(p: Published) -> float:
    """Return the seconds in which a prompt that was submitted may still begin a turn."""
    if "submitted" not in p or p["status"] in ASKS_OR_WORKS:
        return 0.0
    left: float = max(p["submitted"], p["since"]) + BEGINS - time.time()
    return min(left, BEGINS)  # the clock may have been set back


def _moves(s: Session | None) -> float:
    """Return the seconds in which a session that ended may still go on under another id."""
    from ..core.identity import REKEYED
    from ..core.rules.steps import MOVES_ON

    is_moving = s is not None and s.end_reason in MOVES_ON
    return s.ended + REKEYED - time.time() if s is not None and is_moving else 0.0
