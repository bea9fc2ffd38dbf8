"""One session's record: what is known of it, what can be derived from that, and nothing else.

The record is what the database stores.  Whatever changes one works on a shallow copy and replaces
the collections in it, never alters them, so the record before is a savepoint.  Records hold no
cycles, so the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .events import AGENT, Origin

#: Every status, most urgent first.
STATUSES: Final = ("blocked", "error", "completed", "unknown", "working", "background", "idle")
URGENCY: Final = {status: n for n, status in enumerate(STATUSES)}
ABSENT: Final = "absent"  # not listed: never seen, or ended

#: Task types whose running keeps a session at work; shells and the like leave it in background.
AT_WORK: Final = frozenset({"subagent", "workflow", "monitor"})
NAMELESS: Final = "process-"
NO_WORK: Final = frozenset({"teammate"})  # listed as running even when idle


class Block(Struct, frozen=True, omit_defaults=True, gc=False):
    """A question that waits for a person; it belongs to a thread and, if known, to a tool."""

    asks: str
    since: float
    agent: str = ""
    tool: str = ""
    tool_id: str = ""
    detail: str = ""
    digest: str = ""  # of all that it asks; see asked.py
    shown: bool = False  # False while it is held back: it may resolve at once
    early: bool = False  # told before its hooks have run: another event tells that it asks
    waits: bool = False  # for somebody's hook: the CLI lets nothing be asked yet
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
    apart: bool = False  # known to run in the background: it outlives the turn that began it


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
    was: str = ""  # what it said before
    at: float = 0.0  # since when it says so
    stood: bool = True  # False until it has said so for the settle time
    file_session: str = ""  # the session id in the file, which older CLIs leave stale
    children: int = 0  # its own child processes, where somebody looked
    hooked: bool = False  # its hooks have spoken for the session


class Run(Struct, kw_only=True, omit_defaults=True, gc=False):
    """What one process of a session does and asks, and the terminal that it runs in.

    A session may be open in several processes at once (`--continue`, `--resume`): what happens in
    one of them happens in its run, and leaves the runs of the others as they were.
    """

    pid: int = 0  # 0: nothing told which process it is
    # the turn of its main thread, and what it asks
    turn: str = ABSENT
    since: float = 0.0  # when it entered the status that is shown
    blocks: dict[str, Block] = {}
    unseen: bool = False  # background only: completed and error are unseen by nature
    interrupted: bool = False
    retrying: str = ""
    compacting: float = 0.0  # when news of it last came
    inferred: bool = False
    screen: str = ""  # what its screen said last, where nothing better tells: idle | busy | waiting
    watched: float = 0.0  # and when
    stale: bool = False  # at work, but silent for long
    error: str = ""
    # what the guards compare with
    began: float = 0.0  # the newest prompt
    prompt_id: str = ""  # what the CLI calls the turn, as hooks told it
    said_id: str = ""  # and as the transcript did
    active: float = 0.0  # the newest sign of work from the main thread
    over: float = 0.0  # the newest end
    stopped: float = 0.0  # the newest Stop, also one that ended nothing
    answered: float = 0.0  # the newest answer to a question
    prompted: bool = False  # a prompt began this busy time
    queued: int = 0  # prompts entered while busy
    unchecked: bool = False  # auto mode said that it cannot check: what it would, it asks
    rested: str = ""  # where it rested before a busy time that no prompt began
    rested_since: float = 0.0
    held: str = ""  # an end is held back: stop | fail | report | count | esc | moved
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
    # where it is
    origin: Origin = Origin()  # as its newest hook told it
    tty: str = ""
    tmux: str = ""
    pane: str = ""
    pane_tty: str = ""
    nvim: str = ""
    terminal_program: str = ""
    ssh: str = ""
    job: bool = False
    headless: bool = False


class Crew(Struct, frozen=True, omit_defaults=True, gc=False):
    """What keeps running in a process whose session continues under another id, as after /clear."""

    agents: dict[str, Agent] = {}
    shells: tuple[Shell, ...] = ()
    tools: dict[str, Tool] = {}
    blocks: dict[str, Block] = {}


class Session(Run, omit_defaults=True, gc=False):
    """Everything known of one session: the run that is shown, those aside, and what they share."""

    session_id: str
    agent: str = AGENT
    processes: dict[int, Process] = {}
    aside: dict[int, Run] = {}  # by process; what they show is less urgent
    left: dict[int, float] = {}  # processes that left it to others, and when
    last: float = 0.0  # the newest evidence of any kind
    hook: str = ""  # the newest hook event
    hook_at: float = 0.0
    cwd: str = ""
    project_dir: str = ""
    config_dir: str = ""
    transcript: str = ""
    teammate: bool = False
    parent: str = ""
    team: tuple[str, ...] = ()  # sessions that have this one as their parent
    team_over: float = 0.0  # when the last of them ended
    previous: tuple[str, ...] = ()
    ended: float = 0.0
    end_reason: str = ""
    ended_pid: int = 0
    crew: Crew = Crew()  # what it left running, for the session that has its process next
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


def nameless(pid: int, started: str) -> str:
    """Return the provisional id of a session of which only the process is known."""
    return f"{NAMELESS}{pid}-{started}"


def is_nameless(session_id: str) -> bool:
    """Return whether the session id is unknown, and only its process is known."""
    return session_id.startswith(NAMELESS)


def status_of(run: Run) -> str:
    """Return the shown status: `blocked` while a question is open, else that of the turn."""
    if run.blocks:
        for block in run.blocks.values():
            if block.shown:
                return "blocked"
    return run.turn


def is_nested(run: Run) -> bool:
    """A headless run that has no terminal and is no job: somebody else's tool, not a session."""
    return run.headless and not run.tty and not run.job


def is_listed(run: Run) -> bool:
    return run.turn != ABSENT and not (run.headless and is_nested(run))


def published_status(s: Session) -> str | None:
    """Return the published status, or None while it is not listed."""
    return status_of(s) if s.turn != ABSENT and not (s.headless and is_nested(s)) else None


def is_hidden(s: Session) -> bool:
    """Listed but not shown, as long as it asks nothing: a teammate, an agent's own worktree."""
    if status_of(s) == "blocked":
        return False
    in_worktree = "/.claude/worktrees/" in s.cwd + "/" and terminal_of(s) is None
    return s.teammate or (in_worktree and not s.nvim)


def question_of(run: Run) -> Block | None:
    """Return the question that has waited longest."""
    if not run.blocks:
        return None
    shown = [b for b in run.blocks.values() if b.shown]
    return min(shown, key=lambda b: b.since) if shown else None


def terminal_of(run: Run) -> tuple[str, ...] | None:
    """The terminal that is the session's own.

    TMUX_PANE is inherited: the pane is the session's own if its tty is the process's, or, with no
    tty known, if there is no Neovim in between.
    """
    if run.tty:
        return ("tty", run.tty)
    if run.pane and not run.nvim:
        return ("pane", run.tmux, run.pane)
    return None


def owns_pane(run: Run) -> bool:
    """Whether looking at its tmux pane is looking at the session."""
    if not run.pane:
        return False
    return run.pane_tty == run.tty if run.tty and run.pane_tty else not run.nvim


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
