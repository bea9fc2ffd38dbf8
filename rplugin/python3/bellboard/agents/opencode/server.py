"""OpenCode: answer a request that waits there; prompt a session, or stop it; find its terminal.

Our plugin runs in OpenCode's own process, and listens on a socket in the state folder.  It takes an
answer from a file beside the socket, which names the request, and a prompt from one that names the
session; see `storage/answers.py` for the reason.  Without the plugin, the HTTP of `opencode --port`
takes answers.  Either has to be the process of the session itself; OpenCode then says whether the
request is still open.  A prompt goes to the agent and the model of the last one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ...core.text import ODD
from ...storage.answers import REPLY, write
from ...system import gate, processes
from ...system.wire import Broken, Wire
from ..agent import OpenRequest, Unanswered, Unreachable, sent
from ..need import Need
from ..server_terminals import ServerClient, ServerTerminals, client_at
from .dialect import KEY, SERVER, RequestId, request_id

FOLDER: Final = KEY  # of sockets, in the state folder
PATIENCE: Final = 2.5  # seconds for everything; a plugin takes 10 ms
LIMIT: Final = 4 << 20  # bytes of a conversation
LINE: Final = 4096
HEAD: Final = 16384  # bytes of the headers of a reply
FOUND, GONE, LOCKED, UNABLE = 200, 404, 401, 501
DONE: Final = (FOUND, 204)
OLD: Final = "restart OpenCode: its plugin is older, and takes no prompts"
NOBODY: Final = "it has already been answered, or this OpenCode runs without bellboard's plugin"
WHY: Final = {
    GONE: "it has already been answered",
    LOCKED: "its server wants a password",
    UNABLE: "this OpenCode takes no such answer from a plugin: give it in its terminal",
}

UNDONE: Final = {
    GONE: "its OpenCode has had no prompt in this session since it was started",
    409: "it asks something: answer that first",
    UNABLE: "this version takes no prompts from plugins",
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
        status = _by_plugin(asked, wanted, reply)
    except FileNotFoundError:
        status = _server(asked, wanted, reply)
    except OSError as reason:
        raise _unheard(reason) from None
    if status != FOUND:
        raise Unanswered(WHY.get(status, f"OpenCode refused it with status {status}"))


def _by_plugin(asked: OpenRequest, wanted: RequestId, reply: bytes) -> int:
    about: dict[str, object] = {"request": wanted.request}
    plugin = _Plugin(asked.home, asked.pid)
    said = plugin.told(about)
    if not reply or said.status != FOUND:
        return said.status
    given, raw = msgspec.Raw(reply), msgspec.Raw(asked.payload)
    if not said.written:  # an older plugin, until OpenCode is restarted
        return plugin.told({**about, "reply": given}).status
    return plugin.given(about, {"asked": raw, "reply": given})


def order(home: Path, pid: int, session: str, given: dict[str, object]) -> None:
    """Give a session a prompt, or abort its turn, by the plugin in the process that runs it."""
    about: dict[str, object] = {"session": session}
    plugin = _Plugin(home, pid)
    try:
        said = plugin.told(about)
        if not said.orders:
            raise Unanswered(OLD)
        status = plugin.given(about, given) if said.status == FOUND else said.status
    except FileNotFoundError:
        raise Unanswered(OLD) from None
    except OSError as reason:
        raise _unheard(reason) from None
    if status not in DONE:
        raise Unanswered(UNDONE.get(status, f"OpenCode refused it with status {status}"))


def unshown(home: Path, pid: int, session: str) -> str:
    """Return why a terminal does not show a session, as far as the plugin can know, or ""."""
    try:
        said = _Plugin(home, pid).told({"session": session})
    except FileNotFoundError:
        return OLD
    except OSError as reason:
        return str(_unheard(reason))
    if not said.orders:
        return OLD
    return "" if said.front else "its terminal was last used for another session"


def _unheard(reason: OSError) -> Unanswered:
    shown = reason if isinstance(reason, gate.Denied | Broken) else reason.strerror or reason
    return Unanswered(f"bellboard's plugin in OpenCode: {shown}")


class _Said(Struct):
    """A reply of the plugin; older plugins read no files, or take no orders."""

    status: int
    written: bool = False
    orders: bool = False
    front: bool = False  # whether the terminal has given its last prompt to that session


class _Plugin:
    """Our plugin in a process of OpenCode: it takes messages, and files that they name."""

    def __init__(self, home: Path, pid: int) -> None:
        self._folder, self._pid = f"{home}/{FOLDER}", pid

    def told(self, message: dict[str, object]) -> _Said:
        """Return the reply to a message; raise `OSError`."""
        connection = gate.connected(f"{self._folder}/{self._pid}", PATIENCE, self._pid)
        with Wire(connection, PATIENCE, LIMIT) as wire:
            wire.send(msgspec.json.encode(message) + b"\n")
            with sent("bellboard's plugin in OpenCode") if len(message) > 1 else nullcontext():
                said = wire.until(b"\n", LINE)
        try:
            return msgspec.json.decode(said, type=_Said)
        except ODD:
            raise Broken("it sends something other than a status") from None

    def given(self, about: dict[str, object], more: dict[str, object]) -> int:
        """Return the status of a reply to a file about something."""
        serial = f"{time.time_ns()}{os.getpid()}"
        file = f"{self._pid}.{serial}{REPLY}"
        try:
            write(self._folder, file, msgspec.json.encode({**about, **more}))
            return self.told({**about, "written": serial}).status
        finally:
            with suppress(OSError):
                os.unlink(f"{self._folder}/{file}")  # noqa: PTH108 - as in spool.py


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


# The terminal of a session that the service of OpenCode 2 runs is that of one of its clients, which
# are connected to its port.  A client may show several sessions, in tabs.


class OpenCodeTerminals(ServerTerminals):
    """See `ServerTerminals`."""

    key = KEY

    def clients(self) -> list[ServerClient] | None:
        return terminals_of(self.server)

    def ended(self, session_id: str, reason: str) -> tuple[str, dict[str, str | dict[str, str]]]:
        about = {"sessionID": session_id}
        return "session_deleted", {"type": "session.deleted", "properties": about}


def terminals_of(service: int) -> list[ServerClient] | None:
    """Return the terminals that are connected to a service; None if they are not known.

    May hang.
    """
    if not processes.own_ports(service) or not processes.has_proc():
        return None
    ends = processes.connected_to(service)
    found = (pid for pid in processes.pids() if ends and processes.tty_of(pid))
    return [
        client_at(pid)
        for pid in found
        if _is_terminal(pid) and not ends.isdisjoint(processes.descriptors(pid))
    ]


def _is_terminal(pid: int) -> bool:
    program, *words = processes.argv_of(pid) or [""]
    return os.path.basename(program) == KEY and SERVER not in words  # noqa: PTH119


async def observe_terminals(need: Need) -> None:
    """Report the terminals of a service's sessions, and their ends."""
    terminals = OpenCodeTerminals(need)
    need.at_end = terminals.close
    await terminals.observe()
