"""OpenCode: find a request that waits there, and answer it.

Our plugin runs in OpenCode's own process, and listens on a socket in the state folder while a
request is open.  It takes an answer from a file beside the socket, which names the request; see
`storage/answers.py` for the reason.  Without the plugin, `opencode --port` serves HTTP.  Either has
to be the process of the session itself; OpenCode then says whether the request is still open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Final

import msgspec

from ...core.text import ODD
from ...storage.answers import REPLY, write
from ...system import gate, processes
from ...system.wire import Broken, Wire
from ..agent import OpenRequest, Unanswered, Unreachable, sent
from .dialect import KEY, RequestId, request_id

FOLDER: Final = KEY  # of sockets, in the state folder
PATIENCE: Final = 2.5  # seconds for everything; a plugin takes 10 ms
LIMIT: Final = 4 << 20  # bytes of a conversation
LINE: Final = 4096
HEAD: Final = 16384  # bytes of the headers of a reply
FOUND, GONE, LOCKED, UNABLE = 200, 404, 401, 501
NOBODY: Final = "it has already been answered, or this OpenCode runs without bellboard's plugin"
WHY: Final = {
    GONE: "it has already been answered",
    LOCKED: "its server wants a password",
    UNABLE: "this version takes no answers from plugins",
}


def find(asked: OpenRequest) -> None:
    """Find the request; raise `Unanswered` if it does not wait there."""
    answer(asked, b"")


def answer(asked: OpenRequest, reply: bytes) -> None:
    """Answer the request; raise `Unanswered` if the answer did not count, or may not have.

    The plugin gets the reply, or else the server; an empty reply only asks for the request.
    """
    wanted = request_id(asked.payload)
    if wanted is None:
        raise Unanswered("its request is not known exactly")
    try:
        status = _plugin(asked, wanted, reply)
    except FileNotFoundError:
        status = _server(asked, wanted, reply)
    except (gate.Denied, Broken) as reason:
        raise Unanswered(f"bellboard's plugin in OpenCode: {reason}") from None
    except OSError as error:
        raise Unanswered(f"bellboard's plugin in OpenCode: {error.strerror or error}") from None
    if status != FOUND:
        raise Unanswered(WHY.get(status, f"OpenCode refused it with status {status}"))


def _plugin(asked: OpenRequest, wanted: RequestId, reply: bytes) -> int:
    folder, serial = f"{asked.home}/{FOLDER}", f"{time.time_ns()}{os.getpid()}"
    connect = partial(gate.connected, f"{folder}/{asked.pid}", PATIENCE, asked.pid)
    about: dict[str, object] = {"request": wanted.request}
    status, reads_file = _told(connect, about)
    if not reply or status != FOUND:
        return status
    given, raw = msgspec.Raw(reply), msgspec.Raw(asked.payload)
    if not reads_file:  # an older plugin, until OpenCode is restarted
        return _told(connect, {**about, "reply": given})[0]
    file = f"{asked.pid}.{serial}{REPLY}"
    try:
        write(folder, file, msgspec.json.encode({**about, "asked": raw, "reply": given}))
        return _told(connect, {**about, "written": serial})[0]
    finally:
        with suppress(OSError):
            os.unlink(f"{folder}/{file}")  # noqa: PTH108 - as in spool.py


def _told(connect: Callable[[], gate.Connection], message: dict[str, object]) -> tuple[int, bool]:
    """Send the plugin a message; return its status, and whether it reads answers from files."""
    with Wire(connect(), PATIENCE, LIMIT) as wire:
        wire.send(msgspec.json.encode(message) + b"\n")
        with sent("bellboard's plugin in OpenCode") if len(message) > 1 else nullcontext():
            said = _json(wire.until(b"\n", LINE))
    status = said.get("status") if isinstance(said, dict) else None
    if not (isinstance(said, dict) and isinstance(status, int)):
        raise Broken("it sends something other than a status")
    return status, said.get("written") is True


def _server(asked: OpenRequest, wanted: RequestId, reply: bytes) -> int:
    """Find and answer the request through the HTTP server of its process."""
    ports = processes.own_ports(asked.pid)
    if not ports:
        raise Unreachable(NOBODY)
    why = ""
    for port in ports:
        try:
            return _http(partial(gate.looped, port, asked.pid, PATIENCE), wanted, reply)
        except Broken as reason:
            why = f"port {port}: {reason}"
        except OSError as error:
            why = f"port {port}: {error.strerror or error}"
    raise Unanswered(f"OpenCode on {why}")


def _http(connect: Callable[[], gate.Connection], wanted: RequestId, reply: bytes) -> int:
    with Wire(connect(), PATIENCE, LIMIT) as wire:
        status, body = _ask(wire, "GET", f"/{wanted.kind}")
    if status != FOUND:
        return status
    waiting = _json(body)
    if not isinstance(waiting, list):
        raise Broken("it sends something other than a list")
    same = {"id": wanted.request, "sessionID": wanted.session}
    if not any(isinstance(x, dict) and same.items() <= x.items() for x in waiting):
        return GONE
    if not reply:
        return FOUND
    with Wire(connect(), PATIENCE, LIMIT) as wire:
        path = f"/{wanted.kind}/{wanted.request}/{wanted.verb(reply)}"
        with sent("OpenCode"):
            return _ask(wire, "POST", path, reply)[0]


def _ask(wire: Wire, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """Return the status and the body of the reply."""
    wire.send(
        f"{method} {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    status, *rows = wire.until(b"\r\n\r\n", HEAD).split(b"\r\n")
    words = status.split(b" ")
    sizes = [row.partition(b":")[2] for row in rows if row.lower().startswith(b"content-length:")]
    try:
        return int(words[1]), wire.exactly(max(0, int(sizes[0])) if sizes else 0)
    except (IndexError, ValueError):
        raise Broken("it does not speak HTTP") from None


def _json(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except ODD:
        raise Broken("it sends something other than JSON") from None
