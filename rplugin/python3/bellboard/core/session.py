"""The record of a session, and the functions that derive its status and markers.

The database stores these records.  To change one, work on a shallow copy and replace its
collections, never alter them: the old record then serves as a savepoint.  Records have no reference
cycles, so the garbage collector can ignore them (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from .events import AGENT, Event, Origin
from .program_status import Record, stated

#: Every status, most urgent first.
STATUSES: Final = ("blocked", "error", "completed", "unknown", "working", "background", "idle")
URGENCY: Final = {status: n for n, status in enumerate(STATUSES)}
ABSENT: Final = "absent"  # not listed: never seen, or ended

#: Types of tasks during which a session is working; during others it is in `background`.
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
    shown_digest: str = ""  # digest of what its dialog shows; see shown.py
    request: str = ""  # the file with all that it asks, kept while it is open
    pipe: str = ""  # the pipe on which its hook waits for an answer
    shown: bool = False  # False during the hold time, as it may resolve at once
    early: bool = False  # hooks run before it asks; another event follows once it does
    waits: bool = False  # a hook of the user may answer it first, or other dialogs are before it
    queued: bool = False  # it was shown, and other dialogs are shown before it now
    passed: bool = (
        False  # not the open dialog: a later one is, a hook holds it, or a program decides
    )
    inferred: bool = False
    stated: bool = False  # a source has stated that something is asked while it was open
    sent: bool = False  # an answer was given to it, and may still count
    key: int = 0
    reminded: bool = False  # the CLI has sent its only reminder of it


class Tool(Struct, frozen=True, omit_defaults=True, gc=False):
    """A running tool, from PreToolUse to PostToolUse."""

    name: str
    since: float
    key: int = 0
    detail: str = ""
    agent: str = ""
    proven: bool = False  # it has a child process, so it runs and does not wait for approval
    writes: tuple[str, ...] = ()  # files that it changes


class Finished(Struct, frozen=True, omit_defaults=True, gc=False):
    """A finished tool or thread, to recognize late events about it."""

    t: float
    agent: str = ""
    tool: str = ""  # empty: the whole thread
    tool_id: str = ""
    key: int = 0


class Subagent(Struct, frozen=True, omit_defaults=True, gc=False):
    """A running subagent, workflow or monitor."""

    id: str
    type: str
    since: float
    description: str = ""
    apart: bool = False  # runs in the background, so it outlives the turn that started it


class Shell(Struct, frozen=True, omit_defaults=True, gc=False):
    """A background task, such as a shell, during which a session takes prompts."""

    id: str
    type: str
    since: float
    description: str = ""


#: Sources that a program writes for others to read, unlike what it shows in its terminal.
FILES: Final = frozenset({"file", "server"})
#: Words for a turn that runs; `turn` does not say whether it asks.
RUNS: Final = frozenset({"busy", "turn"})


class Stated(Struct, frozen=True, omit_defaults=True, gc=False):
    """The statement of one source about a run, in the words of a session file, and since when."""

    says: str = ""  # idle | busy | turn | waiting | shell
    asks: str = ""  # what it waits for; "": a dialog is open that may be the user's own
    tool: str = ""
    detail: str = ""
    at: float = 0.0  # since when
    source: str = ""  # report | file | server | title
    ends: str = ""  # how the turn ended, if it tells: stop | fail


class Process(Struct, frozen=True, omit_defaults=True, gc=False):
    """A process that runs the session, and what its session file, server or title states."""

    pid: int
    started: str = ""
    claimed: str = ""  # what its hook said of that, which proves nothing in another namespace
    states: Stated = Stated()
    doubted: bool = False  # that does not keep up, and is set aside until it changes
    file_session: str = ""  # the session id in the file, which older CLIs do not update
    file_cwd: str = ""  # the folder in the file, which follows no `cd`, unlike that of hooks
    children: int = 0  # its child processes, if they were counted
    hooked: bool = False  # hooks of this process have reported
    shared: bool = False  # it is a server that runs the sessions of many terminals
    spare: bool = False  # it shows no session, or another one


class OwnReport(Struct, frozen=True, omit_defaults=True, gc=False):
    """The report of a program about itself, as sent to its terminal.

    `count` and `seconds` say how often and for how long its session file or server said otherwise.
    """

    records: dict[str, Record] = {}  # by id; "" is the program as a whole
    at: float = 0.0  # the newest report
    said: float = 0.0  # since when the program as a whole says that
    unsaid: tuple[str, ...] = ()  # records that were not said again after a time without hosts
    doubted: bool = False  # it does not keep up, and is set aside until it changes
    differs: float = 0.0  # since when it differs from what is shown
    count: int = 0
    seconds: float = 0.0


class Run(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The record of one process of a session: its work, its questions, its terminal.

    A session may be open in several processes (`--continue`, `--resume`).  What happens in one of
    them changes only its run.
    """

    pid: int = 0  # 0: unknown
    # the turn of its main thread, and what it asks
    turn: str = ABSENT
    since: float = 0.0  # when the shown status began
    blocks: dict[str, Block] = {}
    unseen: bool = False  # for background; completed and error are always unseen
    interrupted: bool = False
    presumed: bool = False  # how its turn ended: it came to rest, and no Stop had been reported
    retrying: str = ""  # which attempt of how many, as far as that is known
    read_retry: bool = False  # only a screen shows that
    compacting: float = 0.0  # the newest event during the compaction
    inferred: bool = False
    screen: str = ""  # what its screen last showed, if needed: idle | busy | waiting
    watched: float = 0.0  # when it showed that
    silent: bool = False  # working, but has reported nothing for a while
    quiet: bool = False  # working, but has reported nothing for a long time
    error: str = ""
    # times and ids that rules compare events with
    began: float = 0.0  # the newest prompt
    opened: float = 0.0  # when its process opened it again
    prompt_id: str = ""  # the CLI's id of the turn, from hooks
    said_id: str = ""  # the same from the transcript
    active: float = 0.0  # the newest sign of work from the main thread
    over: float = 0.0  # the newest end
    stopped: float = 0.0  # the newest Stop, even if it ended nothing
    sent: float = 0.0  # when a Stop hook continued the turn, unless a Stop followed
    last_words: float = 0.0  # the newest end of an answer in the transcript
    answered: float = 0.0  # the newest answer to a question
    unreminded: float = 0.0  # the newest end of one whose reminder may still come
    prompted: bool = False  # a prompt started this busy time
    queue: tuple[float, ...] = ()  # when each waiting prompt was entered
    submitted: float = 0.0  # when a prompt was submitted from here, until its hook comes
    unchecked: bool = False  # auto mode cannot check commands, so it asks
    rested: str = ""  # the status before a busy time that no prompt started
    rested_since: float = 0.0
    held: str = ""  # why it is held back: stop | fail | report | count | esc | moved | refused
    held_until: float = 0.0
    trusted_until: float = 0.0  # after a time without a host
    hooked: bool = False  # hooks have reported
    news: float = 0.0  # the newest event of its own, and not of those who look at it
    moved: float = 0.0  # the newest event of its main thread, besides requests to the model
    tried: float = 0.0  # the newest request to the model
    tries: int = 0  # how many before that, of which nothing came
    recent: dict[int, float] = {}  # recent events, to recognize duplicates
    own_report: OwnReport | None = None
    stated: Stated = Stated()  # what its best living source states
    stood: bool = True  # whether that has lasted for the settle time
    leads: float = 0.0  # since when the machine shows something else, which is newer
    overruled: float = 0.0  # when it did so for too long
    # what is running
    tools: dict[str, Tool] = {}
    finished: tuple[Finished, ...] = ()  # the newest ones
    agents: dict[str, Subagent] = {}
    shells: tuple[Shell, ...] = ()
    mates: tuple[str, ...] = ()  # the agents, also those at rest, that are members of its team
    wakeups: int = 0
    tasks: int = 0
    tasks_done: int = 0
    # where it runs
    origin: Origin = Origin()  # from its newest hook
    tty: str = ""
    tmux: str = ""
    pane: str = ""
    pane_tty: str = ""
    nvim: str = ""
    kitty: str = ""
    terminal_program: str = ""
    ssh: str = ""
    through: str = ""  # see Origin
    connection: str = ""
    job: bool = False
    headless: bool = False


