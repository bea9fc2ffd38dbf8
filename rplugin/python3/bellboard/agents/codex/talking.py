"""Talk with the shared server of Codex: JSON-RPC over a WebSocket, on a socket in its home.

The socket is where the environment of the server's own process says.  It has to pass the gate, and
that process has to be the one that listens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from ...core.text import ODD, line
from ...core.untrusted import Facts, object_of, text_of
from ...core.version import VERSION
from ...system import gate, processes
from ...system.wire import Broken, WebSocket, Wire
from ..cli import Unanswered, Unreachable
from .threads import home_in

SOCKET: Final = "app-server-control/app-server-control.sock"
MOST: Final = 1000  # messages to remember


class Refused(Broken):
    """The server refused a call; the conversation can go on."""


def home_of(pid: int) -> str:
    """Return the folder in which that process keeps its files."""
    return home_in(processes.environment_of(pid, ("CODEX_HOME", "HOME")))


@contextmanager
def conversation(pid: int, patience: float, limit: int) -> Iterator[Talk]:
    """Talk for `patience` seconds with the server that is this process; raise `Unanswered`."""
    try:
        connection = gate.connected(f"{home_of(pid)}/{SOCKET}", patience, pid)
    except FileNotFoundError:
        raise Unreachable("this Codex runs without its shared server") from None
    except gate.Denied as denial:
        raise Unreachable(f"the socket of Codex's server: {denial}") from None
    except OSError as error:
        raise Unreachable(f"Codex's server: {error.strerror or error}") from None
    with Wire(connection, patience, limit) as wire:
        try:
            yield Talk(wire)
        except Broken as reason:
            raise Unanswered(f"Codex's server: {reason}") from None


class Talk:
    """A conversation: calls of ours, and in `said` what the server says meanwhile."""

    def __init__(self, wire: Wire) -> None:
        self.said: list[Facts] = []  # all but the results of calls
        self.wire = wire
        self._socket = WebSocket(wire)
        self._calls = 0
        about = {"name": "bellboard", "title": "bellboard", "version": VERSION}
        self.call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
        self.send({"method": "initialized"})

    def call(self, method: str, params: Facts) -> Facts:
        """Return the result of a call; raise `Refused`."""
        self._calls += 1
        self.send({"id": self._calls, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == self._calls and "method" not in message:
                break
            self._keep(message)
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict):
            return result
        why = line(text_of(object_of(error), "message"), 120)
        raise Refused(f"it refused {method}: {why or 'no reason given'}")

    def send(self, message: Facts) -> None:
        self._socket.send(msgspec.json.encode(message))

    def hears(self, until: float) -> bool:
        """Return whether a message has arrived, or arrives by that time."""
        return self.wire.hears(until - time.monotonic())

    def hear(self) -> None:
        """Wait for the next message, and remember it."""
        self._keep(self._next())

    def _next(self) -> Facts:
        try:
            message = msgspec.json.decode(self._socket.receive())
        except ODD:
            raise Broken("it sends something other than JSON") from None
        if not isinstance(message, dict):
            raise Broken("it sends something other than messages")
        return message

    def _keep(self, message: Facts) -> None:
        if len(self.said) > MOST:
            raise Broken("it never stops sending")
        self.said.append(message)
