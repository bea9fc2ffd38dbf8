"""The real CLIs of other agents on a fake model, a scene each: `make truth AGENT=…` has more."""

from __future__ import annotations

import pytest

from clis.play import played
from clis.stands import STANDS

pytestmark = [pytest.mark.tmux, pytest.mark.timeout(300)]


@pytest.mark.parametrize("agent", STANDS)
def test_what_is_shown_of_an_agent_is_what_its_screen_says(agent: str) -> None:
    """With hooks from our own installer: it works, asks, is answered, completes, and is gone.

    That it is late on a busy machine is not looked at here.
    """
    stand = STANDS[agent]
    asks = "approve" not in stand.lacks
    row = played(stand, "approve" if asks else "text")
    assert row.failure == ""
    assert row.shown == ("idle", "working", *["blocked"] * asks, "completed", None)
