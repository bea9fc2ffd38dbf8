"""The demo without a terminal: its final screen as text and as a picture, and a film of it.

usage: film.py [--picture FILE] [--film FILE] [--patience SECONDS]
"""

# ruff: noqa: T201  what it prints is what it is for
from __future__ import annotations

import argparse
import html
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pynvim

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from demo import run  # noqa: E402
from rig.screen import Display  # noqa: E402
from rig.waiting import eventually  # noqa: E402

COLUMNS, LINES = 104, 36
WIDTH, HEIGHT, SIZE = 8.4, 18, 14  # of a cell and its letters, in pixels
FONT = "ui-monospace, 'JetBrains Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace"
#: What the statusline must show within ten seconds: one of each.
EXPECTED = ("!1", "?1", "x1", "+1", "*1", "&1")


class Shot(NamedTuple):
    """A part of the animation."""

    frame: str
    caption: str
    seconds: float


class Canvas(Display):
    """A display with colors."""

    def __init__(self, socket: Path) -> None:
        self.styles: dict[int, dict[str, Any]] = {0: {}}
        self.ground = (0xE0E2EA, 0x14161B)
        super().__init__(socket, COLUMNS, LINES)

    def _draw(self, batch: list[list[Any]]) -> None:
        for name, *calls in batch:
            if name == "hl_attr_define":
                self.styles |= {number: rgb for number, rgb, *_ in calls}
            elif name == "default_colors_set":
                self.ground = (calls[-1][0], calls[-1][1])
        super()._draw(batch)

    def frame(self) -> str:
        """Return the screen as it is, one run of equal cells after another."""
        parts = []
        for row, (cells, marks) in enumerate(zip(self._grid.cells, self._grid.marks, strict=True)):
            column = 0
            while column < COLUMNS:
                end = column + 1
                while end < COLUMNS and marks[end] == marks[column]:
                    end += 1
                text = "".join(cells[column:end])
                parts.append(self._run(row, column, end - column, text, marks[column]))
                column = end
        return "".join(parts)

    def svg(self, body: str, caption: int = 0) -> str:
        """Return an image with this content, and room below it for a caption."""
        width, height = round(COLUMNS * WIDTH) + 24, LINES * HEIGHT + 24 + caption
        front, back = (f"#{color:06x}" for color in self.ground)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-family="{FONT}" font-size="{SIZE}">\n'
            f'<rect width="{width}" height="{height}" rx="8" fill="{back}"/>\n'
            f'<g transform="translate(12 12)" fill="{front}" xml:space="preserve">\n'
            f"{body}</g>\n</svg>\n"
        )

    def film(self, shots: list[Shot]) -> str:
        """Return an image that repeats these frames for ever."""
        whole = sum(shot.seconds for shot in shots)
        begin, parts = 0.0, []
        for shot in shots:
            first, last = begin / whole, (begin := begin + shot.seconds) / whole
            values = [("hidden", 0.0)] * (first > 0) + [("visible", first)]
            values += [("hidden", last)] * (last < 1)
            parts.append(
                f'<g visibility="{"hidden" if first > 0 else "visible"}">'
                f'<animate attributeName="visibility" calcMode="discrete" dur="{whole:g}s" '
                f'repeatCount="indefinite" values="{";".join(value for value, _ in values)}" '
                f'keyTimes="{";".join(f"{at:.4f}" for _, at in values)}"/>\n{shot.frame}'
                f'<text x="0" y="{LINES * HEIGHT + 24}" fill="#8cf8f7" font-weight="bold">'
                f"{html.escape(shot.caption)}</text>\n</g>\n"
            )
        return self.svg("".join(parts), caption=24)

    def _run(self, row: int, column: int, length: int, text: str, mark: int) -> str:
        style = self.styles.get(mark, {})
        front, back = style.get("foreground"), style.get("background")
        if style.get("reverse"):
            front = self.ground[1] if back is None else back
            back = self.ground[0] if style.get("foreground") is None else style["foreground"]
        x, y = column * WIDTH, row * HEIGHT
        made = ""
        if back is not None and back != self.ground[1]:
            made += (
                f'<rect x="{x:.1f}" y="{y}" width="{length * WIDTH + 0.4:.1f}" '
                f'height="{HEIGHT}" fill="#{back:06x}"/>\n'
            )
        if text.strip():
            color = f' fill="#{front:06x}"' if front is not None else ""
            weight = ' font-weight="bold"' if style.get("bold") else ""
            made += (
                f'<text x="{x:.1f}" y="{y + SIZE}" textLength="{length * WIDTH:.1f}"'
                f"{color}{weight}>{html.escape(text)}</text>\n"
            )
        return made


