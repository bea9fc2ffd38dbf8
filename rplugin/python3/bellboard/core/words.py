"""The words that every screen uses for a session: its icon, what it does, how long, and where.

Neovim receives them with each session (`worded`) and only cuts, pads and colors them.  Titles,
details and paths come from agents and may be hostile: they go through `plain` first.

This file does no I/O and imports nothing heavy, because status bars run `bellboard status` every
few seconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import log2
from typing import Final

from .published import Published, needs_you
from .session import Process, Session, Stated, own, question_of, status_of
from .sources import AGREES, NAMES, is_dialog, reported, statement_words
from .text import cut, width
from .text import plain as plain

ICONS: Final = {
    "blocked": "!",
    "question": "?",
    "error": "x",
    "completed": "+",
    "unknown": "~",
    "working": "*",
    "background": "&",
    "idle": ".",
}
TASK: Final = "task"  # the type of what a program only reports as a part of its work
ICON_ROOM: Final = 2  # cells
SERVER_ROOM: Final = 8  # cells for the name of a tmux server or of another Neovim
MACHINE_ROOM: Final = 10  # cells for the name of another machine

# ---------------------------------------------------------------- text


def tilde(path: str, user_home: str) -> str:
    """Return a path with ~ for the home directory."""
    base = user_home.rstrip("/") + "/"
    return f"~/{path[len(base) :]}" if base != "/" and path.startswith(base) else path


# ---------------------------------------------------------------- one session


#: What the names in a session's words are made of; it changes rarely.
NAMING: Final = (
    *("project", "title", "name", "last_prompt", "repository", "machine", "branch", "worktree"),
    *("label", "agent", "pull_request", "model", "mode", "context"),
    *("nvim", "tmux", "pane", "pane_name", "tty", "pid", "job"),
    *("terminal_program", "ssh", "terminal", "far_pid"),
)


def worded(p: Published, before: Published | None = None) -> Published:
    """Return the session with its words, for a screen that derives none.

    `before`: what this returned for it earlier, to take the names from.
    """
    named: Published | None = None
    if before is not None and [*map(p.get, NAMING)] == [*map(before.get, NAMING)]:
        named = before["words"]
    word, text = doing(p)
    words = {
        **(named or _named(p)),
        "icon": icon_name(p),
        "word": word,
        "text": text,
        "doing": summary(p),
        "members": members(p),
        "progress": progress(p),
        "notes": notes(p),
    }
    return {**p, "needs_you": needs_you(p), "words": words}


def _named(p: Published) -> Published:
    return {
        "project": project(p),
        "repository": repository(p),
        "machine": machine(p),
        "branch": branch(p),
        "title": title(p),
        "label": plain(p.get("label")),
        "agent": plain(p.get("agent")),
        "server": server(p),
        "place": place(p),
        "model": model(p),
        "pull_request": plain(p.get("pull_request")),
    }


def worded_ended(p: Published) -> Published:
    """Return an ended session with its words."""
    named = title(p) or plain(p["session_id"])
    return {**p, "words": {"title": named, "branch": branch(p), "agent": plain(p.get("agent"))}}


def icon_name(p: Published) -> str:
    """Return the name of its icon, under which users can configure another one."""
    return "question" if p.get("kind") in ("question", "plan") else str(p["status"])


def icon(p: Published, icons: Mapping[str, str] = ICONS) -> str:
    return icons[icon_name(p)]


def icons_of(chosen: object) -> Mapping[str, str]:
    """Return the icons that a user chose, each short enough for a column, else the default ones."""
    given = chosen if isinstance(chosen, dict) else {}
    kept = {name: cut(plain(given.get(name)), ICON_ROOM) for name in ICONS}
    return {name: kept[name] or icon for name, icon in ICONS.items()}


def project(p: Published) -> str:
    """Return the short name of a session's project, with another machine before it."""
    return on_machine(p, _project(p))


def _project(p: Published) -> str:
    own = p["session_id"].rpartition("/")[2]  # of another machine: MACHINE/AGENT/ID
    return plain(p.get("project") or p.get("title")) or plain(own[:8])


def repository(p: Published) -> str:
    return plain(p.get("repository")) or _project(p)


def machine(p: Published) -> str:
    """Return the name of the machine that it runs on, or "" if it is this one."""
    return cut(plain(p.get("machine")), MACHINE_ROOM)


