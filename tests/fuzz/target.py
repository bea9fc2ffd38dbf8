"""A running host in a home of its own, and the checks that it must always pass."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from rig import home as homes
from rig import reaper, warm
from rig.waiting import eventually, leniency

HOST: Final = Path(__file__).with_name("host.py")
FOLDERS: Final = (*("", "spool", "spool/new", "spool/tmp", "spool/slot", "spool/bad", "hosts"),)
MAGIC: Final = b"bellboard 1\0"
LEAST = 1.0  # leniency; more if other tests run at the same time
#: What no input may cause; an OSError says what the system refused.
RAISED: Final = re.compile(r"\b(Assertion|Attribute|Decode|Index|Key|Type|Unicode\w+|Value)Error\b")
REST: Final = 0.05  # of a core; rescans every two seconds use a tenth of that
WINDOW: Final = 0.5
CALM: Final = 6.0  # seconds until it must be at rest
ANSWER: Final = 10.0  # seconds that `list` and `doctor` may take, start of Python included
HEAL: Final = 8.0  # seconds until a host that could not write tries again, at most
MOST: Final = {
    "descriptors": 120,
    "threads": 40,
    "children": 12,
    "files": 2500,
    "MB": 400,
    "MB of questions": 65,
}


class Fallen(Exception):
    """A check failed; the text says which."""


class Target:
    """The host, with its checks; closing it removes its home."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.home = homes.build()
        self.board = self.home.bellboard
        self.config = dict(config or {})
        self.undone: contextlib.ExitStack = contextlib.ExitStack()
        self.rested = 0.0  # share of a core when it was last idle
        self.slowest = 0.0  # event, in seconds
        self._serial = itertools.count()
        self._others: list[subprocess.Popen[bytes]] = []  # other processes
        self._sleepers: list[int] = []
        self.may_end = False  # whatever it does
        self.start()

    # ------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Start a host, and wait for it."""
        self.out = self.home.root / f"told-{next(self._serial)}"
        self.out.touch()
        self.errors = self.home.root / f"{self.out.name}.stderr"
        with self.errors.open("w") as errors:
            self.process = warm.Program(
                [str(HOST), str(self.board), str(self.out), json.dumps(self.config)],
                env=self.home.env,
                cwd=self.home.project,
                stdout=errors,
                stderr=errors,
            )
        self._seen = psutil.Process(self.process.pid)

    def up(self) -> None:
        """Wait for its first message."""
        with self._must("it does not start"):
            eventually(lambda: self.said() or self.has_ended(), within=10 * leniency(LEAST))
        self._alive()

    def restart(self) -> None:
        """Start another host in the same home."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Stop the host with SIGTERM; raise Fallen if it does not end."""
        self.process.terminate()
        try:
            self.process.wait(2 * leniency(LEAST))
        except subprocess.TimeoutExpired:
            reaper.end(reaper.family([self.process.pid]))
            raise Fallen("it did not end within two seconds of SIGTERM") from None

    def close(self) -> None:
        """Stop everything, undo every case, and remove the home."""
        self.undone.close()
        pids = [self.process.pid, *(each.pid for each in self._others)]
        reaper.end(reaper.family(pids))
        for process in (self.process, *self._others):
            process.wait()
        homes.remove(self.home)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ for cases

    def unique(self) -> str:
        """Return an unused name."""
        return f"{time.time_ns()}.{next(self._serial)}"

    def prepare(self) -> None:
        """Make the folders, as a host does."""
        for name in FOLDERS:
            (self.board / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def installed(self) -> None:
        """Install the hooks, and wait until the host knows it."""
        if not (self.board / "hooks.json").exists():
            argv = ["-m", "bellboard", "hooks", "install", "--yes"]
            done = warm.run(argv, env=self.home.env, cwd=self.home.root)
            assert 0 == done.returncode, done.stderr
            self.restart()
            self.up()

    def put(self, data: bytes, name: str = "") -> None:
        """Put a file into the spool by rename, as the hook does."""
        name = name or f"{os.getpid():08}.{self.unique()}.event"
        draft = self.board / "spool/tmp" / name
        draft.write_bytes(data)
        draft.rename(self.board / "spool/new" / name)

    def hook(self, event: str, session: str, pid: int = 0, **fields: Any) -> None:
        """Write a valid event with these fields in its payload."""
        payload = {"session_id": session, "hook_event_name": event, "cwd": "/srv", **fields}
        head = f"agent=claude\0event={event}\0pid={pid}\0\0".encode()
        self.put(MAGIC + head + json.dumps(payload).encode())

    def line(self, **told: Any) -> None:
        """Write a line of evidence."""
        self.put(json.dumps({"t": time.time(), **told}).encode())

    def sleeper(self) -> int:
        """Start a process that runs until the end."""
        if len(self._sleepers) < 4:
            self._others.append(subprocess.Popen(["sleep", "100000"]))
            self._sleepers.append(self._others[-1].pid)
        return self._sleepers[next(self._serial) % len(self._sleepers)]

    def doctor(self) -> str:
        """Return what doctor prints."""
        return warm.run(["-m", "bellboard", "doctor"], env=self.home.env, cwd=self.home.root).stdout

    def process_memory(self) -> int:
        """Return how many bytes its addresses span."""
        return int(self._seen.memory_info().vms)

    # ------------------------------------------------------------ checks

    def folded(self, session: str) -> None:
        """Check that a session is in the database, within the time of the longest pause."""

        def known() -> bool:
            uri = f"file:{self.board}/board.db?mode=ro"
            with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as db:
                row = "SELECT 1 FROM sessions WHERE session_id = ?"
                return db.execute(row, (session,)).fetchone() is not None

        with self._must(f"{session} was never folded"):
            eventually(known, within=HEAL * leniency(LEAST), pause=0.05)

    def check(self, folds: bool = True, within: float = 1.0, shrinks: float = CALM) -> None:
        """Raise Fallen unless all checks pass; without `folds`, events need not arrive now.

        What has grown may take `shrinks` seconds to be small again.
        """
        if folds:
            self.canary(within)
        self._alive()
        self._answers("list", {0, 1})
        self._answers("doctor", {0, 1})
        self._rests()
        self._alive()
        self._bounded(shrinks)

    def canary(self, within: float = 1.0) -> None:
        """Check that a new event is folded and pushed."""
        name = f"canary-{next(self._serial)}"
        begin, before = time.monotonic(), self.out.stat().st_size
        self.hook("UserPromptSubmit", name)
        limit = within * leniency(LEAST)

        def pushed() -> bool:
            with self.out.open("rb") as file:
                file.seek(before)
                return f'"{name}"'.encode() in file.read() or self.has_ended()

        with self._must(f"an event was not folded and pushed within {limit:.1f} s"):
            eventually(pushed, within=limit, pause=0.005)
        self._alive()
        self.slowest = max(self.slowest, time.monotonic() - begin)
        self.hook("SessionEnd", name)

    def said(self) -> bool:
        """Return whether it has sent a message."""
        return self.out.stat().st_size > 0

    def caught(self) -> str:
        """Return what a reader raised that the host had to catch, or ""."""
        for row in self.out.read_text().splitlines():
            if RAISED.search(row):
                with contextlib.suppress(ValueError):
                    notes = json.loads(row).get("health", {}).get("notes", {})
                    if RAISED.search(said := str(notes)):
                        return said
        return ""

    def health(self) -> dict[str, Any]:
        """Return its newest health."""
        for row in reversed(self.out.read_text().splitlines()):
            with contextlib.suppress(ValueError):
                if "health" in (message := json.loads(row)):
                    return dict(message["health"])
        return {}

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self.process.poll() is not None

    def _alive(self) -> None:
        if self.may_end:
            return
        words = self.errors.read_text(errors="replace")
        if self.has_ended():
            last = words.strip().splitlines()[-1:] or ["without a word"]
            where = [row.strip() for row in words.splitlines() if "bellboard" in row][-1:]
            raise Fallen(f"the host ended: {brief_of(last[0])} {' '.join(where)}")
        if "Traceback" in words:
            raise Fallen(f"a traceback on stderr: {brief_of(words.strip().splitlines()[-1])}")

    def _answers(self, command: str, codes: set[int]) -> None:
        said = self.home.root / f"{command}.said"
        with said.open("w") as out:
            how: dict[str, Any] = {"env": self.home.env, "cwd": self.home.root}
            asked = warm.Program(["-m", "bellboard", command], stdout=out, stderr=out, **how)
        self._others.append(asked)
        try:
            asked.wait(ANSWER * leniency(LEAST))
        except subprocess.TimeoutExpired:  # it may ignore all signals until the case is undone
            asked.kill()
            raise Fallen(f"`bellboard {command}` did not respond") from None
        self._others.remove(asked)
        words = said.read_text(errors="replace")
        if "Traceback" in words or asked.returncode not in codes:
            last = brief_of((words.strip().splitlines() or [""])[-1])
            raise Fallen(f"`bellboard {command}` ended with {asked.returncode}: {last}")

    def _rests(self) -> None:
        """Check that it becomes idle again."""
        until = time.monotonic() + CALM * leniency(LEAST)
        while True:
            begin, before = time.monotonic(), self._spent()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(WINDOW)
            self.rested = (self._spent() - before) / (time.monotonic() - begin)
            if self.rested <= REST or self.has_ended():
                return
            if time.monotonic() > until:
                raise Fallen(f"it does not come to rest: {self.rested:.0%} of a core")

    def _spent(self) -> float:
        with contextlib.suppress(psutil.Error):
            times = self._seen.cpu_times()
            return float(times.user + times.system)
        return 0.0

    def _bounded(self, shrinks: float) -> None:
        """Check that nothing grows without limit: files are removed a few at a time."""
        until = time.monotonic() + shrinks * leniency(LEAST)
        while grown := self._grown():
            if time.monotonic() > until or self.has_ended():
                raise Fallen(f"it has {grown}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(WINDOW)

    def _grown(self) -> str:
        """Return what there is too much of, or ""."""
        with contextlib.suppress(psutil.NoSuchProcess):
            found = {
                "descriptors": self._seen.num_fds(),
                "threads": self._seen.num_threads(),
                "children": len(self._seen.children(recursive=True)),
                "files": self._files(),
                "MB": self._seen.memory_info().rss >> 20,
                "MB of questions": self._questions() >> 20,
            }
            for what, number in found.items():
                if number > MOST[what]:
                    return f"{number} {what}"
        return ""

    def _files(self) -> int:
        """Count its files; folders may be nested too deeply for Python."""
        find = ["find", str(self.board), "!", "-type", "d", "-printf", "."]
        return len(subprocess.run(find, capture_output=True, check=False).stdout)

    def _questions(self) -> int:
        """Return how many bytes are kept of what is asked."""
        find = ["find", str(self.board / "answers"), "-type", "f", "-printf", r"%s\n"]
        said = subprocess.run(find, capture_output=True, check=False).stdout
        return sum(map(int, said.split()))

    @contextlib.contextmanager
    def _must(self, otherwise: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            notes = self.health().get("notes", {})
            raise Fallen(f"{otherwise} (health: {brief_of(str(notes))})") from None


def brief_of(said: str) -> str:
    """Return the start of a text."""
    return said[:300]
