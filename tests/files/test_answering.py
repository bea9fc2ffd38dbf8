"""An answer reaches exactly the request that was shown, exactly once; all else is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.agent import Press
from bellboard.agents.parts import CUT
from bellboard.core.events import Event
from bellboard.core.session import Process, Session
from bellboard.hosting import answering, keyboard
from bellboard.hosting.answering import seconds
from bellboard.hosting.asked import FIRST, by_whom
from bellboard.storage.answers import Claim, Claims
from bellboard.system import reach as reaching
from bellboard.system.failures import Declined
from bellboard.system.processes import started_of
from rig.home import Home
from rig.host.desk import NAME, Desk
from rig.waiting import eventually, rest

ALLOWED = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
TERMINAL = "you answered in the terminal first"
THERE = "; go there to answer"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
NOTHING = "no reaction within [2-6] s"


def said(line: str) -> Any:
    return json.loads(line)["hookSpecificOutput"]


# ---------------------------------------------------------------- by the hook that waits


def test_an_answer_reaches_the_hook_that_waits(desk: Desk) -> None:
    """The line is logged before it is sent, and its outcome afterwards."""
    hook = desk.waits()
    shown = desk.request()["request"]
    assert [way["name"] for way in shown["ways"]] == ["hook", "go"]
    reply = desk.answer("deny", message="Use “ninja”,\nplease", by="Neovim 7")
    assert (reply["way"], reply["outcome"]) == ("hook", "taken")
    (line,) = hook.said
    assert said(line)["decision"] == {"behavior": "deny", "message": "Use “ninja”,\nplease"}
    first, last = desk.told
    assert first == {
        "session_id": "s",
        "request": NAME,
        "digest": shown["digest"],
        "choice": "deny",
        "way": "hook",
        "by": "Neovim 7",
        "pid": desk.pid,
    }
    assert last["outcome"].startswith("it went on after ")


def test_no_reaction_took_no_time() -> None:
    """A reaction too fast to be measured is reported as fast."""
    assert [*map(seconds, (0.0, 0.04, 0.06, 1.26))] == [*["less than 0.1 s"] * 2, "0.1 s", "1.3 s"]


def test_an_answer_without_reaction_is_reported(desk: Desk) -> None:
    """The report comes after two seconds or more, says where to go, and is no success."""
    desk.goes_on = False
    desk.waits()
    reply = desk.answer()
    assert reply["outcome"] == "nothing"
    assert re.fullmatch(NOTHING + "; go there to answer", reply["text"])
    assert re.fullmatch(NOTHING, desk.told[-1]["outcome"])


def test_where_all_is_slow_an_agent_gets_more_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under load each look takes longer, and so does the agent."""
    monkeypatch.setattr(answering, "GLANCE", 0.2)
    desk.then = partial(rest, answering.FOLLOWS + 0.5)
    desk.waits()
    assert desk.answer()["outcome"] == "taken"


