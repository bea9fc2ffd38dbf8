"""The stage of the other CLIs: what their screens say over time, and what is shown meanwhile."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import msgspec

from bellboard.agents.registry import agent_of
from live.account import SLACK
from live.published import Published
from live.report import Line, Row
from live.stage import PRESS, How, Stage
from live.stands import Settings, Stand, Status
from rig import home as homes
from rig.agents.model import Model
from rig.beside import Beside
from rig.home import Home
from rig.machines.loopback import Watch
from rig.terminal import Terminal
from rig.tmux import Pane
from rig.waiting import eventually, leniency, rest

Mark = tuple[float, str]

FORETOLD: Final = 0.3  # seconds after its hook in which a CLI draws what that says
ACTIVE: Final = frozenset({"working", "blocked"})
EVERY: Final = 0.1  # seconds between two looks at the screens
AT_REST: Final = ("idle", "completed", "error")
LEAVES: Final = ("leaving", "ended")
STOOD: Final = 0.5  # seconds that it must have been at rest, because redraws flicker
STANDS: Final = 1.6  # seconds to let a status stand, so that it is compared
PASTE: Final = 0.4  # seconds after a text: an Enter right after it would be a part of it
SOON: Final = 8.0  # seconds on an idle machine
LONG: Final = 20.0
START: Final = 15.0
TAKES: Final = 5.0  # seconds for a text to show
TAIL: Final = 8  # characters of it to look for: the line may be broken before them
MEANT: Final = ("ALLOW", "ALWAYS", "DENY", "STOP", "CLEAR", "RESUME")  # each CLI has its own
UNTOLD: Final = ("own report", "facts")  # decoded lines that a trace leaves out
ANGLE: Final = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"


@dataclass
class Watched:
    """A terminal, and what its screen said: when, and which status."""

    pane: Pane | Terminal
    place: str  # its id
    marks: list[tuple[float, str]] = field(default_factory=list)
    pending: Status = None
    since: float = 0.0
    screen: str = ""
    is_prompted: bool = False
    is_resumed: bool = False  # it still shows the end of what it has resumed
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pid(self) -> int:
        return self.pane.pid

    def text(self) -> str:
        return self.screen

    def shows(self, pattern: str) -> object:
        return self.pane.shows(pattern)

    @property
    def status(self) -> Status:
        return self.marks[-1][1] if self.marks else None

    def look(self, stand: Stand, at: float, screen: str) -> None:
        """Note what its screen says, if that is new; rest counts from its first sight."""
        if self.status == "ended":
            return
        now = time.time()
        if self.pane.dead:
            self.note(now, "ended")
        self.screen = screen
        said = stand.status(screen)
        if said != self.pending:
            self.pending, self.since = said, at
        if said == "completed" and not self.is_prompted:
            self.is_resumed = True
        elif said in ("working", "blocked", "error"):
            self.is_resumed = False
        if said == "completed" and self.is_resumed:
            said = "idle"
        if said and said != self.status and (said not in AT_REST or now - self.since > STOOD):
            self.note(self.since, said)

    def note(self, t: float, said: str) -> None:
        """Note what it says, unless it is leaving."""
        with self.lock:
            if said == "ended" or self.status not in LEAVES:
                self.marks.append((t, said))


class ScreenStage(Stage[Watched]):
    """While open, plays one CLI; `model` is its model, and nothing else is within its reach."""

    columns, lines = 120, 44

    def __init__(self, stand: Stand, free: bool = False, how: How | None = None) -> None:
        home = homes.build()
        self.stand, self.free = stand, free
        self.model = Model()
        self.places: dict[str, list[str]] = {}  # session → terminals
        self.reports: list[Line] = []
        self._screens: dict[int, Mark] = {}  # of terminals of a Neovim, by their process
        self.env = dict(stand.settings(Settings(home, self.model, free)))
        home.file("x.txt", "x\n")
        how = how or How()
        if how.is_alone:
            self.env[stand.variable] = str(home.root / "hidden")  # our host does not look there
            (home.root / stand.folder).rename(home.root / "hidden")
        else:
            self._install(home)
        watch = Watch()
        watch.old = True  # what the trap caught has reached nobody
        super().__init__(how, home, watch, Published(home))
        self._looking = Beside(self._look)

    def __enter__(self) -> ScreenStage:
        self._looking.__enter__()
        self.watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._looking.__exit__()
        self.watch.__exit__()
        self.close()

    def close(self) -> None:
        super().close()
        self.published.close()
        self.model.close()
        homes.remove(self.home)

    def _install(self, home: Home) -> None:
        """Put our hooks in place, as a user would: at the end of a file that we do not change."""
        if not (place := agent_of(self.stand.key).place):
            self._run(home, "hooks", "install", "--yes", "--agent", self.stand.key)
            return
        with (home.root / place.removeprefix("~/")).open("a") as settings:
            settings.write(self._run(home, "hooks", "print", "--agent", self.stand.key))

    def _run(self, home: Home, *command: str) -> str:
        """Run `bellboard`; return what it prints."""
        argv = [sys.executable, "-m", "bellboard", *command]
        told = subprocess.run(
            argv, env=home.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
        )
        return told.stdout.decode()

    def _look(self) -> None:
        while not self._looking.is_over(EVERY):
            for t, job, pid, started, tty, body, screen in self.heard.look():
                if screen is not None:
                    self._screens[job] = (t, screen)
                elif body != "?":
                    told = {"pid": pid, "started": started, "tty": tty, "body": body}
                    self.reports.append({"t": t, "osc7501": told})
            for each in list(self.clis):
                if isinstance(each.pane, Pane):
                    each.look(self.stand, time.time(), each.pane.text())
                elif noted := self._screens.get(each.pid):
                    each.look(self.stand, *noted)

    # ------------------------------------------------------------ what a user does

    def start(self, *args: str) -> Watched:
        """Open a terminal with the CLI; wait until it takes a prompt."""
        given = args or (self.stand.free if self.free else ()) or self.stand.args
        env = {**self.watch.env, **self.env}
        pane = self.terminal([*self.stand.fetch(), *given], self.home.project, env)
        self.watch.follow(pane.pid)
        if not self.clis and not self.how.is_alone:
            for question, choice in self.stand.welcome.items():
                pane.shows(question, within=START * leniency())
                self._choose(pane, choice)
        pane.shows(self.stand.ready, within=START * leniency())
        watched = self.add(Watched(pane, pane.id))
        rest(STANDS)
        return watched

    def meant(self, word: str) -> Sequence[str]:
        if word not in MEANT:
            return (word,)
        found = getattr(self.stand, word.lower())
        return (found,) if isinstance(found, str) else found

    def prompt(self, script: str) -> None:
        """Enter a prompt; it is at work then."""
        before = len(self.cli.marks)
        self.cli.is_prompted = True
        asks = f"{self.stand.asking} perl -e 'sleep 3'"
        script = script.replace("SPAWN", self.stand.spawn.format(asks=asks))
        self.enter(f"DO: {script.replace('PROJECT', str(self.home.project))}")

        def is_taken() -> bool:
            with contextlib.suppress(AssertionError):
                wait = TAKES * leniency(1.0)  # a second Enter can start a second session
                eventually(lambda: len(self.cli.marks) > before, within=wait, pause=EVERY)
                return True
            self.press("Enter")  # it took the first one for a part of the text
            return False

        eventually(is_taken, f"it works:\n{self.cli.screen}", SOON * leniency())

    def asks(self) -> None:
        """Make it ask, if it can, and wait until it does; else make it work for long."""
        if "approve" in self.stand.lacks:
            return self.prompt("slow 9")
        self.prompt(f"{self.stand.asking} perl -e 'sleep 3'; say Done")
        return self.stands("blocked")

    def enter(self, text: str) -> None:
        self.type(text)
        self.cli.pane.press("Enter")

    def type(self, text: str) -> None:
        """Type a text; again, if a CLI that has just started did not take it."""

        def is_there() -> bool:
            self.press("C-u")
            self.cli.pane.type(text)
            with contextlib.suppress(AssertionError):
                self.cli.pane.shows(re.escape(text[-TAIL:]), within=TAKES)
                return True
            return False

        eventually(is_there, f"the prompt takes {text}")
        rest(PASTE)

    def press(self, *keys: str) -> None:
        self._press(self.cli.pane, *keys)

    def _choose(self, pane: Pane | Terminal, choice: str) -> None:
        """Choose a row of a dialog that has just been drawn, and may not take a key yet."""

        def is_chosen() -> bool:
            self._press(pane, choice)
            return f"{ANGLE} {choice}." in pane.text()

        eventually(is_chosen, f"choice {choice}", SOON * leniency())
        self._press(pane, "Enter")

    def _press(self, pane: Pane | Terminal, *keys: str) -> None:
        for key in keys:
            pane.press(key)
            rest(PRESS)

    def stands(self, status: str, seconds: float = STANDS, within: float | None = None) -> None:
        """Wait until the screen has said that (a|b) for a while."""
        self.stays(lambda: self.cli.status, status, seconds, within or LONG * leniency())
        self.place()

    def place(self) -> None:
        """Note where each session is that the board lists."""
        for row in self.published.rows():
            panes = self.places.setdefault(row["session_id"], [])
            place = row.get("pane") or row.get("tty")
            if place and place not in panes:
                panes.append(place)

    def leave(self) -> None:
        """Exit all CLIs as a user would."""
        for each in self.started:
            if not self.has_ended(each):
                self.turn_to(each)
                self.type(self.stand.leave)
                each.note(time.time(), "leaving")
                self.press("Enter")
                self.ends(each)

    def has_ended(self, cli: Watched) -> bool:
        return cli.status == "ended"

    def ends(self, cli: Watched, *keys: str, within: float | None = None) -> None:
        """Wait until it is gone, and whether that is soon on the board."""
        super().ends(cli, *keys, within=within or SOON * leniency())
        rest(STANDS)

    # ------------------------------------------------------------ what was seen

    def recorded(self) -> list[dict[str, Any]]:
        """Return the trace of it all: what the host was told, what was reported and shown."""
        told = self._run(self.home, "record", "--minutes", "60")
        lines = [json.loads(text) for text in told.splitlines()]
        lines = [x for x in lines if x.get("decoded", {}).get("kind") not in UNTOLD]
        lines += self.reports  # as they came
        for each in self.started:
            lines += [{"t": t, "truth": says, "tty": each.place} for t, says in each.marks]
        return sorted(lines, key=lambda x: x["t"])

    def evidence(self) -> list[dict[str, Any]]:
        """Return what the host was told, and what came of it."""
        with contextlib.closing(sqlite3.connect(self.home.bellboard / "board.db")) as board:
            rows = board.execute("SELECT rule, taken, why, before, after, event FROM events")
            names = ("rule", "taken", "why", "before", "after")
            return [
                {**dict(zip(names, row[:5], strict=True)), **msgspec.msgpack.decode(row[5])}
                for row in rows
            ]


def fits(said: str, shown: frozenset[str], is_fresh: bool) -> bool:
    """Return whether a screen that says this has those statuses on the board.

    None may be busier than the screen; a terminal without a prompt yet need not be listed.
    """
    if said == "idle" and not shown:
        return is_fresh
    if said not in ACTIVE and shown & ACTIVE:
        return False
    return said in shown and not (said == "working" and "blocked" in shown)


def judged_by_screens(
    scene: str,
    terminals: Mapping[str, Sequence[Mark]],
    changes: Sequence[Mapping[str, Any]],
    places: Mapping[str, Collection[str]],
    slowness: float,
) -> Row:
    """Return the figures of a scene on a machine that is so many times slower than an idle one.

    `places`: the terminals of a session, if known.
    """
    compared = left = 0.0
    wrong: list[float] = []
    instead: list[str] = []
    delays: list[float] = []
    for pane, marks in terminals.items():
        mine = [c for c in changes if pane in (places.get(c["session_id"]) or (pane,))]
        prompted = next((t for t, said in marks if said != "idle"), float("inf"))
        for (start, said), (end, then) in pairwise(marks):
            if said == "leaving" or end - start <= 2 * SLACK:
                continue
            is_fresh = start < prompted
            compared += end - start - 2 * SLACK
            for a, b, shown in _steps(mine, start + SLACK, end - SLACK):
                is_told = end - a < FORETOLD * slowness and fits(then, shown, False)
                if not (is_told or fits(said, shown, is_fresh)):
                    wrong.append(b - a)
                    instead.append(f"{said}: {'+'.join(sorted(shown)) or 'nothing'} {b - a:.2f} s")
            at = (a for a, _, shown in _steps(mine, start, end) if fits(said, shown, is_fresh))
            delays.append(next(at, end) - start)
        if marks and marks[-1][1] == "ended":
            end = marks[-1][0]
            left = max([left, *(gone - end for gone in _gone(mine, end))])
    return Row(
        scene,
        compared=compared,
        wrong=tuple(wrong),
        instead=tuple(instead),
        delays=tuple(delays),
        left=left,
    )


def _gone(changes: Sequence[Mapping[str, Any]], end: float) -> Iterator[float]:
    """Yield when each session that was listed at the end of its terminal was no longer listed.

    One that is resumed in another terminal is listed again later.
    """
    for sid in {c["session_id"] for c in changes if c["t"] <= end}:
        its = [c for c in changes if c["session_id"] == sid]
        if [c["to"] for c in its if c["t"] <= end][-1] is not None:
            yield next((c["t"] for c in its if c["t"] > end and c["to"] is None), float("inf"))


def _steps(
    changes: Sequence[Mapping[str, Any]], start: float, end: float
) -> Iterator[tuple[float, float, frozenset[str]]]:
    """Yield what was shown from when to when."""
    cuts = sorted({start, end, *(c["t"] for c in changes if start < c["t"] < end)})
    for a, b in pairwise(cuts):
        now = {c["session_id"]: c["to"] for c in changes if c["t"] <= a}
        yield a, b, frozenset(status for status in now.values() if status)
