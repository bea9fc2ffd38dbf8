"""The two sides as they happen: what `bellboard watch --json` prints, and what the CLI writes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import psutil

from rig.home import Home
from rig.reaper import lives
from rig.waiting import eventually
from truth.account import Line

EVERY: Final = 0.01  # between two looks at the session files
GLANCES: Final = 0.1  # between two looks at a screen, where there is no status in them


class Published:
    """A host without an editor, and each change that it prints, by the time that we read it."""

    def __init__(self, home: Home) -> None:
        self.changes: list[Line] = []
        self._errors = (home.root / "watch.stderr").open("w+")
        self._host = subprocess.Popen(
            [sys.executable, "-m", "bellboard", "watch", "--json"],
            env=home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._reader = threading.Thread(target=self._read, name="published")
        self._reader.start()
        eventually(lambda: any((home.bellboard / "hosts").glob("*")), "a host")

    def _read(self) -> None:
        assert self._host.stdout
        for text in self._host.stdout:
            now = time.time()
            self.changes.append({**json.loads(text), "t": now})

    @property
    def listed(self) -> dict[str, str]:
        """Session → status, as of the last line."""
        known = {c["session_id"]: c["to"] for c in list(self.changes)}
        return {sid: status for sid, status in known.items() if status}

    def close(self) -> None:
        """End it."""
        self._host.terminate()
        self._host.wait(20)
        self._reader.join()
        if self._host.stdout:
            self._host.stdout.close()
        self._errors.close()


class Witness:
    """While open: what the CLIs of one home say of themselves, as lines of a trace."""

    def __init__(self, home: Home) -> None:
        self.lines: list[Line] = []
        self.ended: dict[int, float] = {}  # process → when it was seen dead
        self._home = home
        self._records: dict[int, Line] = {}
        self._alive: dict[int, psutil.Process] = {}
        self._screens: dict[int, Callable[[], str]] = {}
        self._glanced = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="witness")

    def follow(self, pid: int, screen: Callable[[], str] | None = None) -> None:
        """Note its end; `screen` tells the status of a CLI that does not tell it in its file."""
        self._alive[pid] = psutil.Process(pid)
        if screen:
            self._screens[pid] = screen

    def trace(self) -> list[Line]:
        """All of it and the hooks, in the order of time."""
        hooks = [
            {
                "t": path.stat().st_mtime,
                "hook": json.loads(path.read_text()),
                "origin": {"pid": int(path.name.partition(".")[0])},
            }
            for path in (self._home.root / "recorded").glob("*.json")
        ]
        return sorted([*self.lines, *hooks], key=lambda x: x["t"])

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self._read_files()
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
                    record = {**self._records[pid], "status": screen()}
                except AssertionError:  # its terminal is gone
                    continue
                self._tell(registry={"pid": pid, "record": record})

    def _tell(self, **what: Any) -> None:
        self.lines.append({"t": time.time(), **what})

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
