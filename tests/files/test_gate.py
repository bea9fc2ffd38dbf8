"""The gate: nothing connects to another user's socket, whatever an event names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket as sockets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellboard.hosting import jump
from bellboard.hosting.addresses import MOST_LATE, Addresses
from bellboard.hosting.tmux_status import ASKED, OPTION, Bars
from bellboard.storage.event_file import MAGIC
from bellboard.storage.spool import Spool
from bellboard.storage.store import Store
from bellboard.system import gate, tmux
from bellboard.system.failures import Declined
from bellboard.system.reach import reached_from_here
from rig import warm
from rig.home import Home
from rig.host.hosting import NoThread, RecordedHost, put_raw
from rig.machines.hung_mount import HungMount
from rig.machines.stranger import Stranger
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually

Listen = Callable[[Path], Path]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """listen(path): listen on a socket there, creating its folders."""
    made: list[sockets.socket] = []

    def one(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.append(sockets.socket(sockets.AF_UNIX))
        made[-1].bind(str(path))
        made[-1].listen()
        return path

    yield one
    for each in made:
        each.close()


@pytest.fixture
def tcp() -> Iterator[sockets.socket]:
    """Listen on a TCP port; `accept` raises BlockingIOError if nobody connected."""
    with sockets.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def refusal(address: object) -> str:
    """Return why the gate denies an address."""
    with pytest.raises(gate.Denied) as refused:
        gate.admitted(address)
    return str(refused.value)


# ---------------------------------------------------------------- admitted


def test_the_usual_places_of_sockets_pass(home: Home, listen: Listen) -> None:
    """TMUX_TMPDIR, the runtime folder, a folder below /tmp, /tmp itself, links of our own."""
    for path in (
        home.tmp / f"tmux-{os.getuid()}" / "default",
        Path(home.env["XDG_RUNTIME_DIR"], "nvim.1.0"),
        home.root / "nvim.user" / "xyz" / "nvim.1.0",
        home.project / "with space" / "näme",
    ):
        assert gate.admitted(str(listen(path))) == str(path)
    direct = Path(f"{home.root}.sock")
    try:
        assert gate.admitted(str(listen(direct))) == str(direct)
    finally:
        direct.unlink()
    (home.root / "link").symlink_to("project/../tmp")
    link = home.root / "link" / f"tmux-{os.getuid()}" / ".." / "./short"
    link.symlink_to(home.project / "with space" / "näme")
    assert gate.admitted(str(link)) == str(home.project / "with space" / "näme")
    with pytest.raises(FileNotFoundError):
        gate.admitted(str(home.root / "nothing"))


# ---------------------------------------------------------------- denied


@pytest.mark.parametrize(
    "address", ["127.0.0.1:6666", "localhost:1", "[::1]:1", "relative/path", "@abstract", "", None]
)
def test_addresses_that_are_not_paths_are_refused(address: object) -> None:
    """Above all a host and a port: anybody may listen there."""
    assert refusal(address) == "not a local path"


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o770, 0o722])
def test_a_folder_that_others_may_write_to_is_refused(
    home: Home, listen: Listen, mode: int
) -> None:
    """Others could put another socket there; in a sticky folder they cannot."""
    path = listen(home.project / "deep" / "er" / "s")
    (home.project / "deep").chmod(mode)
    assert refusal(str(path)) == f"others may write to {home.project / 'deep'}"
    (home.project / "deep").chmod(mode | 0o1000)
    assert gate.admitted(str(path)) == str(path)


def test_files_that_are_not_sockets_are_refused(home: Home, listen: Listen) -> None:
    """Files, pipes, folders, paths below a file, circular links, invalid names."""
    file, pipe, circle = (home.project / name for name in ("file", "pipe", "circle"))
    file.write_text("")
    os.mkfifo(pipe)
    circle.symlink_to(circle)
    for path in (file, pipe, home.project, file / "x", listen(home.project / "s") / "x", "/"):
        assert refusal(str(path)) == "not a socket"
    assert refusal(str(circle)) == "too many links"
    assert refusal(f"{home.project}/a\0b") == "not a path"
    assert refusal(f"{home.project}/\ud800") == "not a path"
    assert "File name too long" in refusal(f"{home.project}/{'x' * 300}")


def test_a_path_too_long_for_a_socket_is_refused(
    home: Home, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path cut to fit a socket address leads elsewhere."""
    folder = home.project / ("x" * 100)
    folder.mkdir()
    monkeypatch.chdir(folder)
    listen(Path("s"))
    assert refusal(str(folder / "s")) == "path too long for a socket"