class Crew(Struct, frozen=True, omit_defaults=True, gc=False):
    """Agents and shells of a process whose session continues under another id, as after /clear."""

    agents: dict[str, Subagent] = {}
    shells: tuple[Shell, ...] = ()
    tools: dict[str, Tool] = {}
    blocks: dict[str, Block] = {}


class Session(Run, omit_defaults=True, gc=False):
    """Everything known about a session: the shown run, the others, and what they share."""

    session_id: str
    agent: str = AGENT
    processes: dict[int, Process] = {}
    aside: dict[int, Run] = {}  # process → a run that is less urgent than the shown one
    left: dict[int, float] = {}  # process that ended while another had the session → when
    last: float = 0.0  # the newest evidence of any kind; `news` of a run is its own word alone
    hook: str = ""  # the newest hook event
    hook_at: float = 0.0
    edited: dict[str, float] = {}  # files that its tools changed last, and when
    record: str = ""  # its record in the reports of another board, which knows no more of it here
    cwd: str = ""
    project_dir: str = ""
    config_dir: str = ""
    transcript: str = ""
    teammate: bool = False
    member: str = ""  # the teammate that it is, as its lead calls it
    parent: str = ""
    team: tuple[str, ...] = ()  # sessions that have this one as their parent
    team_over: float = 0.0  # when the last of them ended
    previous: tuple[str, ...] = ()
    ended: float = 0.0
    end_reason: str = ""
    ended_pid: int = 0
    crew: Crew = Crew()  # what it left running, for the next session of its process
    # its names, and what was said last
    label: str = ""
    name: str = ""
    title: str = ""
    titled: bool = False  # the title was given by a person
    parked: bool = False
    snoozed_until: float = 0.0
    mode: str = ""
    mode_at: float = 0.0  # when a hook named it
    reviewer: str = ""  # person | program: who decides on its permissions
    model: str = ""
    context: int = 0
    prompt: str = ""
    prompts: tuple[str, ...] = ()  # the newest ones, if configured
    message: str = ""
    started: float = 0.0
    facts: dict[str, str | int | float | bool | list[str | int]] = {}
    learned: float = 0.0  # when these last changed
    viewers: dict[str, float] = {}  # viewer → since when it looks at the session
    # of another machine, which decides; here it is only shown
    machine: str = ""
    row: dict[str, Any] = {}  # see row.py
    told: str = ""  # the cursor of the newest row
    stale: bool = False  # that machine cannot be followed
    link_why: str = ""  # why that machine cannot be followed, while it is stale
    link_since: float = 0.0  # since when
    folded: bool = False  # that long that it is only counted


