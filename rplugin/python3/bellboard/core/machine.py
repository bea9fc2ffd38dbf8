"""The rule book of one session: which evidence changes which status, and why.

Everything about changes of status lives in this file, and this file does no I/O, knows no clock and
no other session.  `board.py` decides which session a piece of evidence is about; `events.py` and
`evidence.py` decide of what kind it is; here TABLE says, for every kind in every status, which rule
applies, and the rules below it say what they do.  A cell `.` changes nothing.

The theory.  A session has one main thread, which is in a *turn* or at rest, and any number of open
*questions*, each of them asked by one thread (the main one or a subagent) about one tool.  It shows
`blocked` while a question stands, else the state of its turn.  Hooks tell what happened, at once,
but not everything: nothing tells of Esc, of a denial, of an approval, of a kill.  The registry (the
CLI's own session file) tells in which state the CLI is, a moment later; the transcript tells what
was said.  So each rule guards against evidence that is older than what contradicts it:

* a registry value counts once it has *stood* for the settle time with no newer hook against it;
* a transcript entry counts by its own time, once, and never against a newer hook;
* an end older than the prompt ends nothing, and what is older than an end wakes nothing.

Time is an argument everywhere.  What happens by time alone is a deadline (`due`), which becomes
evidence of a kind of its own and goes through the same table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from .events import Event
from .front import take_up
from .options import APPROVAL_CLASS, Options
from .rules import RULES, Rule
from .session import ABSENT, Block, Process, Run, Session, question_of, status_of

# ruff: noqa: E501
TABLE_TEXT: Final = """
kind             | absent  | idle      | working   | blocked   | completed | error     | background | unknown
-----------------|---------|-----------|-----------|-----------|-----------|-----------|------------|----------
start            | begin   | begin     | begin     | begin     | begin     | begin     | begin      | begin
resume           | reopen  | reopen    | reopen    | reopen    | reopen    | reopen    | reopen     | reopen
end              | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave
prompt           | work    | work      | work      | work      | work      | work      | work       | work
report           | work    | work      | work      | work      | work      | work      | work       | work
activity         | work    | wake      | go_on     | go_on     | wake      | wake      | wake       | wake
stop             | .       | amend     | finish    | finish    | recount   | .         | recount    | finish
failure          | .       | fail      | fail      | fail      | fail      | .         | fail       | fail
interrupt        | .       | .         | break_off | break_off | .         | .         | .          | break_off
compacting       | compact | compact   | compact   | compact   | compact   | compact   | compact    | compact
compacted        | .       | .         | compacted | compacted | .         | .         | .          | .

tool             | wake    | wake      | go_on     | go_on     | wake      | wake      | wake       | wake
tool end         | wake    | wake      | move_on   | move_on   | wake      | wake      | wake       | wake
batch            | wake    | wake      | move_on   | move_on   | wake      | wake      | wake       | wake
question         | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
request          | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
form             | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
form answer      | .       | .         | move_on   | move_on   | .         | .         | .          | move_on
nudge            | ask     | .         | remind    | confirm   | .         | .         | .          | .
choice           | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
idle nudge       | .       | .         | missed    | .         | .         | .         | .          | missed

agent start      | .       | enlist    | enlist    | enlist    | enlist    | enlist    | enlist     | enlist
agent stop       | .       | dismiss   | dismiss   | dismiss   | dismiss   | dismiss   | dismiss    | dismiss
agent tool       | .       | .         | employ    | employ    | .         | .         | .          | .
agent tool end   | .       | .         | move_on   | move_on   | .         | .         | .          | .
agent batch      | .       | .         | move_on   | move_on   | .         | .         | .          | .
agent question   | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
agent request    | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
task             | .       | count     | count     | count     | count     | count     | count      | count
task done        | .       | count     | count     | count     | count     | count     | count      | count
teammate idle    | .       | retire    | retire    | retire    | retire    | retire    | retire     | retire
note             | .       | .         | .         | .         | .         | .         | .          | .
unknown          | .       | .         | .         | .         | .         | .         | .          | .

registry busy    | work    | stir      | go_on     | answered  | stir      | stir      | stir       | stir
registry idle    | begin   | settle    | settle    | settle    | .         | .         | settle     | settle
registry waiting | ask     | ask       | ask       | confirm   | ask       | ask       | ask        | ask
registry shell   | begin   | settle    | settle    | settle    | settle    | .         | .          | settle
registry dialog  | begin   | .         | offer     | .         | .         | .         | .          | .
registry silent  | begin   | .         | .         | hush      | .         | .         | .          | .

