"""Watching a real directory, with each backend."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bellboard.system import polling as polling_of
from bellboard.system.mounts import MOUNTS, Mounts
from bellboard.system.polling import Polling
from bellboard.system.reach import reached_from_here
from bellboard.system.watch import How, Watch
from rig import ROOT
from rig.fetched import tools
from rig.waiting import PATIENCE, at_best

BACKENDS: list[How] = ["watchfiles", "polling"]
if sys.platform == "linux":
    BACKENDS.insert(0, "inotify")
PACKAGE = ROOT / "rplugin" / "python3"


class Seen:
    """A watch, and the paths it reported."""

    def __init__(self, how: How | None, mounts: Mounts = MOUNTS) -> None:
        self.paths: set[str] = set()
        self.calls = 0
        self._woken = asyncio.Event()
        self.watch = Watch(self._changed, how, mounts)

    def _changed(self, paths: set[str]) -> None:
        self.paths |= paths
        self.calls += 1
        self._woken.set()

    async def settle(self) -> None:
        """Wait until all paths are watched and reports stop: those of a restart do not count."""
        quiet = {"inotify": 0.05, "watchfiles": 0.4, "polling": 0.12}[self.watch.how]
        while True:
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), quiet)
            except asyncio.TimeoutError:
                break
        await at_rest()
        self.paths.clear()
        self.calls = 0

    async def until(self, *paths: Path) -> None:
        """Wait until these were reported."""
        wanted = {str(path) for path in paths}
        deadline = time.monotonic() + PATIENCE
        while not wanted <= self.paths:
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), deadline - time.monotonic())
            except asyncio.TimeoutError:
                raise AssertionError(f"{wanted - self.paths} not in {self.paths}") from None


async def at_rest() -> None:
    """Wait until all paths are watched."""
    while not reached_from_here().is_at_rest:
        await asyncio.sleep(0.001)


@asynccontextmanager
async def watching(how: How | None, mounts: Mounts = MOUNTS) -> AsyncIterator[Seen]:
    seen = Seen(how, mounts)
    try:
        yield seen
    finally:
        seen.watch.close()


Scene = Callable[[Seen], Awaitable[None]]


@pytest.fixture(params=BACKENDS)
def play(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Scene], None]:
    """Run a scene in a loop of its own, once with each backend."""
    if request.node.originalname != "test_rest_costs_nothing":
        monkeypatch.setattr(polling_of, "POLL", 0.05)

    async def run(scene: Scene) -> None:
        async with watching(request.param) as seen:
            await asyncio.wait_for(scene(seen), 2 * PATIENCE)

    return lambda scene: asyncio.run(run(scene))


def rename_into(directory: Path, name: str, data: str = "x") -> Path:
    tmp = directory.parent / f"{name}.tmp"
    tmp.write_text(data)
    return tmp.rename(directory / name)


def test_a_file_that_arrives(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """The spool: renamed into the directory. Its removal is not reported, as if nothing had come.

    Where that may be all that is reported, of a file that another host took at once, the directory
    is: something came.
    """
    new = tmp_path / "new"
    new.mkdir()

    async def scene(seen: Seen) -> None:
        seen.watch.add(new, arrivals=True)
        await seen.settle()
        await seen.until(rename_into(new, "a"))
        await seen.settle()
        (new / "a").unlink()
        if seen.watch.how == "watchfiles":
            await seen.until(new)
        await seen.until(rename_into(new, "b"))
        assert str(new / "a") not in seen.paths or seen.watch.how == "polling"

    play(scene)


def test_a_file_changed_in_place(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """The CLI's session files: overwritten, created, removed."""

    async def scene(seen: Seen) -> None:
        (tmp_path / "1.json").write_text("busy")
        seen.watch.add(tmp_path)
        await seen.settle()
        for text in ("idle", "busy"):
            (tmp_path / "1.json").write_text(text)
            await seen.until(tmp_path / "1.json")
            await seen.settle()
        (tmp_path / "2.json").write_text("x")
        await seen.until(tmp_path / "2.json")
        await seen.settle()
        (tmp_path / "1.json").unlink()
        await seen.until(tmp_path / "1.json")

    play(scene)


