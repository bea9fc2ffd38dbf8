"""Run Python programs in forks of an interpreter that has already imported what they need.

Starting an interpreter and importing a host takes a quarter of a second of CPU, a fork a tenth of
it, and the tests start about a thousand. A program runs as `python SCRIPT …` or `python -m NAME …`
would run it, in its own environment and folder, and exits as an interpreter exits. What is read
only when an interpreter starts stays that of the parent: PYTHON… variables, the locale, and the
command line and environment that others see. Tests of those start a Python of their own.

None has the tests among its parents: an agent may run them, and no agent may answer.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import bellboard
from rig import schema

ROOT = Path(__file__).resolve().parents[2]
#: Modules besides ours that hosts and commands import, sometimes late.
MODULES = ("asyncio", "sqlite3", "watchfiles")
LONGEST = 1 << 20  # bytes of a request: arguments and environment

Stream = int | IO[Any] | None


class Program:
    """A running program, with the methods of `subprocess.Popen` that tests use.

    A stream is an open file, DEVNULL, or None for that of this process (standard input: DEVNULL).
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path | None = None,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> None:
        self.args = argv
        self.returncode: int | None = None
        told = {"argv": [*map(str, argv)], "env": dict(env), "cwd": str(cwd or Path.cwd())}
        with contextlib.ExitStack() as held:
            files = [_number(file, n, held) for n, file in enumerate((stdin, stdout, stderr))]
            self._end, end = os.pipe()
            held.callback(os.close, end)
            self.pid = _parent().fork(told, [*files, end])

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal, or None while it runs."""
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; return its exit code."""
        code = self._ended_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
        return code

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and _has_come(self._end, seconds):
            told = os.read(self._end, 20)
            os.close(self._end)
            assert told, "the parent of all programs has ended"
            self.returncode = int(told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    input: str = "",
    merged: bool = False,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; `merged`: with standard error in its output."""
    with contextlib.ExitStack() as held:
        given, out, err = (held.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(input.encode())
        given.seek(0)
        streams: dict[str, Any] = {"stdin": given, "stdout": out, "stderr": out if merged else err}
        program = Program(argv, env=env, cwd=cwd, **streams)
        try:
            code = program.wait(timeout)
        except BaseException:  # as `subprocess.run` does: nothing outlives it
            program.kill()
            program.wait()
            raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        if argv[:2] == ["-m", "bellboard"]:
            schema.check(argv[2:], texts[0])
        return subprocess.CompletedProcess(argv, code, *texts)


def _has_come(file: int, seconds: float | None) -> bool:
    """Wait until a file can be read; unlike `select`, with any descriptor."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _number(file: Stream, of: int, held: contextlib.ExitStack) -> int:
    """Return the descriptor of a stream."""
    if file == subprocess.DEVNULL:
        null = os.open(os.devnull, os.O_RDWR)
        held.callback(os.close, null)
        return null
    if file is None:
        return of
    return file if isinstance(file, int) else file.fileno()


class _Parent:
    """The interpreter that forks; one for each process that runs tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        path = os.pathsep.join(map(str, (ROOT / "rplugin/python3", ROOT / "tests")))
        subprocess.run(  # what serves us is its child, and then nobody's
            [sys.executable, __file__, str(theirs.fileno())],
            env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            check=True,
        )
        theirs.close()
        atexit.register(self.close)

    def fork(self, told: dict[str, Any], files: list[int]) -> int:
        """Fork a process for a program."""
        line = json.dumps(told).encode() + b"\n"
        assert len(line) < LONGEST
        with self._lock:
            socket.send_fds(self._control, [line[:1]], files)
            self._control.sendall(line[1:])
            answer = self._control.recv(20)
        assert answer, "the parent of all programs has ended"
        return int(answer)

    def close(self) -> None:
        """Stop it; its forks keep running."""
        self._control.close()


_parents: dict[int, _Parent] = {}  # by process: a fork of this one needs its own


def _parent() -> _Parent:
    if os.getpid() not in _parents:
        _parents[os.getpid()] = _Parent()
    return _parents[os.getpid()]


# ---------------------------------------------------------------- in the interpreter that forks


def _serve(control: socket.socket) -> dict[str, Any]:
    """Fork for each request; return in each fork, with its request."""
    if os.fork():
        os._exit(0)
    ends: dict[int, int] = {}  # process → where to report its end
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        while ends:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with contextlib.suppress(BrokenPipeError):  # no one waits for it
                os.write(ends[pid], b"%d" % os.waitstatus_to_exitcode(status))
            os.close(ends.pop(pid))
        if control not in ready:
            continue
        line, files, _, _ = socket.recv_fds(control, LONGEST, 4)
        if not line:
            os._exit(0)
        while not line.endswith(b"\n"):
            line += control.recv(LONGEST)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, file in enumerate(files[:3]):
                os.dup2(file, number)
            control.detach()
            os.closerange(3, 1024)
            return dict(json.loads(line))
        ends[pid] = files.pop()
        for file in files:
            os.close(file)
        control.sendall(b"%d" % pid)


def _become(told: dict[str, Any]) -> None:
    """Run the program in this process."""
    os.environ.clear()
    os.environ.update(told["env"])
    os.chdir(told["cwd"])
    time.tzset()
    tempfile.tempdir = None
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    argv = told["argv"]
    if argv[0] == "-m":
        sys.argv[:] = argv[1:]
        sys.path[0] = told["cwd"]  # not the folder of this file, which has a nats.py
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = argv
        sys.path[0] = str(Path(argv[0]).parent)
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    ours = pkgutil.walk_packages(bellboard.__path__, "bellboard.")
    for name in (*(module.name for module in ours), *MODULES):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
