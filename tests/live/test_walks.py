"""Random walks: they can be repeated, judged, and shortened."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

import pytest

from live.account import INTERRUPTED
from live.lines import PID, entry, file, gone, hook, tick
from live.walks import actions
from live.walks.actions import Action, Walk
from live.walks.judge import judged
from live.walks.shrink import shrunk
from live.walks.walker import Walked
from rig.host.playback import play

pytestmark = pytest.mark.core

WALK = Walk(1, "2.1.330", tuple(Action("press", str(n), n % 2) for n in range(12)))


def test_a_walk_of_the_same_seed_is_the_same() -> None:
    """Drawn again, or written and read."""
    walk = actions.drawn(7, "2.1.330", 60.0)
    assert walk == actions.drawn(7, "2.1.330", 60.0) == actions.read(walk.written())
    assert walk != actions.drawn(8, "2.1.330", 60.0)
    assert walk.actions[0].name == "start"


@pytest.mark.parametrize("needed", [{3}, {0, 11}, {2, 5, 8}])
def test_a_failing_walk_is_shortened(needed: set[int]) -> None:
    """Actions without which the walk would not fail are left, in order."""

    def fails(walk: Walk) -> bool:
        return needed <= {int(a.text) for a in walk.actions}

    short = shrunk(WALK, fails, time.monotonic() + 60)
    assert sorted(needed) == [int(a.text) for a in short.actions]


def test_hooks_that_do_not_matter_are_left_out() -> None:
    """Including the user's own."""
    hooks = (("Stop", "sleep 3"), ("PreToolUse", "sleep 1"))
    short = shrunk(
        replace(WALK, hooks=hooks), lambda walk: hooks[1] in walk.hooks, time.monotonic() + 60
    )
    assert hooks[1:] == short.hooks


def test_removed_actions_keep_their_time() -> None:
    """A failure may need a pause."""

    def fails(walk: Walk) -> bool:
        return {"0", "11"} <= {a.text for a in walk.actions}

    short = shrunk(WALK, fails, time.monotonic() + 60)
    assert short.actions[0].pause > WALK.actions[0].pause


TRACE = [
    hook(100.0, "SessionStart", source="startup"),
    file(100.1, "idle"),
    hook(102.0, "UserPromptSubmit", prompt="go"),
    file(102.1, "busy"),
    file(110.0, "idle"),
    tick(115.0),
]


def changes(*steps: tuple[float, str | None]) -> list[dict[str, Any]]:
    return [{"t": t, "session_id": "s", "from": None, "to": to, "rule": "r"} for t, to in steps]


def test_late_or_wrong_statuses_are_reported_with_their_time() -> None:
    seen = Walked(WALK, TRACE, changes((100.0, "idle"), (102.0, "working"), (114.0, "idle")))
    verdict = judged(seen)
    assert () == verdict.wrongs
    (late,) = verdict.late
    assert ("working", "idle", "r") == (late.shown, late.said, late.rule)
    assert 3.0 < late.seconds < 4.0


def test_what_nobody_could_know_is_not_counted() -> None:
    """Such as changes while the host is frozen."""
    shown = changes((100.0, "idle"), (102.0, "working"), (114.0, "idle"))
    verdict = judged(Walked(WALK, TRACE, shown, excused=[(109.0, 114.0)]))
    assert () == verdict.wrongs == verdict.late


def test_errors_of_the_rules_are_reported_even_if_not_shown() -> None:
    trace = [*TRACE[:4], hook(103.0, "PreToolUse", tool_name="Bash", tool_use_id="t")]
    trace += [gone(103.1), file(103.2, "busy"), TRACE[-1]]
    shown = changes((100.0, "idle"), (102.0, "working"))
    found = judged(Walked(WALK, trace, shown)).wrongs
    assert [("None", False)] == [(w.shown, w.live) for w in found]


INTERRUPT: Final = [{"type": "text", "text": INTERRUPTED + "]"}]


