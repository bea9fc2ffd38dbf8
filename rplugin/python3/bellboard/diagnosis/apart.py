"""Each look in a process of its own, all at a time: what fails or hangs costs no other its answer.

Who waits for a mount that is gone cannot even be killed; such a process is left behind, and holds
nothing that anybody waits for.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .fact import Fact, error

PATIENCE: Final = 6.0  # seconds for all of them; on a busy machine they take one

Look = Callable[[], Iterable[Fact]]


def look_apart(looks: Mapping[str, Look], patience: float = PATIENCE) -> list[Fact]:
    """What they find, by section, in order."""
    found = {section: bytearray() for section in looks}
    deadline = time.monotonic() + patience
    running: dict[str, int] = {}
    with selectors.DefaultSelector() as waiting:
        for section, look in looks.items():
            running[section], answer = _begin(look)
            waiting.register(answer, selectors.EVENT_READ, section)
        while waiting.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in waiting.select(left):
                if data := os.read(key.fd, 1 << 16):
                    found[key.data] += data
                else:
                    waiting.unregister(key.fd)
                    os.close(key.fd)
                    os.waitpid(running.pop(key.data), 0)
        for key in list(waiting.get_map().values()):
            os.close(key.fd)
    for pid in running.values():
        os.kill(pid, signal.SIGKILL)
    late = f"no answer within {patience:g} s: it waits for a file, a mount or a program"
    for section, pid in running.items():
        _reap(pid)
        del found[section][found[section].rfind(b"\n") + 1 :]
        found[section] += _told(error(late, "see what hangs there, and end it"))
    return [f._replace(section=section) for section in looks for f in _facts(found[section])]


def _begin(look: Look) -> tuple[int, int]:
    """Its process, and where it answers."""
    answer, end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it does nothing that needs a thread
        pid = os.fork()
    if pid:
        os.close(end)
        return pid, answer
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):  # who reads our output does not wait for one that is left behind
            os.dup2(null, number)
        _answer(look, end)
    finally:
        os._exit(0)


def _answer(look: Look, end: int) -> None:
    try:
        for fact in look():
            os.write(end, _told(fact))
    except Exception as e:  # what was found before it still counts
        os.write(end, _told(error(f"cannot be looked at: {e!r}"[:500], "report this")))


def _told(fact: Fact) -> bytes:
    return json.dumps(fact).encode() + b"\n"


def _facts(told: bytearray) -> Iterable[Fact]:
    for line in bytes(told).split(b"\n")[:-1]:  # what follows the last was cut off by its end
        yield Fact(*json.loads(line))


def _reap(pid: int) -> None:
    """Take note of its end, if it can end."""
    until = time.monotonic() + 0.2
    while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < until:
        time.sleep(0.005)
