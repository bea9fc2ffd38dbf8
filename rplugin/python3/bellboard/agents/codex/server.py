"""Talk with the shared server of Codex: JSON-RPC over a WebSocket, on a socket in its home.

The environment of the server's own process names the socket.  The socket has to pass the gate, and
that same process has to listen on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import msgspec

from ...core.text import ODD, line
from ...core.untrusted import Facts, list_of, number_of, object_of, text_of
from ...core.version import VERSION
from ...system import gate, processes
from ...system.threads import Thread, call_in
from ...system.wire import Broken, WebSocket, Wire
from ..agent import Heard, OpenRequest, Unanswered, Unclear, Unreachable, sent
from .dialect import heard, thread_state
from .request import contradicts, is_resolved, waits, wanted_of
from .threads import home_in

SOCKET: Final = "app-server-control/app-server-control.sock"
MOST: Final = 1000  # messages to remember


class CallRefused(Broken):
    """The server refused a call; the conversation can go on."""


def home_of(pid: int) -> str:
    """Return the folder of a process's own files."""
    return home_in(processes.environment_of(pid, ("CODEX_HOME", "HOME")))


@contextmanager
def conversation(pid: int, patience: float, limit: int) -> Iterator[Talk]:
    """Talk for `patience` seconds with the server of this pid; raise `Unanswered` if it fails."""
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
    """A conversation: our calls, and in `said` the server's other messages."""

    def __init__(self, wire: Wire) -> None:
        self.said: list[Facts] = []  # all messages except results of calls
        self.wire = wire
        self._socket = WebSocket(wire)
        self._calls = 0
        about = {"name": "bellboard", "title": "bellboard", "version": VERSION}
        self.call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
        self.send({"method": "initialized"})

    def call(self, method: str, params: Facts) -> Facts:
        """Return the result of a call; raise `CallRefused` if the server refuses it."""
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
        raise CallRefused(f"it refused {method}: {why or 'no reason given'}")

    def order(self, method: str, params: Facts) -> Facts:
        """Return the result of a call that does something; raise `Unclear` if none comes."""
        try:
            return self.call(method, params)
        except CallRefused:
            raise
        except Broken as reason:
            raise Unclear(f"Codex's server: {reason}") from None

    def send(self, message: Facts) -> None:
        self._socket.send(msgspec.json.encode(message))

    def hears(self, until: float) -> bool:
        """Return whether a message arrives before a point in time, or has arrived."""
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


# The shared server of Codex: find a request that waits there, and answer it.
#
# Where Codex runs with its shared server, threads, hooks and dialogs belong to that server, and
# each terminal is a client of it. A client that resumes a thread is sent its pending requests
# again, and the first answer counts, whoever gives it. A thread is resumed only while the
# server has it loaded: otherwise the call would start the thread.


PATIENCE: Final = 2.5  # seconds for everything; a server takes 10 ms
SETTLE: Final = 0.1  # seconds in which the server sends pending requests; it takes 1 ms
VERDICT: Final = 0.3  # seconds in which a refused tool or turn ends; it takes 5 ms
LIMIT: Final = 8 << 20  # bytes of a conversation; a thread without its turns has 10 kB
ELSEWHERE: Final = "it was answered elsewhere first"
UNLOADED: Final = "Codex's server no longer has this thread"


def find(asked: OpenRequest) -> None:
    """Find the request; raise `Unanswered` if it does not wait there."""
    with conversation(asked.pid, PATIENCE, LIMIT) as talk:
        _found(talk, asked)


def answer(asked: OpenRequest, reply: bytes) -> None:
    """Answer the request; raise `Unanswered` if the answer did not count, or may not have."""
    result = msgspec.json.decode(reply)
    with conversation(asked.pid, PATIENCE, LIMIT) as talk:
        _answer(talk, _found(talk, asked), result)


