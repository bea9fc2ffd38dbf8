"""Rules for the life of a session: how it is listed, opened again, and ends."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Event
from ..options import Options
from ..session import ABSENT, Crew, Session, own, says_itself
from .steps import MOVES_ON, end, rest, take_back, turn_to_work
from .tools import of_agents


def begin(s: Session, e: Event, o: Options) -> str | None:
    """A new session, at rest; what its process already runs in the background goes on."""
    # Where a session starts with its first prompt, title or log may say that before the hook runs.
    if s.turn != ABSENT and (s.hooked or s.turn == "working"):
        return "already listed"
    here = Crew(s.agents, s.shells, of_agents(s.tools), of_agents(s.blocks))
    s.crew = s.crew if s.crew != Crew() else here
    rest(s, e.t)
    take_back(s)
    s.turn = "background" if e.status == "shell" or s.shells else "idle"
    # Nothing ended, so simultaneous events count, as does everything while the status is unknown.
    s.over = 0.0 if e.kind == "states nothing" else e.t - o.swap
    if s.agents:
        turn_to_work(s, e.t - o.swap, held="moved")
    if e.from_hook and s.stated.says:  # its file may not have changed yet
        s.stated, s.stood = replace(s.stated, at=max(s.stated.at, e.t)), False
    return None


def reopen(s: Session, e: Event, o: Options) -> str | None:
    """It was opened in another process, at rest; how it ended elsewhere counts as seen."""
    if s.turn != ABSENT and (e.origin.pid is None or ((p := own(s)) and p.hooked)):
        s.opened = max(s.opened, e.t)
        return "already open in the same process"
    see_aside(s)
    s.hooked = False
    return begin(s, e, o)


def see_aside(s: Session) -> None:
    """Mark its other runs as seen: whoever opens it or types into it has seen them."""
    if s.aside and not s.headless:
        s.aside = {
            pid: replace(
                r,
                turn=seen(r.turn),
                rested=seen(r.rested),
                unseen=False,
                # if its Stop has come, that is seen too
                held="moved" if r.held == "stop" else r.held,
            )
            for pid, r in s.aside.items()
        }


def seen(turn: str) -> str:
    """Return the status after somebody has looked."""
    return "idle" if turn in ("completed", "error") else turn


def leave(s: Session, e: Event, o: Options) -> str | None:
    """It ended."""
    if e.kind == "end" and e.t < max(s.began - o.swap, s.opened):
        return "it has begun again since"
    p, said = own(s), s.stated
    if e.kind != "end":
        s.processes, s.aside = {}, {}
    end(s, e.t, e.source or e.kind, e.origin.pid or s.pid)
    if s.turn == ABSENT and s.end_reason in MOVES_ON and p is not None and said.says == "busy":
        # Its hooks may run for a long time before the next session of its process begins.
        s.processes = {p.pid: p}
        s.stated, s.stood = replace(said, at=max(said.at, e.t)), False
    return None


def depart(s: Session, e: Event, o: Options) -> str | None:
    """Its process is gone."""
    gone = s.processes.get(e.pid or 0)
    if gone is None:
        return "not its process"
    if e.started and gone.started and e.started != gone.started:
        return "an earlier process had the same pid"
    if says_itself(s) and s.turn in ("completed", "error"):  # that stays until it is seen
        s.processes = {pid: p for pid, p in s.processes.items() if pid != gone.pid}
        return None
    end(s, e.t, "process gone", gone.pid)
    return None


def lose_pane(s: Session, e: Event, o: Options) -> str | None:
    """Its pane is gone: it ended, unless its process is known to run."""
    s.pane = s.pane_tty = ""
    if s.pid not in s.processes:
        end(s, e.t, "pane gone", 0)
    return None
