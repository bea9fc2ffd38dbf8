"""The event that asked a question is kept in answers/ while the question stands, and no longer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.published import publish
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.answers import KEPT_AGE, TAKEN
from bellboard.storage.state_folder import listing
from rig.clock import Clock
from rig.host.hosting import Dying, Make, emit, put_raw, statuses

pytestmark = pytest.mark.quick

TOUCH = {"tool_name": "Bash", "tool_input": {"command": "touch a"}}


def kept(shared: SharedBoard) -> list[str]:
    return sorted(path.name for path in (shared.spool.home / "answers").iterdir())


def folds(shared: SharedBoard, now: float) -> None:
    """Fold all that waits; under load, a step may fold one file only."""
    while shared.turn(now).more:
        pass


def asks(shared: SharedBoard, clock: Clock, session: str = "s", **more: Any) -> str:
    """Let a session ask, and fold that; return the name of its event."""
    name = emit(shared, clock, "PermissionRequest", session, **{**TOUCH, **more})
    folds(shared, clock())
    return name


def goes_on(shared: SharedBoard, clock: Clock, session: str = "s") -> None:
    emit(shared, clock, "PostToolUse", session, **TOUCH)
    folds(shared, clock.advance(1))


def test_it_is_kept_while_the_question_stands(make: Make, clock: Clock) -> None:
    """Whole, under its name, which is published; the reader refuses what is not an event."""
    shared = make()
    emit(shared, clock, "UserPromptSubmit")
    name = asks(shared, clock, long="x" * 100_000)
    assert kept(shared) == [name]
    shared.turn(clock.advance(1))
    assert publish(shared.board.sessions["s"])["request"] == name
    item = shared.spool.request(name)
    assert item and len(item.payload) > 100_000
    goes_on(shared, clock)
    assert statuses(shared.board) == {"s": "working"}
    assert kept(shared) == []
    assert shared.spool.request(name) is None
    assert shared.spool.request("../board.db") is None


def test_the_same_call_again_is_another_request(make: Make, clock: Clock) -> None:
    """Equal calls in a row have different names, so an answer to one never answers the other."""
    shared = make()
    first = asks(shared, clock)
    goes_on(shared, clock)
    clock.advance(5)
    second = asks(shared, clock)
    assert first != second
    assert kept(shared) == [second]


def test_a_later_event_about_the_question_takes_its_place(make: Make, clock: Clock) -> None:
    """The request follows the tool call of a question; an event that says less changes nothing."""
    shared = make()
    tool = {"tool_name": "AskUserQuestion", "tool_input": {"questions": []}}
    emit(shared, clock, "PreToolUse", **tool)
    shared.turn(clock())
    clock.advance(0.1)
    name = asks(shared, clock, **tool)
    assert kept(shared) == [name]
    emit(shared, clock, "Notification", notification_type="permission_prompt", message="?")
    shared.turn(clock.advance(6))
    assert publish(shared.board.sessions["s"])["request"] == name


def test_every_host_removes_it(make: Make, clock: Clock) -> None:
    """The first process to see the question end removes the file, even one that folds once."""
    one, two = make(), make()
    name = asks(one, clock)
    two.turn(clock())
    assert kept(two) == [name]
    goes_on(two, clock)
    assert kept(two) == []
    one.turn(clock())
    assert kept(one) == []


def test_it_is_kept_after_a_crash(make: Make, clock: Clock) -> None:
    """Between COMMIT and rename: the next to fold keeps it, if the question still stands."""
    one, two = make(), make()
    one.spool = Dying(one.spool.home)
    name = emit(one, clock, "PermissionRequest", **TOUCH)
    with pytest.raises(KeyboardInterrupt):
        one.turn(clock())
    item = two.spool.request(name)
    assert item and item.name == name
    two.turn(clock())
    assert kept(two) == [name]
    goes_on(two, clock)
    assert kept(two) == []


def test_what_a_killed_host_left_is_removed_at_a_rescan(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that no question needs go, but not at once: their host may be about to commit."""
    shared = make()
    name = asks(shared, clock)
    left = shared.spool.home / "answers" / "00000001.1.PermissionRequest"
    left.write_text("")
    os.mkfifo(shared.spool.home / "answers" / "1.1")
    shared.sweep(clock())
    assert kept(shared) == sorted([name, left.name, "1.1"])
    now = os.lstat(left).st_ctime
    monkeypatch.setattr("bellboard.storage.answers.time.time", lambda: now + KEPT_AGE + 1)
    shared.sweep(clock())
    assert kept(shared) == sorted([name, "1.1"])


def test_it_is_kept_when_the_database_is_replaced(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged one is replaced by a new one, which gets the sessions that ask, and their files."""
    lost = make()
    name = asks(lost, clock)
    for path in lost.spool.home.glob("board.db*"):
        path.unlink()
    shared = make()
    shared.restore(lost, clock.advance(1))
    shared.catch_up()
    file = os.lstat(shared.spool.home / "answers" / name)
    later = file.st_ctime + KEPT_AGE + 1
    monkeypatch.setattr("bellboard.storage.answers.time.time", lambda: later)
    shared.sweep(clock())
    assert kept(shared) == [name]


def test_a_question_that_cannot_be_kept_is_shown_all_the_same(make: Make, clock: Clock) -> None:
    """The file is removed as any other, so that it is not folded again for ever."""
    shared = make()
    (shared.spool.home / "answers").rmdir()
    asks(shared, clock)
    shared.turn(clock.advance(1))
    assert statuses(shared.board) == {"s": "blocked"}
    assert shared.spool.scan() == []


def test_a_question_under_another_name_than_the_hook_gives_is_not_kept(
    make: Make, clock: Clock
) -> None:
    """Such a question would never be found again, nor limited."""
    shared = make()
    name = emit(shared, clock, "PermissionRequest", **TOUCH)
    (shared.spool.new / name).rename(shared.spool.new / "odd")
    folds(shared, clock())
    shared.turn(clock.advance(1))
    assert statuses(shared.board) == {"s": "blocked"}
    assert (kept(shared), shared.spool.scan()) == ([], [])


def test_a_folder_that_cannot_be_listed_holds_nothing_up(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event is committed then, so that the step must not fail."""
    shared = make()

    def lists(folder: str | Path) -> list[str]:
        if str(folder).endswith("answers"):
            raise PermissionError(13, "Permission denied", folder)
        return listing(folder)

    monkeypatch.setattr("bellboard.storage.answers.listing", lists)
    asks(shared, clock)
    folds(shared, clock.advance(1))
    assert (statuses(shared.board), shared.notes) == ({"s": "blocked"}, {})


@pytest.mark.parametrize("pipe", ["4711.23", "", "../x", "4711", "4711.23/..", "a.1"])
def test_a_pipe_is_a_name(make: Make, clock: Clock, pipe: str) -> None:
    """The name goes from the header into the question; anything else is no pipe."""
    shared = make()
    head = f"bellboard 1\0agent=claude\0event=PermissionRequest\0pid=0\0pipe={pipe}\0\0"
    body = '{"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"Bash"}'
    name = put_raw(shared.spool, (head + body).encode(), clock())
    if pipe == "4711.23":  # which the hook of that event has taken
        (shared.spool.home / f"answers/{pipe}{TAKEN}").write_text(f"{name}\n")
    shared.turn(clock())
    [block] = shared.board.sessions["s"].blocks.values()
    assert block.pipe == (pipe if pipe == "4711.23" else "")
