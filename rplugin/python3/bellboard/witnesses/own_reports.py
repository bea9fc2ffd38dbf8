"""Take the own reports of programs in the terminals of our Neovim (OSC 7501).

A report belongs to the process in front in its terminal: the process that the shell waits for, or
the shell.  If a known session runs in that process, or in another of its job, the report is about
that session.  `bellboard report` is a messenger: it reports for the job or shell that ran it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from ..agents.registry import agent_of_program, status_reported
from ..core.evidence import Evidence, TraceLine
from ..core.outward import is_of_board
from ..core.own_report import LAST_WORDS
from ..core.program_status import MOST_RECORDS, Discarded, Report, parsed, within
from ..core.session import Session
from ..core.text import line
from ..system import processes, ssh
from ..system.notes import Notes
from ..system.places import Place, place_of
from ..system.reach import Rounds, reach
from ..system.remotely import SHELLS, way

REPORT: Final = "7501;"  # start of the sequences to read
PROMPT: Final = "133;A"
PATIENCE: Final = 5.0  # seconds to find the process in front, which takes a millisecond
TEXT: Final = 1.0  # seconds between two reports of a record that differ only in text or progress
MESSENGER: Final = ("bellboard", "report")  # in its command line
MOST_WAITING: Final = 1000  # reports of a terminal, while the process in front is unknown

Said = tuple[float, str]  # when a sequence arrived, and the sequence


class Front(NamedTuple):
    """The process in front in a terminal."""

    pid: int
    started: str
    command: str = ""
    cwd: str = ""
    place: Place = Place()
    through: str = ""  # see Origin
    connection: str = ""


@dataclass(slots=True)
class _Program:
    """A process that has reported, and the last report of each of its records."""

    front: Front
    session_id: str
    died: float = 0.0
    last: dict[str, tuple[Report, float, str]] = field(default_factory=dict)
    held: dict[str, Said] = field(default_factory=dict)  # reports to make a moment later


@dataclass(slots=True)
class _Terminal:
    job: int  # the process that Neovim started in the terminal
    came: int = 0  # number of sequences
    waiting: list[Said] = field(default_factory=list)  # the last sequences
    programs: dict[int, _Program] = field(default_factory=dict)  # the newest last
    refused: int = 0


class OwnReports:
    """Calls `report` with the own report of a program, when it has changed."""

    def __init__(
        self,
        report: Callable[[Evidence], None],
        clock: Callable[[], float],
        notes: Notes,
        board: str = "",
    ) -> None:
        self._report, self._clock, self._notes = report, clock, notes
        self._board = board  # whose own reports are ignored, such as of a Neovim in a terminal here
        self._rounds = Rounds()
        self._terminals: dict[str, _Terminal] = {}  # by tty
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0

    def hand_in(
        self, tty: str, job: int, said: Sequence[Said], there: Iterable[Session], dropped: int
    ) -> None:
        """Take sequences from a terminal whose first process is `job`, in order.

        `there` are the known sessions in that terminal; `dropped` sequences were too long.
        """
        terminal = self._terminals.get(tty)
        if terminal is None or terminal.job != job:
            terminal = self._terminals[tty] = _Terminal(job)
        if dropped:
            self._refuse(tty, dropped, "too long")
        terminal.came += len(said)
        terminal.waiting = [*terminal.waiting, *said][-MOST_WAITING:]
        known = {pid: s.session_id for s in there if not s.record for pid in s.processes}
        served = {pid for s in there for pid, p in s.processes.items() if p.shared}
        work = partial(front_of, job, tuple(known), frozenset(served))
        came = terminal.came

        async def take() -> None:
            """Take all waiting sequences, once the process in front is known."""
            front = await reach(work, f"{processes.PROC}/{job}/stat", PATIENCE)
            self._took(tty, known, came, front)

        self._rounds.run(f"front of {tty}", take)

    def died(self, pid: int) -> None:
        """Note the end of a process."""
        for terminal in self._terminals.values():
            if pid in terminal.programs:
                terminal.programs[pid].died = self._clock()

    def renew(self) -> None:
        """Report everything again, after a time without hosts."""
        for tty, terminal in self._terminals.items():
            for program in terminal.programs.values():
                for report, t, text in [*program.last.values()]:
                    if not program.died:
                        self._tell(tty, program, t, text, report.id)

    def left(self) -> None:
        """Report the end of every terminal, as our Neovim has exited."""
        for tty, terminal in self._terminals.items():
            self._closed(tty, terminal, self._clock())

    def close(self) -> None:
        """Stop reporting."""
        self._rounds.close()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_asking(self) -> bool:
        """Return whether the process in front in a terminal is being looked up."""
        return bool(self._rounds)

    def _refuse(self, tty: str, count: int, why: str) -> None:
        """Note sequences in health that were not understood."""
        terminal = self._terminals[tty]
        terminal.refused += count
        why = f"{terminal.refused} not used, the last because {why}"
        self._notes.say(f"reports in {line(tty, 40)}", why)

    def _took(self, tty: str, known: Mapping[int, str], came: int, front: Front | None) -> None:
        terminal = self._terminals.get(tty)
        if terminal is None:
            return
        until = max(0, len(terminal.waiting) - (terminal.came - came))
        waiting, terminal.waiting = terminal.waiting[:until], terminal.waiting[until:]
        for t, text in waiting:
            if not text:
                self._closed(tty, terminal, t)
                del self._terminals[tty]
                self._notes.settle(f"reports in {line(tty, 40)}")
                return
            if text.startswith(PROMPT):
                for each in terminal.programs.values():
                    self._tell(tty, each, t, "", "", ends="prompt")
                terminal.programs.clear()
            elif text.startswith(REPORT):
                program = self._program(terminal, front, known)
                if program is not None:
                    self._one(tty, terminal, program, t, text.removeprefix(REPORT))

    def _program(
        self, terminal: _Terminal, front: Front | None, known: Mapping[int, str]
    ) -> _Program | None:
        """Return the process that a report belongs to."""
        last = next(reversed(terminal.programs.values()), None)
        if front is None or (front.pid == terminal.job and last is not None):
            # The last words of a program may be read only when its shell is in front again.
            is_over = last is None or (last.died and self._clock() > last.died + LAST_WORDS)
            if last is not None and not is_over and not processes.runs(*last.front[:2]):
                return last
            if front is None:
                return None
        sid = known.get(front.pid, "")
        program = terminal.programs.pop(front.pid, None)
        if program is None or program.front.started != front.started:
            program = _Program(front, sid)
        program.session_id = sid
        living = {p: x for p, x in terminal.programs.items() if not x.died}
        terminal.programs = {**living, front.pid: program}
        return program

    def _one(self, tty: str, terminal: _Terminal, program: _Program, t: float, body: str) -> None:
        """Report a new status at once, and other text or progress not too often."""
        try:
            report = parsed(body)
        except Discarded as why:
            self._refuse(tty, 1, str(why))
            return
        if is_of_board(self._board, report):
            return
        name = report.id
        before = program.last.pop(name, None)
        if report.state == "clear":
            gone = [x for x in (*program.last, *program.held) if not name or within(x, name)]
            for each in gone:
                program.last.pop(each, None)
                program.held.pop(each, None)
            self._tell(tty, program, t, body, name)
            return
        while len(program.last) >= MOST_RECORDS:
            del program.last[next(iter(program.last))]
        since, is_held = t, False
        if before is not None:
            was, told, _ = before
            if was == report:
                program.last[name] = before
                return
            is_text = was.kind == report.kind and _says(program, was) == _says(program, report)
            is_held = is_text and t < told + TEXT
            if is_held:
                program.held[name] = (t, body)
                since = told
                self._plan()
        program.last[name] = (report, since, body)
        if not is_held:
            program.held.pop(name, None)
            self._tell(tty, program, t, body, name)

    def _plan(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TEXT, self._release)

    def _release(self) -> None:
        """Report records that were held back."""
        self._timer = None
        for tty, terminal in self._terminals.items():
            for program in terminal.programs.values():
                held, program.held = program.held, {}
                for name, (t, body) in held.items():
                    if name in program.last:
                        program.last[name] = (program.last[name][0], self._clock(), body)
                    self._tell(tty, program, t, body, name)

    def _closed(self, tty: str, terminal: _Terminal, t: float) -> None:
        """Report the end of a terminal, which also ends the records of its other programs."""
        said = TraceLine(pid=terminal.job, tty=tty, ends="exit").line(t, "osc7501")
        self._report(Evidence(said, f"end of {tty} {terminal.job} {t}"))

    def _tell(
        self, tty: str, program: _Program, t: float, body: str, name: str, ends: str = ""
    ) -> None:
        front = program.front._replace(place=program.front.place._replace(tty=tty))
        self._count += 1
        key = f"own report {front.pid} {front.started} {name} {t} {self._count}"
        self._report(Evidence(said_by(front, t, body, program.session_id, ends), key))


def said_by(
    front: Front, t: float, body: str, session_id: str = "", ends: str = ""
) -> dict[str, object]:
    """Return the evidence of a report, or of another end of a program's reports."""
    return TraceLine(
        session_id=session_id,
        pid=front.pid,
        started=front.started,
        command=front.command,
        cwd=front.cwd,
        body=body,
        ends=ends,
        through=front.through,
        connection=front.connection,
        **front.place._asdict(),
    ).line(t, "osc7501")


