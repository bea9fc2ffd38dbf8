"""The words that every screen uses for a session: its icon, what it does, how long, and where.

Neovim receives them with each session (`worded`) and only cuts, pads and colours them.  Titles,
details and paths come from agents and may be hostile: they go through `plain` first.

This file does no I/O and imports nothing heavy, because status bars run `bellboard status` every
few seconds (`bar.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .cells import cut
from .published import Published, needs_you
from .visible import plain as plain

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
    *("nvim", "tmux", "pane", "tty", "pid", "job"),
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
    """Return a short name for what it works on, after the machine if that is another one."""
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
    """Return what it is about: the name a user gave it, its title, or its last prompt."""
    return plain(p.get("name") or p.get("title") or p.get("last_prompt"))


def doing(p: Published) -> tuple[str, str]:
    """Return what it does or asks, as one word and the details, which do not repeat it."""
    word, details = _doing(p)
    return word, "" if details == word else details


def _doing(p: Published) -> tuple[str, str]:
    detail, status, markers = plain(p.get("detail")), p["status"], p.get("markers") or ()
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
    """Return what distinguishes it within its project: its branch, name or title."""
    name, own = branch(p), plain(p.get("name") or p.get("title"))
    return own if own and name in ("", "main", "master") else name


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
    """Return where it runs, in a word or two: `tmux %4`, `tmux work/%4`, `nvim %4`, `nvim 4711`.

    On another machine, return only the kind of terminal.
    """
    nvim, pane = p.get("nvim"), plain(p.get("pane"))
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
