"""Several requests of one session, such as of two subagents: its terminal shows them in turn."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.core.session import Block, Process, Run
from bellboard.hosting import answering, asked
from bellboard.hosting.keyboard import ALIKE, ANOTHER
from bellboard.system.processes import started_of
from bellboard.system.reach import reach
from files.test_answering import SCREEN, Typewriter, refused
from rig.host.desk import NAME, Desk

SECOND = "00004712.1.PermissionRequest"
OTHER = SCREEN.replace("make all", "make docs")


@pytest.fixture
def two(desk: Desk) -> Desk:
    """Two subagents ask, the one for `make all` first."""
    given = {"make all": (NAME, "a1", 1.0), "make docs": (SECOND, "a2", 1.1)}
    blocks = {}
    for command, (name, agent, since) in given.items():
        tool = {"command": command, "description": "Build it"}
        desk.asks(agent_id=agent, tool_input=tool)
        (desk.folder / NAME).rename(desk.folder / f"{name}.kept")
        blocks[f"{agent}:"] = Block(
            "permission", since, agent, "Bash", detail=command, request=name, shown=True
        )
    for name, _, _ in given.values():
        (desk.folder / f"{name}.kept").rename(desk.folder / name)
    desk.s = desk.session_of(blocks=blocks)
    return desk


def ways(reply: dict[str, Any]) -> tuple[str, str]:
    return reply["request"]["id"], reply["request"]["way"]


def test_the_one_that_the_terminal_shows_is_asked(two: Desk) -> None:
    """Of two that ask at the same moment, the CLI may show the second one first."""
    two.terminal = Typewriter(two, OTHER)
    assert ways(two.request(request="")) == (SECOND, "keys")
    assert ways(two.request(request="", id=NAME, shown=True)) == (SECOND, "keys")
    two.terminal = Typewriter(two, SCREEN)
    assert ways(two.request(request="")) == (NAME, "keys")


def test_one_that_was_looked_at_elsewhere_is_still_itself(
    two: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that may hang are read in another process, which returns a copy of what it got."""

    async def copied(work: Callable[[], object]) -> object:
        return pickle.loads(pickle.dumps(await reach(work)))

    for module in (asked, answering):
        monkeypatch.setattr(module, "reach", copied)
    two.terminal = Typewriter(two, OTHER)
    assert ways(two.request(request="")) == (SECOND, "keys")


def test_one_that_is_named_is_not_replaced(two: Desk) -> None:
    """By its name, or by its digest, as in `bellboard answer --digest`."""
    two.terminal = Typewriter(two, OTHER)
    assert ways(two.request()) == (NAME, "go")
    assert ways(two.request(request="", id=NAME)) == (NAME, "go")
    digests = {name: two.request(request=name)["request"]["digest"] for name in (NAME, SECOND)}
    for name, digest in digests.items():
        for given in ({"ways": False}, {}):
            assert two.request(request="", digest=digest, **given)["request"]["id"] == name


def test_one_of_another_process_is_not_asked_instead(
    two: Desk, processes: Callable[..., int]
) -> None:
    """The other process has a terminal of its own, whatever this terminal shows."""
    pid = processes()
    tool = {"command": "make docs", "description": "Build it"}
    (two.folder / NAME).rename(first := two.home.root / "first")
    two.asks(pid=pid, agent_id="a2", tool_input=tool)
    (two.folder / NAME).rename(two.folder / SECOND)
    first.rename(two.folder / NAME)
    mine, other = two.s.blocks["a1:"], two.s.blocks["a2:"]
    aside = {pid: Run(pid=pid, turn="working", blocks={"a2:": other})}
    two.s = two.session_of(blocks={"a1:": mine}, aside=aside)
    two.s.processes[pid] = Process(pid, started_of(pid))
    two.terminal = Typewriter(two, OTHER)
    assert ways(two.request(request="")) == (NAME, "go")
    assert ways(two.request(request=SECOND)) == (SECOND, "keys")


