"""One HTTP request over a connection that the gate has admitted."""

from __future__ import annotations

from .wire import Broken, Wire

HEAD = 16384  # bytes of the headers of a reply


def ask(wire: Wire, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
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
