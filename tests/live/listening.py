"""Record both sides: what `bellboard watch --json` prints, and what the CLI writes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil

from bellboard.storage.spool import Spool
from live.account import Line
from live.heard import Heard, noted_in
from rig.beside import Beside
from rig.home import Home
from rig.reaper import lives
from rig.waiting import eventually

EVERY: Final = 0.01  # seconds between two reads of the session files
STARVED: Final = 0.25  # seconds; a longer gap between two reads is not compared
OURS: Final = re.compile(r"\(\w+\.py:\d+\)")  # in a health note: a failure of our code
GLANCES: Final = 0.1  # seconds between two reads of a screen, if the files have no status


class Published:
    """A host without an editor, and the changes that it prints, with the time of reading."""

    def __init__(self, home: Home) -> None:
        self.changes: list[Line] = []
        self._home = home
        self._start()

    @property
    def pid(self) -> int:
        """Return the host's process id."""
        return self._host.pid

    def _start(self) -> None:
        self._errors = (self._home.root / "watch.stderr").open("a+")
        self._host = subprocess.Popen(
            [sys.executable, "-m", "bellboard", "watch", "--json"],
            env=self._home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._reader = threading.Thread(target=self._read, name="published")
        self._reader.start()
        beacon = self._home.bellboard / "hosts" / str(self._host.pid)
        eventually(beacon.exists, "a host")

    def _read(self) -> None:
        assert self._host.stdout
        for text in self._host.stdout:
            now = time.time()
            self.changes.append({**json.loads(text), "t": now})

    def restart(self, number: int = signal.SIGKILL) -> None:
        """End the host with a signal, and start another."""
        self._host.send_signal(number)
        self._over()
        self._start()
        found = {row["session_id"]: row["status"] for row in self.rows()}
        known = self.listed
        for sid in found.keys() | known.keys():
            change = {"session_id": sid, "from": known.get(sid), "to": found.get(sid)}
            self.changes.append({**change, "rule": "found", "t": time.time()})

    def rows(self) -> list[Line]:
        """Return the rows of `bellboard list --json`."""
        listed = subprocess.run(
            [sys.executable, "-m", "bellboard", "list", "--json"],
            env=self._home.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        return list(json.loads(listed.stdout)["sessions"])

    def refused(self) -> list[str]:
        """Return what failed in the host because of errors in our code."""
        state = Spool(self._home.bellboard)
        reasons = [why.read_text() for why in sorted(state.new.parent.glob("bad/*.why"))]
        notes = state.hosts.notes_of(self.pid).items()
        return reasons + [f"{job}: {note}" for job, note in notes if OURS.search(note)]

    @property
    def listed(self) -> dict[str, str]:
        """Return the status of each session, as of the last line."""
        known = {c["session_id"]: c["to"] for c in list(self.changes)}
        return {sid: status for sid, status in known.items() if status}

    def close(self) -> None:
        """Stop it."""
        self._host.terminate()
        self._over()

    def _over(self) -> None:
        self._host.wait(20)
        self._reader.join()
        if self._host.stdout:
            self._host.stdout.close()
        self._errors.close()


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
        self._heard = Heard(noted_in(home))
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
            self.lines += self._heard.look()
            if self._screens and time.monotonic() > self._glanced + GLANCES:
                self._read_screens()
                self._glanced = time.monotonic()
            for pid, process in list(self._alive.items()):
                if not lives(process):
                    self.ended[pid] = time.time()
                    self._tell(process={"pid": pid, "alive": False})
                    del self._alive[pid]

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
