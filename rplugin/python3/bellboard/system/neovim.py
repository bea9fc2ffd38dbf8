"""Run Lua code in a Neovim over its socket.

A Neovim that waits for a key answers only some requests.  It is asked for its mode first, because
other code would run later, unexpectedly.
"""

from __future__ import annotations

import time
from typing import Any, Final

from ..core.text import line
from . import gate
from .failures import Declined

PATIENCE: Final = 0.5  # seconds; an answer takes 1 ms
MOST: Final = 1 << 20  # bytes of an answer; a terminal of 200 rows has 100 kB
REQUEST, RESPONSE = 0, 1


def ask(address: str, code: str, *arguments: Any) -> Any:
    """Run code in the Neovim that listens there; return its result, or raise `Declined`."""
    import msgpack  # type: ignore[import-untyped] # it carries no types

    unpacker = msgpack.Unpacker(max_buffer_size=MOST)
    until = time.monotonic() + PATIENCE

    def call(method: str, given: list[Any]) -> Any:
        connection.sendall(msgpack.packb([REQUEST, 0, method, given]))
        while True:
            for message in unpacker:
                if message[0] == RESPONSE:
                    if message[2] is not None:
                        raise Declined(f"its Neovim refused: {line(str(message[2][1]))}")
                    return message[3]
            if time.monotonic() > until:
                raise Declined("its Neovim does not respond")
            data = connection.recv(1 << 16)
            if not data:
                raise Declined("its Neovim is gone")
            unpacker.feed(data)

    try:
        with gate.connected(address, PATIENCE) as connection:
            if call("nvim_get_mode", [])["blocking"]:
                raise Declined("its Neovim is waiting for a key")
            return call("nvim_exec_lua", [code, list(arguments)])
    except gate.Denied as denial:
        raise Declined(f"not connecting to the Neovim at {line(address)}: {denial}") from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise Declined("its Neovim has exited") from None
    except OSError:
        raise Declined("its Neovim does not respond") from None
    except (ValueError, TypeError, LookupError, msgpack.UnpackException):
        raise Declined("its Neovim's reply is not valid") from None
