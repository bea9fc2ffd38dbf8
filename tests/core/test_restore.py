"""Which sessions went down with their terminals, and where they are opened again."""

from __future__ import annotations

from typing import Any, Final

import pytest

from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.restore import KEEP, LONG, Location, place_of, went_down
from bellboard.core.session import ABSENT, Session

NOW: Final = 1_000_000.0
BOOTED: Final = NOW - 5000.0  # when the machine was started
ENDED: Final = NOW - 600.0
ALIVE: Final = "7 70"  # a tmux server that runs still
DEAD: Final = "8 80"
SOCKET: Final = "/tmp/tmux-1/default"
WINDOW: Final = [SOCKET, "work", 2, "edit"]


def session(sid: str = "one", holder: str = DEAD, **known: Any) -> Session:
    """Return a session that was in a tmux window, and has ended without a word."""
    facts = {"window": WINDOW, **({"holder": holder} if holder else {}), **known.pop("facts", {})}
    about = {"turn": ABSENT, "ended": ENDED, "end_reason": "process gone", "tmux": SOCKET}
    about |= {"started": ENDED - 900.0, "hook_at": ENDED - 60.0}
    return Session(sid, facts=facts, **{**about, **known})


def lost(*sessions: Session, booted: float = BOOTED) -> list[str]:
    found = went_down(
        {s.session_id: s for s in sessions},
        NOW,
        booted,
        lambda pid, started: f"{pid} {started}" == ALIVE,
        lambda s: s.end_reason == "prompt_input_exit",
    )
    return [s.session_id for s in found]


BEFORE: Final = {"started": BOOTED - 900.0, "hook_at": BOOTED - 60.0}
NO_PLACE: Final = {"facts": {"window": []}, "tmux": ""}
#: What is known of one session → whether it went down.
ONE: Final = {
    "its tmux has ended": (session(), True),
    "its tmux goes on": (session(holder=ALIVE), False),
    "it was hung up": (session(end_reason="other"), True),
    "its user left it": (session(end_reason="prompt_input_exit"), False),
    "it goes on under another id": (session(end_reason="clear"), False),
    "its user took it off the board": (session(end_reason="forget"), False),
    "another one has its terminal": (session(end_reason="taken over"), False),
    "its terminal went on without it": (session(facts={"closed": ENDED}), False),
    "it was restored, and went down again": (session(facts={"closed": ENDED - 99.0}), True),
    "its restoring failed": (session(facts={"closed": 0.0}), True),
    "it was restored, and is silent": (session(holder=ALIVE, facts={"closed": 0.0}), False),
    "it runs": (session(turn="working", ended=0.0), False),
    "it ended long ago": (session(ended=NOW - KEEP), False),
    "its Neovim has ended": (session(nvim="/run/nvim.8.0", **NO_PLACE), True),
    "its Neovim goes on": (session(holder=ALIVE, nvim="/run/nvim.7.0", **NO_PLACE), False),
    "its window was closed": (session(**NO_PLACE), False),
    "its window ended with the machine": (session(**NO_PLACE, **BEFORE), True),
    "nothing is known of its terminal": (session(holder=""), False),
    "nor is, and the machine was started since": (session(holder="", **BEFORE), True),
    "it had no terminal": (session(headless=True), False),
    "it was a background job": (session(job=True), False),
    "another session ran it": (session(teammate=True), False),
    "it ran on another machine": (session(machine="dev"), False),
    "it ran behind a program of ours": (session(through="ssh dev"), False),
    "only its process was known": (session("process-1-2"), False),
    "its facts are nonsense": (session(holder="x", facts={"window": [1], "closed": "x"}), False),
}


@pytest.mark.parametrize("what", ONE)
def test_a_session_went_down_if_it_was_open_when_its_terminal_ended(what: str) -> None:
    """What a user closed is not restored, nor what never had a terminal of its own."""
    s, went = ONE[what]
    assert lost(s) == ["one"] * went


def test_what_others_did_meanwhile_tells_what_was_closed() -> None:
    """A session goes on under a new id; a terminal that has news later had lived on."""
    goes_on = session("new", turn="idle", ended=0.0, previous=("old", "one"))
    assert [] == lost(session(), goes_on)
    late = session("late", ended=NOW, hook_at=ENDED + LONG + 1.0)
    assert ["late"] == lost(session(), late)
    found_late = session("found", ended=NOW)  # a moment ago, by a host that started
    assert ["found", "one"] == lost(session(), found_late)
    elsewhere = session("elsewhere", "9 90", ended=NOW, hook_at=NOW)
    assert ["elsewhere", "one"] == lost(session(), elsewhere)


def test_they_are_listed_by_their_places() -> None:
    """As they were: Neovims, then servers, sessions and windows of tmux; each knows its own."""
    named = [
        (
            "n",
            {"nvim": "/run/nvim.8.0", "facts": {"window": []}},
            Location("neovim", nvim="/run/nvim.8.0"),
        ),
        ("b", {"facts": {"window": [SOCKET, "b", 9, ""]}}, Location("tmux", SOCKET, "b", 9)),
        (
            "c",
            {"facts": {"window": [SOCKET, "b", 10, "x"]}},
            Location("tmux", SOCKET, "b", 10, "x"),
        ),
        ("p", {"pane": "%3", "facts": {"window": [1]}}, Location("tmux", SOCKET)),
        ("moved", {"tmux": "/other", "pane": "%3"}, Location("tmux", "/other")),
        ("t", {"tmux": "", **BEFORE}, Location()),
    ]
    made = [session(sid, **known) for sid, known, _ in named]
    assert [place for *_, place in named] == [place_of(s) for s in made]
    assert ["n", "t", "moved", "p", "b", "c"] == lost(*made)


def test_facts_of_a_session_that_has_ended_count() -> None:
    """Whether its terminal went on is known only a moment later; nothing else of it changes."""
    board, sid = Board(), "0f8fad5b-d9cb-469f-a165-70867728950e"
    hook = {"session_id": sid, "cwd": "/w"}
    for t, name in ((1.0, "SessionStart"), (2.0, "SessionEnd")):
        board.fold(from_line({"t": t, "hook": {**hook, "hook_event_name": name}}, t))
    before = board.sessions[sid]
    for facts in (
        {"branch": "main"},
        {"closed": 3.0, "branch": "main"},
        {"holder": "1 1"},
        {"closed": 2.0},
    ):
        board.fold(from_line({"t": 9.0, "facts": {"session_id": sid, **facts}}, 9.0))
    s = board.sessions[sid]
    assert {"closed": 2.0} == s.facts
    assert (before.ended, before.last, ABSENT) == (s.ended, s.last, s.turn)
    board.fold(from_line({"t": 9.0, "facts": {"session_id": "unknown", "closed": 2.0}}, 9.0))
    assert [sid] == [*board.sessions]
