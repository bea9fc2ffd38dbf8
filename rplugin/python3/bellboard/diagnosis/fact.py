"""One finding of a diagnosis."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from ..system import files, separate
from ..system.failures import described, is_ours


class Fact(NamedTuple):
    """A finding in words, with advice what to do about it."""

    level: Literal["ok", "info", "warn", "error"]
    text: str
    advice: str = ""
    section: str = ""


def ok(text: str) -> Fact:
    return Fact("ok", text)


def info(text: str, advice: str = "") -> Fact:
    return Fact("info", text, advice)


def warn(text: str, advice: str) -> Fact:
    """Return a finding that needs attention."""
    return Fact("warn", text, advice)


def error(text: str, advice: str) -> Fact:
    """Return a finding that stops something from working."""
    return Fact("error", text, advice)


def program(environ: Mapping[str, str]) -> str:
    """Return the command for `bellboard` in this user's shell, so that advice works as it is."""
    if shutil.which("bellboard", path=environ.get("PATH", "")):
        return "bellboard"
    own = Path(sys.executable).with_name("bellboard")
    if own.is_file():
        return shlex.quote(str(own))
    return shlex.join(files.program())


# Run each check in its own process, all in parallel, so that a check that hangs affects no other.
#
# A process that waits for a dead mount cannot even be killed. It is left behind.


PATIENCE: Final = 6.0  # seconds for all checks; on a busy machine they take one

DIED: Final = "this check died before it was done: no memory left, or a truncated database"

Check = Callable[[], Iterable[Fact]]


def run_apart(checks: Mapping[str, Check]) -> list[Fact]:
    """Run all checks and return their facts, in order of section."""
    found = {section: bytearray() for section in checks}
    deadline = time.monotonic() + PATIENCE
    running: dict[str, int] = {}
    with selectors.DefaultSelector() as waiting:
        for section, check in checks.items():
            running[section], answer = separate.begin(partial(_answer, check))
            waiting.register(answer, selectors.EVENT_READ, section)
        while waiting.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in waiting.select(left):
                if data := os.read(key.fd, 1 << 16):
                    found[key.data] += data
                else:
                    waiting.unregister(key.fd)
                    os.close(key.fd)
                    if separate.reap(running.pop(key.data)):
                        _cut_short(found[key.data], error(DIED, "run `bellboard doctor` again"))
        for key in list(waiting.get_map().values()):
            os.close(key.fd)
    for pid in running.values():
        os.kill(pid, signal.SIGKILL)
    late = f"no answer within {PATIENCE:g} s: a file, mount or program hangs"
    for section, pid in running.items():
        separate.reap(pid, 0.2)
        _cut_short(found[section], error(late, "find out what hangs, and stop it"))
    return [f._replace(section=section) for section in checks for f in _facts(found[section])]


def _cut_short(answer: bytearray, why: Fact) -> None:
    """Replace the unfinished last line of a check by the reason."""
    del answer[answer.rfind(b"\n") + 1 :]
    answer += _encoded(why)


def _answer(check: Check, end: int) -> None:
    try:
        for fact in check():
            os.write(end, _encoded(fact))
    except Exception as e:  # the facts found so far still count
        advice = "" if isinstance(e, OSError) or is_ours(e) else "please report this"
        if isinstance(e, PermissionError):
            advice = "check its owner and its permissions"
        os.write(end, _encoded(error(f"the check failed: {described(e)}", advice)))


def _encoded(fact: Fact) -> bytes:
    return json.dumps(fact).encode() + b"\n"


def _facts(lines: bytearray) -> Iterable[Fact]:
    for line in bytes(lines).split(b"\n")[:-1]:  # the rest is a line that was cut off
        yield Fact(*json.loads(line))
