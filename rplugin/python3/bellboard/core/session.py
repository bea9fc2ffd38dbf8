"""One session's record: what is known of it, what can be derived from that, and nothing else.

The record is what the database stores.  Only the rules in `machine.py` change one, and they replace
the collections in it, never alter them: so a shallow copy is a savepoint.  Records hold no cycles,
so the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .events import Origin

#: Every status, most urgent first.
STATUSES: Final = ("blocked", "error", "completed", "unknown", "working", "background", "idle")
URGENCY: Final = {status: n for n, status in enumerate(STATUSES)}
ABSENT: Final = "absent"  # not listed: never seen, or ended

#: Task types whose running keeps a session at work; shells and the like leave it in background.
AT_WORK: Final = frozenset({"subagent", "workflow", "monitor"})
NO_WORK: Final = frozenset({"teammate"})  # listed as running even when idle


class Block(Struct, frozen=True, omit_defaults=True, gc=False):
    """A question that waits for a person; it belongs to a thread and, if known, to a tool."""

    asks: str
    since: float
    agent: str = ""
    tool: str = ""
    tool_id: str = ""
    detail: str = ""
    shown: bool = False  # False while it is held back: it may resolve at once
    inferred: bool = False
    key: int = 0


class Tool(Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool that runs: from its PreToolUse to its Post."""

    name: str
    since: float
    key: int = 0
    detail: str = ""
    agent: str = ""
    proven: bool = False  # its process has children: it runs, and waits for nobody


