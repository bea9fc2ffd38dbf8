"""Checks of an answer that only matter when something is odd: each has a test that misses it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Timer
from typing import Any, cast

import pytest
from msgspec.structs import replace

from bellboard.agents.agent import Press
from bellboard.agents.claude.transcript import REJECTED
from bellboard.core.session import Block, Process
from bellboard.hosting import answering, keyboard
from bellboard.hosting.hook_pipes import HookPipes
from bellboard.storage.answers import TAKEN
from bellboard.storage.store import Store
from bellboard.system.failures import Declined
from files.test_answering import SCREEN, THERE, Typewriter, needs_root, refused
from files.test_whole import BASH
from rig.host.desk import NAME, Desk
from rig.tmux import Pane, Server
from rig.waiting import eventually, leniency

STRANGER = 54321


@pytest.mark.parametrize("how", ["late", "full", "outdated"])
def test_what_cannot_be_logged_reaches_no_hook(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Else the history would lack an answer that counted; the terminal still takes one."""
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    error = {"full": OSError(28, "No space left on device"), "outdated": ValueError("too old")}

    def report(line: Mapping[str, Any]) -> str:
        if how in error:
            raise error[how]
        return "the disk is full"

    monkeypatch.setattr(desk, "report", report)
    why = desk.answer(digest=digest)["why"]
    assert re.fullmatch(f"an answer to a hook must be logged first: .+{THERE}", why)
    assert hook.said == []
    assert sorted(path.name for path in desk.folder.iterdir()) == [NAME, "1.1", f"1.1{TAKEN}"]


@needs_root
def test_a_claim_of_another_user_does_not_count(desk: Desk) -> None:
    """However it came into the folder, it keeps nobody from answering."""
    desk.waits()
    claim = desk.folder / f"{NAME}.answer"
    claim.write_text(json.dumps({"by": "a stranger", "t": 1.0}))
    assert desk.answer()["why"] == "already answered by a stranger"
    os.chown(claim, STRANGER, STRANGER)
    assert desk.answer()["outcome"] == "taken"


@needs_root
def test_a_folder_of_another_user_is_refused(desk: Desk) -> None:
    """Who owns it can put anything into it, although nobody else may."""
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    os.chown(desk.folder, STRANGER, STRANGER)
    refused(desk, desk.answer(digest=digest), f"others may write to {desk.folder}; make it private")
    assert hook.said == []


@pytest.mark.parametrize("becomes", [{"agent": "a1"}, {"tool": "Write"}, {"since": 2.0}])
def test_a_question_without_a_name_is_known_by_its_owner_and_time(
    desk: Desk, becomes: dict[str, object]
) -> None:
    """No hook reported it: whatever is asked after it has no name, either."""

    class Next(Typewriter):
        def rows(self) -> list[str]:
            desk.s = desk.session_of(blocks={":": replace(asked, **becomes)})
            return super().rows()

    asked = Block("permission", 1.0, tool="Bash", detail="make all", shown=True)
    desk.s = desk.session_of(blocks={":": asked}, transcript=desk.writes(BASH))
    digest = desk.request(request="")["request"]["digest"]
    terminal = desk.terminal = Next(desk, SCREEN)
    refused(desk, desk.answer(request="", digest=digest), "you answered in the terminal first")
    assert terminal.keys == ""


def test_where_all_is_slow_it_is_awaited_whose_answer_counted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that the user stopped is not reported as done because its entry is late."""
    monkeypatch.setattr(answering, "GLANCE", 0.2)
    desk.waits()
    desk.s = replace(desk.s, transcript=desk.writes(BASH))
    said = {"type": "tool_result", "tool_use_id": BASH["id"], "is_error": True, "content": REJECTED}
    late = Timer(answering.SHOWS + 0.3, partial(desk.writes, BASH, said))
    desk.then = late.start
    text = desk.answer()["text"]
    late.join()
    assert text.startswith("you stopped it in the terminal after ")


def test_however_slow_all_that_follows_is_awaited_for_some_seconds(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else another machine that gave the answer would no longer wait for the outcome."""
    monkeypatch.setattr(answering, "GLANCE", 1.0)
    monkeypatch.setattr(answering, "LATEST", 8.0)
    desk.goes_on = False
    desk.waits()
    desk.s = replace(desk.s, transcript=desk.writes(BASH))
    begun = time.monotonic()
    last = Timer(3.0, lambda: setattr(desk, "s", replace(desk.s, blocks={})))
    desk.then = last.start
    reply = desk.answer()
    assert reply["text"].startswith("it went on after ")
    assert time.monotonic() < begun + 8.0 + 2.0 * min(2.0, leniency(1.0))
    last.join()


def test_a_process_that_began_after_the_question_did_not_ask_it(desk: Desk) -> None:
    """Without a known start, the id may belong to another process by now."""

    def unknown(since: float) -> None:
        desk.becomes(since=since)
        desk.s = replace(desk.s, processes={desk.pid: Process(desk.pid, "")})

    desk.waits()
    unknown(time.time() - 60)
    why = f"the start time of process {desk.pid} is unknown: it may be another process{THERE}"
    refused(desk, desk.answer(digest="x"), why)
    unknown(time.time() + 5)
    assert desk.answer()["outcome"] == "taken"


# ---------------------------------------------------------------- by keys


