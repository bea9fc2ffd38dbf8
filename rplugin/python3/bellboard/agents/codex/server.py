"""The shared server of Codex: find a request that waits there, and answer it.

Where Codex runs with its shared server, threads, hooks and dialogs belong to that server, and each
terminal is a client of it.  A client that resumes a thread is sent its pending requests again, and
the first answer counts, whoever gives it.

The socket is where the environment of the session's own process says.  It has to pass the gate, and
that process has to be the one that listens.  A thread is resumed only while the server has it
loaded: otherwise that would start it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from ...core.detail import ODD, line
from ...core.lenient import Facts, list_of, object_of, text_of
from ...core.version import VERSION
from ...system import gate, processes
from ...system.websocket import WebSocket
from ...system.wire import Broken, Wire
from ..cli import Unanswered, Unreachable, Waiting
from .dialect.pending import contradicts, is_resolved, waits, wanted_of
from .threads import home_in

SOCKET: Final = "app-server-control/app-server-control.sock"
PATIENCE: Final = 2.5  # seconds for everything; a server takes 10 ms
SETTLE: Final = 0.1  # seconds in which it sends what is pending; it takes 1 ms
VERDICT: Final = 0.3  # seconds in which a refused tool or turn ends; it takes 5 ms
LIMIT: Final = 8 << 20  # bytes of a conversation; a thread without its turns has 10 kB
MOST: Final = 1000  # messages of a conversation
ELSEWHERE: Final = "it was answered elsewhere first"


def find(asked: Waiting) -> None:
    """Find the request; raise `Unanswered` if it does not wait there."""
    with _conversation(asked.pid) as server:
        server.find(asked)


def answer(asked: Waiting, reply: bytes) -> None:
    """Answer the request; raise `Unanswered` if that did not count."""
    result = msgspec.json.decode(reply)
    with _conversation(asked.pid) as server:
        server.answer(server.find(asked), result)


def home_of(pid: int) -> str:
    """Return the folder in which that process keeps its files."""
    return home_in(processes.environment_of(pid, ("CODEX_HOME", "HOME")))


@contextmanager
def _conversation(pid: int) -> Iterator[_Server]:
    try:
        connection = gate.connected(f"{home_of(pid)}/{SOCKET}", PATIENCE, pid)
    except FileNotFoundError:
        raise Unreachable("this Codex runs without its shared server") from None
    except gate.Denied as denial:
        raise Unreachable(f"the socket of Codex's server: {denial}") from None
    except OSError as error:
        raise Unreachable(f"Codex's server: {error.strerror or error}") from None
    with Wire(connection, PATIENCE, LIMIT) as wire:
        try:
            yield _Server(wire)
        except Broken as reason:
            raise Unanswered(f"Codex's server: {reason}") from None


class _Server:
    """A conversation: calls of ours, and what the server says meanwhile."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._socket = WebSocket(wire)
        self._calls = 0
        self._said: list[Facts] = []  # all but the results of calls
        about = {"name": "bellboard", "title": "bellboard", "version": VERSION}
        self._call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})

    def find(self, asked: Waiting) -> Facts:
        """Return the request that the payload is about, while it waits."""
        wanted = wanted_of(asked.payload, asked.tool_id)
        if wanted is None:
            raise Unanswered("it is not known exactly what is asked")
        if wanted.thread not in self._loaded():
            raise Unanswered("Codex's server no longer has this thread")
        resumed = self._call("thread/resume", {"threadId": wanted.thread, "excludeTurns": True})
        if not waits(resumed):
            raise Unanswered("it has already been answered")
        found = wanted.among(self._said)
        until = time.monotonic() + SETTLE
        while self._hears(0.0 if wanted.item and found else until):
            self._hear()
            found = wanted.among(self._said)
        if not found:
            raise Unanswered("Codex now asks something else")
        if len(found) > 1:
            raise Unanswered("Codex asks the same thing several times")
        return found.popitem()[1]

    def answer(self, request: Facts, result: object) -> None:
        """Answer it; as the first answer counts, what follows may show that it was another."""
        self._said.clear()
        self._send({"id": request["id"], "result": result})
        while not any(is_resolved(message, request) for message in self._said):
            self._hear()
        until = time.monotonic() + VERDICT
        while self._hears(until):
            self._hear()
        if any(contradicts(message, request, result) for message in self._said):
            raise Unanswered(ELSEWHERE)

    def _loaded(self) -> list[object]:
        """Return the threads that the server has loaded."""
        found: list[object] = []
        cursor: object = None
        while True:
            page = self._call("thread/loaded/list", {"cursor": cursor} if cursor else {})
            data, cursor = page.get("data"), page.get("nextCursor")
            found += list_of(data)
            if not cursor:
                return found

    # ---------------------------------------------------------------- messages

    def _call(self, method: str, params: Facts) -> Facts:
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": params})
        while True:
            message = self._hear()
            if message.get("id") == self._calls and "method" not in message:
                break
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict):
            return result
        why = line(text_of(object_of(error), "message"), 120)
        raise Broken(f"it refused {method}: {why or 'no reason given'}")

    def _send(self, message: Facts) -> None:
        self._socket.send(msgspec.json.encode(message))

    def _hears(self, until: float) -> bool:
        """Return whether it says something by that time, or has said it."""
        return self._wire.hears(until - time.monotonic())

    def _hear(self) -> Facts:
        """Return the next message, and remember it."""
        try:
            message = msgspec.json.decode(self._socket.receive())
        except ODD:
            raise Broken("it sends something other than JSON") from None
        if not isinstance(message, dict) or len(self._said) > MOST:
            raise Broken("it sends something other than messages")
        self._said.append(message)
        return message
