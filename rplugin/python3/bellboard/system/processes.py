"""Look up processes: whether they run, their start, user, terminal and children.

On Linux this reads /proc; elsewhere it uses psutil.  With 300 sessions psutil alone took 33 ms for
a scan instead of 4 (0.1 % of a core at rest), 7 ms instead of 0.03 for the children of one process,
1.1 to 2.4 times as long for anything else, and 3 MB more memory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

PATIENCE: Final = 2.0  # seconds for `ps`
#: Programs that run an agent's script.
INTERPRETERS = frozenset({"node", "bun", "deno"})
PROC = "/proc"
ENVIRONMENT_LIMIT: Final = 1 << 20
GONE: Final = ("zombie", "dead")  # as psutil says it
ROUNDING: Final = 2.0  # seconds; when a process began is known to within a second
LONGEST_UP: Final = (
    1e9  # seconds; a smaller number counts from the boot, and a larger one is a time
)
LISTENS: Final = "0A"  # a state of a socket in /proc/net/tcp
CONNECTED: Final = "01"  # another
_HERE, _MAPPED = (
    f"{int.from_bytes(part, sys.byteorder):08X}" for part in (b"\x7f\0\0\1", b"\0\0\xff\xff")
)
#: Addresses of sockets that take connections to 127.0.0.1, as they are written there.
LOOPED: Final = frozenset((_HERE, "0" * 8, "0" * 16 + _MAPPED + _HERE, "0" * 32))


# ---------------------------------------------------------------- one process


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    stat = stat_of(pid)
    return stat[0] not in ("Z", "X") if stat is not None else _ask(pid, "status") not in GONE


def runs(pid: int, started: str = "") -> bool:
    """Return whether a process still runs, and is not a later one with the same pid."""
    return is_alive(pid) and (not started or started_of(pid) in ("", started))


def started_of(pid: int) -> str:
    """Return when a process started, in the system's unit: with the pid it is unique."""
    stat = stat_of(pid)
    if stat is not None:
        return stat[19]
    identity = _identity(pid)
    return f"{identity:.3f}" if identity else ""


def began_at(pid: int) -> float | None:
    """Return when a process started, as a time."""
    stat = stat_of(pid)
    if stat is not None:
        booted = [line for line in lines_of(f"{PROC}/stat") if line.startswith("btime ")]
        ticks = int(stat[19]) / os.sysconf("SC_CLK_TCK")
        return float(booted[0].split()[1]) + ticks if booted else None
    identity = _identity(pid)
    return identity if identity > LONGEST_UP else _ask(pid, "create_time")


def ran_at(pid: int, t: float) -> bool:
    """Return whether a process ran then, as far as can be known: its pid may be used again."""
    began = began_at(pid)
    if began is None or began <= t + ROUNDING:
        return True
    return began > time.time() + ROUNDING  # in the future: the clock was set back since


def owner_of(pid: int) -> int | None:
    """Return the user who runs a process, or None if it does not exist or is not visible."""
    for line in lines_of(f"{PROC}/{pid}/status"):
        if line.startswith("Uid:"):
            return int(line.split()[1])
    uids = _ask(pid, "uids")
    return int(uids.real) if uids else None


def tty_of(pid: int) -> str:
    """Return the controlling terminal of a process."""
    stat = stat_of(pid)
    if stat is not None:
        number = int(stat[4])
        major, minor = (number >> 8) & 0xFFF, (number & 0xFF) | (number >> 12 & 0xFFF00)
        if 136 <= major <= 143:
            return f"/dev/pts/{minor + (major - 136) * 256}"
        if major == 4:
            return f"/dev/tty{minor}" if minor < 64 else f"/dev/ttyS{minor - 64}"
        return ""
    return _ask(pid, "terminal") or _ask_again(pid) or ""


def cwd_of(pid: int) -> str:
    """Return the working directory of a process."""
    try:
        return str(Path(f"{PROC}/{pid}/cwd").readlink()).removesuffix(" (deleted)")
    except OSError:
        return _ask(pid, "cwd") or ""


def _read(pid: int, name: str) -> bytes:
    """Read a file of a process; a search reads one of each, so without a Path and a buffer."""
    with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def argv_of(pid: int) -> list[str]:
    """Return the command line of a process, which it may have changed itself."""
    try:
        raw = _read(pid, "cmdline")
    except OSError:
        return _ask(pid, "cmdline") or []
    return raw.rstrip(b"\0").decode("utf-8", "replace").split("\0")


