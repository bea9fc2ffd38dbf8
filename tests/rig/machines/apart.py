"""The place of a machine's processes: next to ours, or in namespaces of their own.

Everything that is started is ended by its process id, even if the test itself is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import psutil

from rig import reaper
from rig.fetched.cache import Missing
from rig.home import Home
from rig.waiting import eventually

T = TypeVar("T")

FIRST: Final = ["sh", str(Path(__file__).with_name("init"))]
#: 198.18.0.0/15 is for tests of networks, and leads nowhere.
NETWORKS: Final = 2**15
NETWORK: Final = 0x40000000  # CLONE_NEWNET
UNSHARE: Final = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def unable() -> str:
    """Return why no namespaces can be made here; empty if they can."""
    for tool in ("unshare", "nsenter", "ip", "iptables"):
        if shutil.which(tool) is None:
            return f"{tool} is missing; install util-linux, iproute2 and iptables"
    done = subprocess.run([*UNSHARE, "--net", "true"], capture_output=True, text=True)
    return f"no namespaces: {done.stderr.strip()}" if done.returncode else ""


class Here:
    """Next to ours, on loopback."""

    within: tuple[str, ...] = ()
    address = "127.0.0.1"

    def __init__(self, home: Home) -> None:
        self.home = home
        self.errors = home.root / "sshd.stderr"
        with socket.create_server((self.address, 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self._first: subprocess.Popen[bytes] | None = None

    @property
    def is_up(self) -> bool:
        return self._first is not None and self._first.poll() is None

    def inside(self, make: Callable[[], T]) -> T:
        return make()

    def boot(self, *argv: str) -> None:
        self._first = _started((), argv, self.home, self.errors)

    def crash(self) -> None:
        """Kill everything whose home is that of this machine, and the sshd processes above it."""
        while left := [*self._ours()]:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=0.1)
        if self._first:
            _end(self._first)

    def cut(self) -> None:
        self._tell(signal.SIGSTOP)

    def mend(self) -> None:
        self._tell(signal.SIGCONT)

    def close(self) -> None:
        self.mend()
        self.crash()

    def _tell(self, number: int) -> None:
        """Send a signal to each sshd."""
        for process in self._above():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name().startswith("sshd"):
                    process.send_signal(number)

    def _above(self) -> list[psutil.Process]:
        return reaper.family([self._first.pid]) if self._first else []

    def _ours(self) -> Iterator[psutil.Process]:
        yield from filter(reaper.lives, self._above())
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                is_here = process.environ().get("HOME") == str(self.home.root)
                if is_here and process.pid != os.getpid() and reaper.lives(process):
                    yield process


class Apart:
    """In namespaces, with an address of its own unless another program makes them."""

    def __init__(self, home: Home, maker: Sequence[str] = ()) -> None:
        if why := unable():
            raise Missing(why)
        self.home = home
        self.errors = home.root / "sshd.stderr"
        self.port = 22
        self.first = 0  # the process that all others there descend from
        self._maker = tuple(maker)
        self._outer: subprocess.Popen[bytes] | None = None
        self._network = 0
        self._wire: subprocess.Popen[bytes] | None = None  # what keeps its network
        if not maker:
            self._wire = _started(("unshare", "--net"), (), home, self.errors)
            self._connect(self._wire.pid)

    @property
    def address(self) -> str:
        return _address(self._network, 2)

    @property
    def gateway(self) -> str:
        """Return the address of this side of its wire."""
        return _address(self._network, 1)

    @property
    def within(self) -> tuple[str, ...]:
        """Return the start of a command that runs the rest there."""
        network = () if self._maker else ("-n",)
        return ("nsenter", "-t", str(self.first), "-m", "-p", *network, "--")

    @property
    def is_up(self) -> bool:
        return self._outer is not None and self._outer.poll() is None

    def boot(self, *argv: str) -> None:
        apart = self._maker or (*self._plugged, *UNSHARE)
        self._outer = _started(apart, argv, self.home, self.errors)
        self.first = eventually(self._inner, "the first process of a machine")

    @property
    def _plugged(self) -> tuple[str, ...]:
        """Return the start of a command that runs the rest with its network."""
        assert self._wire
        return ("nsenter", "-t", str(self._wire.pid), "-n", "--")

    def inside(self, make: Callable[[], T]) -> T:
        """Call a function with the network of this machine: what listens then, listens there."""
        network = self._wire.pid if self._wire else self.first
        return _entered(Path(f"/proc/{network}/ns/net"), make)

    def crash(self) -> None:
        """Kill its first process: the kernel kills all others, and ends their connections.

        After a `cut` no connection is closed, as with a loss of power.
        """
        inside = reaper.family([self.first]) if self.first else []
        for process in inside[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self._outer:
            _end(self._outer)
        eventually(lambda: not any(map(reaper.lives, inside)), "the end of a machine")

    def cut(self) -> None:
        self._filter("-A")

    def mend(self) -> None:
        self._filter("-D")

    def close(self) -> None:
        self.crash()
        if self._wire:
            _end(self._wire)

    def _inner(self) -> int:
        """Return the first process, once it runs `FIRST`: its maker has mounted everything then."""
        assert self._outer and self._outer.poll() is None, self.errors.read_text()
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._outer.pid).children(recursive=True):
                if process.cmdline()[: len(FIRST)] == FIRST and _is_first(process.pid):
                    return process.pid
        return 0

    def _connect(self, other: int) -> None:
        """Lay a wire to the network of a process, under a name that nobody else uses."""

        def laid() -> bool:
            assert _is_own(other), "its network is still ours"
            self._network = random.randrange(NETWORKS)
            mine = ("name", self._name, "type", "veth")
            ends = (*mine, "peer", "name", "eth0", "netns", str(other))
            done = subprocess.run(["ip", "link", "add", *ends], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return True

        eventually(laid, "a wire")
        mine = _address(self._network, 1)
        for prefix, name, address in (
            ((), self._name, mine),
            (self._plugged, "eth0", self.address),
        ):
            _run(*prefix, "ip", "addr", "add", f"{address}/30", "dev", name)
            _run(*prefix, "ip", "link", "set", name, "up")
        _run(*self._plugged, "ip", "link", "set", "lo", "up")

    @property
    def _name(self) -> str:
        return f"bb{self._network}"

    def _filter(self, change: str) -> None:
        for chain, which in (("INPUT", "-i"), ("OUTPUT", "-o")):
            _run(*self._plugged, "iptables", "-w", change, chain, which, "eth0", "-j", "DROP")


def _address(network: int, end: int) -> str:
    """Return an address in the network of that number: 1 is our end, 2 that of the machine."""
    whole = 4 * network + end
    return f"198.{18 + whole // 2**16}.{whole // 256 % 256}.{whole % 256}"


def _entered(network: Path, make: Callable[[], T]) -> T:
    """Call a function in a thread that has moved to another network."""

    def work() -> T:
        with network.open() as opened:
            if ctypes.CDLL(None, use_errno=True).setns(opened.fileno(), NETWORK) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {network}")
        return make()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def _is_own(pid: int) -> bool:
    """Return whether a process has another network than ours."""
    return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def _is_first(pid: int) -> bool:
    """Return whether it is the first process of a namespace."""
    with contextlib.suppress(OSError):
        return "\t1\n" in next(
            line
            for line in Path(f"/proc/{pid}/status").read_text().splitlines(keepends=True)
            if line.startswith("NSpid:")
        )
    return False


def _started(
    maker: Sequence[str], argv: Sequence[str], home: Home, errors: Path
) -> subprocess.Popen[bytes]:
    """Start the first process of a machine; it ends with us."""
    with errors.open("ab") as said:
        return subprocess.Popen(
            [*maker, *FIRST, *argv],
            env=home.env,
            cwd=home.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
