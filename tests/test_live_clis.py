"""Real CLIs of other agents on a fake model: a question each; `make truth AGENT=…` has more."""

from __future__ import annotations

import pytest

from clis.account import judged
from clis.stage import Stage
from clis.stands import CODEX, OPENCODE, Stand

FIRST, SECOND = "%0", "%1"


@pytest.mark.tmux
@pytest.mark.parametrize("stand", [CODEX, OPENCODE], ids=lambda stand: stand.key)
def test_what_is_shown_of_an_agent_is_what_its_screen_says(stand: Stand) -> None:
    """With hooks from our own installer: it works, asks, is answered, completes, and is gone.

    How late that is on a busy machine is not looked at here.
    """
    stand.fetch()
    with Stage(stand) as stage:
        stage.start()
        stage.prompt(f"{stand.asking} true; say Done")
        stage.becomes("blocked")
        stage.press(*stand.allow)
        stage.becomes("completed")
        stage.leave()
        outside = stage.watch.spoke_out()
        shown = dict.fromkeys(change["to"] for change in stage.published.changes)
    assert tuple(shown) == ("idle", "working", "blocked", "completed", None)
    assert not outside


@pytest.mark.pure
def test_a_session_that_is_resumed_in_another_terminal_was_gone_from_the_first() -> None:
    """And one that is listed for longer than its terminal was not."""
    marks = {
        FIRST: [(0.0, "idle"), (10.0, "ended")],
        SECOND: [(12.0, "idle"), (20.0, "ended")],
    }
    times = [(0.0, "idle"), (10.5, None), (12.0, "idle"), (20.25, None)]
    changes = [{"t": t, "session_id": "s", "to": to} for t, to in times]
    assert judged("resume", marks, changes, {"s": [FIRST, SECOND]}, 1.0).left == 0.5
    assert judged("resume", marks, changes[:3], {"s": [FIRST, SECOND]}, 1.0).left == float("inf")