said prompt      | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said text        | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said tool        | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said result      | .       | hear      | move_on   | move_on   | hear      | hear      | hear       | hear
said denial      | .       | .         | move_on   | move_on   | .         | .         | .          | .
said last        | .       | .         | hear_end  | .         | .         | .         | .          | hear_end
said stop        | .       | .         | hear_end  | .         | .         | .          | .         | hear_end
said end         | .       | .         | hear_end  | .         | .         | .         | .          | hear_end
said queue       | .       | .         | take_in   | take_in   | .         | .         | .          | .
said feedback    | .       | sent_on   | sent_on   | .         | sent_on   | .         | sent_on    | sent_on
said error       | .       | amend     | fail      | fail      | .         | .         | .          | fail
said retry       | .       | .         | retry     | .         | .         | .         | .          | retry

screen busy      | .       | seen_busy | seen_busy | seen_busy | seen_busy | seen_busy | seen_busy  | seen_busy
screen idle      | .       | seen_idle | seen_idle | seen_idle | seen_idle | seen_idle | seen_idle  | seen_idle
screen waiting   | .       | seen_asks | seen_asks | seen_asks | seen_asks | seen_asks | seen_asks  | seen_asks

process gone     | .       | depart    | depart    | depart    | depart    | depart    | depart     | depart
pane gone        | .       | lose_pane | lose_pane | lose_pane | lose_pane | lose_pane | lose_pane  | lose_pane
view             | .       | look      | look      | look      | look      | look      | look       | look
jump             | .       | .         | .         | .         | clear     | clear     | clear      | .
set              | .       | correct   | correct   | correct   | correct   | correct   | correct    | correct
label            | .       | mark      | mark      | mark      | mark      | mark      | mark       | mark
name             | .       | mark      | mark      | mark      | mark      | mark      | mark       | mark
park             | .       | mark      | mark      | mark      | mark      | mark      | mark       | mark
snooze           | .       | mark      | mark      | mark      | mark      | mark      | mark       | mark
facts            | .       | learn     | learn     | learn     | learn     | learn     | learn      | learn
forget           | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave
restart          | .       | .         | doubt     | .         | .         | .         | .          | .

