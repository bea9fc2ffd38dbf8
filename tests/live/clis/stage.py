"""The stage of a scene: a host, terminals with a real CLI, and what their screens say over time."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from live.clis.heard import Heard
from live.clis.settings import Settings
from live.clis.stands import Stand, Status
from live.listening import Published
from rig import home as homes
from rig import tmux as tmuxes
from rig.beside import Beside
from rig.editor import Editor
from rig.loopback import Watch
from rig.model import Model
from rig.terminal import Terminal
from rig.tmux import Pane
from rig.waiting import eventually, leniency, rest

EVERY: Final = 0.1  # seconds between two looks at the screens
AT_REST: Final = ("idle", "completed", "error")
LEFT: Final = ("leaving", "ended")
STOOD: Final = 0.5  # seconds that it must have been at rest, because redraws flicker
STANDS: Final = 1.6  # seconds to let a status stand, so that it is compared
PRESS: Final = 0.3  # seconds between two keys
PASTE: Final = 0.4  # seconds after a text: an Enter right after it would be a part of it
SOON: Final = 8.0  # seconds on an idle machine
START: Final = 15.0
TAKES: Final = 5.0  # seconds for a text to show
LAST: Final = 8  # characters of it to look for: the line may be broken before them
COLUMNS, LINES = 120, 44
UNTOLD: Final = ("own report", "facts")  # decoded lines that a trace leaves out


OPEN: Final[list[Stage]] = []  # to close before the process exits


def close_all() -> None:
    """End what was started: the process is about to exit."""
    while OPEN:
        OPEN.pop().close()


@dataclass(frozen=True)
class How:
    """A configuration in which scenes are played."""

    editor: str = ""  # the Neovim that has the terminals; empty: tmux panes
    alone: bool = False  # without our hooks, and with its own folder out of sight


IN_TMUX: Final = How()


@dataclass
class Seen:
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
            if said == "ended" or self.status not in LEFT:
                self.marks.append((t, said))


class Stage(Beside):
    """While open, plays one CLI; `model` is its model, and nothing else is within its reach."""

    def __init__(self, stand: Stand, free: bool = False, how: How = IN_TMUX) -> None:
        super().__init__(self._look)
        self.stand, self.free = stand, free
        self.home = homes.build()
        self.model = Model()
        self.watch = Watch()
        self.watch.old = True  # what the trap caught has reached nobody
        self.tmux = tmuxes.Server(self.home)
        self.editors: list[Editor] = []  # one for each terminal
        self.heard = Heard(self.home.root / "heard", LINES)
        self.seen: list[Seen] = []
        self.places: dict[str, list[str]] = {}  # session → panes
        self.env = dict(stand.settings(Settings(self.home, self.model, free)))
        self.home.file("x.txt", "x\n")
        self.how = how
        if how.alone:
            self.env[stand.variable] = str(self._hide(stand.folder))
        else:
            self._install()
        self.published = Published(self.home)

    def _hide(self, folder: str) -> Path:
        """Move the folder of a CLI to where our host does not look for it."""
        hidden = self.home.root / "hidden"
        (self.home.root / folder).rename(hidden)
        return hidden

    def _install(self) -> None:
        """Put our hooks in place, as a user would."""
        command = ("hooks", "install", "--yes", "--agent", self.stand.key)
        subprocess.run(
            [sys.executable, "-m", "bellboard", *command],
            env=self.home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def __enter__(self) -> Stage:
        OPEN.append(self)
        super().__enter__()
        self.watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self in OPEN:
            OPEN.remove(self)
        super().__exit__()
        self.watch.__exit__()
        self.close()

    def close(self) -> None:
        """End the terminals, the host and the model."""
        for editor in self.editors:
            editor.close()
        self.tmux.close()
        self.published.close()
        self.model.close()
        homes.remove(self.home)

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.heard.look()
            for seen in list(self.seen):
                if isinstance(seen.pane, Pane):
                    seen.look(self.stand, time.time(), seen.pane.text())
                elif noted := self.heard.screens.get(seen.pane.pid):
                    seen.look(self.stand, *noted)

    # ------------------------------------------------------------ what a user does

    def start(self, *args: str) -> None:
        """Open a terminal with the CLI; wait until it takes a prompt."""
        given = args or (self.stand.free if self.free else ()) or self.stand.args
        env = {**self.watch.env, **self.env}
        argv = [*self.stand.fetch(), *given]
        pane = self._open(argv, env)
        self.watch.follow(pane.pid)
        if not self.seen and not self.how.alone:
            for question, choice in self.stand.welcome.items():
                pane.shows(question, within=START * leniency())
                self._choose(pane, choice)
        pane.shows(self.stand.ready, within=START * leniency())
        self.seen.append(Seen(pane, pane.id))
        rest(STANDS)

    def _open(self, argv: list[str], env: Mapping[str, str]) -> Pane | Terminal:
        if not self.how.editor:
            return self.tmux.open(argv, env=env, columns=COLUMNS, lines=LINES)
        how: dict[str, Any] = {"config": {}, "lua": self.heard.lua, "peers": (), "args": ()}
        how |= {"columns": COLUMNS, "lines": LINES, "ui": False, "env": {}}
        name = f"nvim{len(self.editors)}"
        self.editors.append(Editor(self.how.editor, self.home, name, **how))
        exports = [f"{key}={value}" for key, value in env.items()]
        return Terminal(self.editors[-1], ["env", *exports, *argv], self.home.project)

    @property
    def now(self) -> Seen:
        """Return the terminal in use: the last one started, or the one that was turned to."""
        return self.seen[-1]

    def turn_to(self, number: int) -> None:
        """Use this terminal from now on."""
        self.seen.append(self.seen.pop(number))

    def prompt(self, script: str) -> None:
        """Enter a prompt; it is at work then."""
        before = len(self.now.marks)
        self.now.is_prompted = True
        self.enter(f"DO: {script}")

        def is_taken() -> bool:
            with contextlib.suppress(AssertionError):
                wait = TAKES * leniency(1.0)  # a second Enter can start a second session
                eventually(lambda: len(self.now.marks) > before, within=wait, pause=EVERY)
                return True
            self.press("Enter")  # it took the first one for a part of the text
            return False

        eventually(is_taken, f"it works:\n{self.now.screen}", SOON * leniency())

    def asks(self) -> None:
        """Make it ask, and wait until it does."""
        self.prompt(f"{self.stand.asking} perl -e 'sleep 3'; say Done")
        self.becomes("blocked")

    def enter(self, text: str) -> None:
        self.write(text)
        self.now.pane.press("Enter")

    def write(self, text: str) -> None:
        """Type a text; again, if a CLI that has just started did not take it."""

        def is_there() -> bool:
            self.press("C-u")
            self.now.pane.type(text)
            with contextlib.suppress(AssertionError):
                self.now.pane.shows(re.escape(text[-LAST:]), within=TAKES)
                return True
            return False

        eventually(is_there, f"the prompt takes {text}")
        rest(PASTE)

    def press(self, *keys: str) -> None:
        self._press(self.now.pane, *keys)

    def _choose(self, pane: Pane | Terminal, choice: str) -> None:
        """Choose a row of a dialog that has just been drawn, and may not take a key yet."""

        def is_chosen() -> bool:
            self._press(pane, choice)
            return f"\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {choice}." in pane.text()

        eventually(is_chosen, f"choice {choice}", SOON * leniency())
        self._press(pane, "Enter")

    def _press(self, pane: Pane | Terminal, *keys: str) -> None:
        for key in keys:
            pane.press(key)
            rest(PRESS)

    def becomes(self, status: str, within: float | None = None) -> None:
        """Wait until the screen has said that (a|b) for a while."""

        def stood() -> bool:
            now = self.now.status or ""
            at = self.now.marks[-1][0] if self.now.marks else 0.0
            assert now in status.split("|"), f"{now}, not {status}:\n{self.now.screen}"
            return time.time() - at > STANDS

        eventually(stood, within=within or SOON * leniency(), pause=EVERY)
        self.place()

    def place(self) -> None:
        """Note where each session is that the board lists."""
        for row in self.published.rows():
            panes = self.places.setdefault(row["session_id"], [])
            place = row.get("pane") or row.get("tty")
            if place and place not in panes:
                panes.append(place)

    def leave(self) -> None:
        """Exit the CLI in use as a user would."""
        self.write(self.stand.leave)
        self.now.note(time.time(), "leaving")
        self.press("Enter")
        self.ends()

    def ends(self) -> None:
        """Wait until it is gone, also from the board."""
        now = self.now
        eventually(lambda: now.status == "ended", "the end of the CLI", SOON * leniency(), EVERY)
        rest(STANDS)

    def recorded(self) -> list[dict[str, Any]]:
        """Return the trace of it all: what the host was told, what was reported and shown."""
        told = subprocess.run(
            [sys.executable, "-m", "bellboard", "record", "--minutes", "60"],
            env=self.home.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        lines = [json.loads(text) for text in told.stdout.splitlines()]
        lines = [x for x in lines if x.get("decoded", {}).get("kind") not in UNTOLD]
        lines += self.heard.reports  # as they came
        for seen in self.seen:
            lines += [{"t": t, "truth": says, "tty": seen.place} for t, says in seen.marks]
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
