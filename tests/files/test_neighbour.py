"""Another Neovim may answer anything: a wrong answer is told from a good one, in words."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket as sockets
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

from bellboard.system import neovim
from bellboard.system.failures import Declined
from rig.editor import Editor
from rig.fixtures import Editors
from rig.home import Home
from rig.host.sample import QUIET, Host, blocked
from rig.waiting import eventually

Answers = Callable[..., str]
FREE = msgpack.packb([1, 0, None, {"blocking": False}])
#: What it answers to the first request.
ODD = {
    "nothing": b"",
    "a number": msgpack.packb(5),
    "nil": msgpack.packb(None),
    "an empty list": msgpack.packb([]),
    "a short response": msgpack.packb([1, 0]),
    "a response without a result": msgpack.packb([1, 0, None]),
    "a number for a mode": msgpack.packb([1, 0, None, 5]),
    "an empty mode": msgpack.packb([1, 0, None, {}]),
    "a list for a mode": msgpack.packb([1, 0, None, []]),
    "an error that is text": msgpack.packb([1, 0, "x", None]),
    "an error that is a number": msgpack.packb([1, 0, 7, None]),
    "an error without a text": msgpack.packb([1, 0, [1], None]),
    "an error that is a map": msgpack.packb([1, 0, {"a": 1}, None]),
    "an error with a map": msgpack.packb([1, 0, [0, {"a": 1}], None]),
    "an error of bytes": b"\x94\x01\x00\x92\x00\xa2\xff\xfe\xc0",
    "no MessagePack": b"\xc1" * 10,
    "far too long a list": b"\xdd\xff\xff\xff\xff",
    "far too large a map": b"\xdf\xff\xff\xff\xff",
    "lists within lists": b"\x91" * 5000,
    "text that is not UTF-8": b"\xa2\xff\xfe",
    "an extension": b"\xc7\x05\x01abcde",
    "a list as a key": b"\x81\x90\x01",
    "a date": b"\xd6\xff\x00\x00\x00\x00",
}


@pytest.fixture
def answers(home: Home) -> Iterator[Answers]:
    """Listen, and answer one request after the other with these bytes; return the address."""
    serial = itertools.count()
    with contextlib.ExitStack() as ends:

        def listen(*replies: bytes, endless: bool = False) -> str:
            server = ends.enter_context(sockets.socket(sockets.AF_UNIX))
            path = str(home.root / f"odd{next(serial)}")
            server.bind(path)
            server.listen()

            def serve() -> None:
                with contextlib.suppress(OSError), server.accept()[0] as there:
                    for reply in replies:
                        there.recv(1 << 16)
                        there.sendall(reply)
                        while endless:
                            there.sendall(reply)
                    there.recv(1 << 16)

            threading.Thread(target=serve, daemon=True).start()
            return path

        yield listen


@pytest.mark.parametrize("reply", ODD.values(), ids=ODD)
def test_an_odd_answer_is_a_failure_in_words(answers: Answers, reply: bytes) -> None:
    with pytest.raises(Declined, match=r"^its Neovim('s)? [a-z].*"):
        neovim.ask(answers(reply), "return 1")


def test_an_answer_without_end_is_not_kept(answers: Answers) -> None:
    """Half a second of it would be a gigabyte."""
    with pytest.raises(Declined, match="reply is not valid"):
        neovim.ask(answers(b"\xdb\xff\xff\xff\xff" + b"x" * (1 << 16), endless=True), "return 1")


@pytest.fixture
def editor(nvim: Editors, version: str) -> Editor:
    made = nvim(version, QUIET, ui=False)
    made.lua("require('bellboard.start').attach()")
    return made


RESULTS: tuple[Any, ...] = (
    *(5, "text", True, [], {}, {"shown": 1}, {"shown": True, "tmux": 5, "pane": {}}),
    *(
        [5, None, {"a": 1}],
        ["a\nb", "\0", "\x1b[31m"],
        [["deep"]],
        {"a": "b"},
        {"1": "x", "3": "y"},
    ),
)


@pytest.mark.editor
@pytest.mark.parametrize("result", RESULTS, ids=repr)
def test_an_odd_result_raises_no_error_in_the_editor(
    editor: Editor, answers: Answers, result: object
) -> None:
    """So it is with the shown text, and the place of a jump."""
    said = (FREE, msgpack.packb([1, 0, None, result]))
    Host(editor, serves=True).push(blocked("api", nvim=answers(*said), tty="/dev/pts/9999"))
    editor.lua(
        "require('bellboard.preview').lines(require('bellboard').sessions()[1],"
        " function(lines) _G.lines = lines end)"
    )
    for row in eventually(lambda: editor.lua("return _G.lines"), "a preview"):
        assert isinstance(row, str)
        assert "\n" not in row
    Host(editor, serves=True).push(blocked("web", nvim=answers(*said), tty="/dev/pts/9998"))
    editor.lua("_G.said = {} vim.notify = function(text) table.insert(_G.said, text) end")
    editor.lua("require('bellboard').jump('web')")
    eventually(lambda: editor.lua("return _G.said[1] or false"), "a message")
    assert "" == editor.messages()


def test_the_socket_is_closed(answers: Answers) -> None:
    """The answer does not matter."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - not a path
    for reply in ODD.values():
        with pytest.raises(Declined):
            neovim.ask(answers(reply), "return 1")
    assert before + 2 * len(ODD) >= len(os.listdir("/proc/self/fd"))  # noqa: PTH208