def test_an_answer_whose_outcome_cannot_be_read_was_sent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the CLI stops answering: nobody is told that it was refused, or answers again."""
    desk.waits()
    digest = desk.request()["request"]["digest"]
    desk.goes_on = False
    looks, look = [], desk.session

    def session(sid: str) -> Session | None:
        looks.append(sid)
        return look(sid)

    def hangs() -> None:  # once the answer is sent and its outcome is awaited
        sent = len(looks)
        eventually(lambda: len(looks) > sent)
        monkeypatch.setattr(reaching, "ERRAND", 0.001)

    monkeypatch.setattr(desk, "session", session)
    desk.then = hangs
    reply = desk.answer(digest=digest)
    monkeypatch.undo()
    assert (reply["way"], reply["outcome"]) == ("hook", "nothing")
    assert re.fullmatch(NOTHING, desk.told[-1]["outcome"])
    assert desk.claim.exists()  # so that nobody answers again


def test_a_long_answer_is_sent_whole(desk: Desk) -> None:
    """Longer than a pipe holds, while the hook reads slowly."""
    hook = desk.waits()
    assert desk.answer("deny", message="é" * 32_000)["outcome"] == "taken"
    assert said(hook.said[0])["decision"]["message"] == "é" * 32_000


def test_without_hook_and_terminal_it_is_refused(desk: Desk) -> None:
    """Nothing is left that would keep others from answering."""
    reply = desk.answer()
    assert reply["why"] == f"its terminal is neither in tmux nor in a Neovim{THERE}"
    assert [path.name for path in desk.folder.iterdir()] == [NAME]
    desk.waits()
    assert desk.answer()["outcome"] == "taken"


# ---------------------------------------------------------------- exactly once


def test_of_many_answers_at_once_one_counts(desk: Desk) -> None:
    """All others learn who was first; fifty times."""
    for n in range(50):
        desk.s = desk.session_of()
        hook = desk.waits(f"1.{n + 1}")
        digest = desk.request()["request"]["digest"]
        gives = [("allow", f"Neovim {m}") for m in range(2)] + [("stop", "a popup")]
        with ThreadPoolExecutor(len(gives)) as pool:
            replies = [
                pool.submit(desk.answer, choice, by=by, digest=digest) for choice, by in gives
            ]
        told = [reply.result() for reply in replies]
        won = [by for (_, by), reply in zip(gives, told, strict=True) if "outcome" in reply]
        assert len(won) == 1, told
        whys = {reply["why"] for reply in told if "why" in reply}
        assert whys == {f"already answered by {won[0]}"}
        assert len(hook.said) == 1
        desk.claim.unlink()


@pytest.mark.parametrize("is_over", [True, False])
def test_a_question_that_ends_just_before_the_answer_is_sent_gets_no_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_over: bool
) -> None:
    """The same question gets none either when it is asked again; no claim is left."""
    hook = desk.waits()
    digest, look = desk.request()["request"]["digest"], desk.session
    claim = desk.claim

    def session(sid: str) -> Session | None:
        if claim.exists() and is_over:
            desk.s = desk.session_of(blocks={})
        elif claim.exists():
            desk.becomes(since=2.0)
        return look(sid)

    monkeypatch.setattr(desk, "session", session)
    refused(desk, desk.answer(digest=digest), TERMINAL)
    assert not claim.exists()
    assert hook.said == []


def test_who_answered_is_not_whose_answer_was_refused_after_all() -> None:
    """An answer is logged before it is sent; here the user was first, in the terminal."""

    def logged(by: str, way: str, outcome: str = "") -> Event:
        return Event("answer", "answer", 1.0, 1.0, "s", source=way, viewer=by, message=outcome)

    sent, refused = logged("A", "keys"), logged("A", "none", "refused: it was answered meanwhile")
    taken = logged("A", "keys", "it took this answer after 0.1 s")
    assert by_whom([]) == by_whom([sent, refused]) == by_whom([logged("B", "none", "x")]) == ""
    assert by_whom([sent]) == by_whom([sent, taken]) == "already answered by A"
    assert by_whom([sent, taken, refused]) == by_whom([sent, logged("B", "none", "x")])
    assert by_whom([sent, logged("A", "keys", FIRST["terminal"])]) == FIRST["terminal"]


def test_a_crash_between_claim_and_answer_blocks_nobody_for_long(desk: Desk) -> None:
    """The claim of a process that died counts for three seconds."""
    desk.waits()
    Claims(desk.home.bellboard).claim(NAME, Claim("Neovim 9", time.time(), "allow", 9))
    assert desk.answer()["why"] == "already answered by Neovim 9"
    os.utime(desk.claim, (time.time() - 4,) * 2)
    assert desk.answer()["outcome"] == "taken"


def test_a_claim_is_only_renewed_and_released_by_its_owner(desk: Desk) -> None:
    """A slow owner neither goes on nor frees the request of the next."""
    answers = Claims(desk.home.bellboard)
    slow, next_ = Claim("a", 1.0, "allow", 1), Claim("b", 2.0, "allow", 2)
    assert answers.claim(NAME, slow) is None
    os.utime(desk.claim, (time.time() - 4,) * 2)
    assert answers.claim(NAME, next_) is None
    assert not answers.renew(NAME, slow)
    answers.release(NAME, slow)
    assert answers.claim(NAME, slow) == next_
    assert answers.renew(NAME, next_)


# ---------------------------------------------------------------- attacks: each refused and logged


def refused(desk: Desk, reply: dict[str, Any], why: str) -> None:
    """An answer was refused for that reason, logged, and no hook got it."""
    assert reply.get("why") == why
    assert desk.told[-1]["outcome"] == f"refused: {why}"[:200]


CHANGED = "the request has changed since you read it; read it again"


def ends(desk: Desk) -> None:
    os.kill(desk.pid, signal.SIGKILL)
    os.waitpid(desk.pid, 0)


def links(path: Path, other: Path) -> None:
    path.rename(other)
    path.symlink_to(other)


def replaces_by_a_file(desk: Desk) -> None:
    desk.pipe.unlink()
    desk.pipe.touch()


REUSED = f"process {{desk.pid}} is a different process now{THERE}"
ABOUT_OTHERS = f"its request is about another session{THERE}"
NOWHERE = f"its terminal is neither in tmux nor in a Neovim{THERE}"
CONTROLS = "the message has the control character"

#: What happens once the request was read, or how the answer differs → why it is refused.
ATTACKS: dict[str, tuple[Callable[[Desk], object] | dict[str, Any], str]] = {
    "another digest": ({"digest": "0" * 16}, CHANGED),
    "an empty digest": ({"digest": ""}, CHANGED),
    "no digest": ({"digest": None}, CHANGED),
    "another command": (lambda desk: desk.asks(tool_input={"command": "rm -rf /"}), CHANGED),
    "an ended process": (ends, REUSED),
    "a reused pid": (
        lambda desk: desk.changes(processes={desk.pid: Process(desk.pid, "1")}),
        REUSED,
    ),
    "an event of another session": (lambda desk: desk.asks(session_id="t"), ABOUT_OTHERS),
    "an event of another CLI": (lambda desk: desk.asks(agent="other"), ABOUT_OTHERS),
    "an event of another process": (
        lambda desk: desk.asks(pid=os.getpid()),
        f"another process asks that{THERE}",
    ),
    "no process that is known": (
        lambda desk: (desk.asks(pid=os.getpid()), desk.changes(pid=0)),
        f"cannot verify that the process that asks runs this session{THERE}",
    ),
    "an unknown CLI": (
        lambda desk: desk.changes(agent="other"),
        f"how other takes answers is not known{THERE}",
    ),
    "an event that cannot be read": (
        lambda desk: desk.asks(session_id=1),
        f"its request cannot be read{THERE}",
    ),
    "a message of 10 MB": ({"message": "x" * (10 << 20)}, "the message is longer than 64 kB"),
    "a message with a zero": ({"message": "a\0b"}, f"{CONTROLS} U+0000"),
    "a message with an escape": ({"message": "a\x1b]0;x\x07"}, f"{CONTROLS} U+001B"),
    "a pipe that is a link": (lambda desk: links(desk.pipe, desk.home.root / "other"), NOWHERE),
    "a pipe that is a file": (replaces_by_a_file, NOWHERE),
    "a pipe that is gone": (lambda desk: desk.pipe.unlink(), NOWHERE),
    "a pipe that is outside": (lambda desk: desk.becomes(pipe="../answers/1.1"), NOWHERE),
    "a folder in the place of the claim": (
        lambda desk: desk.claim.mkdir(),
        "{desk.claim} is a directory; remove it",
    ),
    "a folder that others may write to": (
        lambda desk: desk.folder.chmod(0o777),
        "others may write to {desk.folder}; make it private",
    ),
    "a folder that is a link": (
        lambda desk: links(desk.folder, desk.home.root / "other"),
        "{desk.folder} is a link or a file; remove it",
    ),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_an_answer_to_anything_but_what_was_read_is_refused(desk: Desk, what: str) -> None:
    """A queued edit may change what would run; what was shown counts."""
    hook = desk.waits()
    given: dict[str, Any] = {"digest": desk.request()["request"]["digest"]}
    change, why = ATTACKS[what]
    if isinstance(change, dict):
        given |= change
    else:
        change(desk)
    refused(
        desk, desk.answer("deny" if "message" in given else "allow", **given), why.format(desk=desk)
    )
    assert hook.said == []
    assert not desk.pipe.is_file() or desk.pipe.read_bytes() == b""


def test_a_replay_is_refused(desk: Desk) -> None:
    """The same answer again, when it counts no longer."""
    desk.waits()
    digest = desk.request()["request"]["digest"]
    assert desk.answer(digest=digest)["outcome"] == "taken"
    refused(desk, desk.answer(digest=digest), "already answered by Neovim 1")
    desk.claim.unlink()
    refused(desk, desk.answer(digest=digest), "already answered by Neovim 1")


@needs_root
def test_the_process_of_another_user_is_refused(home: Home, processes: Callable[..., int]) -> None:
    pid = processes(user=54321)
    desk = Desk(home, pid)
    desk.waits()
    refused(desk, desk.answer(digest="x"), f"process {pid} belongs to another user{THERE}")


def test_a_process_that_claims_the_session_of_another_is_refused(
    desk: Desk, processes: Callable[..., int]
) -> None:
    """The session file of the other says that it runs it, and this one has no session file."""
    other = processes()
    file = desk.home.claude / "sessions" / f"{other}.json"
    file.parent.mkdir()
    started = int((time.time() - 1) * 1000)
    known = {"pid": other, "sessionId": "s", "cwd": "/", "startedAt": started}
    file.write_text(json.dumps({**known, "status": "idle", "statusUpdatedAt": started}))
    hook = desk.waits()
    both = {p: Process(p, started_of(p)) for p in (desk.pid, other)}
    desk.s = desk.session_of(blocks=desk.s.blocks, processes=both)
    why = f"process {other} runs that session, and process {desk.pid} only claims to{THERE}"
    assert desk.request() == {"why": why}
    refused(desk, desk.answer(digest="x"), why)
    assert hook.said == []


def test_an_event_of_more_than_1_mb_is_refused(desk: Desk) -> None:
    """Only its first part is read."""
    hook = desk.waits()
    desk.asks(tool_input={"command": "x" * (1 << 20)})
    refused(desk, desk.answer(), CUT)
    assert hook.said == []


def test_a_line_break_in_a_message_ends_no_line(desk: Desk) -> None:
    """A second decision in it is text."""
    hook = desk.waits()
    injected = 'no\n{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}'
    assert desk.answer("deny", message=injected)["outcome"] == "taken"
    assert said(hook.said[0])["decision"] == {"behavior": "deny", "message": injected}


def test_hidden_text_is_shown(desk: Desk) -> None:
    """Text that a terminal would not show has marks, and words about them."""
    desk.asks(tool_input={"command": "ls \u202e\x1b[8m; rm -rf x\u200b   "})
    (part,) = [p for p in desk.request()["request"]["parts"] if p["kind"] == "command"]
    assert part["text"].isprintable()
    assert not {"\u202e", "\x1b", "\u200b"} & {*part["text"]}
    assert "; rm -rf x" in part["text"]
    assert part["warnings"]


@needs_root
def test_a_pipe_that_somebody_planted_gets_nothing(desk: Desk) -> None:
    hook = desk.waits()
    os.chown(desk.pipe, 54321, 54321)
    assert [way["name"] for way in desk.request()["request"]["ways"]] == ["go"]
    refused(desk, desk.answer(), f"its terminal is neither in tmux nor in a Neovim{THERE}")
    assert hook.said == []


@pytest.mark.parametrize("what", ["damaged", "link", "pipe"])
def test_a_planted_claim_stops_nobody_for_long(desk: Desk, what: str) -> None:
    """A damaged one counts as somebody's for a moment; what is no file does not count."""
    desk.waits()
    claim = desk.claim
    precious = desk.home.root / "precious"
    precious.write_text("kept")
    if what == "damaged":
        claim.write_bytes(b"\0{")
        assert desk.answer()["why"] == "already answered by somebody"
        os.utime(claim, (time.time() + 9,) * 2)  # nor one of the future
    elif what == "link":
        claim.symlink_to(precious)
    else:
        os.mkfifo(claim)
    assert desk.answer()["outcome"] == "taken"
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("room", [0, 9])
def test_a_claim_that_cannot_be_written_whole_does_not_count(desk: Desk, room: int) -> None:
    """The disk is full: nothing is sent, and nobody is said to have answered."""
    hook = desk.waits()
    claims, was = Claims(desk.home.bellboard), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, was[1]))
    try:
        with pytest.raises(OSError, match=r"large|space"):
            claims.claim(NAME, Claim("me", time.time()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    assert claims.claimed(NAME) is None
    assert hook.said == []
    assert desk.answer()["outcome"] == "taken"


@pytest.mark.parametrize("odd", [{"choice": 7}, {"answers": "x"}, {"message": ["a"]}])
def test_a_malformed_answer_is_refused(desk: Desk, odd: dict[str, Any]) -> None:
    reply = desk.answer(**{"digest": "x", **odd})
    assert reply["why"].startswith("this bellboard cannot read that answer")


# ---------------------------------------------------------------- by keys


SCREEN = """\
────────────────────────────────────────
 Bash command
   make all
   Build it

 Do you want to proceed?
 ❯ 1. Yes
   2. No

 Esc to cancel · Tab to amend
"""


class Typewriter:
    """A terminal that shows a dialog, and keeps the keys."""

    def __init__(self, desk: Desk, screen: str) -> None:
        self.desk, self.screen, self.keys = desk, screen, ""

    def rows(self) -> list[str]:
        return self.screen.splitlines()

    def type(self, press: Any) -> bool:
        self.keys += press.key or press.text
        self.desk.s = self.desk.session_of(blocks={})
        return True


def test_keys_are_typed_where_no_hook_waits(desk: Desk) -> None:
    """The terminal has to show exactly the request."""
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    assert [way["name"] for way in desk.request()["request"]["ways"]] == ["keys", "go"]
    reply = desk.answer()
    assert (reply["way"], reply["outcome"], terminal.keys) == ("keys", "taken", "1")
    assert [line["way"] for line in desk.told] == ["keys", "keys"]


def test_only_what_keys_can_give_is_offered_where_only_keys_can_answer(desk: Desk) -> None:
    """In the dialog, a plain no also stops the turn, and there is no way to change the command."""
    offered = {"allow": "", "edit": "input", "deny": "message?", "stop": ""}
    without = desk.request(ways=False)["request"]["choices"]
    assert {c["id"]: c.get("needs", "") for c in without} == offered
    desk.terminal = Typewriter(desk, SCREEN)
    by_keys = desk.request()["request"]
    assert by_keys["takes"] == "one line, at most 200 printable characters"
    assert {c["id"]: c.get("needs", "") for c in by_keys["choices"]} == {
        "allow": "",
        "deny": "message",
        "stop": "",
    }


@pytest.mark.parametrize("is_over", [True, False])
def test_a_key_is_typed_only_while_the_question_stands_and_is_claimed(
    desk: Desk, is_over: bool
) -> None:
    """A terminal may still show a question that is over, or that somebody else answers."""

    class Late(Typewriter):
        def rows(self) -> list[str]:
            if is_over:
                desk.s = desk.session_of(blocks={})
            else:
                claim = desk.claim
                os.utime(claim, (time.time() - 4,) * 2)
                Claims(desk.home.bellboard).claim(NAME, Claim("Neovim 9", 1.0, "deny", 9))
            return super().rows()

    digest = desk.request()["request"]["digest"]
    terminal = desk.terminal = Late(desk, SCREEN)
    why = TERMINAL if is_over else "it was answered meanwhile"
    refused(desk, desk.answer(digest=digest), why)
    assert terminal.keys == ""


def test_the_keys_of_an_answer_end_with_the_question(desk: Desk) -> None:
    """Further keys would go to the next screen of the terminal."""
    terminal = desk.terminal = Typewriter(desk, SCREEN)
    refused(desk, desk.answer("deny", message="Not now"), "it was answered meanwhile")
    assert terminal.keys == "Down"


@pytest.mark.parametrize(
    ("screen", "why"),
    [
        ("", "its terminal does not show the question"),
        (SCREEN.replace("make all", "make it"), "its terminal shows a different request"),
        (SCREEN.replace("Build it", "Another"), "its terminal shows a different request"),
        (SCREEN[SCREEN.index(" Do") :], "its terminal does not show the whole request"),
        (SCREEN.replace("1. Yes", "1. Yes, always"), "its dialog does not offer that"),
    ],
)
def test_a_screen_that_proves_nothing_gets_no_key(desk: Desk, screen: str, why: str) -> None:
    terminal = desk.terminal = Typewriter(desk, screen)
    assert [way["name"] for way in desk.request()["request"]["ways"]][-1] == "go"
    refused(desk, desk.answer(), f"{why}{THERE}")
    assert terminal.keys == ""


def test_a_terminal_that_is_gone_is_named(desk: Desk) -> None:
    pane = keyboard.PaneTerminal("/nowhere/tmux", "%1", "/dev/pts/9")
    with pytest.raises(Declined, match="no server running on /nowhere/tmux"):
        pane.rows()


def test_enter_waits_until_a_row_has_been_shown_for_a_moment() -> None:
    """The form of a CLI draws a button before it takes a key for it."""

    class Form:
        shown, taken = 0.0, ""

        def rows(self) -> list[str]:
            return ["Accept" if self.shown else "Name"]

        def type(self, press: Press) -> bool:
            took = time.monotonic() > self.shown + 0.1
            self.taken += press.key if took else ""
            self.shown = self.shown or time.monotonic()
            return True

    async def ours(types: bool) -> bool:
        return True

    def following(rows: Sequence[str]) -> Press:
        done = rows == ["Accept"]
        return Press("Enter" if done else "Down", rows=tuple(rows), last=done)

    form = Form()
    asyncio.run(keyboard.enter(form, following, ours))
    assert form.taken == "DownEnter"
