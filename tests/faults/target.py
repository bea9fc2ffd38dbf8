"""A running host in a home of its own, and the checks that it must always pass."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from bellboard.storage.spool import BELOW
from faults.fault import EITHER, EVENTS, NOTHING
from rig import ROOT, reaper, warm
from rig import home as homes
from rig.host.hosting import RecordedHost
from rig.waiting import eventually, leniency

MAGIC: Final = b"bellboard 1\0"
LEAST = 1.0  # leniency; more if other tests run at the same time
#: What no input may cause; an OSError says what the system refused.
RAISED: Final = re.compile(r"\b(Assertion|Attribute|Decode|Index|Key|Type|Unicode\w+|Value)Error\b")
REST: Final = 0.05  # of a core; rescans every two seconds use a tenth of that
WINDOW: Final = 0.5
STUCK: Final = 0.5  # seconds without a lock until health says so
CALM: Final = 6.0  # seconds of work after which it must be at rest
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
    """The host, with its checks; closing it removes its home.

    It rescans every two seconds instead of every thirty, so that a rescan happens meanwhile.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.home = homes.build()
        self.board = self.home.bellboard
        self.config = dict(config or {})
        self.undone: contextlib.ExitStack = contextlib.ExitStack()
        self.rested = 0.0  # share of a core when it was last idle
        self.slowest = 0.0  # event, in seconds
        self._serial = itertools.count()
        self._others: list[subprocess.Popen[bytes] | warm.Program] = []  # other processes
        self._sleepers: list[int] = []
        self._aside: dict[Path, Path] = {}  # what was put aside, and where
        self.may_end = False  # whatever it does
        self.start()

    # ------------------------------------------------------------ start and stop

    @contextlib.contextmanager
    def another(self, refuses: str = "") -> Iterator[RecordedHost]:
        """Start one more host in this home, and end it; or check that it ends, and why."""
        host = self._host()
        self._others.append(host.process)
        if refuses == EITHER:
            yield host
            self.stop(host)
        elif refuses:
            with self.must(f"it does not refuse: {refuses}"):
                eventually(
                    lambda: host.process.poll() and refuses in host.errors.read_text(),
                    within=HEAL * leniency(LEAST),
                )
            yield host
        else:
            self.up(host)
            yield host
            self.stop(host)

    def start(self) -> None:
        """Start the host."""
        self.host = self._host()
        self._seen = psutil.Process(self.host.pid)

    def _host(self) -> RecordedHost:
        name = f"host-{next(self._serial)}"
        return RecordedHost(self.home, name, rescan=2.0, stuck=STUCK, config=self.config)

    @property
    def process(self) -> warm.Program:
        """The process of the host."""
        return self.host.process

    def up(self, host: RecordedHost | None = None) -> None:
        """Wait for its first message."""
        it = host or self.host
        with self.must("it does not start"):
            eventually(
                lambda: it.messages or it.process.poll() is not None, within=10 * leniency(LEAST)
            )
        self._alive(it)

    def restart(self) -> None:
        """Start another host in the same home."""
        self.stop()
        self.start()

    def stop(self, host: RecordedHost | None = None) -> None:
        """Stop the host with SIGTERM; raise Fallen if it does not end."""
        process = (host or self.host).process
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(2 * leniency(LEAST))
        except subprocess.TimeoutExpired:
            reaper.end(reaper.family([process.pid]))
            raise Fallen("it did not end within two seconds of SIGTERM") from None
        if process in self._others:
            self._others.remove(process)

    def close(self) -> None:
        """Stop everything, undo every fault, and remove the home."""
        self.undone.close()
        pids = [self.process.pid, *(each.pid for each in self._others)]
        reaper.end(reaper.family(pids))
        for process in (self.process, *self._others):
            process.wait()
        # what is in it may be nested too deeply for Python
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.home.root)], check=False)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ for faults

    def unique(self) -> str:
        """Return an unused name."""
        return f"{time.time_ns()}.{next(self._serial)}"

    def prepare(self) -> None:
        """Make the folders, as a host does."""
        for name in ("", *BELOW):
            (self.board / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def installed(self) -> None:
        """Install the hooks, and wait until the host knows it."""
        if not (self.board / "hooks.json").exists():
            argv = ["-m", "bellboard", "hooks", "install", "--yes"]
            done = warm.run(argv, env=self.home.env, cwd=self.home.root)
            assert 0 == done.returncode, done.stderr
            self.restart()
            self.up()

    def put(self, data: bytes, name: str = "") -> str:
        """Put a file into the spool by rename, as the hook does; return its name."""
        name = name or f"{os.getpid():08}.{self.unique()}.event"
        draft = self.board / "spool/tmp" / name
        draft.write_bytes(data)
        draft.rename(self.board / "spool/new" / name)
        return name

    def hook(self, event: str, session: str, pid: int = 0, **fields: Any) -> str:
        """Write a valid event with these fields in its payload; return its name."""
        payload = {"session_id": session, "hook_event_name": event, "cwd": "/srv", **fields}
        head = f"agent=claude\0event={event}\0pid={pid}\0\0".encode()
        return self.put(MAGIC + head + json.dumps(payload).encode())

    def emit(self, *shell: str) -> None:
        """Run the hook itself, which must say nothing, and soon."""
        for event in ("Stop", "PreToolUse"):
            argv = [*(shell or ["sh"]), str(ROOT / "hooks/emit"), event, "1"]
            env = {"PATH": os.environ["PATH"], "BELLBOARD_HOME": str(self.board)}
            payload = json.dumps({"session_id": self.unique(), "hook_event_name": event})
            pipe = subprocess.PIPE
            hook = subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
            try:
                out, err = hook.communicate(payload.encode(), timeout=ANSWER * leniency(LEAST))
            except subprocess.TimeoutExpired:
                hook.kill()
                raise Fallen(f"the hook of {event} does not end") from None
            if (hook.returncode, out, err) != (0, b"", b""):
                raise Fallen(f"the hook of {event} in {argv[0]}: {hook.returncode} {out!r} {err!r}")

    def line(self, **told: Any) -> None:
        """Write a line of evidence."""
        self.put(json.dumps({"t": time.time(), **told}).encode())

    def sleeper(self) -> int:
        """Start a process that runs until the end."""
        if len(self._sleepers) < 4:
            self._others.append(subprocess.Popen(["sleep", "100000"]))
            self._sleepers.append(self._others[-1].pid)
        return self._sleepers[next(self._serial) % len(self._sleepers)]

    def process_of_its_own(self, **how: Any) -> subprocess.Popen[bytes]:
        """Start a process for one session, which may be ended."""
        self._others.append(made := subprocess.Popen(["sleep", "100000"], **how))
        return made

    def shows(self, session: str, **fields: str) -> None:
        """Wait until it publishes this of a session."""
        with self.must(f"it does not show {fields} of {session}"):
            eventually(
                lambda: fields.items() <= self.host.sessions.get(session, {}).items(),
                within=HEAL * leniency(LEAST),
            )

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend the host, so that it sees nothing half done."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def put_aside(self, path: Path) -> None:
        """Move something away, if it is there."""
        if os.path.lexists(path):
            self._aside[path] = self.home.root / self.unique()
            path.rename(self._aside[path])

    def put_back(self, path: Path) -> None:
        """Move it back."""
        if path in self._aside:
            self._aside.pop(path).rename(path)

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

        with self.must(f"{session} was never folded"):
            eventually(known, within=HEAL * leniency(LEAST), pause=0.05)

    def check(
        self,
        folds: bool = True,
        within: float = 1.0,
        shrinks: float = CALM,
        doctor: Iterable[str] = (),
        known: Iterable[str] = (),
    ) -> None:
        """Raise Fallen unless all checks pass; without `folds`, events need not arrive now.

        What has grown may take `shrinks` seconds to be small again. `doctor` is what doctor says,
        and `known` are sessions that a command shows.
        """
        if folds:
            self.canary(within)
        self._alive()
        listed = self._answers("list", "--json")
        if lacking := [sid for sid in known if sid not in listed]:
            raise Fallen(f"`bellboard list` does not show {lacking}: {listed[-1500:]}")
        said = " ".join(self._answers("doctor").split())
        if lacking := [words for words in doctor if words not in said]:
            raise Fallen(f"doctor does not say {lacking}: {said[-1500:]}")
        self.rests()
        self._alive()
        self._bounded(shrinks)

    def canary(self, within: float = 1.0, host: RecordedHost | None = None) -> None:
        """Check that a new event is folded and pushed."""
        host = host or self.host
        name = f"canary-{next(self._serial)}"
        begin, before = time.monotonic(), host.out.stat().st_size
        self.hook("UserPromptSubmit", name)
        limit = within * leniency(LEAST)

        def pushed() -> bool:
            with host.out.open("rb") as file:
                file.seek(before)
                return f'"{name}"'.encode() in file.read() or host.process.poll() is not None

        with self.must(f"an event was not folded and pushed within {limit:.1f} s"):
            eventually(pushed, within=limit, pause=0.005)
        self._alive(host)
        self.slowest = max(self.slowest, time.monotonic() - begin)
        self.hook("SessionEnd", name)

    def committed(self, names: Iterable[str]) -> None:
        """Wait until none of these events waits in the spool."""
        new = self.board / "spool/new"
        with self.must("events stay in the spool"):
            eventually(
                lambda: not any((new / name).exists() for name in names),
                within=HEAL * leniency(LEAST),
            )

    def notes(self, says: str, host: RecordedHost | None = None) -> None:
        """Check that health says that."""
        it = host or self.host
        with self.must(f"health does not say {says!r}"):
            eventually(lambda: says in it.note, within=HEAL * leniency(LEAST))

    def heals(self, says: str) -> None:
        """Check that health says that no longer."""
        with self.must(f"health still says {says!r}"):
            eventually(lambda: says not in self.host.note, within=HEAL * leniency(LEAST))

    def kept(self, names: Mapping[str, str], later: Mapping[str, str], survives: str) -> None:
        """Check that nothing of these events was lost, by file and session, nor counted twice.

        What came `later`, during the fault, counts if all events survive.
        """
        if survives == EVENTS:
            names = {**names, **later}
        self.committed(names)
        logged = self._logged()
        if twice := [name for name in names if logged[name] > 1]:
            raise Fallen(f"folded twice: {twice}")
        if survives == EVENTS and (lost := [name for name in names if not logged[name]]):
            raise Fallen(f"in no log: {lost}")
        told = Counter(self.host.live)
        sessions = {*names.values()}
        if twice := [sid for sid in sessions if told[sid, "working"] > 1]:
            raise Fallen(f"announced twice: {twice}")
        if survives != NOTHING:
            with self.must(f"not all of {sorted(sessions)} are shown"):
                eventually(
                    lambda: sessions <= self.host.shown.keys(), within=HEAL * leniency(LEAST)
                )

    def _logged(self) -> Counter[str]:
        """Return how often each file is in the log, once the database is sound."""

        def looked() -> list[str]:
            db = sqlite3.connect(self.board / "board.db", timeout=HEAL)
            with contextlib.closing(db), contextlib.suppress(sqlite3.DatabaseError):
                assert [("ok",)] == db.execute("PRAGMA integrity_check").fetchall()
                return ["", *(name for (name,) in db.execute("SELECT file FROM events"))]
            return []

        with self.must("the database is not sound"):
            return Counter(eventually(looked, within=HEAL * leniency(LEAST)))
        raise AssertionError

    def caught(self) -> str:
        """Return what a reader raised that the host had to catch, or ""."""
        for row in self.host.out.read_text().splitlines():
            if RAISED.search(row):
                with contextlib.suppress(ValueError):
                    notes = json.loads(row).get("health", {}).get("notes", {})
                    if RAISED.search(said := str(notes)):
                        return said
        return ""

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self.process.poll() is not None

    def _alive(self, host: RecordedHost | None = None) -> None:
        if self.may_end:
            return
        host = host or self.host
        words = host.errors.read_text(errors="replace")
        if host.process.poll() is not None:
            last = words.strip().splitlines()[-1:] or ["without a word"]
            where = [row.strip() for row in words.splitlines() if "bellboard" in row][-1:]
            raise Fallen(f"the host ended: {brief_of(last[0])} {' '.join(where)}")
        if "Traceback" in words:
            raise Fallen(f"a traceback on stderr: {brief_of(words.strip().splitlines()[-1])}")

    def _answers(self, command: str, *more: str) -> str:
        """Run a command; return what it printed."""
        said = self.home.root / f"{command}.said"
        with said.open("w") as out:
            how: dict[str, Any] = {"env": self.home.env, "cwd": self.home.root}
            asked = warm.Program(["-m", "bellboard", command, *more], stdout=out, stderr=out, **how)
        self._others.append(asked)
        try:
            asked.wait(ANSWER * leniency(LEAST))
        except subprocess.TimeoutExpired:  # it may ignore all signals until the fault is mended
            asked.kill()
            raise Fallen(f"`bellboard {command}` did not respond") from None
        self._others.remove(asked)
        words = said.read_text(errors="replace")
        if "Traceback" in words or asked.returncode not in (0, 1):
            last = brief_of((words.strip().splitlines() or [""])[-1])
            raise Fallen(f"`bellboard {command}` ended with {asked.returncode}: {last}")
        return words

    def rests(self) -> None:
        """Check that it becomes idle again: on a busy machine its work takes longer, no more."""
        earlier = self._spent()
        while True:
            begin, before = time.monotonic(), self._spent()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(WINDOW)
            self.rested = (self._spent() - before) / (time.monotonic() - begin)
            if self.rested <= REST or self.has_ended():
                return
            if self._spent() - earlier > CALM:
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
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        if any(str(self.board) in mount and "fuse" in mount for mount in mounts):
            return 0  # it may hang
        find = ["find", str(self.board), "!", "-type", "d", "-printf", "."]
        return len(subprocess.run(find, capture_output=True, check=False).stdout)

    def _questions(self) -> int:
        """Return how many bytes are kept of what is asked."""
        find = ["find", str(self.board / "answers"), "-type", "f", "-printf", r"%s\n"]
        said = subprocess.run(find, capture_output=True, check=False).stdout
        return sum(map(int, said.split()))

    @contextlib.contextmanager
    def must(self, otherwise: str) -> Iterator[None]:
        """Raise Fallen, with this reason, if waiting fails."""
        try:
            yield
        except AssertionError:
            raise Fallen(f"{otherwise} (health: {brief_of(str(self.host.notes))})") from None


def brief_of(said: str) -> str:
    """Return the start of a text."""
    return said[:300]
