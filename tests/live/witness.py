"""What is so: what a Claude Code says of itself, as lines of a trace.

It writes a session file and a transcript, runs hooks, and reports to its terminal. `claude agents
--json` is compared with the session files.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil

from live.account import Line
from live.heard import Heard, Noted
from rig.agents.agent import QUIET, spoken
from rig.beside import Beside
from rig.fetched import claude_code
from rig.home import Home
from rig.reaper import lives

EVERY: Final = 0.01  # seconds between two reads of the session files
STARVED: Final = 0.25  # seconds; a longer gap between two reads is not compared
GLANCES: Final = 0.1  # seconds between two reads of a screen, if the files have no status
LISTS: Final = 5.0  # seconds between two listings: each is a process that takes 0.2 s of a core
LISTED_SINCE: Final = (2, 1, 197)  # the first version known to list interactive sessions
TIME: Final = 20.0  # seconds for a listing
SHOWN: Final = 14  # the last lines of a screen that a trace keeps, without empty ones
WORKS: Final = re.compile(r"(?m)^\S \w[\w-]*…|^\s*◯ .* \d+s( · |$)|esc to interrupt")
MENU: Final = re.compile(r"Esc to (cancel|exit|close|go back|clear)|Enter to (confirm|select)")
SAYS: Final = {"waiting": "blocked", "busy": "working", "idle": "idle"}


class Transcripts:
    """Reads new lines in the transcripts of a home."""

    def __init__(self, home: Home) -> None:
        self._folder = home.claude / "projects"
        self._read: dict[Path, int] = {}
        self._told: set[bytes] = set()

    def look(self) -> Iterator[tuple[str, Line]]:
        """Yield the session and entry of each new line; only the type of one with a prompt."""
        for path in self._folder.glob("*/*.jsonl"):
            at = self._read.get(path, 0)
            if path.stat().st_size == at:
                continue
            with path.open("rb") as f:
                f.seek(max(0, at - 1))
                if is_rewritten := bool(at) and f.read(1) != b"\n":  # without a flagged answer
                    at = f.seek(0)
                whole, _, _ = f.read().rpartition(b"\n")
            self._read[path] = at + len(whole) + bool(whole)
            for text in whole.splitlines():
                if is_rewritten and text in self._told:
                    continue
                self._told.add(text)
                entry = json.loads(text)
                if str(entry.get("type")).startswith("api-"):
                    entry = {key: entry[key] for key in ("type", "timestamp") if key in entry}
                yield path.stem, entry


class Witness(Beside):
    """While open, records the status that the CLIs of a home report, as lines of a trace."""

    def __init__(self, home: Home) -> None:
        super().__init__(self._look)
        self.lines: list[Line] = []
        self.ended: dict[int, float] = {}  # process → when its death was noticed
        self.starved: list[tuple[float, float]] = []  # times without a read
        self._home = home
        self._records: dict[int, Line] = {}
        self._alive: dict[int, psutil.Process] = {}
        self._screens: dict[int, Callable[[], str]] = {}
        self._origins: dict[int, Line] = {}
        self._transcripts = Transcripts(home)
        self.heard = Heard(home)
        self._said: dict[int, tuple[int, str]] = {}  # terminal → whose screen says what
        self._glanced = 0.0

    def follow(self, pid: int, screen: Callable[[], str] | None = None, **where: str) -> None:
        """Watch a process; `screen` returns the status of a CLI without one in its file.

        `where`: its terminal, as the origin of its hooks.
        """
        self._alive[pid] = psutil.Process(pid)
        self._origins[pid] = {"agent": "claude", "pid": pid, **where}
        if screen:
            self._screens[pid] = screen

    def trace(self) -> list[Line]:
        """Return all lines and the hook events, by time."""
        hooks = [self._hook(path) for path in (self._home.root / "recorded").glob("*.json")]
        return sorted([*self.lines, *hooks], key=lambda x: x["t"])

    def _hook(self, path: Path) -> Line:
        pid = int(path.name.partition(".")[0])
        origin = self._origins.get(pid, {"pid": pid})
        return {"t": path.stat().st_mtime, "hook": json.loads(path.read_text()), "origin": origin}

    def note(self, text: str) -> None:
        """Add a note for readers of the trace."""
        self._tell(note=text)

    @property
    def statuses(self) -> dict[int, tuple[str, str]]:
        """Return the status and waitingFor in the file of each running CLI that has one."""
        return {
            pid: (record["status"], record.get("waitingFor", ""))
            for pid, record in list(self._records.items())
            if "status" in record and pid in self._alive
        }

    def _look(self) -> None:
        looked = time.time()
        while not self._over.wait(EVERY):
            now = time.time()
            if now - looked > STARVED:
                self.starved.append((looked, now))
            looked = now
            self._read_files()
            for session_id, entry in self._transcripts.look():
                self._tell(transcript={"session_id": session_id, "entry": entry})
            for noted in self.heard.look():
                self.lines += self._hear(noted)
            if self._screens and time.monotonic() > self._glanced + GLANCES:
                self._read_screens()
                self._glanced = time.monotonic()
            for pid, process in list(self._alive.items()):
                if not lives(process):
                    self.ended[pid] = time.time()
                    self._tell(process={"pid": pid, "alive": False})
                    del self._alive[pid]

    def _hear(self, noted: Noted) -> Iterator[Line]:
        """Yield a line for a report, and for a screen that says something else than before."""
        t, _, pid, started, tty, body, screen = noted
        if body == "?":
            yield {"t": t, "note": f"asks whether reports are read: {pid}"}
        elif body is not None:
            yield {"t": t, "osc7501": {"pid": pid, "started": started, "tty": tty, "body": body}}
        elif self._said.get(noted.job) != (said := (pid, SAYS[read(screen or "")])):
            self._said[noted.job] = said
            last = [line.rstrip() for line in (screen or "").splitlines() if line.strip()][-SHOWN:]
            yield {"t": t, "truth": said[1], "pid": pid, "screen": last}

    def _read_files(self) -> None:
        there = {}
        for path in (self._home.claude / "sessions").glob("*.json"):
            try:
                there[int(path.stem)] = path.read_bytes()
            except (FileNotFoundError, ValueError):
                continue
        for pid in self._records.keys() - there.keys():
            self._tell(registry={"pid": pid, "record": None})
            del self._records[pid]
        for pid, raw in there.items():
            try:
                record = json.loads(raw)
            except json.JSONDecodeError:  # written in place
                continue
            if self._records.get(pid) != record:
                self._records[pid] = record
                if pid not in self._screens:
                    self._tell(registry={"pid": pid, "record": record})

    def _read_screens(self) -> None:
        for pid, screen in list(self._screens.items()):
            if pid in self._records and pid in self._alive:
                try:
                    record = {**self._records[pid], "status": screen(), "painted": True}
                except AssertionError:  # its terminal is gone
                    continue
                self._tell(registry={"pid": pid, "record": record})

    def _tell(self, **what: Any) -> None:
        self.lines.append({"t": time.time(), **what})


class Listing(Beside):
    """While open, runs it at intervals, and notes what neither the file before nor after says."""

    def __init__(self, home: Home, version: str, witness: Witness, asks: bool = True) -> None:
        super().__init__(self._ask)
        self.disagreements: list[str] = []
        self.compared = 0
        self._program = claude_code.executable(version)
        self._asks = asks and claude_code.numbers(version) >= LISTED_SINCE
        self._home = home
        self._witness = witness

    def _ask(self) -> None:
        while self._asks and not self._over.wait(LISTS):
            before = self._witness.statuses
            listed = self.listed()
            if listed is None:
                continue
            after = self._witness.statuses
            for pid in before.keys() & after.keys():
                self.compared += 1
                said = listed.get(pid)
                if said not in (before[pid], after[pid]):
                    told = f"agents --json: {pid} {said}, file {before[pid]} → {after[pid]}"
                    self.disagreements.append(told)
                    self._witness.note(told)

    def listed(self) -> dict[int, tuple[str, str]] | None:
        """Return status and waitingFor of each process; None if the CLI did not answer."""
        try:
            done = subprocess.run(
                [str(self._program), "agents", "--json"],
                env={**self._home.env, **QUIET},
                cwd=self._home.project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIME,
                check=False,
            )
            rows: list[dict[str, Any]] = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            return None
        return {
            row["pid"]: (row.get("status", ""), row.get("waitingFor", ""))
            for row in rows
            if row.get("pid")
        }


def read(screen: str) -> str:
    """Return what a screen says, in the words of a session file: a dialog, work, or neither."""
    if spoken(screen) == "waiting" or MENU.search(screen):
        return "waiting"
    return "busy" if WORKS.search(screen) else "idle"