def play(socket: Path, picture: Path | None, film: Path | None, patience: float) -> tuple[str, str]:
    """Let the demo run until every status has shown; return its last screen, and what was wrong."""
    eventually(socket.exists, "the demo's Neovim")
    display = Canvas(socket)
    nvim = pynvim.attach("socket", path=str(socket))
    problem = ""
    try:
        started = time.monotonic()

        def complete() -> bool:
            lines = display.picture.lines
            bar = next((line for line in reversed(lines) if line.startswith(" demo")), "")
            missing = [mark for mark in EXPECTED if mark not in bar]
            assert not missing, f"the statusline lacks {' '.join(missing)}: {bar.strip()!r}"
            assert "2 need you" in display.picture.text, "no float says that two need you"
            return True

        eventually(complete, within=patience)
        print(f"every status was on the screen after {time.monotonic() - started:.1f} s")
        nvim.command("ClaudeSessions board")
        eventually(lambda: "6 sessions" in display.picture.text, "a board with six sessions")
        if picture:
            picture.write_text(display.svg(display.frame()))
            print(f"drawn: {picture}")
        if film:
            nvim.input("q")
            eventually(lambda: "6 sessions" not in display.picture.text, "the end of the board")
            film.write_text(display.film(filmed(display, nvim)))
            print(f"filmed: {film}")
    except AssertionError as error:
        problem = str(error).splitlines()[0]
    shown = display.picture.text
    nvim.command("qall!", async_=True)
    display.close()
    nvim.close()
    return shown, problem


def filmed(display: Canvas, nvim: Any) -> list[Shot]:
    """Use the demo as a user would, and return the frames."""
    shots = []

    def shot(seconds: float, caption: str, keys: str, shows: str, lacks: str = "\0") -> None:
        nvim.input(keys)
        shown = lambda: display.picture.text  # noqa: E731
        eventually(lambda: re.search(shows, shown()) and lacks not in shown(), f"{shows} shown")
        shots.append(Shot(display.frame(), caption, seconds))

    shot(4, "Six agents work in terminals. Two need you.", "", "2 need you")
    shot(4, ":ClaudeSessions next   goes to the one that has waited longest", "<C-n>", r" api · ")
    shot(3, "Answer it there", "1", r"1 needs you")
    shot(4, ":ClaudeSessions next   the other one asks a question", "<C-n>", r" web · ", "need")
    shot(3, ":ClaudeSessions back   where you were", "<C-o>", r" demo +.*\?1")
    shot(5, ":ClaudeSessions board   all of them, live", "<C-g>", r"6 sessions")
    return shots


@contextmanager
def editor() -> Iterator[Path]:
    """Run the demo without a terminal of its own; yield the socket of its Neovim."""
    with run.home() as (folder, env, held):
        socket = folder / "run/nvim.sock"
        process = subprocess.Popen(
            [*run.command(run.neovim()), "--headless", "--listen", str(socket)],
            env={**env, "TERM": "xterm-256color"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            pass_fds=(held,),
            start_new_session=True,
        )
        try:
            yield socket
        finally:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make try")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--film", type=Path)
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS")
    wanted = parser.parse_args()
    with editor() as socket:
        shown, problem = play(socket, wanted.picture, wanted.film, wanted.patience)
    print(shown)
    if problem:
        print(f"make try: {problem}", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
