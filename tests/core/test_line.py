"""The line of a session: what tells sessions apart comes first, and is cut last."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellboard.core.text import width
from bellboard.core.words import age, title
from bellboard.screen.line import GAP, MUCH, lines
from rig.editor import Editor
from rig.examples import most
from rig.fixtures import Editors
from rig.host.sample import QUIET, Host, activity, clone, dated, house, machines, session

TITLES = (
    "",
    "Fix CI",
    "add rate limits to the endpoints",
    "漢字のテストを修正する",
    "🙂 pick emoji",
)
BRANCHES = ("main", "main", "fix/login", "feature/JIRA-1234-rework-the-whole-limiter", "")
DETAILS = ("", "a.py", "cargo test --workspace -- --nocapture rate_limits", "細則" * 30, "🙂")
WORK: dict[str, Any] = {"project": "shop", "tool": "Bash"}
NOW = 1.8e9


def some() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return some sessions in three repositories, with texts of all widths."""
    choices = {
        "status": ("working", "blocked", "completed", "idle", "error"),
        "ago": (5, 130, 90_000),
        "repository": ("acme/shop", "acme/a-long-name-of-a-project", "api"),
        "title": TITLES,
        "branch": BRANCHES,
        "detail": DETAILS,
        "label": ("", "", "HEAVY"),
        "pane": ("", "%4", "%1234567"),
    }
    rows = st.tuples(*map(st.sampled_from, choices.values()))
    return st.lists(rows, min_size=1, max_size=12).map(
        lambda found: [
            session(
                id=f"{n:04x}", project="shop", tool="Bash", **dict(zip(choices, row, strict=True))
            )
            for n, row in enumerate(found)
        ]
    )


@settings(max_examples=most(60))
@given(some(), st.integers(40, 220))
def test_nothing_is_cut_while_cells_are_blank(some: list[dict[str, Any]], columns: int) -> None:
    """Behind a title; what a session does is cut at its column, or where few are blank.

    Ages are below each other, whatever is in front of them, and no line is too long.
    """
    shown = [dated(each, NOW) for each in some]
    ends = set()
    for p, line in zip(shown, lines(shown, NOW, columns), strict=True):
        assert width(line.plain) <= columns
        before, found, _ = line.plain.rpartition(f" {age(p['since'], NOW)}")
        ends.add(width(before + found))
        texts = re.split(r"  +", before.strip())
        if "…" in before and title(p)[:3] in before:
            after = before.strip()[before.strip().rindex(title(p)[:3]) :]
            blank = max((len(run) for run in re.findall(" +", after)), default=0)
            # A title that stands for a name is in the column of names, which keeps 24 cells.
            most_blank = MUCH + 2 * GAP - 1 if f"  {title(p)[:3]}" in before else 24 + GAP
            is_cut = any(x.endswith("…") and title(p).startswith(x[:-1]) for x in texts)
            assert blank <= (3 if title(p) and is_cut else most_blank)  # a wide one may not fit
    assert len(ends) == 1


PICKED = """
vim.ui.select = function(items, opts) _G.lines = vim.tbl_map(opts.format_item, items) end
vim.cmd('ClaudeSessions pick')
return lines
"""


def picked(editor: Editor) -> list[str]:
    """Return the lines of a picker."""
    found: list[str] = editor.lua(PICKED)
    return found


@pytest.mark.editor
def test_a_picker_shows_the_lines_of_a_shell(nvim: Editors) -> None:
    """In the same columns, whatever gives way: the editor and the program cut alike."""
    editor = nvim(config={**QUIET, "float": {"enabled": False}}, columns=80)
    host = Host(editor)
    for some in (house(), clone(), activity(), machines()):
        host.push(*some)
        shown = editor.lua("return require('bellboard').sessions()")
        for columns in (60, 80, 100, 140, 220):
            width = max(int(columns * 0.6), 42) + 1  # other pickers take most of the screen
            editor.command(f"set columns={columns}")
            now = time.time()
            by_id = {p["session_id"]: p for p in (dated(each, now) for each in some)}
            expected = lines([by_id[p["session_id"]] for p in shown], now, width)
            assert [line.plain.strip() for line in expected] == [
                line.strip() for line in picked(editor)
            ]