class Finished(Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool, or all that a thread did, that has come to its end; against what is told late."""

    t: float
    agent: str = ""
    tool: str = ""  # empty: all of the thread
    tool_id: str = ""
    key: int = 0


class Agent(Struct, frozen=True, omit_defaults=True, gc=False):
    """A subagent, workflow or monitor that runs."""

    id: str
    type: str
    since: float
    description: str = ""


class Shell(Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task that leaves its session free."""

    id: str
    type: str
    since: float
    description: str = ""


class Process(Struct, frozen=True, omit_defaults=True, gc=False):
    """A process that runs the session, and what its registry file says."""

    pid: int
    started: str = ""
    says: str = ""  # idle | busy | waiting | shell
    asks: str = ""
    tool: str = ""
    at: float = 0.0  # since when it says so
    stood: bool = True  # False until it has said so for the settle time
    file_session: str = ""  # the session id in the file, which older CLIs leave stale
    children: int = 0  # its own child processes, where somebody looked
    hooked: bool = False  # its hooks have spoken for the session


class Session(Struct, omit_defaults=True, gc=False):
    """Everything known of one session."""

    session_id: str
    agent: str = "claude"
    # the turn of its main thread, and what it asks
    turn: str = ABSENT
    since: float = 0.0  # when it entered the status that is shown
    blocks: dict[str, Block] = {}
    unseen: bool = False  # background only: completed and error are unseen by nature
    interrupted: bool = False
    retrying: str = ""
    compacting: float = 0.0  # when news of it last came
    inferred: bool = False
    stale: bool = False  # at work, but silent for long
    error: str = ""
    # what the guards compare with
    began: float = 0.0  # the newest prompt
    active: float = 0.0  # the newest sign of work from the main thread
    over: float = 0.0  # the newest end
    stopped: float = 0.0  # the newest Stop, also one that ended nothing
    answered: float = 0.0  # the newest answer to a question
    last: float = 0.0  # the newest evidence of any kind
    prompted: bool = False  # a prompt began this busy time
    queued: int = 0  # prompts entered while busy
    rested: str = ""  # where it rested before a busy time that no prompt began
    rested_since: float = 0.0
    held: str = ""  # an end is held back: report | count | queue | esc
    held_until: float = 0.0
    trusted_until: float = 0.0  # after a time without a host
    hooked: bool = False  # hooks have spoken
    recent: dict[int, float] = {}  # events of the last moments, against their copies
    # what runs
    tools: dict[str, Tool] = {}
    finished: tuple[Finished, ...] = ()  # the newest few
    agents: dict[str, Agent] = {}
    shells: tuple[Shell, ...] = ()
    wakeups: int = 0
    tasks: int = 0
    tasks_done: int = 0
    processes: dict[int, Process] = {}
    # where it is
    origin: Origin = Origin()  # as its newest hook told it
    tty: str = ""
    tmux: str = ""
    pane: str = ""
    pane_tty: str = ""
    nvim: str = ""
    cwd: str = ""
    project_dir: str = ""
    config_dir: str = ""
    transcript: str = ""
    terminal_program: str = ""
    ssh: str = ""
    job: bool = False
    headless: bool = False
    teammate: bool = False
    parent: str = ""
    team: tuple[str, ...] = ()  # sessions that have this one as their parent
    team_over: float = 0.0  # when the last of them ended
    previous: tuple[str, ...] = ()
    ended: float = 0.0
    end_reason: str = ""
    ended_pid: int = 0
    # how it is called and what it last said
    label: str = ""
    name: str = ""
    title: str = ""
    titled: bool = False  # the title was given by a person
    parked: bool = False
    snoozed_until: float = 0.0
    mode: str = ""
    model: str = ""
    context: int = 0
    prompt: str = ""
    prompts: tuple[str, ...] = ()  # the newest few, if somebody asked for them
    message: str = ""
    started: float = 0.0
    facts: dict[str, str | int | float | bool | list[str | int]] = {}
    viewers: dict[str, float] = {}  # who looks at it, since when


def status_of(s: Session) -> str:
    """What is shown: a question that stands, else the turn."""
    if s.blocks:
        for block in s.blocks.values():
            if block.shown:
                return "blocked"
    return s.turn


def is_nested(s: Session) -> bool:
    """A headless run that has no terminal and is no job: somebody else's tool, not a session."""
    return s.headless and not s.tty and not s.job


def is_listed(s: Session) -> bool:
    return s.turn != ABSENT and not (s.headless and is_nested(s))


def published_status(s: Session) -> str | None:
    """What others see; None while it is not listed."""
    return status_of(s) if is_listed(s) else None


def is_hidden(s: Session) -> bool:
    """Listed but not shown, as long as it asks nothing: a teammate, an agent's own worktree."""
    if status_of(s) == "blocked":
        return False
    in_worktree = "/.claude/worktrees/" in s.cwd + "/" and terminal_of(s) is None
    return s.teammate or (in_worktree and not s.nvim)


def question_of(s: Session) -> Block | None:
    """The question that has waited longest."""
    if not s.blocks:
        return None
    shown = [b for b in s.blocks.values() if b.shown]
    return min(shown, key=lambda b: b.since) if shown else None


def terminal_of(s: Session) -> tuple[str, ...] | None:
    """The terminal that is the session's own.

    TMUX_PANE is inherited: the pane is the session's own if its tty is the process's, or, with no
    tty known, if there is no Neovim in between.
    """
    if s.tty:
        return ("tty", s.tty)
    if s.pane and not s.nvim:
        return ("pane", s.tmux, s.pane)
    return None


def owns_pane(s: Session) -> bool:
    """Whether looking at its tmux pane is looking at the session."""
    if not s.pane:
        return False
    return s.pane_tty == s.tty if s.tty and s.pane_tty else not s.nvim


def markers_of(s: Session, status: str, question: Block | None, hidden: bool) -> list[str]:
    """What is shown on top of the status; the rest is what the functions above say of it."""
    marks = {
        "unseen": s.unseen or status in ("completed", "error"),
        "interrupted": s.interrupted and status == "idle",
        "compacting": bool(s.compacting),
        "scheduled": s.wakeups > 0,
        "retrying": bool(s.retrying),
        "parked": s.parked,
        "stale": s.stale,
        "inferred": s.inferred or bool(question and question.inferred),
        "hidden": hidden,
    }
    return [name for name, is_so in marks.items() if is_so]
