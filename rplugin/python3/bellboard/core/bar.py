"""All sessions in one line, for status bars: `!1 api: rm -rf build 2m  +2 *3`.

This file does no I/O and imports nothing heavy, because they run `bellboard status` every few
seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from .cells import cut, width
from .published import Published
from .words import ICONS, age, doing, icon_name, is_quiet, project

ROOM: Final = 60  # cells: a third of a status bar
NAME_ROOM: Final = 16  # cells of it for the session's name


def tally(
    sessions: Iterable[Published], icons: Mapping[str, str] = ICONS
) -> list[tuple[str, str, int]]:
    """Return icon, status and count of the sessions that are not hidden, most urgent first."""
    found = Counter((p["status"], icon_name(p)) for p in sessions if not p["hidden"])
    order = list(ICONS)
    ranked = sorted(found.items(), key=lambda x: order.index(x[0][1]))
    return [(icons[name], status, count) for (status, name), count in ranked]


def status_text(
    sessions: Iterable[Published],
    now: float,
    room: int = ROOM,
    icons: Mapping[str, str] = ICONS,
) -> str:
    """Return one line: what is blocked (with the question, if only one is) and counts of the rest.

    !1 api: rm -rf build 2m  +2 *3 &1      !2 4m  +1 *3      *3 (1 quiet)      *3  stale 5m
    """
    sessions = list(sessions)
    is_at_rest = all(p["status"] == "idle" for p in sessions if not p["hidden"])
    counted = [p for p in sessions if not p["hidden"] and (is_at_rest or p["status"] != "idle")]
    late = min((p["stale_since"] for p in counted if p.get("stale_since")), default=0.0)
    old = f"  stale {age(late, now)}" if late else ""
    return f"{_status_text(sessions, now, room - width(old), icons)}{old}"


def _status_text(sessions: list[Published], now: float, room: int, icons: Mapping[str, str]) -> str:
    tallied = tally(sessions, icons)
    heads = " ".join(f"{sign}{n}" for sign, status, n in tallied if status == "blocked")
    still = sum(is_quiet(p) and not p["hidden"] for p in sessions)
    quiet = {"working": f" ({still} quiet)"} if still else {}
    rest = [
        f"{sign}{n}{quiet.get(status, '')}"
        for sign, status, n in tallied
        if status not in ("blocked", "idle")
    ]
    if not heads:  # idle sessions only show if there are no others
        return " ".join(rest or [f"{sign}{n}" for sign, _, n in tallied])
    blocked = [p for p in sessions if p["status"] == "blocked" and not p["hidden"]]
    since = age(min(p["since"] for p in blocked), now)
    since = "" if since[-1] in "sw" else f" {since}"  # omitted in the first minute
    tail = since + (f"  {' '.join(rest)}" if rest else "")
    return (
        heads + (_who(blocked[0], room - width(heads + tail)) if len(blocked) == 1 else "") + tail
    )


def _who(p: Published, room: int) -> str:
    name = cut(project(p), min(NAME_ROOM, room - 1))
    word, text = doing(p)
    left = room - width(name) - 3
    return (f" {name}" if name else "") + (f": {cut(text or word, left)}" if left >= 6 else "")
