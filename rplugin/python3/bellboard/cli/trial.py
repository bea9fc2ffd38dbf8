"""Try the command that reaches a machine; if it fails, say why and what to do."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import time
from typing import TYPE_CHECKING, Final

from .home import Problem

if TYPE_CHECKING:
    from ..core.feed import Hello, State

PATIENCE: Final = 25.0  # seconds to wait for the state; logging in can take a while
REPLY: Final = 3.0  # more for the reply to a request
CHUNK: Final = 1 << 16
INSTALL: Final = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/bellboard path"
NO_PASSWORD: Final = "sudo must not ask here: allow this command in sudoers with NOPASSWD"
OF_SSH: Final = {
    "permission denied": "ssh must log in without asking: set up a key or an agent",
    "connection refused": "nothing listens there: is sshd running?",
}
AGAIN: Final = "remove .venv in the folder of bellboard.nvim there, and run in it: " + INSTALL
HINTS: Final = {
    "docker daemon": "start docker here, or let your user run it",
    "identification has changed": "find out why; if that is expected, ssh-keygen -R its name,"
    " and log in once by hand",
    "host key verification failed": "log in once by hand to check and accept the key",
    "could not resolve": "check the name of the machine",
    "not installed there": f"clone bellboard.nvim there, and run in it: {INSTALL}",
    "exec: bellboard: not found": f"the Python that it was installed with is gone: {AGAIN}",
    "bad interpreter": f"the Python that it was installed with is gone: {AGAIN}",
    "no module named": f"it is not completely installed there: {AGAIN}",
    "invalid choice": "update bellboard there: that version has no feed",
    "no such program here": "install it, or correct it: bellboard machine add NAME -- COMMAND",
    "no such container": "start the container",
    "is not running": "start the container",
    "not a tty": "leave -t out of its command: a feed needs no terminal",
    "a password is required": NO_PASSWORD,
    "a terminal is required": NO_PASSWORD,
}


def tried(name: str, words: list[str]) -> tuple[Hello, State, bool]:
    """Read a feed until its state has arrived, without becoming a follower.

    Return whether it replies to a request, too.
    """
    from ..core.feedlines import asking
    from ..system import remotely
    from ..system.failures import described
    from ..system.leash import Leashed

    # A shared connection would hide that a key or a host has changed since it was made.
    try:
        feed = Leashed(remotely.command_of(words, ["feed", "--quiet"], None, slow=True))
    except (OSError, ValueError) as e:
        raise Problem(f"{name}: cannot run its command: {described(e)}") from None
    trial = _Trial()
    until = time.monotonic() + PATIENCE
    try:
        with contextlib.suppress(OSError):  # it has ended
            os.write(feed.stdin, asking(1, "clock", {}))
        with selectors.DefaultSelector() as ready:
            ready.register(feed.stdout, selectors.EVENT_READ)
            ready.register(feed.stderr, selectors.EVENT_READ)
            while not trial.is_over and (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    with contextlib.suppress(BlockingIOError):
                        data = os.read(key.fd, CHUNK)
                        trial.take(data, is_error=key.fd == feed.stderr)
                        if not data:
                            ready.unregister(key.fd)
                if trial.state is not None:
                    until = min(until, time.monotonic() + REPLY)
        if trial.why:
            raise Problem(f"{name}: {trial.why}")
        if trial.hello is None or trial.state is None:
            code = feed.code(1.0)
            with contextlib.suppress(OSError):  # nothing more
                trial.take(os.read(feed.stderr, CHUNK), is_error=True)
            raise Problem(_why(name, words, trial, code))
        return trial.hello, trial.state, trial.replies
    finally:
        feed.end()


class _Trial:
    """What a feed has sent so far."""

    def __init__(self) -> None:
        from ..core.feedread import Lines

        self.hello: Hello | None = None
        self.state: State | None = None
        self.replies = False
        self.why = ""
        self.errors = b""
        self.is_over = False
        self.lines = Lines()

    def take(self, data: bytes, is_error: bool) -> None:
        if is_error:
            self.errors = (self.errors + data)[-CHUNK:]
            return
        from ..core import feed

        for said in self.lines.take(data):
            if isinstance(said, feed.Problem):
                self.why = self.why or said.text
            elif isinstance(said, feed.Hello):
                self.hello = said
            elif isinstance(said, feed.Reply):
                self.replies = True
            elif isinstance(said, feed.State) and self.hello is not None:
                self.state = self.state or said
        self.is_over = not data or bool(self.why or (self.state and self.replies))


def _why(name: str, words: list[str], trial: _Trial, code: int | None) -> str:
    from ..core.feedread import FOREIGN
    from ..system import remotely
    from ..system.leash import last_words

    foreign = trial.lines.foreign
    ended = f"no answer in {PATIENCE:.0f} s"
    if code is not None or trial.is_over:
        ended = "it ended before it sent its sessions" + (f" (exit code {code})" if code else "")
        ended += f"; it printed: {foreign}" if foreign else ""
    elif foreign:
        ended = FOREIGN.format(foreign)
    why = last_words(trial.errors) or ended
    text = " ".join(trial.errors.decode("utf-8", "replace").lower().splitlines())
    hints = {**HINTS, **(OF_SSH if remotely.is_ssh(words) else {})}
    hint = next((hint for part, hint in hints.items() if part in text), "")
    hint = hint or f"try the command by hand: {shlex.join(words)} bellboard feed"
    return f"{name}: {why}; {hint}"
