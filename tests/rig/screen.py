"""The screen of Neovim: a client of its UI protocol that keeps the grid, as a terminal does.

Not `screenstring()`: this screen can be read while the editor waits in a prompt, it includes
floats, messages and the command line, and each cell knows the highlight groups it came from.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgpack

from rig.waiting import eventually

Colors = tuple[int, int]  # foreground and background, as RGB
T = TypeVar("T")


@dataclass(frozen=True)
class Picture:
    """A screen at rest: cells as text ("" is the second half of a wide one) and group names."""

    cells: tuple[tuple[str, ...], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()  # the top group of each cell, "" for none
    colors: tuple[tuple[Colors, ...], ...] = ()  # the effective ones of each cell

    @property
    def lines(self) -> list[str]:
        """Return the rows as text, without trailing blanks."""
        return ["".join(row).rstrip() for row in self.cells]

    @property
    def text(self) -> str:
        """Return all rows as one text."""
        return "\n".join(self.lines)

    def groups_of(self, text: str) -> list[str]:
        """Return the highlight groups of the first occurrence of a text, without repeats."""
        return self._of(text, self.groups)

    def colors_of(self, text: str) -> list[Colors]:
        """Return the colors of the first occurrence of a text, without repeats."""
        return self._of(text, self.colors)

    def _of(self, text: str, table: Sequence[Sequence[T]]) -> list[T]:
        """Return what a table has for the cells of the first occurrence of a text, each once."""
        for row, values in zip(self.cells, table, strict=True):
            start = "".join(row).find(text)
            if start >= 0:
                first = _column(row, start)
                return list(dict.fromkeys(values[first : _column(row, start + len(text))]))
        raise AssertionError(f"no {text!r} on this screen:\n{self.text}")

    def __str__(self) -> str:
        """Return text, groups as letters, and a legend: the form of tests/data/screens."""
        names = list(dict.fromkeys(name for row in self.groups for name in row if name))
        letter = {name: chr(ord("a") + n) for n, name in enumerate(names[:26])}
        letter |= {name: chr(ord("A") + n) for n, name in enumerate(names[26:52])}
        edge = "+" + "-" * len(self.cells[0] if self.cells else "") + "+"
        shown = ["|" + "".join(row) + "|" for row in self.cells]
        marks = [
            "|" + "".join(letter.get(name, "?") if name else " " for name in row) + "|"
            for row in self.groups
        ]
        legend = [f"{mark} {name}" for name, mark in letter.items()]
        return "\n".join([edge, *shown, edge, *marks, edge, *legend, ""])


def _column(row: tuple[str, ...], index: int) -> int:
    """Return the cell of the character at `index` in a row's text."""
    reached = 0
    for column, cell in enumerate(row):
        if reached >= index and cell:
            return column
        reached += len(cell)
    return len(row)


@dataclass
class _Grid:
    """The cells after the redraw events so far (`:h ui-linegrid`)."""

    cells: list[list[str]] = field(default_factory=list)
    marks: list[list[int]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=lambda: {0: ""})
    attributes: dict[int, dict[str, Any]] = field(default_factory=dict)
    default: Colors = (0xFFFFFF, 0)

    title: str = ""

    def set_title(self, title: str) -> None:
        self.title = title

    def grid_resize(self, _: int, width: int, height: int) -> None:
        self.cells = [[" "] * width for _ in range(height)]
        self.marks = [[0] * width for _ in range(height)]

    def grid_clear(self, _: int) -> None:
        self.grid_resize(1, len(self.cells[0]), len(self.cells))

    def default_colors_set(self, fg: int, bg: int, *_: Any) -> None:
        self.default = (fg, bg)

    def hl_attr_define(self, id: int, rgb: Any, _cterm: Any, info: list[dict[str, Any]]) -> None:
        self.attributes[id] = rgb
        top = info[-1] if info else {}
        self.names[id] = top.get("hi_name") or top.get("ui_name") or ""

    def grid_line(self, _: int, row: int, column: int, cells: list[list[Any]], *_wrap: Any) -> None:
        mark = 0
        for text, *rest in cells:
            mark = rest[0] if rest else mark
            for _n in range(rest[1] if len(rest) > 1 else 1):
                self.cells[row][column] = text
                self.marks[row][column] = mark
                column += 1

    def grid_scroll(
        self, _: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int
    ) -> None:
        planes: tuple[list[list[Any]], ...] = (self.cells, self.marks)
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            for plane in planes:
                plane[row][left:right] = plane[row + rows][left:right]

    def _colors(self, mark: int) -> Colors:
        own = self.attributes.get(mark, {})
        fg, bg = own.get("foreground", self.default[0]), own.get("background", self.default[1])
        return (bg, fg) if own.get("reverse") else (fg, bg)

    def picture(self) -> Picture:
        return Picture(
            tuple(map(tuple, self.cells)),
            tuple(tuple(self.names.get(mark, "") for mark in row) for row in self.marks),
            tuple(tuple(map(self._colors, row)) for row in self.marks),
        )


def connected(path: Path) -> socket.socket:
    """Connect to a Neovim, whose socket may exist a moment before it listens."""

    def attempt() -> socket.socket | None:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            client.close()
            return None
        return client

    return eventually(attempt, f"Neovim on {path}")


class Display:
    """A UI attached to a Neovim's socket: `picture` and `title` as of the last flush."""

    def __init__(self, path: Path, columns: int, lines: int) -> None:
        self.picture, self.title = Picture(), ""
        self._grid = _Grid()
        self._socket = connected(path)
        wants = {"rgb": True, "ext_linegrid": True, "ext_hlstate": True}
        request = [0, 1, "nvim_ui_attach", [columns, lines, wants]]
        self._socket.sendall(msgpack.packb(request))
        self._thread = threading.Thread(target=self._read, name="display", daemon=True)
        self._thread.start()
        try:
            eventually(lambda: self.picture.cells, "a first screen")
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        incoming = msgpack.Unpacker(strict_map_key=False, unicode_errors="replace")
        while data := self._receive():
            incoming.feed(data)
            for message in incoming:
                if message[:2] == [2, "redraw"]:
                    self._draw(message[2])

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(65536)
        except OSError:  # the editor was killed
            return b""

    def _draw(self, batch: list[list[Any]]) -> None:
        for name, *calls in batch:
            if name == "flush":
                self.picture, self.title = self._grid.picture(), self._grid.title
            elif change := getattr(self._grid, name, None):
                for call in calls:
                    change(*call)

    def close(self) -> None:
        """Detach; the editor may be gone already."""
        with contextlib.suppress(OSError):  # not connected any more
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