question stood   | .       | show      | show      | show      | show      | show      | show       | show
report overdue   | .       | .         | give_up   | give_up   | .         | .         | .          | .
looked at        | .       | .         | .         | .         | clear     | clear     | clear      | .
compaction quiet | .       | .         | compacted | compacted | .         | .         | .          | .
approval overdue | .       | .         | suspect   | .         | .         | .         | .          | .
long silent      | .       | .         | fade      | .         | .         | .         | .          | .
team over        | .       | disband   | disband   | disband   | disband   | disband   | disband    | disband
proof overdue    | .       | .         | doubt     | doubt     | .         | .         | .          | .
transcript quiet | .       | .         | hear_end  | .         | .         | .         | .          | .
nobody knows     | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave
"""


#: Why a kind changes nothing in the statuses where its row says `.`.
NOTHING: Final = {
    "end": "it is not listed",
    "stop": "no turn runs",
    "failure": "no turn runs",
    "interrupt": "no turn runs",
    "compacted": "no compaction runs",
    "form answer": "nothing was asked",
    "nudge": "only a turn that runs can ask that",
    "idle nudge": "it is known to be at rest",
    "agent start": "a subagent lists no session",
    "agent stop": "a subagent ends no session",
    "agent tool": "a subagent's tool is its own affair",
    "agent tool end": "a subagent's tool is its own affair",
    "agent batch": "a subagent's tool is its own affair",
    "note": "nothing follows from it",
    "unknown": "an event of an unknown kind",
    "registry idle": "it is known to be at rest",
    "registry shell": "an error is not over because a shell runs",
    "registry dialog": "that dialog asks nothing for the agent",
    "registry silent": "the CLI tells no status",
    "said prompt": "a question is answered by its tool or thread alone",
    "said text": "a question is answered by its tool or thread alone",
    "said tool": "a question is answered by its tool or thread alone",
    "said result": "it is not listed",
    "said denial": "no turn runs",
    "said last": "no turn runs",
    "said stop": "no turn runs",
    "said end": "no turn runs",
    "said queue": "no turn runs",
    "said feedback": "no turn ended",
    "said error": "no turn runs",
    "said retry": "no turn runs",
    "jump": "there is nothing to clear",
    "restart": "its status cannot have changed unwatched",
}
NOT_LISTED: Final = "it is not listed"
#: What a transcript tells of an end, but not of which process, where several write it.
ANYBODYS: Final = frozenset(
    {"said result", "said denial", "said last", "said stop", "said end", "interrupt"}
)


class Verdict(NamedTuple):
    """What became of a piece of evidence."""

    rule: str
    taken: bool
    why: str


def read_table(text: str) -> dict[str, dict[str, str]]:
    """Kind → status → name of the rule."""
    head, _, *rows = [ln for ln in text.splitlines() if ln.strip()]
    columns = [c.strip() for c in head.split("|")][1:]
    table = {}
    for row in rows:
        kind, *cells = (c.strip() for c in row.split("|"))
        table[kind] = dict(zip(columns, cells, strict=True))
    return table


def _decide(kind: str, cell: str) -> tuple[Rule | None, Verdict]:
    """A cell as what it does, and the verdict if that is done."""
    if cell == ".":
        return None, Verdict("", False, NOTHING.get(kind, NOT_LISTED))
    return RULES[cell], Verdict(cell, True, (RULES[cell].__doc__ or "").strip())


TABLE: Final = read_table(TABLE_TEXT)
DECIDED: Final = {
    kind: {status: _decide(kind, cell) for status, cell in row.items()}
    for kind, row in TABLE.items()
}


def apply(s: Session, e: Event, o: Options) -> Verdict:
    """Fold one piece of evidence into the session, in place; say by which rule."""
    before, since = status_of(s), s.since
    rule, verdict = DECIDED[e.kind][before]
    if rule is None:
        return verdict
    if e.kind in ANYBODYS and is_disputed(s, e):
        return Verdict(verdict.rule, False, "another process may have written it: its file tells")
    refused = rule(s, e, o)
    after = status_of(s)
    if after != before and s.since == since:
        question = question_of(s) if after == "blocked" else None
        s.since = question.since if question else e.t
    return verdict if refused is None else Verdict(verdict.rule, False, refused)


def is_disputed(s: Session, e: Event) -> bool:
    """A transcript's entry that another process may have written, while this one's file tells."""
    p = s.processes.get(s.pid)
    if p is None or not p.says or not e.name.startswith("transcript"):
        return False
    return len(s.processes) > 1 or any(e.t <= left for left in s.left.values())


# ---------------------------------------------------------------- what happens by time alone


class Deadline(NamedTuple):
    """Something that time alone will bring."""

    t: float
    kind: str
    process: int = 0
    tool: str = ""


CHECKED: Final = frozenset({"Bash", "WebFetch", "WebSearch"})  # what auto mode looks into
UNSEEN: Final = frozenset({"completed", "error"})  # by nature, until somebody looks
STOOD: Final = "registry stood"  # becomes what the process says


def deadlines(s: Session, o: Options) -> list[Deadline]:
    """Each thing that time alone will bring to this session, where the table has a rule for it."""
    found = [Deadline(p.at + o.settle, STOOD, p.pid) for p in s.processes.values() if not p.stood]
    if s.turn == ABSENT:
        return found
    _of_run(s, s, o, found)
    for run in s.aside.values():
        if run.turn != ABSENT:
            _of_run(s, run, o, found)
    if s.team_over:
        found.append(Deadline(s.team_over + o.team, "team over", s.pid))
    if not s.processes:
        found.append(Deadline(s.last + o.forget, "nobody knows", s.pid))
    return found


def _of_run(s: Session, run: Run, o: Options, found: list[Deadline]) -> None:
    status = status_of(run)
    if status == "working":
        p = s.processes.get(run.pid)
        says = p.says if p is not None else ""
        if not run.stale and says != "busy":
            found.append(Deadline(s.last + o.stale, "long silent", run.pid))
        if (o.approval or (run.unchecked and asks_unheard(s, run))) and not run.blocks:
            found += _approvals(s, run, o)
        runs = run.tools or run.agents or run.held or run.screen == "busy"
        if not (run.hooked or says or runs):
            found.append(Deadline(s.last + o.silence, "transcript quiet", run.pid))
    elif run is s and s.viewers and (status in UNSEEN or (status == "background" and s.unseen)):
        looked = (v + o.dwell if v > s.since else s.since + o.grace for v in s.viewers.values())
        found.append(Deadline(min(looked), "looked at", run.pid))
    for block in run.blocks.values():
        if not (block.shown or block.waits):
            found.append(Deadline(block.since + o.hold, "question stood", run.pid))
    if run.held_until or run.compacting or run.trusted_until:
        set_before = (
            (run.held_until, Deadline(run.held_until, "report overdue", run.pid)),
            (run.compacting, Deadline(run.compacting + o.compaction, "compaction quiet", run.pid)),
            (run.trusted_until, Deadline(run.trusted_until, "proof overdue", run.pid)),
        )
        found += [d for t, d in set_before if t and TABLE[d.kind][status] != "."]


def asks_unheard(s: Session, run: Run) -> bool:
    """Whether it asks what no hook tells: auto mode that cannot check, where no file tells it."""
    p = s.processes.get(run.pid)
    return run.unchecked and s.mode == "auto" and not (p is not None and p.says)


def _approvals(s: Session, run: Run, o: Options) -> Iterator[Deadline]:
    """When each tool of the main thread has run longer than its kind does."""
    unheard = asks_unheard(s, run)
    for slot, tool in run.tools.items():
        limit = o.approval.get(APPROVAL_CLASS.get(tool.name, ""))
        if unheard and tool.name in CHECKED:
            limit = o.hold
        if limit and not (tool.proven or tool.agent):
            yield Deadline(tool.since + limit, "approval overdue", run.pid, slot)


def slow_tools(s: Session, o: Options) -> Iterator[tuple[str, float, float]]:
    """Tools that a child of the process would prove to run: slot, since when, when overdue."""
    if status_of(s) == "working":
        for due in _approvals(s, s, o) if o.approval else ():
            tool = s.tools[due.tool]
            if APPROVAL_CLASS[tool.name] == "slow":
                yield due.tool, tool.since, due.t


def due(s: Session, o: Options) -> float | None:
    """When the next of them comes."""
    found = deadlines(s, o)
    return min(found)[0] if found else None


def is_due_sooner(s: Session, old: Session, o: Options) -> bool:
    """Whether a change may have brought a deadline nearer; news alone only puts them off.

    Asked with every event, and ten times cheaper than `due`.  Collections are never altered in
    place, so the same object is the same content.
    """
    return not (
        s.turn == old.turn
        and s.blocks is old.blocks
        and s.processes is old.processes
        and s.aside is old.aside
        and s.since == old.since
        and s.last >= old.last
        and s.held_until == old.held_until
        and s.compacting == old.compacting
        and s.trusted_until == old.trusted_until
        and s.viewers is old.viewers
        and s.unseen == old.unseen
        and s.stale == old.stale
        and s.team_over == old.team_over
        and s.hooked
        and old.hooked
        and not o.approval
        and not s.unchecked
    )


def expire(s: Session, now: float, o: Options) -> Iterator[Event]:
    """What time has brought until now, in order; each is to be applied before the next."""
    done = None
    while found := deadlines(s, o):
        d = min(found)
        if d.t > now:
            return
        if d == done:
            raise RuntimeError(f"{d.kind} would be due for ever")
        done = d
        take_up(s, d.process)
        if d.kind == STOOD:
            p = replace(s.processes[d.process], stood=True)
            s.processes = {**s.processes, d.process: p}
            yield registry_event(s, p, d.t)
        else:
            about = question_due(s, d.t, o) if d.kind == "question stood" else None
            tool, detail = (about.tool, about.detail) if about else ("", "")
            yield Event(
                d.kind,
                d.kind,
                d.t,
                d.t,
                s.session_id,
                tool=tool,
                tool_id=d.tool,
                detail=detail,
                pid=d.process,
            )


def question_due(s: Session, t: float, o: Options) -> Block | None:
    """The question that has stood by then."""
    stood = (b for b in s.blocks.values() if not (b.shown or b.waits) and b.since + o.hold <= t)
    return min(stood, key=lambda b: b.since, default=None)


def registry_event(s: Session, p: Process, now: float) -> Event:
    """What a registry value that has stood says."""
    kind = {
        "busy": "registry busy",
        "idle": "registry idle",
        "shell": "registry shell",
        "waiting": "registry waiting" if p.asks else "registry dialog",
    }.get(p.says, "registry silent")
    return Event(
        kind,
        kind,
        p.at,
        now,
        s.session_id,
        pid=p.pid,
        status=p.says,
        asks=p.asks or ("choice" if p.says == "waiting" else ""),
        tool=p.tool,
        source=p.was,
    )