def test_one_behind_another_is_refused_in_these_words(two: Desk) -> None:
    """The request in front can be answered, and has to be answered first."""
    terminal = two.terminal = Typewriter(two, OTHER)
    refused(two, two.answer(), ANOTHER)
    assert terminal.keys == ""
    assert two.answer(request=SECOND, digest=digest_of(two, SECOND))["outcome"] == "taken"
    assert terminal.keys == "1"


def test_of_two_that_look_the_same_none_gets_a_key(desk: Desk) -> None:
    """One is of the main thread, one of a subagent: the screen does not say whose it shows."""
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    block = desk.s.blocks[":"]
    other = replace(block, agent="a1", request="another")
    desk.s = desk.session_of(blocks={":": block, "a1:": other})
    refused(desk, desk.answer(), ALIKE)
    assert terminal.keys == ""


FILE = """\
────────────────────────────────────────
 Create file
 w.txt
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
  1 x
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to create w.txt?
 ❯ 1. Yes
   2. No
"""
CLEANS = "rm -rf /home/me/x/y"
WRITES = {"file_path": "/p/w.txt", "content": "x"}


@pytest.mark.parametrize(
    ("ours", "theirs", "screen"),
    [
        pytest.param(
            {"tool_input": {"command": CLEANS}},
            {"tool_input": {"command": "rm -rf /home/me /x/y"}},
            SCREEN.replace("make all", "rm -rf /home/me /x/y").replace("   Build it\n", ""),
            id="blanks",
        ),
        pytest.param(
            {"tool_name": "Edit", "tool_input": WRITES | {"old_string": "y", "new_string": "x"}},
            {"tool_name": "Write", "tool_input": WRITES},
            FILE,
            id="what is done to a file",
        ),
        pytest.param(
            {"tool_name": "Write", "tool_input": WRITES},
            {"tool_name": "Write", "tool_input": WRITES | {"file_path": "/p/sub/w.txt"}},
            FILE,
            id="the folder of a relative path",
        ),
        pytest.param(
            {"tool_name": "Write", "tool_input": WRITES},
            {"tool_name": "Write", "tool_input": None},
            FILE,
            id="one that cannot be read",
        ),
    ],
)
def test_keys_for_one_do_not_grant_another(
    desk: Desk, ours: dict[str, Any], theirs: dict[str, Any], screen: str
) -> None:
    """The terminal shows the other request, and does not prove the difference; no key is sent."""
    desk.asks(agent_id="a2", **theirs)
    (desk.folder / NAME).rename(desk.folder / SECOND)
    desk.asks(agent_id="a1", **ours)
    blocks = {
        f"{agent}:": Block("permission", 1.0, agent, request=name, shown=True)
        for agent, name in (("a1", NAME), ("a2", SECOND))
    }
    desk.s = desk.session_of(blocks=blocks, cwd="/p/sub", project_dir="/p")
    terminal = desk.terminal = Typewriter(desk, screen)
    assert ways(desk.request()) == (NAME, "go")
    assert ways(desk.request(request="")) == (NAME, "go")
    refused(desk, desk.answer(), ALIKE)
    assert terminal.keys == ""
    (desk.folder / SECOND).unlink()
    desk.s = desk.session_of(blocks={"a1:": blocks["a1:"]}, cwd="/p/sub", project_dir="/p")
    assert desk.answer()["way"] == "keys"


def test_the_dialog_that_follows_is_awaited(two: Desk) -> None:
    """The CLI draws it a moment after the other was answered, however long both have waited."""
    terminal = two.terminal = Typewriter(two, OTHER)
    blocks = {"a1:": two.s.blocks["a1:"]}
    two.s = two.session_of(blocks=blocks, answered=time.time())
    threading.Timer(0.3, lambda: setattr(terminal, "screen", SCREEN)).start()
    assert ways(two.request(request="")) == (NAME, "keys")
    terminal.screen = OTHER
    threading.Timer(0.3, lambda: setattr(terminal, "screen", SCREEN)).start()
    reply = two.answer(digest=digest_of(two, NAME))
    assert (reply.get("why"), terminal.keys) == (None, "1")


def digest_of(desk: Desk, name: str) -> str:
    return str(desk.request(request=name, ways=False)["request"]["digest"])
