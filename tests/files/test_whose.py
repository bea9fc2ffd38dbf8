"""When the user's own key and an answer from elsewhere meet, the reply says whose counted."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from msgspec.structs import replace

from bellboard.core.session import Stated
from bellboard.storage.answers import Claim, Claims
from core.test_deciding import REJECTED, decision, result, tool
from files.test_answering import refused
from rig.host.desk import NAME, Desk

IN_TERMINAL = "you answered in the terminal first"


def shows(desk: Desk, *entries: dict[str, Any]) -> None:
    """Let its transcript have these entries."""
    path = desk.home.root / "s.jsonl"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    rows = [json.dumps({**entry, "timestamp": now}) for entry in (tool(), *entries)]
    path.write_text("\n".join([*rows, ""]))
    desk.s = desk.session_of(blocks=desk.s.blocks, transcript=str(path))


def works(desk: Desk, since: float, status: str = "busy") -> None:
    """Let its session file say that it works, or rests."""
    file = desk.home.claude / "sessions" / f"{desk.pid}.json"
    file.parent.mkdir()
    at = int(since * 1000)
    known = {"pid": desk.pid, "sessionId": "s", "cwd": "/", "startedAt": at - 60_000}
    file.write_text(json.dumps({**known, "status": status, "statusUpdatedAt": at}))


def test_the_user_was_first_if_the_session_went_on_before_it_was_answered(desk: Desk) -> None:
    """The session file says so before any hook does: nothing is sent."""
    hook = desk.waits()
    digest = desk.request()["request"]["digest"]
    works(desk, time.time())
    refused(desk, desk.answer(digest=digest), IN_TERMINAL)
    assert hook.said == []


def test_nobody_was_first_while_the_session_file_is_yet_to_show_the_question(desk: Desk) -> None:
    """A slow CLI writes that it works after the hook that asks, and that it waits later still."""
    hook = desk.waits()
    process = replace(desk.s.processes[desk.pid], states=Stated("busy", at=0.5, source="file"))
    desk.s = desk.session_of(blocks=desk.s.blocks, processes={desk.pid: process})
    works(desk, time.time())
    assert "why" not in desk.answer()
    assert len(hook.said) == 1


def test_who_of_us_was_first_is_named(desk: Desk) -> None:
    """Although the question still stands here."""
    desk.waits()
    digest = desk.request()["request"]["digest"]
    works(desk, time.time())
    Claims(desk.home.bellboard).claim(NAME, Claim("Neovim 9", time.time(), "allow", 9))
    refused(desk, desk.answer(digest=digest), "already answered by Neovim 9")


def test_the_user_was_first_if_it_went_on_before_the_hook_got_the_answer(desk: Desk) -> None:
    """The key came between the last look and the answer; a long command shows no result yet."""
    desk.waits()
    digest, asked = desk.request()["request"]["digest"], time.time()
    desk.then = lambda: works(desk, asked)
    assert desk.answer(digest=digest) == {"why": IN_TERMINAL}
    assert [told.get("outcome", "") for told in desk.told] == ["", IN_TERMINAL]


def test_the_user_was_first_if_the_tool_ran_without_the_hook(desk: Desk) -> None:
    """The transcript shows a result that no hook decided on."""
    desk.waits()
    shows(desk, result("made"))
    assert desk.answer("deny") == {"why": IN_TERMINAL}
    assert [told.get("outcome", "") for told in desk.told] == ["", IN_TERMINAL]
    assert desk.answer(digest="x") == {"why": IN_TERMINAL}


def test_this_answer_was_first_if_the_hook_decided(desk: Desk) -> None:
    """And not only somebody's."""
    desk.waits()
    shows(desk, decision("allow"), result("made"))
    reply = desk.answer()
    assert reply["outcome"] == "taken"
    assert reply["text"].startswith("it took this answer after ")
    assert desk.told[-1]["outcome"] == reply["text"]


@pytest.mark.parametrize(
    ("status", "does"), [("idle", IN_TERMINAL), ("busy", "you stopped it in the terminal")]
)
def test_the_user_said_no_or_interrupted_what_was_allowed(
    desk: Desk, status: str, does: str
) -> None:
    """The transcript says the same of both; between them, the agent worked."""
    desk.waits()
    shows(desk, result(REJECTED, error=True))
    desk.then = lambda: works(desk, time.time() + 1, status)
    reply = desk.answer()
    assert reply.get("why", reply.get("text", ""))[: len(does)] == does
    assert desk.told[-1]["outcome"][: len(does)] == does


@pytest.mark.parametrize("by", ["name", "digest"])
def test_what_is_over_and_was_not_answered_by_us_was_answered_in_the_terminal(
    desk: Desk, by: str
) -> None:
    digest = desk.request()["request"]["digest"]
    desk.s = desk.session_of(blocks={})
    given = {"request": NAME, "digest": ""} if by == "name" else {"request": "", "digest": digest}
    assert desk.answer(**given)["why"] == IN_TERMINAL
    nothing = desk.answer(request="", digest="")["why"]
    assert nothing == "it has already been answered"


@pytest.mark.parametrize("by", ["name", "digest"])
def test_who_was_first_is_known_from_the_log(desk: Desk, by: str) -> None:
    """When nothing is left in answers/."""
    digest = desk.request()["request"]["digest"]
    desk.waits()
    assert desk.answer(digest=digest, by="a popup")["outcome"] == "taken"
    (desk.folder / f"{NAME}.answer").unlink()
    given = {"request": NAME, "digest": ""} if by == "name" else {"request": "", "digest": digest}
    assert desk.answer(**given)["why"] == "already answered by a popup"


def test_another_hook_may_be_first(desk: Desk) -> None:
    desk.waits()
    shows(desk, decision("deny"), result("no", error=True))
    assert desk.answer() == {"why": "another hook answered first"}


def test_it_only_went_on_as_long_as_nothing_shows_who_was_first(desk: Desk) -> None:
    """Such as while a long command runs."""
    desk.waits()
    shows(desk)
    reply = desk.answer()
    assert (reply["outcome"], reply["text"][:11]) == ("taken", "it went on ")
