"""While the real CLI runs, what is published agrees with the CLI's own account.

The limits here allow for a busy machine; `make live ONLY=scenes` checks the strict ones
and writes the table in doc/truth.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from live.play import play
from live.report import Row
from live.scene import SCENES, Scene
from live.stage import How

pytestmark = [pytest.mark.live, pytest.mark.tmux, pytest.mark.timeout(500)]

STEADY = 0.9  # share of the time after each change was shown
SLOWEST = 30.0  # seconds until a change must be shown
JOBS = 3
#: One of each kind of evidence; `make live` plays them all, on every CLI, and test_cases.py their
#: traces. Permissions are below, and a question is answered in test_answers.py.
IN_TMUX = (
    *("queue while busy, then Esc", "API error 500, retried", "Esc in a subagent"),
    *("MCP form", "background agent asks"),
    *("background shell", "/clear", "--resume", "two processes", "kill -9", "Ctrl-Z and fg"),
)
IN_NEOVIM = ("permission: yes", "Esc while streaming", "closed pane")
IN_OLD = ("permission: yes", "Esc in a tool")
HIDDEN = ("permission: yes", "Esc while streaming")


def verify(rows: Sequence[Row]) -> None:
    """Check that each scene ended as expected, statuses stayed right, and nothing was left."""
    told = "\n".join(map(str, rows))
    sys.stderr.write(f"{told}\n")
    assert [row.failure for row in rows if row.failure] == [], told
    assert [row.otherwise for row in rows if row.otherwise] == [], told
    compared = sum(row.compared for row in rows)
    assert compared > len(rows), told
    assert 1 - sum(row.unsteady for row in rows) / compared >= STEADY, told
    assert max(delay for row in rows for delay in row.delays) <= SLOWEST, told


def some(names: Sequence[str]) -> list[Scene]:
    found = [scene for scene in SCENES if scene.name in names]
    assert sorted(names) == sorted(scene.name for scene in found)
    return found


@pytest.mark.smoke
def test_a_question_is_shown_while_the_cli_asks_it() -> None:
    verify(play(some(("permission: Esc",)), How(), JOBS))


def test_in_tmux_the_board_agrees_with_the_cli() -> None:
    verify(play(some(IN_TMUX), How(), JOBS))


@pytest.mark.editor
def test_in_a_terminal_of_neovim_the_board_agrees_with_the_cli() -> None:
    verify(play(some(IN_NEOVIM), How(editor="0.12"), JOBS))


@pytest.mark.parametrize("version", ["2.1.119", "2.1.76"])
def test_the_board_agrees_with_old_clis(version: str) -> None:
    verify(play(some(IN_OLD), How(version), JOBS))


def test_without_session_files_hooks_and_transcripts_suffice() -> None:
    verify(play(some(HIDDEN), How(hidden=True), JOBS))
