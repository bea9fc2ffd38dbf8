"""Work that may hang runs outside the event loop, with a deadline, and recovers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from bellboard.system import reach as reaching
from bellboard.system.failures import Declined
from bellboard.system.files import put, read
from bellboard.system.mounts import Mounts
from bellboard.system.reach import Hangs, Reach, Rounds, reach, run_alone
from bellboard.system.threads import RUNNING, Thread
from rig.machines.hung_mount import HungMount
from rig.waiting import PATIENCE


class Beside:
    """A reach in an event loop, its results in order, and work that hangs until released."""

    def __init__(self) -> None:
        self.changes = 0
        self.reach = Reach(self._changed).open()
        self.rounds = Rounds()
        self.done: list[object] = []
        self.gates: dict[str, threading.Event] = {}

    def _changed(self) -> None:
        self.changes += 1

    def hang(self, path: str, within: float = reaching.DEADLINE) -> threading.Event:
        """Begin work that hangs until the event is set."""
        gate = self.gates[path] = threading.Event()
        self.do(path, partial(gate.wait, PATIENCE), path, within=within)
        return gate

    def ask(self, path: str, result: object = None, key: str = "") -> None:
        """Begin work that takes no time."""
        self.do(path, bool, result or path, key)

    def do(
        self,
        path: str,
        work: Callable[[], object],
        result: object = None,
        key: str = "",
        within: float = reaching.DEADLINE,
    ) -> None:
        """Begin work; note its result, or this one."""

        async def run() -> None:
            found = await reach(work, path, within)
            self.done.append(result or found)

        self.rounds.run(key or path, run)

    async def until(self, predicate: Callable[[], object]) -> None:
        """Wait until a predicate is true."""
        deadline = time.monotonic() + PATIENCE
        while not predicate():
            assert time.monotonic() < deadline, (self.done, self.reach.notes)
            await asyncio.sleep(0.005)


def workers(before: set[Thread]) -> int:
    """Return the number of new threads that do work that may hang."""
    return sum(thread.name == "bellboard reach" for thread in RUNNING - before)


def run(test: Callable[[Beside], Awaitable[None]], beside: type[Beside] = Beside) -> None:
    """Run in an event loop."""

    async def main() -> None:
        one = beside()
        try:
            await test(one)
        finally:
            one.reach.close()
            for gate in one.gates.values():
                gate.set()

    asyncio.run(main())


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[HungMount]:
    """Return a mount that can hang."""
    (tmp_path / "source").mkdir()
    hung = HungMount(tmp_path / "source", tmp_path / "mnt")
    yield hung
    hung.close()


def test_work_is_done_in_order_and_the_newest_of_a_key_is_enough() -> None:
    """Many changes of a file cause two reads: one more after the read that may have missed some."""

    async def test(beside: Beside) -> None:
        gate = beside.hang("/a")
        for n in range(100):
            beside.ask("/b", n + 1, key="b")
            beside.ask("/c", f"c{n}", key="c")
        gate.set()
        await beside.until(lambda: beside.reach.is_at_rest)
        assert ["/a", 1, "c0", 100, "c99"] == beside.done

    run(test)


def test_what_takes_long_delays_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread goes on; a single thread does all quick work."""
    monkeypatch.setattr(reaching, "DEADLINE", PATIENCE)

    async def test(beside: Beside) -> None:
        before = {*RUNNING}
        for n in range(100):
            beside.ask(f"/{n}")
        await beside.until(lambda: len(beside.done) == 100)
        assert workers(before) == 1
        gate = beside.hang("/slow", within=PATIENCE)
        beside.ask("/b")
        await beside.until(lambda: beside.done[100:] == ["/b"])
        assert {} == beside.reach.notes
        gate.set()
        await beside.until(lambda: beside.done[100:] == ["/b", "/slow"])
        await beside.until(lambda: workers(before) == 1)

    run(test)


def test_what_hangs_is_given_up_delays_nothing_else_and_heals() -> None:
    """Hanging work is named, its late result taken; work asked for meanwhile is done later."""

    async def test(beside: Beside) -> None:
        gate = beside.hang("/mnt/a")
        beside.ask("/b")
        await beside.until(lambda: beside.done == ["/b"])
        await beside.until(lambda: "/mnt/a" in beside.reach.notes.get("unreachable", ""))
        assert 1 == beside.changes
        for _ in range(3):
            beside.ask("/mnt/a/below", key="below")
        beside.ask("/mnt/ab")
        await beside.until(lambda: "/mnt/ab" in beside.done)
        assert ["/b", "/mnt/ab"] == beside.done
        await beside.until(lambda: beside.reach.is_at_rest)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reach(bool, "/mnt/a"), 0.01)
        gate.set()
        await beside.until(lambda: beside.reach.is_at_rest and not beside.reach.notes)
        assert ["/b", "/mnt/ab", "/mnt/a", "/mnt/a/below", "/mnt/a/below"] == beside.done
        assert 2 == beside.changes

    run(test)