def nameless(pid: int, started: str) -> str:
    """Return the provisional id of a session of which only the process is known."""
    return f"{NAMELESS}{pid}-{started}"


def is_nameless(session_id: str) -> bool:
    """Return whether only the process of the session is known, not its id."""
    return session_id.startswith(NAMELESS)


def is_far(session_id: str) -> bool:
    """Return whether an id is of a session on another machine: MACHINE/AGENT/ID."""
    return "/" in session_id


def own(s: Session, run: Run | None = None) -> Process | None:
    """Return the process of a run, the shown one unless given, with what its session file says."""
    return s.processes.get((run or s).pid)


def says(s: Session, run: Run | None = None) -> str:
    """Return the state of a run by its best living source, in a word of `Stated`, or ""."""
    return (run or s).stated.says


def is_told_otherwise(s: Session, run: Run | None = None) -> bool:
    """Return whether hooks, a session file or a server show the status of a run."""
    run, p = run or s, own(s, run)
    return run.hooked or (p is not None and p.states.source in FILES and bool(p.states.says))


def says_itself(s: Session, run: Run | None = None) -> bool:
    """Return whether only the program's own report shows a run."""
    report = (run or s).own_report
    return report is not None and bool(report.records) and not is_told_otherwise(s, run)


def status_of(run: Run) -> str:
    """Return the shown status: `blocked` while a question is open, else that of the turn."""
    if run.blocks:
        for block in run.blocks.values():
            if block.shown:
                return "blocked"
    return run.turn


