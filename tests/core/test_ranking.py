"""The order of the repositories on a board."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bellboard.core.words import Ranking, activity, group_of

STATUSES = ("blocked", "error", "completed", "working", "idle")


def published(sid: str, status: str, group: str, updated: float, **more: Any) -> dict[str, Any]:
    place = {"repository": group} if group else {}
    facts = {"session_id": sid, "status": status, "updated": updated, "hidden": False}
    return {**facts, **place, **more}


def naive(known: dict[str, dict[str, Any]], now: float) -> list[str]:
    shown = [p for p in known.values() if not p["hidden"]]
    heat = {
        name: activity([p for p in shown if group_of(p) == name], now)
        for name in {group_of(p) for p in shown}
    }
    return sorted(heat, key=lambda name: (-heat[name], name))


def test_the_busiest_is_first_and_questions_count_more() -> None:
    """Working 100, asking 80, done 50, idle 1; half of it after half an hour."""
    ranking = Ranking()
    now = 10_000.0
    told = [
        published("a", "idle", "rest", now),
        published("b", "completed", "done", now),
        published("c", "blocked", "asks", now),
        published("d", "working", "works", now),
        published("e", "working", "long ago", now - 3600),
        published("f", "working", "hidden", now, hidden=True),
        published("g", "idle", "", now, project="its project"),
    ]
    assert ranking.change({p["session_id"]: p for p in told}, now)
    assert ranking.order == ["works", "asks", "done", "long ago", "its project", "rest"]
    assert not ranking.change({told[0]["session_id"]: told[0]}, now + 60)
    assert ranking.change({"d": None}, now)
    assert ranking.order[0] == "asks"


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"),
            st.sampled_from((*STATUSES, "")),
            st.sampled_from(("x", "y", "z", "")),
            st.integers(0, 40_000),
        ),
        max_size=30,
    )
)
def test_it_follows_every_change(steps: list[tuple[str, str, str, int]]) -> None:
    """Incrementally it gives the same order as all sessions at once."""
    ranking = Ranking()
    known: dict[str, dict[str, Any]] = {}
    for n, (sid, status, group, updated) in enumerate(steps):
        now = 40_000.0 + n
        if status:
            known[sid] = published(sid, status, group, updated + n / 100)
            ranking.change({sid: known[sid]}, now)
        else:
            known.pop(sid, None)
            ranking.change({sid: None}, now)
    later = 41_000.0
    heat = {
        g: round(activity([p for p in known.values() if group_of(p) == g], later), 6)
        for g in ranking.order
    }
    assert sorted(ranking.order) == sorted(naive(known, later))
    assert [heat[g] for g in ranking.order] == sorted(heat.values(), reverse=True)