def on_machine(p: Published, name: str) -> str:
    """Return a name with its machine in front, if that is another one: `dev:api`."""
    where = machine(p)
    return f"{where}:{name}" if where else name


def branch(p: Published) -> str:
    return plain(p.get("branch") or (p.get("worktree") or "").rstrip("/").rpartition("/")[2])


def title(p: Published) -> str:
    """Return the title of a session: the user's name for it, its own, or its last prompt."""
    return plain(p.get("name") or p.get("title") or p.get("last_prompt"))


def doing(p: Published) -> tuple[str, str]:
    """Return one word for what a session does or asks, and details that do not repeat it."""
    word, details = _doing(p)
    return word, "" if details == word else details


def summary(p: Published) -> str:
    """Return what a session does or asks, for its line, without the word that its icon says."""
    word, text = doing(p)
    if text and word == p["status"] == "completed":
        return f'"{text}"'
    return text if text and word in ("question", "error") else f"{word}  {text}".rstrip()


def _from_its_folder(p: Published) -> str:
    """Return the detail; a file below the session's folder begins there."""
    return plain(p.get("detail")).removeprefix(f"{plain(p.get('cwd')) or '//'}/")


def _doing(p: Published) -> tuple[str, str]:
    detail, status, markers = _from_its_folder(p), p["status"], p.get("markers") or ()
    if status == "blocked":
        tool, kind = plain(p.get("tool")), plain(p.get("kind"))
        return (tool if kind == "permission" and tool else kind) or status, detail
    if status == "completed":
        return status, plain(p.get("last_message")) or detail
    if status == "background":
        first: Published = next(iter(p.get("background") or ()), {})
        return plain(first.get("type")) or "shell", plain(first.get("description")) or detail
    if status == "working":
        for marker in ("compacting", "retrying"):
            if marker in markers:
                return marker, detail
        return plain(p.get("tool")) or status, detail
    return "interrupted" if "interrupted" in markers else status, detail


def which(p: Published) -> str:
    """Return what distinguishes a session within its project: its branch, name or title.

    Several may be on the main branch: there, its last prompt does.
    """
    name, own = branch(p), plain(p.get("name") or p.get("title"))
    return (own or (name and title(p)) or name) if name in ("", "main", "master") else name


def members(p: Published) -> str:
    """Return how many subagents, teammates and background tasks it has."""
    nouns = (("agents", "agent"), ("team", "teammate"), ("background", "background task"))
    counts = {noun: len(p[key]) for key, noun in nouns if p.get(key)}
    if "agent" in counts and all(x.get("type") == TASK for x in p["agents"]):
        counts = {"task" if noun == "agent" else noun: n for noun, n in counts.items()}
    if p["status"] == "background" and counts.get("background task") == 1:
        del counts["background task"]  # `doing` names it
    return ", ".join(amount(count, noun) for noun, count in counts.items())


def progress(p: Published) -> str:
    """Return how far it is: of its tasks, or as it reports itself."""
    if tasks := p.get("tasks"):
        return f"{tasks['done']}/{tasks['total']}"
    return plain(p.get("progress"))


def notes(p: Published) -> str:
    """Return the markers to show on its line: those that the rest of the line does not imply."""
    markers = p.get("markers") or ()
    shown = (m for m in ("parked", "scheduled", "retrying", "inferred", "stale") if m in markers)
    dated = "stale" if _stale_since(p) else ""  # `outdated` says since when
    return " ".join(m for m in shown if m not in (doing(p)[0], dated))


def outdated(p: Published, now: float) -> str:
    """Return for how long nobody could verify it, as `stale 5m`; "" if somebody can."""
    since = _stale_since(p)
    return f"stale {age(since, now)}" if since else ""


def is_quiet(p: Published) -> bool:
    """Return whether it works, has reported nothing for a long time, and no tool explains that."""
    return bool(p.get("quiet_since")) and not p.get("tool_since")


def quiet(p: Published, now: float) -> str:
    """Return since when it has reported nothing, as `quiet 32m`; "" if it does.

    If a tool runs, return for how long, as `running 40m`: the tool need not report anything.
    """
    since, tool = p.get("quiet_since"), p.get("tool_since")
    if not since:
        return ""
    return f"running {age(tool, now)}" if tool else f"quiet {age(since, now)}"