def test_anything_owned_by_another_user_is_refused(
    home: Home, listen: Listen, stranger: Stranger
) -> None:
    """The socket, its folder, a folder above, a link on the way, a tmux folder."""
    theirs = f"{stranger.folder} belongs to another user"
    assert refusal(str(stranger.trap(stranger.folder / "s").path)) == theirs
    assert refusal(str(stranger.folder / "not" / "there")) == theirs
    ours = listen(stranger.folder / "x" / "s")
    assert refusal(str(ours)) == theirs
    socket = listen(home.project / "s")
    stranger.own(socket)
    assert refusal(str(socket)) == f"{socket} belongs to another user"
    link, good = home.tmp / "link", listen(home.project / "good")
    link.symlink_to(good)
    home.tmp.chmod(0o1777)
    assert gate.admitted(str(link)) == str(good)
    stranger.own(link)
    assert refusal(str(link)) == f"{link} belongs to another user"
    folder = home.tmp / f"tmux-{os.getuid()}"
    folder.mkdir(0o700)
    stranger.own(folder)
    stranger.trap(folder / "default")
    [found] = tmux.sockets({"TMUX_TMPDIR": str(home.tmp)})
    assert refusal(found) == f"{folder} belongs to another user"
    assert tmux.Tmux(found).panes() is None
    assert stranger.caught == ""


def test_tmp_in_a_container_passes(home: Home, listen: Listen, stranger: Stranger) -> None:
    """A container shows /tmp as owned by nobody; other things owned by nobody are refused."""
    path = listen(home.project / "s")
    os.chown(home.project, gate.NOBODY, -1)
    assert refusal(str(path)) == f"{home.project} belongs to another user"


def test_another_users_listener_on_our_socket_is_hung_up_on(home: Home, stranger: Stranger) -> None:
    """The file may be ours; who listens is known only after connecting."""
    home.project.chmod(0o1777)
    trap = stranger.trap(home.project / "s")
    os.chown(trap.path, os.geteuid(), -1)
    with pytest.raises(gate.Denied, match="another user listens there"):
        gate.connected(str(trap.path), 2.0)
    assert not stranger.booty.exists()


