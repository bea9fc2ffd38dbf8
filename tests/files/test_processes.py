"""Processes: what the system says about them, their deaths, and how agents are found."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pty
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from bellboard.agents.claude.discovery import Discovery, FoundProcess, session_in, starts_session
from bellboard.agents.trace_line import from_line
from bellboard.system import clock, deaths, processes
from bellboard.system.clock import boot_id, machine_id
from bellboard.system.deaths import Deaths
from bellboard.system.processes import (
    began_at,
    cwd_of,
    descendants,
    environment_of,
    is_alive,
    owner_of,
    ports,
    runs,
    started_of,
    tty_of,
)
from bellboard.witnesses import observer
from rig.fetched import claude_code
from rig.home import Home
from rig.machines.mounts import unshared
from rig.waiting import PATIENCE, eventually, leniency

MADE_FOR: Final = "_pslinux" if sys.platform == "linux" else "_psosx"
linux = pytest.mark.skipif(sys.platform != "linux", reason="this system has no /proc")


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """start(*argv, **how) → a running process, stopped at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def popen(*argv: str, **how: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(argv or ("sleep", "60"), **how))
        return started[-1]

    yield popen
    for each in started:
        with contextlib.suppress(ProcessLookupError):
            each.kill()
        each.wait()


@contextlib.contextmanager
def opened() -> Iterator[tuple[int, str]]:
    """Open a terminal; yield the descriptor for programs, and its name."""
    ours, theirs = pty.openpty()
    yield theirs, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    with opened() as it:
        yield it