def test_what_reads_many_places_learns_that_one_hangs() -> None:
    """After its own deadline; work that is cancelled meanwhile is not run."""

    async def test(beside: Beside) -> None:
        gate = beside.gates["/a"] = threading.Event()
        with pytest.raises(Hangs):
            await reach(partial(gate.wait, PATIENCE), lambda: "/a", 0.01)
        later = asyncio.ensure_future(reach(partial(beside.done.append, "never"), "/a/b"))
        await asyncio.sleep(0.01)
        later.cancel()
        gate.set()
        await beside.until(lambda: not beside.reach.notes)
        assert [] == beside.done

    run(test)


def test_what_returns_late_is_done_once() -> None:
    """On a busy machine it would be late each time, and never done."""

    async def test(beside: Beside) -> None:
        begun = []

        def slow() -> None:
            begun.append(1)
            time.sleep(0.2)

        beside.do("/a", slow, "slow", within=0.01)
        await beside.until(lambda: beside.done and beside.reach.is_at_rest)
        assert (["slow"], [1]) == (beside.done, begun)

    run(test)


def test_a_failing_job_is_named_and_retried_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With any exception, at any point; other jobs continue."""
    monkeypatch.setattr(reaching, "PAUSE", 0.2)
    fails = [MemoryError("too much"), OSError(5, "Input/output error"), RecursionError("deep")]

    def work() -> str:
        if fails:
            raise fails.pop()
        return "well"

    async def raises() -> None:
        await reach(bool)
        raise ValueError("the result is odd")

    async def test(beside: Beside) -> None:
        beside.rounds.run("/odd", raises)
        beside.do("/a", work)
        beside.ask("/b")
        await beside.until(lambda: beside.done == ["/b"] and beside.reach.is_at_rest)
        told = beside.reach.notes["unreadable"]
        assert "/odd: internal error: the result is odd (test_reach.py:" in told
        assert "/a: it is nested too deeply" in told
        beside.do("/a", work)
        await beside.until(lambda: beside.reach.is_at_rest)
        assert 2 == len(fails)  # it was not run again
        while fails or "well" not in beside.done:
            beside.do("/a", work)
            await asyncio.sleep(0.005)
        await beside.until(lambda: "/a" not in beside.reach.notes["unreadable"])

    run(test)


def test_the_number_of_hanging_threads_is_limited() -> None:
    """The rest waits for a free one, and health says so."""

    async def test(beside: Beside) -> None:
        before = {*RUNNING}
        many = [f"/{n}" for n in range(reaching.MOST + 5)]
        for path in many:
            beside.hang(path, within=0.05)
        beside.ask("/last")
        await beside.until(lambda: "threads hang" in beside.reach.notes.get("unreachable", ""))
        assert workers(before) <= reaching.MOST
        assert [] == beside.done
        for path in many:
            beside.gates[path].set()
        await beside.until(lambda: {*many, "/last"} == set(beside.done))
        await beside.until(lambda: workers(before) <= 1)

    run(test)


def test_a_mount_with_two_hanging_jobs_is_left_alone(mount: HungMount, tmp_path: Path) -> None:
    """For every path to it."""
    for name in ("a", "b", "c"):
        (mount.source / name).write_text(name)
    (tmp_path / "link").symlink_to(mount.place / "c")

    async def test(beside: Beside) -> None:
        mount.hang()
        for name in ("a", "b", "c"):
            path = mount.place / name
            beside.do(str(path), path.read_text)
        await beside.until(lambda: f"{mount.place}, " in beside.reach.notes.get("unreachable", ""))
        link = tmp_path / "link"
        beside.do(str(link), link.read_text)
        beside.ask("/near")
        await beside.until(lambda: beside.done == ["/near"])
        assert str(link) not in beside.reach.notes["unreachable"]
        mount.answer()
        await beside.until(lambda: sorted(map(str, beside.done)) == ["/near", "a", "b", "c", "c"])
        assert {} == beside.reach.notes

    run(test)


def test_a_killed_worker_process_is_replaced(
    mount: HungMount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of the worker is reported as failed and retried."""
    monkeypatch.setattr(reaching, "PAUSE", 0.01)

    async def test(beside: Beside) -> None:
        async def looker() -> int:
            beside.done.clear()
            while not beside.done:
                beside.do(str(mount.place), os.getpid)
                await beside.until(lambda: beside.reach.is_at_rest)
            return int(str(beside.done[0]))

        first = await looker()
        assert first != os.getpid()
        assert first == await looker()
        os.kill(first, signal.SIGKILL)
        assert first != await looker()
        await beside.until(lambda: not beside.reach.notes)

    run(test)