def test_a_fuse_mount_is_not_even_looked_at(
    home: Home, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a mount can claim any owner, or never answer; unless everything is on it."""
    path = listen(home.project / "a b" / "s")
    place = str(home.project / "a b").replace(" ", "\\040")
    row = "70 27 0:61 / {} rw,nosuid - fuse.x x rw,user_id=0,group_id=0,allow_other\n"
    table = home.root / "mountinfo"
    monkeypatch.setattr(gate, "TABLE", str(table))
    table.write_text(row.format(place))
    assert refusal(str(path)) == f"{path.parent} is a FUSE mount"
    table.write_text(row.format("/"))
    assert gate.admitted(str(path)) == str(path)


def test_without_the_mount_table_nothing_is_admitted(
    home: Home, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as when there are no file descriptors left; a system may have no table at all."""
    path = listen(home.project / "s")
    monkeypatch.setattr(gate, "TABLE", str(home.root))
    assert refusal(str(path)) == "the mounts cannot be read: Is a directory"
    monkeypatch.setattr(gate, "TABLE", str(home.root / "none"))
    assert gate.admitted(str(path)) == str(path)


def test_a_check_that_hangs_is_not_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as on NFS, which is no FUSE mount: here the mount table lists none."""
    (home.root / "mountinfo").touch()
    monkeypatch.setattr(gate, "TABLE", str(home.root / "mountinfo"))
    mount = HungMount(home.project, home.root / "hung")
    try:
        mount.hang()
        given = {"session_id": "s", "nvim": str(mount.place / "s")}

        async def test() -> None:
            addresses = Addresses(lambda: None, glance=0.1)
            assert addresses.shown(given) == {"session_id": "s"}
            assert addresses.shown(given) == {"session_id": "s"}
            while f"address {given['nvim']}" not in str(reached_from_here().notes):
                await asyncio.sleep(0.01)

        asyncio.run(asyncio.wait_for(test(), PATIENCE))
    finally:
        mount.close()


def test_a_status_whose_job_was_lost_is_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that fails gives no result."""
    times: list[str] = []

    def fails(socket: str, text: str) -> bool:
        times.append(socket)
        raise OSError("no descriptors")

    async def test() -> None:
        bars = Bars()
        while len(times) < 2:
            bars._update(["/tmp/x"], None, [], 1.0)
            await asyncio.sleep(0.01)

    monkeypatch.setattr("bellboard.hosting.tmux_status.show", fails)
    monkeypatch.setattr("bellboard.system.reach.PAUSE", 0.01)
    asyncio.run(asyncio.wait_for(test(), PATIENCE))
    assert ["/tmp/x"] * 2 == times


def test_an_address_is_judged_once_there_are_threads_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that could not be started is no check that hangs."""
    addresses = Addresses(lambda: None, glance=0.1)
    given = {"session_id": "s", "nvim": str(home.project / "s")}
    with monkeypatch.context() as without:
        without.setattr("bellboard.system.reach.Thread", NoThread)
        for _ in range(MOST_LATE + 1):
            with pytest.raises(RuntimeError):
                addresses.shown(given)
    assert {} == addresses.notes
    assert addresses.shown(given) == given


def test_a_mount_that_hangs_is_not_waited_for(home: Home) -> None:
    """Nor through a link that leads there."""
    mount = HungMount(home.project, home.root / "hung")
    try:
        (home.root / "link").symlink_to("hung/s")
        assert list(mount.place.iterdir()) == []  # the kernel has accessed it
        mount.hang()
        why = f"{mount.place} is a FUSE mount"
        assert refusal(str(mount.place / "s")) == why
        assert refusal(str(home.root / "link")) == why
        assert not mount.asked
    finally:
        mount.close()


# ---------------------------------------------------------------- ports


def test_a_port_of_another_process_is_not_even_connected_to(tcp: sockets.socket) -> None:
    other = os.getppid()
    with pytest.raises(gate.Denied, match=f"process {other} does not listen on port"):
        gate.looped(tcp.getsockname()[1], other, PATIENCE)
    with pytest.raises(BlockingIOError):
        tcp.accept()


LISTENS = """
import socket, sys
full = socket.create_server(("127.0.0.1", 0), backlog=0)
one = socket.create_connection(full.getsockname())
print(full.getsockname()[1], flush=True)
sys.stdin.readline()
"""


def test_a_port_that_its_process_left_meanwhile_is_hung_up_on() -> None:
    """Another user may have taken the port between the check and the connection."""
    child = subprocess.Popen(
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    port, denied = int(child.stdout.readline()), []

    def connect() -> None:
        with pytest.raises(gate.Denied) as refused:
            gate.looped(port, child.pid, PATIENCE).close()
        denied.append(str(refused.value))

    asked = threading.Thread(target=connect)
    asked.start()  # it waits: the queue of that port is full
    eventually(lambda: waits_for(port), "an attempt to connect")
    child.communicate(b"\n")
    with sockets.create_server(("127.0.0.1", port)) as taken:
        asked.join(PATIENCE)
        assert denied == [f"process {child.pid} no longer listens on port {port}"]
        with taken.accept()[0] as connection:
            assert connection.recv(1) == b""  # nothing was sent


def waits_for(port: int) -> bool:
    """Return whether somebody tries to connect to a port of this machine."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


# ---------------------------------------------------------------- everything that connects


def named(spool: Spool, session: str, **named: str) -> None:
    """Emit a question of an agent whose environment names that address."""
    head = "".join(f"{key}={value}\0" for key, value in named.items())
    asks = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    told = {"session_id": session, "hook_event_name": "PermissionRequest", "cwd": "/srv", **asks}
    head = f"agent=claude\0event=PermissionRequest\0pid=0\0{head}\0"
    put_raw(spool, MAGIC + head.encode() + json.dumps(told).encode())


def test_no_event_makes_a_host_connect_to_a_stranger(
    home: Home, start: Callable[..., RecordedHost], stranger: Stranger, tmux: Server
) -> None:
    """No program runs, no change is published, and health names the address."""
    spool = Spool(home.bellboard)
    spool.prepare()
    trap = stranger.trap(stranger.folder / "sock")
    own = tmux.open(["sleep", "60"])
    named(spool, "bad", TMUX=f"{trap.path},1,0", TMUX_PANE="%0")
    named(spool, "worse", NVIM=str(trap.path))
    named(spool, "worst", NVIM="127.0.0.1:6666")
    named(spool, "good", TMUX=f"{tmux.socket},1,0", TMUX_PANE=own.id)
    host = start()
    eventually(lambda: len(host.sessions) == 4, "the sessions")
    host.says("belongs to another user")
    host.says("not a local path")
    place = {"tmux": str(tmux.socket), "pane": own.id}
    eventually(lambda: place.items() <= host.sessions["good"].items(), "its own address")
    for sid in ("bad", "worse", "worst"):
        assert not {"tmux", "pane", "nvim"} & host.sessions[sid].keys()
    assert (
        f"not connecting: {stranger.folder} belongs to another user" == host.notes[str(trap.path)]
    )
    assert "not a local path" in host.notes["127.0.0.1:6666"]
    assert "belongs to another" not in json.dumps([m["sessions"] for m in host.messages])
    assert str(stranger.folder) not in json.dumps([m["sessions"] for m in host.messages])
    assert stranger.caught == ""


def bellboard(home: Home, *args: str, code: int = 0, **env: str) -> str:
    """Run a command in a shell; return its output."""
    done = warm.run(["-m", "bellboard", *args], env=home.env | env)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_no_command_connects_to_a_stranger(
    home: Home, stranger: Stranger, tcp: sockets.socket
) -> None:
    """Whether an event, the environment, an option or the tmux folder leads there."""
    spool = Spool(home.bellboard)
    spool.prepare()
    trap = stranger.trap(stranger.folder / "sock")
    address = f"127.0.0.1:{tcp.getsockname()[1]}"
    named(spool, "pane", TMUX=f"{trap.path},1,0", TMUX_PANE="%0")
    named(spool, "editor", NVIM=str(trap.path))
    named(spool, "remote", NVIM=address)
    listed = json.loads(bellboard(home, "list", "--json"))["sessions"]
    assert {p["session_id"] for p in listed} == {"pane", "editor", "remote"}
    assert not any({"tmux", "pane", "nvim"} & p.keys() for p in listed)
    assert stranger.caught == ""
    for sid in ("pane", "editor", "remote"):
        assert "not connecting to" in bellboard(home, "goto", sid, code=1)
    inside = {"TMUX": f"{trap.path},1,0", "TMUX_PANE": "%0"}
    bellboard(home, "goto", "--next", code=1, **inside)
    bellboard(home, "goto", "--next", "--client", "/dev/pts/1", **inside)
    said = bellboard(home, "tmux", "--apply", code=1, **inside)
    assert "belongs to another user" in said
    bellboard(home, "tmux", "--remove", "--socket", str(trap.path), code=1)
    folder = home.tmp / f"tmux-{os.getuid()}"
    folder.mkdir(0o700)
    stranger.own(folder)
    stranger.trap(folder / "default")
    assert "name a server" in bellboard(home, "tmux", "--apply", code=1)
    assert "belongs to another user" in bellboard(home, "doctor", code=1, **inside)
    with pytest.raises(BlockingIOError):
        tcp.accept()
    assert stranger.caught == ""


def test_the_status_is_not_given_to_a_stranger(
    home: Home, start: Callable[..., RecordedHost], stranger: Stranger, tmux: Server
) -> None:
    """A socket that asked for it may be another user's by now; the others still get it."""
    spool = Spool(home.bellboard)
    spool.prepare()
    trap = stranger.trap(stranger.folder / "sock")
    tmux.open(["sleep", "60"])
    store = Store(home.bellboard)
    with store.transaction() as tx:
        tx.set_option(ASKED, [str(trap.path), str(tmux.socket)], 1, 1.0)
    store.close()
    named(spool, "s")
    start()
    eventually(lambda: tmux.run("show-options", "-gqv", OPTION).strip(), "the status")
    assert stranger.caught == ""


@pytest.mark.parametrize(
    "said", [b"\0" * 100_000, b"", b"\xc1", b"\x94\x01\x01\xc0\xc0", b"\x91" * 9000]
)
def test_a_jump_fails_if_something_else_listens_on_neovims_socket(
    tmp_path: Path, said: bytes
) -> None:
    """A jump once succeeded as soon as another listener had sent anything."""
    with sockets.socket(sockets.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(Declined, match="its Neovim"):
            jump.arrive({"nvim": str(tmp_path / "sock"), "session_id": "s"})


def test_another_users_neovim_is_not_contacted(stranger: Stranger, tcp: sockets.socket) -> None:
    """Neither by path nor by host and port; the message says why."""
    trap = stranger.trap(stranger.folder / "sock")
    with pytest.raises(Declined, match="belongs to another user"):
        jump.arrive({"nvim": str(trap.path), "session_id": "s"})
    with pytest.raises(Declined, match="not a local path"):
        jump.arrive({"nvim": f"127.0.0.1:{tcp.getsockname()[1]}", "session_id": "s"})
    with pytest.raises(BlockingIOError):
        tcp.accept()
    assert stranger.caught == ""
