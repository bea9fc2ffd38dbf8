"""The popup in which requests are answered, without a terminal: what its keys send."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import pytest

from bellboard.cli.popup import Flow
from bellboard.cli.runner import Runner
from bellboard.screen.prompt import SOON
from bellboard.storage.header import MAGIC
from bellboard.storage.spool import Spool
from bellboard.system.processes import started_of
from hosting import made, opened, put_raw
from rig.home import Home

pytestmark = pytest.mark.files

ASKS = {"tool_name": "Bash", "tool_input": {"command": "make"}}
SUBAGENT = {"agent_id": "a1", "agent_type": "Explore"}
DRAWN = {"notification_type": "permission_prompt", "message": "Claude needs your permission"}


def hook(spool: Spool, pid: int, event: str, session: str, **fields: object) -> None:
    head = f"agent=claude\0event={event}\0pid={pid}\0\0"
    payload = {"session_id": session, "hook_event_name": event, "cwd": "/srv", **fields}
    put_raw(spool, MAGIC + head.encode() + json.dumps(payload).encode())


def test_a_request_is_answered_in_the_session_that_has_it_now(
    home: Home, processes: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A background subagent asked, and its session goes on under another id."""
    monkeypatch.setattr(os, "environ", home.env)
    spool, pid = made(home.bellboard), processes()
    lives = {"process": {"pid": pid, "alive": True, "started": started_of(pid)}}
    hook(spool, pid, "SessionStart", "old", source="startup")
    hook(spool, pid, "UserPromptSubmit", "old", prompt="go")
    hook(spool, pid, "SubagentStart", "old", **SUBAGENT)
    hook(spool, pid, "PermissionRequest", "old", **SUBAGENT, **ASKS)
    hook(spool, pid, "Notification", "old", **DRAWN)
    spool.write({"t": time.time(), **lives})
    with opened(home.bellboard) as clerk:
        flow, now = Flow(clerk, Runner(clerk, "a popup"), ""), time.time()

        def shown() -> str:
            return "\n".join(line.plain for line in flow.lines(now, 100, 40))

        assert "1  Yes, this once" in shown()
        hook(spool, pid, "SessionEnd", "old", reason="clear")
        hook(spool, pid, "SessionStart", "new", source="clear")
        hook(spool, pid, "Notification", "new", **DRAWN)
        spool.write({"t": time.time(), **lives})
        now += 2 * SOON
        assert "answered elsewhere" not in shown()
        flow.press("1", now)
        assert "srv: allow: its terminal is neither in tmux nor in a Neovim" in shown()
