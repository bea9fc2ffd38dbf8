"""Sessions of other machines on every screen: which machine, and what may be old, and why."""

from __future__ import annotations

from typing import Any

import pytest

from bellboard.core import text, words
from bellboard.core.notices import Notice
from bellboard.hosting.channels import wording
from bellboard.screen import terminal
from core.test_terminal import ACTIVE, NOW, SCREENS, lines_of
from rig.fixtures import Editors, Screens
from rig.host.sample import QUIET, Host, dated, far, machines

Published = dict[str, Any]
ALONE = {**QUIET, "float": {"enabled": False}}
BOARD = "execute 'ClaudeSessions board' | only"


def published() -> list[Published]:
    return [dated(p, NOW) for p in machines()]


@pytest.mark.core
@pytest.mark.parametrize("columns", [60, 100])
def test_a_table_names_the_machine_before_the_session(
    columns: int, request: pytest.FixtureRequest
) -> None:
    """A machine that cannot be reached is named with the reason."""
    picture = SCREENS / f"cli-machines-{columns}.txt"
    outages = [line.plain for line in terminal.outages(published(), NOW, columns)]
    shown = "\n".join([*lines_of(published(), columns), *outages]) + "\n"
    if request.config.getoption("--update-screens"):
        picture.write_text(shown)
    assert shown == picture.read_text()


@pytest.mark.core
@pytest.mark.parametrize("columns", [40, 60, 90, 200])
def test_hostile_names_stay_in_their_line(columns: int) -> None:
    """The names are of machines, of sessions, and in reasons."""
    odd = "\x1b[31m文\u202e\n" * 99
    sessions = [
        dated(far("dev", "working", odd, terminal=odd, down=5, link_why=odd, far_pid=7), NOW),
        dated(far(odd, "blocked", "api", down=5), NOW),
    ]
    lines = [*terminal.table(sessions, NOW, columns), *terminal.outages(sessions, NOW, columns)]
    assert len(lines) == 4
    for line in lines:
        assert text.width(line.plain.rstrip()) <= columns
        assert not ACTIVE.search(line.plain)


@pytest.mark.core
def test_a_status_bar_and_a_notification_name_the_machine() -> None:
    one = published()[0]
    assert words.status_text([one], NOW) == "!1 dev:api: make deploy 2h"
    notice = Notice(1, one["session_id"], "desktop", "blocked")
    assert wording(notice, one).title.startswith("dev:api")
    assert words.project({**one, "project": "", "title": ""}) == "dev:api-bloc"


@pytest.mark.screen
@pytest.mark.parametrize("columns", [60, 100])
def test_the_board_names_the_machine_and_dims_what_may_be_old(
    nvim: Editors, screen: Screens, columns: int
) -> None:
    """Repositories join machines, and a line says why one cannot be reached."""
    editor = nvim(config=ALONE, columns=columns, lines=22)
    Host(editor).push(*machines())
    editor.command(BOARD)
    screen.matches(editor, f"board-machines-{columns}")
    old = editor.screen.groups_of("stale 3h")
    assert old == ["Comment"]


GONE = {"down": 7300, "link_why": "no route", "hidden": True, "folded": True}
COUNTED = " box: 2 sessions, unreachable for 2h: no route"


@pytest.mark.core
def test_a_machine_that_is_gone_is_one_line_in_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Such sessions do not count as hidden as well; `--all` shows them."""
    gone = [dated(far("box", "blocked", name, **GONE), NOW) for name in ("api", "web")]
    assert [COUNTED] == [line.plain for line in terminal.outages(gone, NOW, 80)]
    terminal.show_list(gone, NOW)
    assert [COUNTED] == capsys.readouterr().out.splitlines()
    terminal.show_list(gone, NOW, hidden=True)
    assert 3 == len(capsys.readouterr().out.splitlines())


def test_a_machine_that_is_gone_is_one_line_on_the_board(nvim: Editors) -> None:
    """The line is there without other sessions; the statusline does not count these."""
    editor = nvim(config=ALONE, columns=60, lines=22)
    gone = [far("box", "blocked", name, **GONE) for name in ("api", "web")]
    host = Host(editor)
    for others in ([], machines()):
        host.push(*gone, *others)
        editor.command(BOARD)
        lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)")
        assert [COUNTED] == [text for text in lines if text.startswith(" box")]
    counts = "return require('bellboard').counts()"
    counted = editor.lua(counts)
    host.push(*machines())
    assert counted == editor.lua(counts)


def test_a_filter_finds_the_sessions_of_a_machine(nvim: Editors) -> None:
    editor = nvim(config=ALONE)
    Host(editor).push(*machines())
    listed = """
    local sections = require('bellboard.board.groups')
    local choice = { filter = ..., sort = 'urgency' }
    return vim.tbl_map(function(session)
      return session.session_id
    end, sections.listed(require('bellboard.sessions').list(), choice))
    """
    of_dev = ["dev/claude/api-blocked", "dev/claude/web-working"]
    assert editor.lua(listed, "machine:dev") == of_dev
    assert editor.lua(listed, "m:dev stale") == []
    assert len(editor.lua(listed, "stale")) == 2
    assert len(editor.lua(listed, "!machine:dev")) == 4


def test_thirty_sessions_of_three_machines_fit_in_sixty_columns(nvim: Editors) -> None:
    """No line is wider than the window, and each names its machine."""
    editor = nvim(config=ALONE, columns=60, lines=50)
    sessions = [
        far(name, status, f"{project}-{n}", branch="feature/of-some-length", detail="x" * 80)
        for n, project in enumerate(
            ("api", "web", "a-repository-with-a-long-name", "docs", "infra")
        )
        for name, status in (
            ("dev", "working"),
            ("dev", "completed"),
            ("gpu-box-7", "blocked"),
            ("gpu-box-7", "idle"),
            ("pod", "background"),
            ("pod", "error"),
        )
    ]
    Host(editor).push(*sessions)
    editor.command(BOARD)
    lines = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    rows = [line for line in lines if any(f"{m}:" in line for m in ("dev", "gpu-box-7", "pod"))]
    assert len(rows) == 30
    assert max(map(text.width, lines)) <= 60


def test_float_picker_and_statusline_name_the_machine(nvim: Editors) -> None:
    editor = nvim(config=QUIET, columns=100)
    Host(editor).push(machines()[2])
    assert editor.shows("a-long-na…:web")
    assert editor.shows("stale 3h: make deploy")
    text = editor.lua("return require('bellboard').statusline({ plain = true })")
    assert text.startswith("!1 a-long-na…:web: ")
    picker = "return require('bellboard.picker.item').words(require('bellboard').sessions()[1])"
    assert "a-long-name-of-a-box" in editor.lua(picker)