def test_a_path_is_resolved_without_touching_it(tmp_path: Path) -> None:
    """By the table of mounts, link by link; mounts over mounts count."""
    far = tmp_path / "far away"
    table = tmp_path / "mountinfo"
    row = "36 35 0:36 / {} rw - {} server rw\n"
    escaped = str(far).replace(" ", "\\040")
    (tmp_path / "link").symlink_to(far / "deep")
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "up").symlink_to("../link/x")
    (tmp_path / "loop").symlink_to("loop")
    table.write_text(row.format("/", "ext4") + row.format(escaped, "fuse.hung"))
    mounts = Mounts(str(table))
    for inside in ("far away", "link", "link/x/y", "near/up/y", "near/../link", "far away/../x"):
        found = mounts.hanging(f"{tmp_path}/{inside}")
        assert found is not None, inside
        assert (str(far), True) == (found.place, found.is_fuse)
    for outside in ("near", "far", "near/../far", "loop/x", "no\0path"):
        assert mounts.hanging(f"{tmp_path}/{outside}") is None, outside
    table.write_text(row.format(escaped, "fuse.hung") + row.format(escaped, "ext4"))
    assert mounts.hanging(str(far)) is None


def test_a_mount_may_have_any_name(tmp_path: Path) -> None:
    """Users who may mount choose names; the kernel escapes no more than blanks and line feeds."""
    table = tmp_path / "mountinfo"
    places = b"/srv/\xff", b"/srv/a\rb", b"/srv/a\x0bb\x0c"
    for kind in (b"fuse.\xff", b"fuse.a\rb", b"fuse", b"fuse.\\040"):
        rows = [
            b"36 25 0:%d / %s rw,nosuid - %s x rw\n" % (n, p, kind) for n, p in enumerate(places)
        ]
        table.write_bytes(b"1 1 8:1 / / rw - ext4 x rw\n" + b"".join(rows))
        for n, place in enumerate(places):
            found = Mounts(str(table)).hanging(f"{os.fsdecode(place)}/x")
            assert found is not None, (kind, place)
            assert (os.fsdecode(place), n) == (found.place, found.device)
            assert found.kind.encode().startswith(b"fuse")  # fit to be shown


def test_a_pipe_is_not_even_opened(tmp_path: Path) -> None:
    """A writer that waits would take that for a reader, and break."""
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_WRONLY)), daemon=True)
    writer.start()
    for _ in range(20):
        with pytest.raises(OSError, match="not a file"):
            read(pipe, 10)
        writer.join(0.01)
    assert writer.is_alive()
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    writer.join(PATIENCE)


def test_a_file_that_cannot_be_put_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="directory"):
        put(tmp_path / "file", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_errands_that_hang_do_not_pile_up() -> None:
    """Of previews of a folder that never answers, only so many wait; later ones are refused."""
    over, before = threading.Event(), {*RUNNING}

    async def ask() -> str:
        try:
            await reach(over.wait, within=0.001)
        except Declined as reason:
            return str(reason)
        return ""

    async def test() -> None:
        said = [await ask() for _ in range(3 * reaching.MOST)]
        assert workers(before) <= reaching.MOST
        assert said[0].startswith("timed out after")
        assert said[-1].startswith("too many requests are waiting")
        over.set()
        while await ask():
            await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(test(), PATIENCE))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_work_without_a_loop_leaves_no_file_open(tmp_path: Path) -> None:
    """A host does it for each preview and answer, and may open only about a thousand files."""
    (tmp_path / "file").touch()

    def open_files() -> int:
        run_alone(reach(lambda: read(tmp_path / "file", 10)))
        return len(list(Path("/proc/self/fd").iterdir()))

    before = open_files()
    assert max(open_files() for _ in range(20)) <= before


def test_a_thread_that_had_no_memory_to_begin_delays_nothing_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread ends before its first step, and nobody is told."""
    started: list[object] = []

    def start(thread: Thread) -> None:
        started.append(thread)
        if len(started) > 1:
            begin(thread)

    begin = Thread.start
    monkeypatch.setattr(reaching, "BEGIN", 0.1)
    monkeypatch.setattr(reaching.Thread, "start", start)

    async def test(beside: Beside) -> None:
        beside.ask("/a")
        await beside.until(lambda: beside.done == ["/a"])
        assert len(started) == 2

    run(test)
