"""A host that comes late: sessions that already run, and what happened while nobody watched."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hosting import Telling
from rig.agent import EVENTS, Agent
from rig.api import Api
from rig.fixtures import Agents
from rig.home import Home
from rig.waiting import eventually

EMIT = Path(__file__).parents[1] / "hooks" / "emit"
GENEROUS = 15.0  # seconds: half of what a slow look would take; alone it is a quarter of one
Start = Callable[..., Telling]


def is_at(host: Telling, sid: str, agent: Agent) -> bool:
    """Whether it is shown in the agent's own terminal, as its process tells."""
    socket = str(agent.pane.server.socket)
    place = {"pid": agent.pid, "tty": agent.pane.tty, "tmux": socket, "pane": agent.pane.id}
    return place.items() <= host.sessions[sid].items()


@pytest.mark.claude
def test_installed_in_the_middle(
    claude: Agents, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three sessions already run, one of them blocked: all are listed as they are, at once."""
    working, blocked, idle = claude(), claude(), claude()
    working.submit("play:slow please")
    blocked.submit("play:perm please")
    working.becomes("busy")
    blocked.becomes("waiting")
    idle.becomes("idle")
    agents = {"working": working, "blocked": blocked, "idle": idle}
    expected = {str(agent.registry()["sessionId"]): status for status, agent in agents.items()}
    begun = time.monotonic()
    host = Telling(home)
    try:
        eventually(lambda: host.shown == expected, "all three, as they are")
        took = time.monotonic() - begun
        with capsys.disabled():
            sys.stdout.write(f"\nthree sessions that ran before: listed after {took:.2f} s\n")
        assert took < GENEROUS
        for sid, status in expected.items():
            eventually(partial(is_at, host, sid, agents[status]), f"where {sid} is")
        assert [] == host.live
    finally:
        host.kill()


def our_hooks() -> dict[str, Any]:
    """Settings with our hook for the events that every CLI knows."""
    command = f'set -- {{}} "$PPID"; . {EMIT}'
    return {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": command.format(event)}]}]
            for event in EVENTS["2.0.76"].split()
        }
    }


@pytest.mark.claude
@pytest.mark.parametrize("hooked", [True, False], ids=["with hooks", "without hooks"])
def test_what_happened_while_no_host_lived_is_shown_and_not_announced(
    claude: Agents, home: Home, api: Api, start: Start, hooked: bool
) -> None:
    """One finishes, one begins to ask, one works on, one is killed; then a host comes again."""
    settings = our_hooks() if hooked else None
    names = ("finishes", "asks", "works on", "is killed")
    agents = {name: claude(settings=settings) for name in names}
    sids = {name: str(agent.becomes("idle")["sessionId"]) for name, agent in agents.items()}
    log = home.root / "callbacks"
    on = {"transition": ["sh", "-c", f'echo "$3 $2" >>{log}', "sh"]}
    first = start("first", on=on)
    eventually(lambda: set(first.shown) == set(sids.values()), "all four")
    api.hold()
    plays = ("text", "perm", "slow", "slow")
    for agent, play in zip(agents.values(), plays, strict=True):
        agent.submit(f"play:{play} please")
        agent.becomes("busy")
    eventually(lambda: set(first.shown.values()) == {"working"}, "all at work")
    told = {(sid, "working") for sid in sids.values()}
    eventually(lambda: log_of(log) == told, "the callbacks of that")
    first.kill()

    api.release()
    os.kill(agents["is killed"].pid, signal.SIGKILL)
    agents["finishes"].becomes("idle")
    agents["asks"].becomes("waiting")
    if hooked:
        spool = home.bellboard / "spool" / "new"
        eventually(lambda: [*spool.glob("*.PermissionRequest")], "the hook of the question")
    second = start("second", on=on)
    expected = {
        sids["finishes"]: "completed",
        sids["asks"]: "blocked",
        sids["works on"]: "working",
    }
    eventually(lambda: second.shown == expected, "what became of them")

    agents["finishes"].submit("play:slow please")  # what comes next is announced, and it alone
    next_one = (sids["finishes"], "working")
    eventually(lambda: next_one in second.live, "the next change")
    assert [next_one] == second.live
    eventually(lambda: log_of(log) == told, "no other callback")
    assert expected | dict([next_one]) == second.shown


def log_of(path: Path) -> set[tuple[str, str]]:
    """The callbacks that ran."""
    rows = path.read_text().splitlines() if path.exists() else []
    return {(sid, to) for sid, to in (row.split() for row in rows)}
