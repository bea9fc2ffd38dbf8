"""kitty: show the window with a terminal, through the socket of its remote control.

The user has to allow that, with `allow_remote_control` and `listen_on`.  The gate decides which
sockets we may contact.  The protocol is that of `kitten @`: a request is a JSON object in an escape
sequence, and so is the answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..core.text import line
from ..core.untrusted import list_of
from . import gate
from .failures import Declined
from .processes import tty_of

PATIENCE: Final = 1.0  # seconds; an answer takes 20 ms
LARGEST: Final = 8 << 20  # bytes of an answer, which lists the environment of each window
VERSION: Final = (0, 20, 0)  # of the protocol that is used here
_BEGIN: Final = b"\x1bP@kitty-cmd"
_END: Final = b"\x1b\\"


def show(socket: str, tty: str) -> None:
    """Focus the window that a terminal belongs to, or raise `Declined`."""
    listed = _ask(socket, "ls", {})
    for window, pid in _windows(listed):
        if tty_of(pid) == tty:
            _ask(socket, "focus-window", {"match": f"id:{window}"})
            return
    raise Declined(f"no window of kitty has {line(tty, 40)}")


def _ask(socket: str, command: str, payload: Mapping[str, str]) -> object:
    request = {"cmd": command, "version": VERSION, "no_response": False, "payload": payload}
    raw = b""
    try:
        with gate.connected(socket, PATIENCE) as connection:
            connection.sendall(_BEGIN + json.dumps(request).encode() + _END)
            until = time.monotonic() + PATIENCE
            while not raw.endswith(_END) and len(raw) < LARGEST and time.monotonic() < until:
                part = connection.recv(1 << 16)
                if not part:
                    break
                raw += part
    except gate.Denied as denial:
        raise Declined(f"not connecting to kitty at {line(socket)}: {denial}") from None
    except OSError as error:
        why = error.strerror or "timed out"
        raise Declined(f"kitty does not respond at {line(socket)}: {why}") from None
    try:
        answer = json.loads(raw.removeprefix(_BEGIN).removesuffix(_END))
        if not answer["ok"]:
            raise Declined(f"kitty refuses: {line(str(answer.get('error')), 200)}")
        return json.loads(answer.get("data") or "null")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Declined(f"kitty's answer cannot be read at {line(socket)}") from None


def _windows(listed: object) -> Iterator[tuple[int, int]]:
    """Yield each window's id and the process that runs in it."""
    for window in _each(listed, "tabs", "windows"):
        number, pid = window.get("id"), window.get("pid")
        if type(number) is int and type(pid) is int and 0 < pid < 1 << 31:
            yield number, pid


def _each(listed: object, *inside: str) -> Iterator[dict[str, Any]]:
    for one in list_of(listed):
        if isinstance(one, dict):
            if inside:
                yield from _each(one.get(inside[0]), *inside[1:])
            else:
                yield one