def _stale_since(p: Published) -> float:
    """Return since when its machine is unreachable, or a look could not verify it; else 0."""
    return p.get("stale_since") or p.get("link_since") or 0.0


def model(p: Published) -> str:
    """Return its model, its mode, and how much of the context is in use."""
    context = p.get("context") or 0
    used = f"{context / 1000:.0f}k tokens" if context else ""
    mode = plain(p.get("mode"))
    parts = (plain(p.get("model")), mode and f"{mode} mode", used)
    return ", ".join(part for part in parts if part)


def place(p: Published) -> str:
    """Return where it runs, in a word or two: `work:2.1`, `tmux %4`, `nvim %4`, `nvim 4711`.

    On another machine, return only the kind of terminal.
    """
    nvim, pane = p.get("nvim"), plain(p.get("pane"))
    if pane and p.get("pane_name"):
        return server(p) + plain(p["pane_name"])
    if pane:
        return f"{'' if nvim else 'tmux '}{server(p)}{pane}"
    if nvim:
        process, name = re.search(r"nvim\.(\d+)\.", nvim), nvim.rpartition("/")[2]
        named = process[1] if process else re.sub(r"(?<=.)\.\w+$", "", name)
        return f"nvim {cut(plain(named), SERVER_ROOM)}".strip()
    if p.get("job") and not p.get("tty"):
        return "job"
    if p.get("machine"):
        return plain(p.get("terminal")) or (f"pid {p['far_pid']}" if p.get("far_pid") else "")
    pid = f"pid {p['pid']}" if p.get("pid") else ""
    return f"{program(p)} {plain(p.get('tty')).removeprefix('/dev/') or pid}".strip()


def server(p: Published) -> str:
    """Return the prefix of a pane's name: a Neovim in it, or a tmux server of its own."""
    name = plain(p.get("tmux")).rpartition("/")[2] if p.get("pane") else ""
    own = f"{cut(name, SERVER_ROOM)}/" if name not in ("", "default") else ""
    return ("nvim " if p.get("nvim") else "") + own


def program(p: Published) -> str:
    """Return the terminal program of a session, if known."""
    return plain(p.get("terminal_program")).removesuffix(".app") or ("ssh" if p.get("ssh") else "")


def amount(count: int, noun: str) -> str:
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count} {noun if count == 1 else many}"


# ---------------------------------------------------------------- time

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))


def age(since: float, now: float) -> str:
    """Return an age as one short word, in coarse steps so that screens change rarely."""
    seconds = max(0.0, now - since)
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit:.0f}{name}"
    return f"{seconds // 10 * 10:.0f}s" if seconds >= 10 else "now"


