"""While the real CLI runs, what is published is what the CLI says of itself.

Here with bounds that hold on a busy machine; `make truth` holds the strict ones and writes the
table in doc/truth.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from truth.play import Row, play
from truth.report import line
from truth.scenes import SCENES
from truth.stage import How

pytestmark = [pytest.mark.claude, pytest.mark.tmux, pytest.mark.timeout(500)]

AGREES = 0.9  # of the time
SLOWEST = 5.0  # seconds
GROUPS = sorted({scene.group for scene in SCENES})
IN_NEOVIM = ("text turn", "permission: yes", "Esc while streaming", "closed pane")
IN_OLD = ("text turn", "permission: yes", "permission: Esc", "/clear")


def verify(rows: Sequence[Row], agrees: float = AGREES) -> None:
    """Each scene ended as it should, each change was shown soon, nothing was left behind."""
    told = "\n".join(map(line, rows))
    sys.stderr.write(f"{told}\n")
    assert [row.failure for row in rows if row.failure] == [], told
    compared = sum(row.compared for row in rows)
    assert compared > len(rows), told
    assert 1 - sum(sum(row.wrong) for row in rows) / compared >= agrees, told
    assert max(delay for row in rows for delay in row.delays) <= SLOWEST, told
    assert max(row.left for row in rows) <= SLOWEST, told


def some(names: Sequence[str]) -> list[Row]:
    return [scene for scene in SCENES if scene.name in names]


@pytest.mark.parametrize("group", GROUPS)
def test_in_tmux_the_cli_and_the_board_say_the_same(group: str) -> None:
    verify(play([scene for scene in SCENES if scene.group == group], How()))


@pytest.mark.editor
def test_in_a_terminal_of_neovim_too() -> None:
    verify(play(some(IN_NEOVIM), How(editor="0.12")))


@pytest.mark.parametrize("version", ["2.1.119", "2.1.76"])
def test_with_old_clis_too(version: str) -> None:
    verify(play(some(IN_OLD), How(version)))


def test_without_the_session_files_hooks_and_transcripts_tell() -> None:
    verify(play(some(("text turn", "permission: yes", "permission: Esc")), How(hidden=True)))