def test_a_key_is_not_typed_again_while_its_rows_are_still_shown() -> None:
    """A slow CLI shows the rows for a while: a second key would answer the next question."""

    class Slow:
        looks, keys = 0, ""

        def rows(self) -> list[str]:
            self.looks += bool(self.keys)
            return ["Review" if self.looks > 20 else "Name"]

        def type(self, press: Press) -> bool:
            self.keys += press.key
            return True

    async def ours(types: bool) -> bool:
        return True

    def following(rows: Sequence[str]) -> Press:
        return Press("2" if rows == ["Review"] else "1", rows=tuple(rows), last=rows == ["Review"])

    slow = Slow()
    asyncio.run(keyboard.enter(slow, following, ours))
    assert slow.keys == "12"


@pytest.mark.tmux
def test_a_pane_gets_a_key_only_under_the_rows_that_it_follows_from(tmux: Server) -> None:
    pane = tmux.open(["cat"], session="cat")
    terminal = keyboard.PaneTerminal(str(tmux.socket), pane.id, pane.tty)
    pane.type("What it asks")
    pane.shows("What it asks")
    assert not terminal.type(Press("1", rows=("What it asked before",)))
    assert terminal.type(Press("2", rows=("What it asks",)))
    pane.shows("2")
    assert "1" not in pane.text()


@pytest.mark.tmux
def test_a_pane_that_is_not_its_terminal_is_refused(tmux: Server) -> None:
    """The id belongs to another pane by now, or the program in the pane has ended."""
    tmux.open(["cat"], session="stays")
    pane = tmux.open(["cat"], session="cat")
    tmux.run("set-option", "-t", "cat", "-w", "remain-on-exit", "on")
    assert _refuses(tmux, pane, "/dev/pts/nowhere") and not _refuses(tmux, pane, tty := pane.tty)
    pane.press("C-d")
    eventually(lambda: pane.dead, "the end of the program")
    assert _refuses(tmux, pane, tty)


def _refuses(tmux: Server, pane: Pane, tty: str) -> bool:
    try:
        keyboard.PaneTerminal(str(tmux.socket), pane.id, tty).rows()
    except Declined as why:
        return str(why) == f"tmux pane {pane.id} is not its terminal {tty}"
    return False


# ---------------------------------------------------------------- by hooks that wait


class On:
    """A store in which answers are on."""

    def option(self, name: str) -> bool:
        return name == "answers"


@pytest.mark.parametrize(("thread", "stays"), [("", True), ("a1", False)])
def test_the_hook_of_a_subagent_is_sent_away(desk: Desk, thread: str, stays: bool) -> None:
    """The hook of an older installation waits, too, and could hold back its dialog."""
    desk.waits()
    desk.s = desk.session_of(blocks={":": replace(desk.s.blocks[":"], agent=thread)})
    waiting = HookPipes(desk.spool)
    waiting.run(cast("Store", On()), {"s": desk.s})
    assert (desk.folder / "1.1").exists() is stays
    waiting.close()


MAKE = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "make all"}]}
MAKE |= {"behavior": "allow", "destination": "localSettings"}


def test_what_is_suggested_reaches_the_hook_only_as_it_was_suggested(desk: Desk) -> None:
    """Keys do not offer it, and say why; both ways name the answers of the terminal."""
    desk.asks(permission_suggestions=[MAKE])
    more = SCREEN.replace("  2. No", "  2. Yes, and don\u2019t ask again for: make *\n   3. No")
    desk.terminal = terminal = Typewriter(desk, more)
    shown = desk.request()["request"]
    assert "always" not in [choice["id"] for choice in shown["choices"]]
    words = "Yes, and don\u2019t ask again for: make *"
    (offer,) = [choice for choice in shown["choices"] if choice["words"] == words]
    assert offer["note"] == "chosen in its terminal"
    assert [*shown["more"]] == [
        "Not all can be typed: go there. With answers on, a waiting hook takes all.",
    ]
    why = "its dialog does not say exactly that: go there. With answers on, a waiting hook takes it"
    refused(desk, desk.answer("always"), why)
    assert terminal.keys == ""
    hook = desk.waits()
    shown = desk.request()["request"]
    (note,) = [choice["note"] for choice in shown["choices"] if choice["id"] == "always"]
    assert shown["way"] == "hook"
    assert offer in shown["choices"]
    assert note == "written to .claude/settings.local.json"
    assert desk.answer("always")["way"] == "hook"
    (line,) = hook.said
    assert json.loads(line)["hookSpecificOutput"]["decision"]["updatedPermissions"] == [MAKE]


def test_what_only_its_terminal_offers_is_chosen_there_although_a_hook_waits(desk: Desk) -> None:
    desk.asks()
    more = SCREEN.replace("  2. No", "  2. Yes, and switch to auto mode\n   3. No")
    desk.terminal = terminal = Typewriter(desk, more)
    desk.waits()
    (offer,) = [c for c in desk.request()["request"]["choices"] if c["id"].startswith("offer-")]
    assert desk.answer(offer["id"])["way"] == "keys"
    assert terminal.keys == "2"


def test_what_its_terminal_no_longer_offers_is_refused(desk: Desk) -> None:
    desk.asks()
    desk.terminal = terminal = Typewriter(desk, SCREEN)
    refused(
        desk, desk.answer("offer-01234567"), "its dialog does not offer that; go there to answer"
    )
    assert terminal.keys == ""