def test_a_single_file(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """A transcript: appended to, absent at first; its neighbors are ignored."""

    async def scene(seen: Seen) -> None:
        transcript = tmp_path / "a.jsonl"
        seen.watch.add(transcript)
        await seen.settle()
        transcript.write_text("1\n")
        await seen.until(transcript)
        await seen.settle()
        (tmp_path / "b.jsonl").write_text("1\n")
        with transcript.open("a") as file:
            file.write("2\n")
            file.flush()
            await seen.until(transcript)
        assert seen.paths == {str(transcript)}

    play(scene)


def test_a_file_that_is_replaced(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """.git/HEAD: again and again another file with that name."""

    async def scene(seen: Seen) -> None:
        git = tmp_path / "git"
        git.mkdir()
        rename_into(git, "HEAD")
        seen.watch.add(git / "HEAD")
        await seen.settle()
        for branch in ("main", "topic", "more"):
            rename_into(git, "HEAD", branch)
            await seen.until(git / "HEAD")
            await seen.settle()

    play(scene)


def test_a_directory_that_is_created_later(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """~/.claude/sessions before the first session: watched from its creation on."""

    async def scene(seen: Seen) -> None:
        sessions = tmp_path / "sessions"
        seen.watch.add(sessions)
        await seen.settle()
        sessions.mkdir()
        await seen.until(sessions)
        await seen.settle()
        (sessions / "1.json").write_text("x")
        await seen.until(sessions / "1.json")

    play(scene)


def test_a_path_whose_directory_is_missing(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """The rescan's `rearm` finds it and reports it."""

    async def scene(seen: Seen) -> None:
        deep = tmp_path / "a" / "b" / "c.jsonl"
        seen.watch.add(deep)
        await seen.settle()
        deep.parent.mkdir(parents=True)
        deep.write_text("x")
        seen.watch.rearm()
        await seen.until(deep)
        await seen.settle()
        deep.write_text("xx")
        await seen.until(deep)
        await seen.settle()
        seen.watch.rearm()
        await seen.settle()
        assert seen.paths == set()

    play(scene)


def test_a_directory_that_is_recreated(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """The state directory is wiped or moved away while a host runs."""

    async def scene(seen: Seen) -> None:
        home = tmp_path / "home"
        new = home / "new"
        new.mkdir(parents=True)
        seen.watch.add(new, arrivals=True)
        seen.watch.add(home / "file")
        await seen.settle()
        shutil.rmtree(home)
        await asyncio.sleep(0.2)
        new.mkdir(parents=True)
        seen.watch.rearm()
        await seen.settle()
        await seen.until(rename_into(new, "a"))
        (home / "file").write_text("x")
        await seen.until(home / "file")
        home.rename(tmp_path / "away")  # a moved parent is not reported
        new.mkdir(parents=True)
        seen.watch.rearm()
        await seen.settle()
        await seen.until(rename_into(new, "b"))
        (home / "file").write_text("x")
        await seen.until(home / "file")

    play(scene)


def test_nothing_is_missed_while_paths_come_and_go(
    play: Callable[[Scene], None], tmp_path: Path
) -> None:
    """A backend with fixed paths restarts for each; events keep arriving."""
    new = tmp_path / "new"
    new.mkdir()

    async def scene(seen: Seen) -> None:
        seen.watch.add(new, arrivals=True)
        await seen.settle()
        made = []
        for number in range(40):
            other = tmp_path / f"other{number}"
            other.mkdir()
            seen.watch.add(other)
            if number > 5:
                seen.watch.remove(tmp_path / f"other{number - 5}")
            made.append(rename_into(new, f"e{number}"))
            await asyncio.sleep(0.005)
        await seen.until(*made)

    play(scene)


def test_a_removed_path_is_silent(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """The directory may still be watched for another path."""

    async def scene(seen: Seen) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        seen.watch.add(one)
        seen.watch.add(two)
        seen.watch.remove(one)
        seen.watch.remove(one)
        await seen.settle()
        one.write_text("x")
        two.write_text("x")
        await seen.until(two)
        await seen.settle()
        assert seen.paths == set()
        seen.watch.remove(two)
        two.write_text("xx")
        await seen.settle()
        await asyncio.sleep(0.1)
        assert seen.calls == 0

    play(scene)


def test_many_events_are_few_calls(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """Everything that is ready is reported in one call."""
    new = tmp_path / "new"
    new.mkdir()

    async def scene(seen: Seen) -> None:
        seen.watch.add(new, arrivals=True)
        await seen.settle()
        begin = time.monotonic()
        await seen.until(*[rename_into(new, f"{number}") for number in range(500)])
        assert seen.calls <= 5 + 20 * (time.monotonic() - begin)  # watchfiles: one in 50 ms

    play(scene)


# Of one backend


linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@linux
def test_after_a_lost_event_everything_is_checked(tmp_path: Path) -> None:
    """The kernel's queue holds 16,384; beyond that it only reports an overflow."""

    async def scene() -> None:
        async with watching("inotify") as seen:
            limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
            seen.watch.add(tmp_path)
            seen.watch.add(tmp_path / "elsewhere" / "missing")
            await at_rest()
            (tmp_path / "file").touch()
            for number in range(limit):  # in pairs, because equal ones are merged
                os.utime(tmp_path / "file")
                (tmp_path / str(number % 2)).touch()
            await seen.until(tmp_path, tmp_path / "elsewhere" / "missing")

    asyncio.run(scene())


@linux
def test_one_directory_by_two_names(tmp_path: Path) -> None:
    """A link to it is the same to the kernel; each name is reported."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    async def scene() -> None:
        async with watching("inotify") as seen:
            seen.watch.add(tmp_path / "real")
            seen.watch.add(tmp_path / "link")
            await at_rest()
            (tmp_path / "real" / "a").touch()
            await seen.until(tmp_path / "real" / "a", tmp_path / "link" / "a")
            seen.watch.remove(tmp_path / "link")
            await seen.settle()
            (tmp_path / "real" / "b").touch()
            await seen.until(tmp_path / "real" / "b")

    asyncio.run(scene())


EXHAUSTED = """
    import asyncio, sys
    from pathlib import Path
    from bellboard.system.reach import reached_from_here
    from bellboard.system.watch import Watch

    async def at_rest():
        while not reached_from_here().is_at_rest:
            await asyncio.sleep(0.001)

    async def main():
        limit, path = Path(sys.argv[1]), Path(sys.argv[2])
        limit.write_text("0")
        woken = asyncio.Event()
        watch = Watch(lambda paths: woken.set())
        watch.add(path)
        await at_rest()
        print(watch.how, "|", watch.note)
        (path / "a").touch()
        await asyncio.wait_for(woken.wait(), 30)
        limit.write_text("100")
        watch.rearm()
        await at_rest()
        woken.clear()
        (path / "b").touch()
        await asyncio.wait_for(woken.wait(), 30)
        print(watch.how, "|", watch.note)
        watch.close()

    asyncio.run(main())
"""


@linux
@pytest.mark.parametrize(
    ("limit", "how", "note"),
    [
        ("max_inotify_watches", "inotify", "no watches left (fs.inotify.max_user_watches)"),
        ("max_inotify_instances", "polling", "no inotify: Too many open files"),
    ],
)
def test_when_inotify_runs_out(tmp_path: Path, limit: str, how: str, note: str) -> None:
    """It looks every second and says so, until there are some again.

    The limit is that of a user namespace, so that nobody else on this machine runs out.
    """
    unshare = str(tools.executable("unshare"))
    done = subprocess.run(
        [unshare, "--user", "--map-root-user", sys.executable, "-c", textwrap.dedent(EXHAUSTED),
         f"/proc/sys/user/{limit}", tmp_path],
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )  # fmt: skip
    if "Operation not permitted" in done.stderr and "unshare:" in done.stderr:
        pytest.fail("no user namespaces: sysctl kernel.unprivileged_userns_clone=1", pytrace=False)
    assert done.stderr == ""
    assert done.stdout == f"{how} | polling every 1 s: {note}\ninotify | \n"


def test_polling_goes_on_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the first look at a path fails, or a later one."""
    monkeypatch.setattr("bellboard.system.polling.POLL", 0.05)
    path, times, look = tmp_path / "file", [0], polling_of.state_of

    def refuses(path: str) -> dict[str, tuple[int, int, int]]:
        """No thread can be started for a while."""
        times[0] += 1
        if times[0] in (1, 3):
            raise RuntimeError("can't start new thread")
        return look(path)

    monkeypatch.setattr(polling_of, "state_of", refuses)

    async def scene() -> None:
        changed = asyncio.Event()
        polling = Polling(lambda _: changed.set())
        polling.add(str(path))
        while times[0] < 4:
            await asyncio.sleep(0.01)
        path.write_text("x")
        await changed.wait()
        polling.close()

    asyncio.run(asyncio.wait_for(scene(), PATIENCE))


def test_a_network_file_system_is_polled_as_well(tmp_path: Path) -> None:
    """inotify sees only this machine's changes; the kernel's table of mounts says what it is."""
    status = tmp_path.stat()
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 {device} / {tmp_path} rw,noatime shared:1 - nfs4 server:/x rw\n")

    async def scene() -> None:
        async with watching(None, mounts=Mounts(str(table))) as seen:
            seen.watch.add(tmp_path / "a")
            await at_rest()
            assert seen.watch.note == "polling every 1 s: nfs4 reports only changes by this machine"
            seen.watch._backend.close()  # type: ignore[union-attr]  # another machine's doing
            (tmp_path / "a").write_text("x")
            await seen.until(tmp_path / "a")
        async with watching(None) as seen:
            seen.watch.add(tmp_path / "a")
            assert (seen.watch.how, seen.watch.note) == ("inotify", "")

    asyncio.run(scene())


def test_a_file_that_stays_open_is_polled_where_only_closing_it_is_reported(tmp_path: Path) -> None:
    """By FSEvents; Codex keeps its log open, which alone says some things."""
    log = tmp_path / "rollout.jsonl"

    async def scene() -> None:
        async with watching("watchfiles") as seen:
            with log.open("w") as file:
                seen.watch.add(log)
                await seen.settle()
                assert (seen.watch.how, seen.watch.note) == ("watchfiles", "")
                seen.watch._backend.close()  # type: ignore[union-attr]  # it is silent now
                file.write("x")
                file.flush()
                await seen.until(log)

    asyncio.run(scene())


@pytest.mark.parametrize("how", BACKENDS)
@pytest.mark.parametrize("end", ["return", "sys.exit(0)", "os._exit(0)"])
def test_it_never_delays_the_exit(tmp_path: Path, how: How, end: str) -> None:
    """Closed or not: joining a thread would delay Neovim's :qa by seconds."""
    code = f"""
        import asyncio, os, sys, time
        from bellboard.system.watch import Watch

        async def main():
            watch = Watch(lambda paths: None, {how!r})
            watch.add({str(tmp_path)!r})
            await asyncio.sleep(0.1)
            print(time.monotonic(), flush=True)
            {end}

        asyncio.run(main())
    """

    def ends() -> float:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=os.environ | {"PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return time.monotonic() - float(done.stdout)

    at_best(ends, 1.0)


def test_rest_costs_nothing(play: Callable[[Scene], None], tmp_path: Path) -> None:
    """With 50 transcripts in 50 directories; the bars are 0.1 % of a core, 0.5 % elsewhere."""

    async def scene(seen: Seen) -> None:
        for number in range(50):
            (tmp_path / str(number)).mkdir()
            seen.watch.add(tmp_path / str(number) / "a.jsonl")
        await seen.settle()
        shares: list[float] = []
        bar = 0.002 if seen.watch.how == "inotify" else 0.02
        while not shares or min(shares) >= bar:
            assert len(shares) < 5, shares
            begin, wall = time.process_time(), time.monotonic()
            await asyncio.sleep(polling_of.POLL)
            shares.append((time.process_time() - begin) / (time.monotonic() - wall))

    play(scene)