@pytest.fixture(params=["as it is", "without /proc"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This system, and a system where everything comes from psutil."""
    if request.param == "without /proc":
        monkeypatch.setattr(processes, "PROC", "/nowhere")
        processes.has_proc.cache_clear()
        request.addfinalizer(processes.has_proc.cache_clear)


IN_TERMINAL: Final = (
    "import fcntl, termios, time; fcntl.ioctl(0, termios.TIOCSCTTY, 0); time.sleep(60)"
)


@pytest.mark.usefixtures("system")
def test_a_terminal_that_is_opened_later_is_known(
    start: Callable[..., subprocess.Popen[bytes]], terminal: tuple[int, str]
) -> None:
    """A host runs for weeks."""
    command = (sys.executable, "-c", IN_TERMINAL)
    first = start(*command, stdin=terminal[0], start_new_session=True).pid
    eventually(lambda: tty_of(first) == terminal[1])
    with opened() as (fd, name):
        second = start(*command, stdin=fd, start_new_session=True).pid
        eventually(lambda: tty_of(second) == name)


@pytest.mark.usefixtures("system")
def test_a_running_process_is_described(
    start: Callable[..., subprocess.Popen[bytes]], terminal: tuple[int, str], tmp_path: Path
) -> None:
    """The facts are terminal, owner, start, folder, and the requested environment variables."""
    fd, name = terminal
    env = {**os.environ, "TMUX_PANE": "%7", "SECRET": "x"}
    how: dict[str, Any] = {"stdin": fd, "cwd": tmp_path, "env": env, "start_new_session": True}
    program = IN_TERMINAL
    pid = start(sys.executable, "-c", program, **how).pid
    assert name == eventually(lambda: tty_of(pid))
    assert is_alive(pid)
    assert runs(pid, started_of(pid))
    assert not runs(pid, "1")
    assert os.getuid() == owner_of(pid)
    assert time.time() == pytest.approx(began_at(pid), abs=10)
    assert str(tmp_path) == cwd_of(pid)
    assert [sys.executable, "-c", program] == processes.argv_of(pid)
    assert {"TMUX_PANE": "%7"} == environment_of(pid, ["TMUX_PANE", "NVIM"])
    line, key = observer.process_seen(5.0, pid, "g1")
    event = from_line(line)
    assert ("process", pid, name, started_of(pid)) == (
        event.kind,
        event.pid,
        event.origin.tty,
        event.started,
    )
    told = line["process"]
    assert isinstance(told, dict)
    assert ("%7", os.environ.get("NVIM")) == (told["pane"], told.get("nvim"))
    assert "SECRET" not in f"{line}"
    assert (
        observer.process_seen(6.0, pid, "g1").key
        == key
        != observer.process_seen(6.0, pid, "g2").key
    )


def test_a_clock_that_is_set_back_makes_no_process_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the system keeps when it began, and not how long ago, that is a time to come."""
    now = time.time()
    for ago, ran in ((60, True), (10, False), (-3600, True)):
        monkeypatch.setattr(processes, "began_at", lambda pid, ago=ago: now - ago)
        assert ran == processes.ran_at(os.getpid(), now - 30)


@linux
@pytest.mark.parametrize("end", ["\\r", "\\x0b", "\\x1c", "\\x85"])
def test_a_name_does_not_change_the_owner_of_a_process(
    start: Callable[..., subprocess.Popen[bytes]], end: str
) -> None:
    """Each is the end of a line for Python, and a process can choose its own name."""
    name = f"open('/proc/self/comm', 'w', encoding='utf-8', newline='').write('x{end}Uid:\\t4242')"
    pid = start(sys.executable, "-c", f"import time; {name}; time.sleep(60)").pid
    eventually(lambda: b"4242" in Path(f"/proc/{pid}/comm").read_bytes())
    assert os.geteuid() == owner_of(pid)


@pytest.mark.usefixtures("system")
def test_a_missing_process_has_no_description() -> None:
    """And nothing is raised, also for a number that cannot be a process id."""
    child = subprocess.Popen(["true"])
    child.wait()
    for pid in (child.pid, 1 << 30, 1 << 70):
        assert not is_alive(pid)
        assert not runs(pid)
        told: list[object] = [owner_of(pid), began_at(pid)]
        assert [None, None] == told
        assert ["", "", ""] == [tty_of(pid), started_of(pid), cwd_of(pid)]
        assert [] == [*ports(pid), *descendants(pid), *processes.argv_of(pid)]
        assert {} == environment_of(pid, ["HOME"])
    assert "process gone" == from_line(observer.process_seen(1.0, child.pid).line).kind


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_process_stays_the_same_when_the_clock_is_set(
    start: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """The time of the boot moves with the clock, and with it what psutil says of a process."""
    pid = start().pid
    began = started_of(pid)
    psutil = importlib.import_module(f"psutil.{MADE_FOR}")
    booted = psutil.boot_time()
    monkeypatch.setattr(psutil, "boot_time", lambda: booted + seconds)
    assert runs(pid, began)


@pytest.mark.usefixtures("system")
def test_a_zombie_is_dead() -> None:
    """A container without an init keeps zombies for ever."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid)
    child.wait()


@pytest.mark.usefixtures("system")
def test_children_and_the_ports_they_listen_on(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """A server that the agent started belongs to its session (seed 000)."""
    serve = (
        "import socket, time\n"
        "for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
        "  try: s = socket.create_server((host, 0), family=family)\n"
        "  except OSError: continue\n"
        "  print(s.getsockname()[1], flush=True); globals()[host] = s\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    outer = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    parent = start(sys.executable, "-c", outer, serve, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    expected = [int(row) for row in iter(parent.stdout.readline, b"ready\n")]
    parent.stdout.close()
    assert sorted(expected) == ports(parent.pid)
    [child] = descendants(parent.pid)
    assert sorted(expected) == ports(child)
    now = time.time()
    for since, children in ((now - 60, 1), (now + 60, 0)):
        assert children == from_line(observer.at_work(1.0, parent.pid, since).line).children
    assert sorted(expected) == processes.listening([child, parent.pid])
    with socket.create_server(("127.0.0.1", 0)) as mine:
        assert mine.getsockname()[1] not in ports(parent.pid)
    os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not processes.has_proc(), reason="this needs /proc")
def test_only_ports_of_127_0_0_1_are_its_own(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """The same port of another address may be another user's here."""
    serve = (
        "import socket, sys, time\n"
        "def serve(family, host):\n"
        "  made = socket.create_server((host, 0), family=family)\n"
        "  print(made.getsockname()[1], flush=True)\n"
        "  return made\n"
        "v4, v6 = socket.AF_INET, socket.AF_INET6\n"
        "made = [serve(v4, host) for host in ('127.0.0.1', '0.0.0.0', '127.0.0.2')]\n"
        "if socket.has_dualstack_ipv6():\n"
        "  made += [socket.create_server(('::', 0), family=v6, dualstack_ipv6=True)]\n"
        "  print(made[-1].getsockname()[1], flush=True)\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    served = start(sys.executable, "-c", serve, stdout=subprocess.PIPE)
    assert served.stdout is not None
    first, second, other, *both = [int(row) for row in iter(served.stdout.readline, b"ready\n")]
    served.stdout.close()
    assert processes.own_ports(served.pid) == sorted([first, second, *both])
    assert other in ports(served.pid)


@pytest.mark.skipif(not processes.has_proc(), reason="this needs /proc")
def test_ports_of_another_network_are_not_its_own(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    serve = "import socket, time; made = socket.create_server(('', 0)); time.sleep(60)"
    apart = start(*unshared("--net"), sys.executable, "-c", serve)
    eventually(lambda: ports(apart.pid), "its ports")
    assert processes.own_ports(apart.pid) == []


# ---------------------------------------------------------------- deaths


HOW: list[Literal["pidfd", "kqueue", "polling"]] = (
    ["pidfd", "polling"] if sys.platform == "linux" else ["kqueue", "polling"]
)


@pytest.fixture(params=HOW)
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Each backend; polling faster than usual."""
    monkeypatch.setattr(deaths, "POLL", 0.1)
    return request.param


def run(test: Callable[[asyncio.Queue[tuple[int, str]]], Coroutine[Any, Any, None]]) -> None:
    """Run in an event loop, with a list of the reported deaths."""

    async def main() -> None:
        await test(asyncio.Queue())

    asyncio.run(main())


async def told(queue: asyncio.Queue[tuple[int, str]]) -> tuple[int, str]:
    return await asyncio.wait_for(queue.get(), PATIENCE)


def test_a_death_is_reported_once(how: Any, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    """Within a second, with the start time that names the process; also after kill -9."""

    async def test(queue: asyncio.Queue[tuple[int, str]]) -> None:
        watch = Deaths(lambda pid, started: queue.put_nowait((pid, started)), how)
        assert how == watch.how
        *others, last = [start() for _ in range(4)]
        began = {p.pid: started_of(p.pid) for p in (*others, last)}
        for pid, started in began.items():
            watch.watch(pid, started)
            watch.watch(pid, started)
        assert set(began) == watch.watched
        took = []
        for each in others:
            killed = time.monotonic()
            each.kill()
            assert (each.pid, began[each.pid]) == await told(queue)
            took.append(time.monotonic() - killed)
        assert min(took) < 1.0 * leniency()
        assert {last.pid} == watch.watched
        watch.leave(last.pid)
        last.kill()
        last.wait()
        await asyncio.sleep(0.3)
        assert queue.empty()
        watch.close()

    run(test)


def test_a_report_that_fails_keeps_no_other_back(
    how: Any, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """Neither one at the same moment, nor a later one."""

    async def test(queue: asyncio.Queue[tuple[int, str]]) -> None:
        def died(pid: int, started: str) -> None:
            queue.put_nowait((pid, started))
            raise MemoryError

        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        watch = Deaths(died, how)
        all_of = [start() for _ in range(3)]
        for each in all_of:
            watch.watch(each.pid)
        for some in (all_of[:2], all_of[2:]):
            for each in some:
                each.kill()
            for each in some:
                each.wait()
            assert {each.pid for each in some} == {(await told(queue))[0] for _ in some}
        watch.close()

    run(test)


def test_a_process_that_is_already_dead_is_reported_too(
    how: Any, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """No gap between finding and watching it; a reused process id does not count."""

    async def test(queue: asyncio.Queue[tuple[int, str]]) -> None:
        watch = Deaths(lambda pid, started: queue.put_nowait((pid, started)), how)
        dead, zombie, other = start("true"), start("true"), start()
        dead.wait()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        for pid, started in ((dead.pid, "5"), (zombie.pid, ""), (other.pid, "1")):
            watch.watch(pid, started)
        expected = {(dead.pid, "5"), (zombie.pid, ""), (other.pid, "1")}
        assert expected == {await told(queue) for _ in range(3)}
        watch.watch(other.pid, "2")
        watch.close()
        await asyncio.sleep(0.3)
        assert queue.empty()

    run(test)


@linux
def test_without_descriptors_it_polls(
    start: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health reports it; nothing is raised, no descriptor is lost."""
    monkeypatch.setattr(deaths, "POLL", 0.1)

    async def test(queue: asyncio.Queue[tuple[int, str]]) -> None:
        watch = Deaths(lambda pid, started: queue.put_nowait((pid, started)))
        child = start()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        open_now = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
        try:
            watch.watch(child.pid)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "1 processes are polled" in watch.note
        child.kill()
        assert (child.pid, "") == await told(queue)
        assert "" == watch.note
        watch.close()
        assert open_now >= len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    run(test)


@linux
def test_many_processes_leave_descriptors_to_the_rest_of_a_host(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """Such as the database and the spool; the others are polled."""

    async def test(queue: asyncio.Queue[tuple[int, str]]) -> None:
        child = start()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        open_now = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        most = max(100, 2 * open_now)
        spare = [os.dup(0) for _ in range(most // 2 - open_now)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        watches = [Deaths(lambda *_: None) for _ in range(most)]
        try:
            for watch in watches:
                watch.watch(child.pid)
            opened = [os.dup(0) for _ in range(most // 5)]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert watches[-1].note
        for descriptor in spare + opened:
            os.close(descriptor)
        for watch in watches:
            watch.close()

    run(test)


def test_all_hosts_report_a_death_under_the_same_key() -> None:
    """The key consists of the process id and its start time."""
    line, key = observer.gone(7.0, 12, "345")
    assert key == observer.gone(9.0, 12, "345").key != observer.gone(9.0, 12, "346").key
    event = from_line(line)
    assert ("process gone", 12, "345") == (event.kind, event.pid, event.started)


# ---------------------------------------------------------------- discovery


SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e"
AGENTS = [
    ["claude"],
    ["/usr/local/bin/claude", "--permission-mode", "plan", "fix the tests"],
    ["node", "--max-old-space-size=4096", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"],
    ["/usr/bin/node", "/home/me/.npm-global/bin/claude", "--continue"],
]
OTHERS = [
    [],
    ["claude", "mcp", "serve"],
    ["claude", "update"],
    ["claude", "purge"],
    ["claude", "respawn", "--all"],
    ["claude", "whatever-a-later-version-adds", "x"],
    ["claude", "-p", "hello"],
    ["claude", "--output-format", "json", "--print", "hello"],
    ["grep", "claude"],
    ["node", "/home/me/claude/server.js"],
    ["node"],
    ["vim", "/usr/local/bin/claude"],
]


@pytest.mark.parametrize("argv", AGENTS, ids=" ".join)
def test_command_lines_of_agents_are_recognized(argv: list[str]) -> None:
    """However it was installed."""
    assert starts_session(argv)


@pytest.mark.parametrize("argv", OTHERS, ids=" ".join)
def test_other_command_lines_are_not(argv: list[str]) -> None:
    """Tools of the CLI, runs without a person, and anything with a similar name."""
    assert not starts_session(argv)


def test_a_command_line_can_name_the_session() -> None:
    """But not the one it was forked from, nor what a picker searches for."""
    assert SESSION == session_in(["claude", "--session-id", SESSION])
    assert SESSION == session_in(["claude", f"--resume={SESSION}"])
    for argv in (["-r"], ["-r", "words"], ["--resume", SESSION, "--fork-session"], ["--continue"]):
        assert "" == session_in(["claude", *argv])


def search(discovery: Discovery, now: float, known: Collection[int] = ()) -> list[FoundProcess]:
    """Search at once; return nothing if it is too early."""
    begun = discovery.begin(now, known)
    return discovery.end(begun()) if begun is not None else []


@linux
def test_an_agent_in_a_terminal_is_found(
    start: Callable[..., subprocess.Popen[bytes]], terminal: tuple[int, str], tmp_path: Path
) -> None:
    """Not without a terminal, not of another board; each once; searched for every 30 s."""
    fd, name = terminal
    program = tmp_path / "claude"
    program.symlink_to("/bin/sleep")
    config = str(tmp_path / "config")
    env = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": config, "SECRET": "x"}
    hidden = start(str(program), "61", start_new_session=True)
    setup = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    setup += "os.execv(sys.argv[1], sys.argv[1:])"
    how: dict[str, Any] = {"stdin": fd, "cwd": tmp_path, "env": env, "start_new_session": True}
    pid = start(sys.executable, "-c", setup, str(program), "60", **how).pid
    eventually(lambda: processes.argv_of(pid)[:1] == [str(program)])
    now = began_at(pid)
    assert now
    [found] = [it for it in search(Discovery(env), now + 4.0) if it.pid == pid]
    assert found.is_new
    assert pid not in [found.pid for found in search(Discovery({"HOME": "/"}), now + 8.0)]
    discovery = Discovery(env)
    mine = [found for found in search(discovery, now + 8.0) if found.pid in (pid, hidden.pid)]
    assert [FoundProcess(pid, started_of(pid), name, str(tmp_path), "", config, False)] == mine
    assert [] == search(discovery, now + 37.0)
    assert search(discovery, now + 7.0)  # the clock was set back
    assert search(discovery, now + 38.0)
    assert pid not in [found.pid for found in search(discovery, now + 39.0, {pid})]
    event = from_line(mine[0].evidence(1.0).line)
    assert ("registry", f"process-{pid}-{started_of(pid)}", pid, "") == (
        event.kind,
        event.session_id,
        event.pid,
        event.status,
    )


@linux
def test_an_agent_with_an_odd_environment_hides_no_other(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """The agent's own folder cannot even be looked for."""
    program = tmp_path / "claude"
    program.symlink_to("/bin/sleep")
    setup = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    setup += "os.execv(sys.argv[1], sys.argv[1:])"
    env = {"HOME": str(tmp_path)}
    with contextlib.ExitStack() as both:
        pids = set()
        for config in (f"/{'x' * 300}", str(tmp_path)):
            fd, _ = both.enter_context(opened())
            how: dict[str, Any] = {"stdin": fd, "env": {**env, "CLAUDE_CONFIG_DIR": config}}
            argv = (sys.executable, "-c", setup, str(program), "60")
            pids.add(pid := start(*argv, start_new_session=True, **how).pid)
            eventually(lambda pid=pid: processes.argv_of(pid)[:1] == [str(program)])
        found = search(Discovery(env), time.time())
        assert pids == {it.pid for it in found}


@pytest.mark.live
@pytest.mark.parametrize("version", ["2.1.76", claude_code.VERSION])
def test_the_real_cli_is_found(claude: Any, home: Home, version: str) -> None:
    """The CLI is a node script that calls itself claude, or a program."""
    agent = claude(version=version)
    # The CLI forks, and its children are old enough to be found as well.
    [found] = [it for it in search(Discovery(home.env), time.time() + 9.0) if it.pid == agent.pid]
    assert (agent.pane.tty, str(agent.launch.cwd)) == (found.tty, found.cwd)
    assert str(home.claude) == found.config


def test_a_process_with_the_pid_of_an_earlier_one_has_its_own_terminal() -> None:
    """A host runs for days, in which pids come back; the header of its hooks may be the same."""
    apart = [*unshared("--pid"), "--fork", "--kill-child", "--mount-proc"]  # for its own pids
    done = subprocess.run(
        [*apart, sys.executable, str(Path(__file__).with_name("reused_pid.py"))],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if "PermissionError" in done.stderr:
        pytest.skip("the next pid cannot be chosen here")
    assert 0 == done.returncode, done.stderr


def test_a_machine_and_its_boot_have_an_id_each() -> None:
    """Of the system's own, where it has them: a name may change with the network."""
    assert machine_id() == machine_id() != boot_id() == boot_id()
    mac = clock.uuid_of_mac(clock._libc()), clock.boot_of_mac(clock._libc())
    assert [sys.platform == "darwin"] * 2 == [bool(known) for known in mac]