@pytest.mark.parametrize(
    ("content", "prompt", "shown"),
    [(INTERRUPT, "next", "idle"), (INTERRUPT, "first", "completed"), ("next", "next", "idle")],
    ids=["an interrupt", "one in a Stop hook", "an interrupt that leaves no line"],
)
def test_a_queued_prompt_that_is_interrupted_leaves_the_session_idle(
    content: object, prompt: str, shown: str
) -> None:
    """Only the interrupt names the prompt, or the prompt begins a turn, which does not stop."""
    said = {"type": "user", "message": {"content": content}}
    trace = [
        *TRACE[:4],
        hook(102.0, "UserPromptSubmit", prompt="go", prompt_id="first"),
        hook(104.0, "UserPromptSubmit", prompt="next", prompt_id="first"),
        hook(106.0, "Stop", prompt_id="first"),
        file(106.02, "busy"),
        entry(106.1, {**said, "promptId": prompt}),
        file(106.12, "idle"),
        tick(115.0),
    ]
    steps = changes((100.0, "idle"), (102.0, "working"), (106.15, shown))
    verdict = judged(Walked(WALK, trace, steps))
    assert [] == [w for w in (*verdict.wrongs, *verdict.late) if w.live]


def test_a_dialog_that_opens_after_an_interrupt_is_the_users() -> None:
    """Such as the one of a double Esc, while an agent works on: no tool of the turn waits."""
    said = {"type": "user", "message": {"content": [{"type": "text", "text": INTERRUPTED + "]"}]}}
    trace = [
        *TRACE[:4],
        hook(103.0, "PreToolUse", tool_name="AskUserQuestion", tool_use_id="t"),
        entry(105.0, said),
        file(105.02, "busy"),
        file(106.0, "waiting", waits="dialog open"),
        tick(115.0),
    ]
    verdict = judged(Walked(WALK, trace, changes((100.0, "idle"), (102.0, "working"))))
    assert [] == [w for w in (*verdict.wrongs, *verdict.late) if w.live]


def test_a_session_that_outlives_its_process_is_reported() -> None:
    """Such a session would be listed forever."""
    shown = changes((100.0, "idle"), (102.0, "working"), (110.1, "idle"))
    verdict = judged(Walked(WALK, TRACE, shown, ended={PID: 110.5}))
    assert ["stays"] == [w.rule for w in (*verdict.wrongs, *verdict.late)]


OTHER = 42
TWO = [
    *TRACE[:4],
    hook(103.0, "SessionStart", OTHER, source="resume"),
    file(103.1, "idle", OTHER),
    hook(104.0, "UserPromptSubmit", OTHER, prompt="too", prompt_id="q"),
    file(104.1, "busy", OTHER),
    hook(106.0, "Stop", prompt_id="p"),
    file(106.1, "idle"),
    file(110.0, "idle", OTHER),  # after Esc
    tick(115.0),
]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (TWO, "completed"),
        ([*TWO[:-1], hook(111.0, "SessionEnd"), tick(115.0)], "completed"),
        (
            [
                *TWO[:-1],
                hook(111.0, "UserPromptSubmit", OTHER, prompt="more", prompt_id="r"),
                file(111.1, "busy", OTHER),
                file(112.0, "idle", OTHER),
                tick(118.0),
            ],
            "idle",
        ),
    ],
    ids=["one completed, the other interrupted", "the first ends", "a prompt in the other"],
)
def test_of_two_processes_the_more_urgent_end_is_right(
    lines: list[dict[str, Any]], shown: str
) -> None:
    """So it is until somebody types into the session, and so has seen it."""
    played, _ = play(lines)
    assert shown == played[-1]["to"]
    assert () == judged(Walked(WALK, lines, played)).wrongs
    other = "idle" if shown == "completed" else "completed"
    wrong = [*played[:-1], {**played[-1], "to": other}]
    assert judged(Walked(WALK, lines, wrong)).late