def _says(program: _Program, report: Report) -> str:
    return status_reported(agent_of_program(report.app, program.front.command), report)


def front_of(job: int, known: Sequence[int], served: frozenset[int]) -> Front | None:
    """Return the process in front in the terminal of a job; of several, a known one.

    `served` are servers, which show their sessions in the terminal but run outside it.
    """
    group = processes.front_group(job)
    inside = [pid for pid in known if pid not in served and processes.group_of(pid) == group]
    found = next(iter((*inside, *served)), 0) if group else 0
    if not found and group:
        found = group if processes.is_alive(group) else _member(job, group)
        if not found or _has_reported(found):
            found = sender_of(found or group) or job
        elif _name(processes.argv_of(found)) in SHELLS:  # of a script, or of `:terminal ssh dev`
            found = _leading(found, group) or found
    return described(found) if found else None


def described(pid: int) -> Front:
    """Return a process as one in front."""
    argv = processes.argv_of(pid)
    through = way(argv)
    return Front(
        *(pid, processes.started_of(pid), _name(argv), processes.cwd_of(pid), place_of(pid)),
        *(through, ssh.connection_of(pid) if through else ""),
    )


def _name(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2].lstrip("-") if argv else ""


def _leading(job: int, group: int) -> int:
    """Return the program of a job that leads elsewhere, if one does."""
    below = (pid for pid in processes.descendants(job) if processes.group_of(pid) == group)
    return next((pid for pid in below if way(processes.argv_of(pid))), 0)


def sender_of(messenger: int) -> int:
    """Return the process that `bellboard report` reports for: first of its job, or its shell; or 0.

    The same is in front once a job has ended.
    """
    group, above = processes.group_of(messenger), [*processes.ancestors(messenger)]
    return group if group in above else next((pid for pid in above if pid > 1), 0)


def _has_reported(pid: int) -> bool:
    """Return whether a process is a messenger, or ends just now, as one does."""
    names = [word.rpartition("/")[2] for word in processes.argv_of(pid)[:4]]
    return names in ([], [""]) or MESSENGER in pairwise(names)


def _member(job: int, group: int) -> int:
    """Return a process of a group whose first process has ended, and may still be a zombie."""
    below = (pid for pid in processes.descendants(job) if pid != group)
    return next((pid for pid in below if processes.group_of(pid) == group), 0)