def age_changes(since: float, now: float) -> float:
    """Return when `age` will change."""
    seconds = max(0.0, now - since)
    step = next((unit for unit, _ in _UNITS if seconds >= unit), 10)
    return since + (seconds // step + 1) * step


# All sessions in one line, for status bars: `!1 api: rm -rf build 2m +2 *3`.
#
# This file does no I/O and imports nothing heavy, because they run `bellboard status` every few
# seconds.


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
    every = [p for p in sessions if not p["hidden"]]
    shown = [p for p in every if "parked" not in p["markers"]]  # what is parked needs nobody
    is_at_rest = all(p["status"] == "idle" for p in shown)
    counted = [p for p in shown if is_at_rest or p["status"] != "idle"]
    late = min((p["stale_since"] for p in counted if p.get("stale_since")), default=0.0)
    old = f"  stale {age(late, now)}" if late else ""
    parked = len(every) - len(shown)
    return f"{_status_text(shown, parked, now, room - width(old), icons)}{old}"


def _status_text(
    sessions: list[Published], parked: int, now: float, room: int, icons: Mapping[str, str]
) -> str:
    tallied = tally(sessions, icons)
    heads = " ".join(f"{sign}{n}" for sign, status, n in tallied if status == "blocked")
    still = sum(map(is_quiet, sessions))
    quiet = {"working": f" ({still} quiet)"} if still else {}
    rest = [
        f"{sign}{n}{quiet.get(status, '')}"
        for sign, status, n in tallied
        if status not in ("blocked", "idle")
    ]
    if not (heads or rest):  # idle sessions only show if there are no others
        rest = [f"{sign}{n}" for sign, _, n in tallied]
    rest += [f"({parked} parked)"] * bool(parked)
    if not heads:
        return " ".join(rest)
    blocked = [p for p in sessions if p["status"] == "blocked"]
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


# The order of the repositories on the board: the busiest first.
#
# Activity fades with time, but at the same rate for all. So the order changes only when a
# session does, and need not be computed or published in between.


WEIGHT: Final = {"working": 100.0, "idle": 1.0}  # others have WAITING_WEIGHT
WAITING_WEIGHT: Final = 50.0
QUESTION_BONUS: Final = 30.0
HALF_LIFE: Final = 1800.0  # seconds in which activity loses half of its weight
LEAST: Final = 1e-300  # activity after weeks of silence; its logarithm is finite


def group_of(p: Published) -> str:
    """Return the group of a session on the board: its repository, or its project."""
    return str(p.get("repository") or p.get("project") or "")


def activity(members: Iterable[Published], now: float) -> float:
    """Return how busy a group is: what its sessions do, weighted by how recent it is."""
    return float(
        sum(
            (
                WEIGHT.get(p["status"], WAITING_WEIGHT)
                + (QUESTION_BONUS if p["status"] == "blocked" else 0.0)
            )
            * 0.5 ** (max(0.0, now - p["updated"]) / HALF_LIFE)
            for p in members
        )
    )


class Ranking:
    """Keeps the groups in order as sessions change."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._members: dict[str, dict[str, Published]] = {}
        self._group: dict[str, str] = {}
        self._rank: dict[str, tuple[float, str]] = {}

    def change(self, sessions: Mapping[str, Published | None], now: float) -> bool:
        """Update sessions (None: gone); return whether the order changed."""
        touched = set()
        for sid, p in sessions.items():
            touched.add(self._leave(sid))
            if p is not None and not p["hidden"]:
                group = self._group[sid] = group_of(p)
                self._members.setdefault(group, {})[sid] = p
                touched.add(group)
        for group in [group for group in touched if group is not None]:
            if members := self._members.get(group):
                heat = log2(max(activity(members.values(), now), LEAST)) + now / HALF_LIFE
                self._rank[group] = (-round(heat, 6), group)
            else:
                self._members.pop(group, None)
                self._rank.pop(group, None)
        before, self.order = self.order, sorted(self._rank, key=self._rank.__getitem__)
        return before != self.order

    def _leave(self, sid: str) -> str | None:
        group = self._group.pop(sid, None)
        if group is not None:
            del self._members[group][sid]
        return group


# Why a session has its status, in one sentence: which source states it, and which others agree.


def reason(s: Session, since: str) -> str:
    """Return why a session has its status, which it has had since that time of day."""
    status, x = status_of(s), s.stated
    name = NAMES.get(x.source, "") if x.says else ""
    if name and s.stood and not s.leads:
        about = f" ({x.asks})" if x.asks and status == "blocked" else ""
        by = f"{name} says so{about}" if _agrees(x, status) else "nothing newer says otherwise"
    elif name and s.leads:
        by = f"a hook says so, and {name} does not yet"
    else:
        by = "hooks say so" if s.hooked else "its log or screen says so"
    if s.machine:
        by = f"{plain(s.machine)}, its machine, says so"
    parts = [f"{status} since {since}: {by}", *_others(s, status)]
    if question := question_of(s):
        what = " ".join(filter(None, (question.tool, question.detail and f"`{question.detail}`")))
        parts.append(f"asked: {what}" if what else "")
    return "; ".join(filter(None, parts))


def _agrees(x: Stated, status: str) -> bool:
    return is_dialog(x) or status in AGREES.get(x.says, ())


def _others(s: Session, status: str) -> list[str]:
    """Return what sources say that are not the best one, or are set aside."""
    p = own(s) or Process(0)
    report = reported(s.own_report) if s.own_report is not None else Stated()
    known = [
        (p.states, p.doubted),
        (report, s.own_report is not None and s.own_report.doubted),
    ]
    told = []
    for x, doubted in known:
        if not x.says or (x.source == s.stated.source and not doubted):
            continue
        name = NAMES[x.source]
        if doubted:
            told.append(f"{name} does not keep up")
        elif _agrees(x, status):
            told.append(f"{name} agrees")
        else:
            told.append(statement_words(x))
    return told