def is_nested(run: Run) -> bool:
    """Return whether a run is the tool of another program: headless, without terminal or job."""
    return run.headless and not run.tty and not run.job


# This and the next run for each event: testing `headless` first saves a call.
def is_listed(run: Run) -> bool:
    return run.turn != ABSENT and not (run.headless and is_nested(run))


def published_status(s: Session) -> str | None:
    """Return the published status, or None while it is not listed."""
    return status_of(s) if s.turn != ABSENT and not (s.headless and is_nested(s)) else None


def is_hidden(s: Session) -> bool:
    """Return whether to hide a listed session.

    That is one that nobody sees, one whose machine cannot be reached for long, and a teammate or an
    agent's worktree unless it asks.
    """
    if s.folded or (s.pid in s.processes and s.processes[s.pid].spare):
        return True
    if status_of(s) == "blocked":
        return False
    in_worktree = "/.claude/worktrees/" in s.cwd + "/" and terminal_of(s) is None
    return s.teammate or (in_worktree and not s.nvim)


def is_read_retry(run: Run) -> bool:
    """Return whether only its screen shows which attempt it makes."""
    return run.read_retry and bool(run.retrying)


def heard_of(s: Session, run: Run | None = None) -> float:
    """Return when a run, the shown one unless given, last reported something, or its status began.

    A host of an older version keeps only the time of hooks.
    """
    run = run or s
    return max(run.news or s.hook_at, run.since)


def question_of(run: Run) -> Block | None:
    """Return the question that has waited longest."""
    return oldest(b for b in run.blocks.values() if b.shown) if run.blocks else None


def oldest(blocks: Iterable[Block]) -> Block | None:
    return min(blocks, key=lambda b: b.since, default=None)


def terminal_of(run: Run) -> tuple[str, ...] | None:
    """Return the terminal of a run.

    TMUX_PANE is inherited, so the pane counts only if no tty is known, and no Neovim is in between.
    """
    if run.tty:
        return ("tty", run.tty)
    if run.pane and not run.nvim:
        return ("pane", run.tmux, run.pane)
    return None


def owns_pane(run: Run) -> bool:
    """Return whether its tmux pane shows the session, and not a program around it."""
    if not run.pane:
        return False
    return run.pane_tty == run.tty if run.tty and run.pane_tty else not run.nvim


def is_doubted(s: Session) -> bool:
    """Return whether a source of the shown run does not keep up; a question may be answered."""
    p, report = own(s), s.own_report
    is_late = p is not None and p.doubted and p.states.says not in ("", "waiting")
    return is_late or (
        report is not None and report.doubted and stated(report.records) != "blocked"
    )


def markers_of(s: Session, status: str, question: Block | None, hidden: bool) -> list[str]:
    """Return the markers of a session; the arguments are what the functions above return."""
    marks = {
        "unseen": s.unseen or status in ("completed", "error"),
        "interrupted": s.interrupted and status == "idle",
        "compacting": bool(s.compacting),
        "scheduled": s.wakeups > 0,
        "retrying": bool(s.retrying),
        "parked": s.parked,
        "quiet": s.quiet and status == "working",
        "stale": s.stale and bool(s.machine),
        "inferred": s.inferred
        or is_read_retry(s)
        or is_doubted(s)
        or bool(question and question.inferred),
        "hidden": hidden,
    }
    return [name for name, is_so in marks.items() if is_so]


# Which process an event is about, and which process of a session is shown.
#
# A record holds the shown run in its own fields, and the others in `aside`. Before a rule sees
# the record, the run that the event is about is moved into these fields, so that no rule can
# touch the turn, questions or place of another process. Afterwards the most urgent run is
# brought forward.


FIELDS: Final = Run.__struct_fields__
#: Which of several runs shows: one with a question, then one that works, then one that ended.
SHOWS_FIRST: Final = {
    status: n
    for n, status in enumerate(
        ("blocked", "working", "error", "completed", "unknown", "background", "idle", ABSENT)
    )
}
#: Transcript entries that follow soon after a Stop.
OF_A_STOP: Final = frozenset({"said last", "said stop", "said end", "said feedback"})
MOMENT: Final = 2.0
AT_IT: Final = frozenset({"working", "unknown"})


