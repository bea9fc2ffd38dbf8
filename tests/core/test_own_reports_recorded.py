"""Own reports of Codex and Pi in Neovim, compared with their screens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bellboard.agents.traces import replay
from bellboard.core.board import Board
from bellboard.core.program_status import parsed
from bellboard.core.session import is_listed, is_nameless
from live.own.spoken import DRAWN, RECORDED, TYPED, UNSAID, alone, causes, section
from live.page import TABLE
from rig.host.playback import Line, encoded, read_lines

SAYS: Final = {
    "codex": "idle, working, blocked permission, blocked question, done, error, clear",
    "pi": "idle, working, blocked question, done, error, clear",
}
#: Why a report and its screen differ.
KNOWN: Final = {"codex": {TYPED, DRAWN}, "pi": {UNSAID, DRAWN}}


def agent_of(path: Path) -> str:
    return path.name.partition("_")[0]


@pytest.mark.parametrize("agent", SAYS)
def test_what_it_reports(agent: str) -> None:
    """All that it says, of itself as a whole; neither names its subagents."""
    bodies = [
        x["osc7501"]["body"]
        for path in RECORDED
        if agent_of(path) == agent
        for x in read_lines(path)
        if "osc7501" in x
    ]
    reports = [parsed(body) for body in bodies]
    assert {f"{x.state} {x.kind}".strip() for x in reports} == {*SAYS[agent].split(", ")}
    assert {x.id for x in reports} == {""}
    assert {x.app for x in reports} == {agent, ""}  # without its name only `clear`


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_its_own_report_alone_is_what_its_screen_shows(path: Path) -> None:
    row = alone(path.stem, read_lines(path))
    assert row.compared
    assert row.left == 0.0
    assert causes([row]).keys() <= KNOWN[agent_of(path)]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cli_is_one_row_whatever_tells_of_it(path: Path) -> None:
    """The own report comes first; the row keeps the name that hooks and log then give it."""
    lines = read_lines(path)
    rows = [sessions for sessions in listed(lines) if sessions]
    assert max(map(len, rows)) <= len({x["tty"] for x in lines if "truth" in x})
    assert not any(map(is_nameless, rows[-1]))


def listed(lines: list[Line]) -> Iterator[list[str]]:
    """Yield the sessions that are listed, after each event."""
    board = Board()
    for _ in replay(encoded(lines), board):
        yield [sid for sid, s in board.sessions.items() if is_listed(s)]


def test_the_page_has_its_figures() -> None:
    assert section() in TABLE.read_text()