def _found(talk: Talk, asked: OpenRequest) -> Facts:
    """Return the request that the payload is about, while it waits."""
    wanted = wanted_of(asked.payload, asked.tool_id)
    if wanted is None:
        raise Unanswered("its request is not known exactly")
    if wanted.thread not in _loaded(talk):
        raise Unanswered(UNLOADED)
    resumed = talk.call("thread/resume", {"threadId": wanted.thread, "excludeTurns": True})
    if not waits(resumed):
        raise Unanswered("it has already been answered")
    found = wanted.among(talk.said)
    until = time.monotonic() + SETTLE
    while talk.hears(0.0 if wanted.item and found else until):
        talk.hear()
        found = wanted.among(talk.said)
    if not found:
        raise Unanswered("Codex now asks something else")
    if len(found) > 1:
        raise Unanswered("Codex asks the same thing more than once; answer in its terminal")
    return found.popitem()[1]


def _answer(talk: Talk, request: Facts, result: object) -> None:
    """Answer a request; later messages may show that another answer came first, and counted."""
    talk.said.clear()
    talk.send({"id": request["id"], "result": result})
    try:
        with sent("Codex's server"):
            while not any(is_resolved(message, request) for message in talk.said):
                talk.hear()
            until = time.monotonic() + VERDICT
            while talk.hears(until):
                talk.hear()
    finally:
        if any(contradicts(message, request, result) for message in talk.said):
            raise Unanswered(ELSEWHERE)


def _loaded(talk: Talk) -> list[object]:
    """Return the threads that the server has loaded."""
    found: list[object] = []
    cursor: object = None
    while True:
        page = talk.call("thread/loaded/list", {"cursor": cursor} if cursor else {})
        data, cursor = page.get("data"), page.get("nextCursor")
        found += list_of(data)
        if not cursor:
            return found


# Give a thread a prompt, or interrupt its turn.
#
# A prompt to a thread at rest begins a turn, with the model and the mode that its terminal has
# chosen. A thread that works has a queue in the server, which its terminal does not show. A turn
# that is interrupted leaves the queue as it is until another turn has ended: by then, nobody would
# expect what waits there, so ours is taken out.

OURS: Final = "bellboard-"  # begins the names of our prompts
TAKEN_OUT: Final = "a prompt was taken out of its queue: send it again"


def say(pid: int, thread: str, text: str) -> None:
    """Submit a prompt to a thread, or put it into its queue while it works."""
    name = f"{OURS}{uuid4()}"
    given = [{"type": "text", "text": text}]
    prompt: Facts = {"threadId": thread, "clientUserMessageId": name, "input": given}
    with conversation(pid, PATIENCE, LIMIT) as talk:
        if not _works(talk, thread):
            talk.order("turn/start", prompt)
            return
        queued = object_of(talk.order("thread/queue/add", prompt).get("queuedSubmission"))
        if _works(talk, thread):
            return
        # Its turn has ended meanwhile: the queue goes on by itself, but not after an interrupt.
        if _taken_out(talk, thread, text_of(queued, "id")):
            raise Unanswered("its turn ended at the same moment; send it again")


def interrupt(pid: int, thread: str) -> str:
    """Interrupt the turn of a thread; return what became of its queue, in words."""
    with conversation(pid, PATIENCE, LIMIT) as talk:
        asked: Facts = {"threadId": thread, "limit": 1, "itemsView": "notLoaded"}
        turns = talk.call("thread/turns/list", asked) if _works(talk, thread) else {}
        last = object_of(next(iter(list_of(turns.get("data"))), None))
        if last.get("status") != "inProgress":
            raise Unanswered("it no longer works")
        talk.order("turn/interrupt", {"threadId": thread, "turnId": text_of(last, "id")})
        queue = _tried(talk, "thread/queue/list", {"threadId": thread})
        queued = [object_of(each) for each in list_of(queue.get("data"))]
        ours = [x for x in queued if text_of(x, "clientUserMessageId").startswith(OURS)]
        gone = [x for x in ours if _taken_out(talk, thread, text_of(x, "id"))]
        return TAKEN_OUT if gone else ""