def program_of(pid: int) -> str:
    """Return the executable of a process."""
    try:
        return str(Path(f"{PROC}/{pid}/exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        return _ask(pid, "exe") or ""


def environment_of(pid: int, names: Iterable[str]) -> dict[str, str]:
    """Return only these variables of the environment that a process started with."""
    wanted = {name.encode() for name in names}
    try:
        with Path(f"{PROC}/{pid}/environ").open("rb") as file:
            entries = file.read(ENVIRONMENT_LIMIT).split(b"\0")
    except OSError:
        given = _ask(pid, "environ") or {}
        entries = [f"{name}={value}".encode() for name, value in given.items()]
    pairs = [entry.partition(b"=") for entry in entries]
    return {n.decode(): v.decode("utf-8", "replace") for n, _, v in pairs if n in wanted and v}


def is_suspended(pid: int) -> bool:
    """Return whether a process is stopped, as by CTRL-Z or a debugger."""
    stat = stat_of(pid)
    return stat[0] in ("T", "t") if stat is not None else _ask(pid, "status") == "stopped"


def frozen(pid: int) -> str:
    """Return the end of a sentence about a process: what to do if it is suspended, else ""."""
    return f", which is suspended: kill -CONT {pid}, or stop it" if is_suspended(pid) else ""


def is_in_front(pid: int) -> bool:
    """Return whether keys in its terminal reach a process; True if that cannot be known."""
    stat = stat_of(pid)
    if stat is None:
        return not is_suspended(pid)
    group, terminal, front = int(stat[2]), int(stat[4]), int(stat[5])
    return terminal == 0 or front <= 0 or group == front


def group_of(pid: int) -> int:
    """Return the process group of a process, or 0."""
    try:
        return os.getpgid(pid)
    except (OSError, OverflowError):
        return 0


def front_group(pid: int) -> int:
    """Return the process group that is in front in the terminal of a process, or 0. May hang."""
    stat = stat_of(pid)
    if stat is not None:
        return max(0, int(stat[5]))
    if has_proc():
        return 0
    from subprocess import TimeoutExpired  # commands ask no program

    from .programs import run

    try:
        printed = run(["/bin/ps", "-o", "tpgid=", "-p", str(pid)], PATIENCE).output.strip()
    except (OSError, ValueError, TimeoutExpired):
        return 0
    return int(printed) if printed.isdigit() else 0


def stat_of(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third on."""
    try:
        text = _read(pid, "stat").decode("utf-8", "replace")
        return text[text.rindex(")") + 2 :].split()
    except (OSError, ValueError):
        return None


# ---------------------------------------------------------------- its descendants


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process."""
    if not has_proc():
        return [child.pid for child in _ask(pid, "children") or ()]
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
    listed = [lines_of(f"{PROC}/{pid}/task/{thread}/children") for thread in threads]
    return [int(child) for lines in listed for line in lines for child in line.split()]


def ancestors(pid: int) -> Iterator[int]:
    """Return the processes that a process was started by, the nearest first."""
    seen = {pid}
    while True:
        stat = stat_of(pid)
        pid = int(stat[1]) if stat is not None else int(_ask(pid, "ppid") or 0)
        if pid <= 0 or pid in seen:  # a pid may have been used again meanwhile
            return
        seen.add(pid)
        yield pid


def holder_of(pid: int) -> int:
    """Return the process that holds the terminal of a process, such as tmux or a Neovim, or 0.

    It started the first process of that terminal, and its end closes the terminal.
    """
    try:
        leader = os.getsid(pid) if tty_of(pid) else 0
    except (OSError, OverflowError):
        return 0
    holder = next(ancestors(leader), 0) if leader else 0
    return holder if holder > 1 else 0  # it has ended before, and nobody holds the terminal


def descendants(pid: int) -> list[int]:
    """Return the children of a process and theirs, parents first."""
    found = [pid]
    for parent in found:
        found += children_of(parent)
    return found[1:]


def listening(pids: Iterable[int]) -> list[int]:
    """Return the ports of several processes."""
    return sorted({port for pid in pids for port in ports(pid)})


def ports(pid: int) -> list[int]:
    """Return the TCP ports that a process and its descendants listen on; takes 2 ms."""
    return _ports(pid, [pid, *descendants(pid)])


def own_ports(pid: int) -> list[int]:
    """Return the TCP ports of 127.0.0.1 here that a process itself listens on."""
    return _ports(pid, [pid], LOOPED) if _is_in_our_network(pid) else []


def _is_in_our_network(pid: int) -> bool:
    """Return whether 127.0.0.1 is the same for a process as for us: containers have their own."""
    try:
        return not has_proc() or Path(f"{PROC}/{pid}/ns/net").samefile(f"{PROC}/self/ns/net")
    except OSError:
        return False


def _ports(pid: int, family: Iterable[int], at: Collection[str] = ()) -> list[int]:
    """Return the ports; `at`: only those of these addresses, as /proc/net/tcp has them."""
    if not has_proc():
        return _ports_elsewhere(family)
    sockets: dict[str, int] = {}
    for ends, state, name in tcp_sockets(pid):
        address, _, port = ends[0].rpartition(":")
        if state == LISTENS and (not at or address in at):
            sockets[name] = int(port, 16)
    held = (name for each in (family if sockets else ()) for name in descriptors(each))
    return sorted({sockets[name] for name in held if name in sockets})


def connected_to(server: int) -> set[str]:
    """Return the sockets here that are connected to a port of 127.0.0.1 that it listens on."""
    ports = {f"{port:04X}" for port in own_ports(server)}
    found = set()
    for ends, state, name in tcp_sockets(server) if ports else ():
        address, _, port = ends[1].rpartition(":")
        if state == CONNECTED and port in ports and address in LOOPED:
            found.add(name)
    return found


def tcp_sockets(pid: int) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield the two ends, the state and the name of each socket in the network of a process."""
    for table in ("tcp", "tcp6"):
        for line in lines_of(f"{PROC}/{pid}/net/{table}")[1:]:
            fields = line.split()
            if len(fields) > 9:
                yield (fields[1], fields[2]), fields[3], f"socket:[{fields[9]}]"


def descriptors(pid: int) -> Iterator[str]:
    """Yield the targets of a process's descriptors: paths, and names like `socket:[4711]`."""
    try:
        fds = os.listdir(f"{PROC}/{pid}/fd")  # noqa: PTH208
    except OSError:
        return
    for fd in fds:
        try:
            yield str(Path(f"{PROC}/{pid}/fd/{fd}").readlink())
        except OSError:
            continue


def _ports_elsewhere(family: Iterable[int]) -> list[int]:
    import psutil

    connections = [c for pid in family for c in connections_elsewhere(pid)]
    return sorted({c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN})


def connections_elsewhere(pid: int) -> Iterable[Any]:
    """Return the TCP connections of a process, as psutil does; nothing if there is /proc."""
    if has_proc():
        return ()
    import psutil

    # renamed in psutil 6
    ask = "net_connections" if hasattr(psutil.Process, "net_connections") else "connections"
    return _ask(pid, ask, kind="tcp") or ()


# ---------------------------------------------------------------- the system


def pids() -> list[int]:
    """Return all processes."""
    if has_proc():
        return [int(name) for name in os.listdir(PROC) if name.isdecimal()]  # noqa: PTH208
    import psutil

    return psutil.pids()


@functools.cache
def has_proc() -> bool:
    """Return whether this system has /proc, like Linux."""
    return Path(f"{PROC}/self/stat").exists()


def _ask(pid: int, what: str, **how: object) -> Any:
    """Ask psutil about a process; return None if there is /proc, or on a failure."""
    if has_proc():
        return None
    import psutil

    try:
        return getattr(psutil.Process(pid), what)(**how)
    except (psutil.Error, AttributeError, OSError):
        return None


def _identity(pid: int) -> float:
    """Return a number that distinguishes processes with the same pid; 0 if there is none.

    On macOS it is the time that the kernel noted at its start; `create_time` of psutil 7 is not,
    and moves whenever the clock is set.
    """
    if has_proc():
        return 0.0
    import psutil

    with contextlib.suppress(psutil.Error, AttributeError, TypeError, OSError):
        return float(psutil.Process(pid)._ident[1])  # type: ignore[attr-defined] # by which it compares
    return float(_ask(pid, "create_time") or 0.0)


def _ask_again(pid: int) -> str | None:
    """Ask psutil for a terminal that was opened after psutil listed them, which it does once."""
    if has_proc():
        return None
    with contextlib.suppress(ImportError, AttributeError):  # a later psutil
        from psutil import _psposix

        _psposix.get_terminal_map.cache_clear()  # type: ignore[attr-defined] # of its own memoize
    found: str | None = _ask(pid, "terminal")
    return found


def lines_of(path: str) -> list[str]:
    """Return the lines of a file of /proc, or [] if it cannot be read.

    Names in it may hold anything else that Python takes for the end of a line.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return text.removesuffix("\n").split("\n") if text else []


# Find processes with a pid namespace of their own, such as in a container or a sandbox.
#
# What runs there knows itself by another pid than we do. The kernel says which (`NSpid`).


FIRST: Final = "pid:[4026531836]"  # the pid namespace that a system starts with
_scan: tuple[float, dict[int, list[int]]] = 0.0, {}  # when, and what was found


def innermost(pid: int) -> int:
    """Return the pid by which a process knows itself."""
    for line in lines_of(f"{PROC}/{pid}/status"):
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def space_of(pid: int) -> str:
    """Return the name of the pid namespace of a process, or "" if that is not known."""
    with contextlib.suppress(OSError):
        return str(Path(f"{PROC}/{pid}/ns/pid").readlink())
    return ""


def own_space() -> str:
    """Return the name of our pid namespace, or "" if that is not known, or if there are none."""
    with contextlib.suppress(OSError):
        return str(Path(f"{PROC}/self/ns/pid").readlink())
    return ""


def known_as(inner: int, since: float = 0.0) -> list[int]:
    """Return our processes that know themselves by this pid, which is another one here.

    The processes are searched at most once for events of one time (`since`): it takes milliseconds.
    """
    global _scan
    if _scan[0] <= since:
        begun, found = time.time(), dict[int, list[int]]()
        for pid in _mine():
            if (own := innermost(pid)) != pid:
                found.setdefault(own, []).append(pid)
        _scan = begun, found
    return [pid for pid in _scan[1].get(inner, ()) if innermost(pid) == inner]


def _mine() -> Iterator[int]:
    if has_proc():
        with os.scandir(PROC) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.name.isdecimal() and entry.stat().st_uid == os.geteuid():
                        yield int(entry.name)