def runs_of(s: Session) -> Iterator[Run]:
    """Yield the runs of a session, the shown one first."""
    yield s
    yield from s.aside.values()


def questions_of(s: Session) -> Iterator[tuple[Run, Block]]:
    """Yield the questions of a session, each with its run."""
    return ((run, block) for run in runs_of(s) for block in run.blocks.values())


def as_known(s: Session | None, e: Event) -> Event:
    """Return an event with the pid by which the session knows its process: that of another host.

    In a container, a process has another pid than outside, but it has started at the same time.
    """
    from_hook = e.from_hook
    pid, started = (e.origin.pid, e.origin.started) if from_hook else (e.pid, e.started)
    if s is None or not (pid and started) or pid in s.processes:
        return e
    known = next((p.pid for p in s.processes.values() if p.started == started), pid)
    if from_hook:
        return replace(e, origin=replace(e.origin, pid=known))
    return replace(e, pid=known)


def whose(s: Session, e: Event) -> int:
    """Return the process of an event: the one that it names, or else a fitting one."""
    pid = e.origin.pid if e.from_hook else e.pid
    if pid:
        return pid
    if not s.aside:
        return s.pid
    for run in runs_of(s):
        if (
            (e.prompt_id and e.prompt_id in (run.prompt_id, run.said_id))
            or (e.tool_id and e.tool_id in run.tools)
            or (e.agent and e.agent in run.agents)
        ):
            return run.pid
    if e.kind in OF_A_STOP:
        newest = max(runs_of(s), key=lambda run: run.stopped)
        if newest.stopped and e.t < newest.stopped + MOMENT:
            return newest.pid
    if e.name.startswith("transcript"):
        at_it = [run.pid for run in runs_of(s) if run.turn in AT_IT]
        return at_it[0] if len(at_it) == 1 else s.pid
    return s.pid


def take_up(s: Session, pid: int) -> None:
    """Move the run of a process into the record, or start a new run."""
    if pid == s.pid:
        return
    if not s.pid and not s.aside:
        s.pid = pid  # earlier evidence without a process was about this one
        return
    shown = Run(**{field: getattr(s, field) for field in FIELDS})
    aside = {**s.aside, s.pid: shown} if s.turn != ABSENT or s.pid in s.processes else {**s.aside}
    run = aside.pop(pid, None) or Run(pid=pid)
    for field in FIELDS:
        setattr(s, field, getattr(run, field))
    s.aside = aside


def bring_forward(s: Session) -> None:
    """Move the most urgent run into the record."""
    if s.aside:
        take_up(s, min(runs_of(s), key=_rank).pid)


def _rank(run: Run) -> tuple[bool, int, float, int]:
    """Return a sort key: the oldest question first, or else the latest change."""
    status = status_of(run)
    question = question_of(run) if status == "blocked" else None
    when = question.since if question else -run.since
    return not is_listed(run), SHOWS_FIRST[status], when, run.pid


def stays(s: Session, pid: int) -> bool:
    """Return whether a process that runs a session is seen to run in its terminal."""
    p = s.processes.get(pid)
    return p is not None and bool(p.started) and not p.shared


def _goes_on(s: Session, run: Run) -> bool:
    """Return whether another run in this terminal is alive, and asks or one of them is headless."""
    is_apart = s.headless or run.headless or status_of(run) == "blocked"
    return is_apart and stays(s, run.pid)


def displace(s: Session) -> None:
    """Drop the other runs in this terminal, but for those that go on beside this one."""
    place = terminal_of(s)
    there = (pid for pid, run in s.aside.items() if place and terminal_of(run) == place)
    gone = {pid for pid in there if not _goes_on(s, s.aside[pid])}
    if gone:
        s.aside = {pid: run for pid, run in s.aside.items() if pid not in gone}
        s.processes = {pid: p for pid, p in s.processes.items() if pid not in gone}