def _taken_out(talk: Talk, thread: str, queued: str) -> bool:
    """Take a prompt out of the queue of a thread; return False if it has been started."""
    which = {"threadId": thread, "queuedSubmissionId": queued}
    return _tried(talk, "thread/queue/delete", which).get("deleted") is True


def _tried(talk: Talk, method: str, params: Facts) -> Facts:
    """Return the result of a call, or nothing if the server refused it."""
    try:
        return talk.call(method, params)
    except CallRefused:
        return {}


def _works(talk: Talk, thread: str) -> bool:
    """Return whether a thread works; raise `Unanswered` if it asks something, or is not loaded."""
    if thread not in _loaded(talk):
        raise Unanswered(UNLOADED)
    read = object_of(talk.call("thread/read", {"threadId": thread}).get("thread"))
    seen = thread_state(read.get("status")) if read.get("id") == thread else None
    if seen is None:
        raise Unanswered("Codex's server does not say whether it works")
    if seen.says == "waiting":
        raise Unanswered("it asks something: answer that first")
    return seen.says == "busy"


# Listen to a shared server of Codex for the states of its threads, over one connection.
#
# The server tells every client when the state of any thread changes; nothing more is subscribed
# to, and no thread is resumed. A Python thread waits for the next message, so a server at rest
# costs nothing.


JOINING: Final = 2.5  # seconds until the server has greeted us; it takes 5 ms
SILENCE: Final = 86400.0  # seconds after which a silent server is greeted again
LONGEST_MESSAGE: Final = 8 << 20  # bytes of a message, including those that nobody waits for


class ServerEvents:
    """Calls `hears` in the event loop with each state and its time, and `ended` with the reason.

    The states of `threads`, to which others may still be added, are read at the beginning; their
    time is 0, as they may be old.
    """

    def __init__(
        self,
        pid: int,
        threads: Collection[str],
        hears: Callable[[Heard, float], None],
        ended: Callable[[str], None],
    ) -> None:
        self._pid, self._threads = pid, threads
        self._hears, self._ended = hears, ended
        self._loop = asyncio.get_running_loop()
        self._talk: Talk | None = None
        self._is_over = False
        self._loop.call_soon(self._start)  # when a host starts, all its sessions come at once

    def _start(self) -> None:
        if self._is_over:
            return
        try:
            Thread(target=self._run, name="bellboard codex").start()
        except RuntimeError as reason:  # too many threads
            self._ended(str(reason))

    def close(self) -> None:
        """Hang up; call nothing any more."""
        self._is_over = True
        if self._talk is not None:
            self._talk.wire.hang_up()

    def _run(self) -> None:
        why = ""
        try:
            with conversation(self._pid, JOINING, LONGEST_MESSAGE) as talk:
                self._talk = talk
                self._begin(talk)
                while not self._is_over:
                    for message in talk.said:
                        self._take(message)
                    talk.said.clear()
                    talk.wire.renew(SILENCE, LONGEST_MESSAGE)
                    talk.hear()
        except Unreachable:
            pass  # most servers that editors start have no socket
        except Unanswered as reason:
            why = str(reason)
        self._call(self._ended, why)

    def _begin(self, talk: Talk) -> None:
        for thread in tuple(self._threads):
            with contextlib.suppress(CallRefused):  # the thread was unloaded
                read = talk.call("thread/read", {"threadId": thread}).get("thread")
                seen = thread_state(read.get("status")) if isinstance(read, dict) else None
                if seen is not None:
                    self._call(self._hears, Heard(thread, seen), 0.0)

    def _take(self, message: Facts) -> None:
        said = heard(message)
        if said is not None:
            at = number_of(message.get("emittedAtMs")) or 0.0
            self._call(self._hears, said, at / 1000)

    def _call(self, function: Callable[..., None], *given: object) -> None:
        def call() -> None:
            if not self._is_over:
                function(*given)

        call_in(self._loop, call)
