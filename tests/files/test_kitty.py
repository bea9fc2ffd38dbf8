"""A window of kitty is shown through its remote control; `live/kitty.py` checks a real one."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.published import publish
from bellboard.core.session import Session
from bellboard.system import kitty
from bellboard.system.failures import Declined
from rig.home import Home
from rig.host.desk import errands

BEGIN, END = b"\x1bP@kitty-cmd", b"\x1b\\"
Serve = Callable[[Callable[[Any], bytes]], tuple[str, list[Any]]]


def answer(data: object = None, ok: bool = True, **more: object) -> bytes:
    told = {"ok": ok, "data": json.dumps(data), **more}
    return BEGIN + json.dumps(told).encode() + END


@pytest.fixture
def serve(home: Home) -> Iterator[Serve]:
    """A server with kitty's protocol: its socket, and the requests it got."""
    opened: list[socket.socket] = []

    def begin(reply: Callable[[Any], bytes]) -> tuple[str, list[Any]]:
        listener = socket.socket(socket.AF_UNIX)
        opened.append(listener)
        path = str(home.root / "kitty.sock")
        listener.bind(path)
        listener.listen()
        asked: list[Any] = []

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    raw = b""
                    while not raw.endswith(END):
                        raw += connection.recv(4096)
                    asked.append(json.loads(raw.removeprefix(BEGIN).removesuffix(END)))
                    connection.sendall(reply(asked[-1]["cmd"]))

        threading.Thread(target=run, daemon=True).start()
        return path, asked

    yield begin
    for listener in opened:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def listed(*pids: object) -> object:
    windows = [{"id": n, "pid": pid} for n, pid in enumerate(pids, 1)]
    return [{"id": 1, "tabs": [{"id": 1, "windows": windows}, 7]}, None]


def test_the_window_with_the_terminal_of_the_session_is_shown(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its terminal, not by a number that programs inherit."""
    monkeypatch.setattr(kitty, "tty_of", {os.getpid(): "/dev/pts/7"}.get)
    path, asked = serve(lambda command: answer(listed(1, "x", os.getpid(), None)))
    kitty.show(path, "/dev/pts/7")
    assert [(x["cmd"], x["payload"]) for x in asked] == [
        ("ls", {}),
        ("focus-window", {"match": "id:3"}),
    ]
    with pytest.raises(Declined, match=r"no window of kitty has /dev/pts/8"):
        kitty.show(path, "/dev/pts/8")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (answer(ok=False, error="Remote control is \x1b[31mdisabled"), "Remote control is"),
        (b"", "cannot be read"),
        (b"junk" + END, "cannot be read"),
        (BEGIN + b"[" * 100_000 + END, "cannot be read"),
        (BEGIN + b'{"ok": true, "data": 7}' + END, "cannot be read"),
        (answer({"no": "list"}), "no window"),
    ],
    ids=["refused", "closed", "junk", "deep", "number", "mapping"],
)
def test_what_kitty_answers_is_not_trusted(serve: Serve, reply: bytes, why: str) -> None:
    path, _ = serve(lambda command: reply)
    with pytest.raises(Declined, match=why) as caught:
        kitty.show(path, "/dev/pts/7")
    assert "\x1b" not in str(caught.value)


def test_a_socket_of_others_is_not_contacted(home: Home, serve: Serve) -> None:
    path, asked = serve(lambda command: answer([]))
    Path(path).parent.chmod(0o777)
    with pytest.raises(Declined, match="others may write to"):
        kitty.show(path, "/dev/pts/7")
    with pytest.raises(Declined, match="not a local path"):
        kitty.show("@kitty", "/dev/pts/7")
    assert asked == []
    Path(path).parent.chmod(0o700)


def test_neovim_asks_its_host_to_show_a_window(serve: Serve, home: Home) -> None:
    """The host's reason is shown if that fails."""
    path, asked = serve(lambda command: answer([]))
    s = Session("s", turn="idle", tty="/dev/pts/7", kitty=path)
    ours = errands(home, s, Session("t", turn="idle"), environ=os.environ)
    said = {sid: asyncio.run(ours.do("goto", {"session_id": sid})) for sid in ("s", "t")}
    assert said["s"] == {"ok": False, "why": "no window of kitty has /dev/pts/7: /dev/pts/7"}
    assert said["t"] == {"ok": False, "why": "its terminal is out of reach: t"}
    assert [x["cmd"] for x in asked] == ["ls"]


@pytest.mark.core
def test_a_socket_that_is_only_inherited_is_not_published() -> None:
    """tmux and Neovim run in a window of kitty themselves, and so do their children."""
    hook = {"session_id": "s", "hook_event_name": "UserPromptSubmit"}

    def published(**inherited: str) -> object:
        board = Board()
        board.fold(from_line({"t": 1e9, "hook": hook, "origin": {"pid": 7, **inherited}}))
        facts = {"pid": 7, "alive": True, "tty": "/dev/pts/7", "kitty": "/k.sock"}
        board.fold(from_line({"t": 1e9 + 1, "process": facts}))
        return publish(board.sessions["s"]).get("kitty")

    assert published() == "/k.sock"
    assert published(tmux="/t.sock", pane="%1") is None
    assert published(nvim="/n.sock") is None
