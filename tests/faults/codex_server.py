"""A shared server of Codex as nobody would want it: codex_server.py SOCKET PLAN app-server."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

PROOF = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, PING = 0x81, 0x89


def framed(data: bytes, kind: int = TEXT) -> bytes:
    size = len(data)
    if size < 126:
        return bytes([kind, size]) + data
    if size < 1 << 16:
        return bytes([kind, 126]) + struct.pack(">H", size) + data
    return bytes([kind, 127]) + struct.pack(">Q", size) + data


def state(plan: dict[str, Any], kind: str) -> bytes:
    params = {"threadId": plan["thread"], "status": {"type": kind}}
    return framed(json.dumps({"method": "thread/status/changed", "params": params}).encode())


def play(client: socket.socket, plan: dict[str, Any]) -> None:
    """Take part in one conversation."""
    fault = plan["fault"]
    request = b""
    while b"\r\n\r\n" not in request:
        request += client.recv(4096) or b"\r\n\r\n"
    if fault == "mute":
        time.sleep(1000)
    key = request.partition(b"Key: ")[2].partition(b"\r\n")[0]
    proof = base64.b64encode(hashlib.sha1(key + PROOF).digest()) if fault != "no proof" else b"x"
    head = b"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: " + proof + b"\r\n"
    while fault == "a long head":
        client.sendall(b"x: y\r\n")
    client.sendall(head + b"\r\n")
    if fault == "hangs up":
        return
    client.recv(65536)  # initialize
    client.sendall(framed(b'{"id":1,"result":{}}'))
    spoil(client, plan)
    for number in range(2, 9):  # whatever it calls next
        client.sendall(framed(json.dumps({"id": number, "result": plan["result"]}).encode()))
    for said in plan["says"]:
        client.sendall(framed(said.encode("latin-1")))
    while client.recv(65536):
        pass


def spoil(client: socket.socket, plan: dict[str, Any]) -> None:
    """Do what the plan says, mostly without end."""
    fault = plan["fault"]
    if fault == "half a frame":
        client.sendall(bytes([TEXT, 126, 0xFF]))
        time.sleep(1000)
    if fault == "a long frame":
        client.sendall(bytes([TEXT, 127]) + struct.pack(">Q", 1 << 62))
    sent = {
        "drip": (b"\x81", 0.2),
        "a long frame": (b" " * 65536, 0.0),
        "pings": (framed(b"x" * 100, PING) * 600, 0.0),
        "parts": (framed(b"x", 0x01) + framed(b"x", 0x00) * 30_000, 0.0),
        "flood": (state(plan, "active") + state(plan, "idle"), 0.0005),
        "noise": (framed(b'{"method":"x","params":{}}') * 1000, 0.0),
    }.get(fault)
    while sent:
        client.sendall(sent[0])
        time.sleep(sent[1])


def main() -> None:
    path, plan = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("up", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, plan), daemon=True).start()


def serve(client: socket.socket, plan: dict[str, Any]) -> None:
    with client, contextlib.suppress(OSError):
        play(client, plan)


if __name__ == "__main__":
    main()
