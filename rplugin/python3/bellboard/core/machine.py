"""The state machine of a session: which evidence changes its status, and why.

TABLE gives, for every kind of evidence in every status, the rule that applies; a cell `.` changes
nothing.  The rules are in `rules/`.  `board.py` decides which session a piece of evidence is about,
and the agents' dialects decide its kind.  This file does no I/O, and knows neither the clock nor
other sessions.

A session runs in one or more processes.  Each has a main thread, which is in a *turn* or at rest,
and any number of open *questions*, each asked by a thread (the main one or a subagent) about a
tool.  Turns, questions, tools and queued prompts belong to their process, thread and tool, and an
event about another never ends them: a rule sees only the run of one process (`session.py`).  A run
shows `blocked` while a question is open, else the state of its turn; a session shows its most
urgent run.

What a program states of itself is ranked (`sources.py`) and set (`state`).  Everything else only
happens, and is folded in the order of time: each rule ignores evidence that is older than what
contradicts it.

* A transcript entry counts once, by its own time, and never against a newer hook or another turn.
* An end that is older than the prompt ends nothing, and nothing older than an end starts a turn.
* A Stop ends the turn once the CLI is at rest, as far as anything states that.

Time is always an argument.  A deadline (`deadlines.py`) becomes evidence of its own kind and goes
through the same table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from .events import Event
from .options import Options
from .rules import RULES, Rule, crew, files, people, questions, turns  # noqa: F401  # their rules
from .session import ABSENT, RUNS, Session, question_of, says, status_of
from .sources import SAYS_REST, best, counts_at_once, is_dialog, is_same, statement, statement_words

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
stop             | .       | amend     | finish    | finish    | amend     | amend     | amend      | finish
failure          | .       | fail      | fail      | fail      | fail      | amend     | fail       | fail
interrupt        | .       | amend     | break_off | break_off | .         | .         | .          | break_off
compacting       | compact | compact   | compact   | compact   | compact   | compact   | compact    | compact
compacted        | .       | .         | compacted | compacted | .         | .         | .          | .

tool             | wake    | wake      | go_on     | go_on     | wake      | wake      | wake       | wake
granted          | wake    | wake      | grant     | grant     | wake      | wake      | wake       | wake
tool end         | wake    | wake      | move_on   | move_on   | wake      | wake      | wake       | wake
batch            | wake    | .         | move_on   | move_on   | .         | .         | .          | wake
question         | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
request          | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
form             | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
form answer      | .       | .         | move_on   | move_on   | .         | .         | .          | move_on
nudge            | ask     | recall    | remind    | confirm   | recall    | recall    | recall     | remind
choice           | .       | choose    | choose    | choose    | choose    | choose    | choose     | choose
idle nudge       | .       | .         | missed    | .         | .         | .         | .          | missed
rest             | .       | amend     | finish    | finish    | .         | .         | .          | finish

agent start      | .       | enlist    | enlist    | enlist    | enlist    | enlist    | enlist     | enlist
agent stop       | .       | dismiss   | dismiss   | dismiss   | dismiss   | dismiss   | dismiss    | dismiss
agent tool       | .       | .         | use_tool  | use_tool  | .         | .         | .          | use_tool
agent tool end   | .       | .         | move_on   | move_on   | .         | .         | .          | .
agent batch      | .       | .         | move_on   | move_on   | .         | .         | .          | .
agent question   | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
agent request    | ask     | ask       | ask       | ask       | ask       | ask       | ask        | ask
task             | .       | count     | count     | count     | count     | count     | count      | count
task done        | .       | count     | count     | count     | count     | count     | count      | count
teammate idle    | .       | retire    | retire    | retire    | retire    | retire    | retire     | retire
note             | .       | .         | assign    | assign    | .         | .         | .          | .

states busy      | work    | go_busy   | go_on     | answered  | go_busy   | go_busy   | go_busy    | go_busy
states idle      | begin   | settle    | settle    | settle    | settle    | settle    | settle     | settle
states waiting   | ask     | ask       | ask       | confirm   | ask       | ask       | ask        | ask
states shell     | begin   | settle    | settle    | settle    | settle    | .         | .          | settle
states dialog    | begin   | .         | offer     | .         | .         | .         | .          | offer
states nothing   | begin   | .         | release   | withdraw  | .         | .         | .          | .

said prompt      | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said text        | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said tool        | hear    | hear      | go_on     | name_tool | hear      | hear      | hear       | hear
said result      | .       | hear      | move_on   | move_on   | hear      | hear      | hear       | hear
said denial      | .       | .         | move_on   | move_on   | .         | .         | .          | .
said last        | .       | .         | hear_end  | .         | .         | .         | .          | hear_end
said stop        | .       | .         | hear_end  | .         | .         | .         | .          | hear_end
said end         | .       | amend     | hear_end  | .         | .         | .         | .          | hear_end
said queue       | .       | dequeue   | dequeue   | dequeue   | dequeue   | dequeue   | dequeue    | dequeue
said feedback    | .       | sent_on   | sent_on   | .         | sent_on   | .         | sent_on    | sent_on
said error       | .       | amend     | fail      | fail      | .         | amend     | .          | fail
said failure     | .       | amend     | fail      | fail      | amend     | .         | .          | fail
said cancel      | .       | amend     | amend     | amend     | amend     | .         | .          | amend
said refusal     | .       | .         | reject    | reject    | .         | .         | .          | reject
said attempt     | .       | .         | attempt   | .         | .         | .         | .          | attempt
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
submit           | .       | submit    | submit    | submit    | submit    | submit    | submit     | submit
answer           | .       | reply     | reply     | reply     | reply     | reply     | reply      | reply
answer outcome   | .       | outcome   | outcome   | outcome   | outcome   | outcome   | outcome    | outcome
facts            | learn   | learn     | learn     | learn     | learn     | learn     | learn      | learn
forget           | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave
restart          | .       | .         | doubt     | .         | .         | .         | .          | .

far              | follow  | follow    | follow    | follow    | follow    | follow    | follow     | follow
far gone         | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave
link up          | .       | rejoin    | rejoin    | rejoin    | rejoin    | rejoin    | rejoin     | rejoin
link down        | .       | lose      | lose      | lose      | lose      | lose      | lose       | lose
link gone        | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave

question stood   | .       | show      | show      | show      | show      | show      | show       | show
report overdue   | .       | .         | give_up   | give_up   | .         | .         | .          | give_up
looked at        | .       | .         | .         | .         | clear     | clear     | clear      | .
end overdue      | .       | .         | missed    | .         | .         | .         | .          | .
compaction quiet | .       | .         | compacted | compacted | .         | .         | .          | .
approval overdue | .       | .         | suspect   | .         | .         | .         | .          | .
silent           | .       | .         | listen    | .         | .         | .         | .          | .
long silent      | .       | .         | fade      | .         | .         | .         | .          | .
team over        | .       | disband   | disband   | disband   | disband   | disband   | disband    | disband
proof overdue    | .       | .         | doubt     | doubt     | .         | .         | .          | .
transcript quiet | .       | .         | hear_end  | .         | .         | .         | .          | .
process unknown  | .       | leave     | leave     | leave     | leave     | leave     | leave      | leave
link long down   | .       | fold_away | fold_away | fold_away | fold_away | fold_away | fold_away  | fold_away
"""


#: Why a kind changes nothing where its row says `.` and the session is listed.
NOTHING: Final = {
    "form answer": "nothing was asked",
    "jump": "there is nothing to clear",
    "note": "for information only",
    "restart": "the status cannot have changed meanwhile",
    "said prompt": "only its own tool or thread answers a question",
    "said text": "only its own tool or thread answers a question",
    "states dialog": "the dialog is not a question of the agent",
    "states nothing": "the CLI reports no status",
    "states shell": "a running shell does not clear an error",
    **dict.fromkeys(
        ("agent tool", "agent tool end", "agent batch"),
        "a subagent's tool does not change the status",
    ),
}
#: The rules that hold back the end of a turn until it is at rest.
ENDS: Final = frozenset({"finish", "fail", "hear_end", "amend"})
NO_TURN: Final = "no turn is running"
NOT_LISTED: Final = "the session is not listed"
#: Transcript entries about an end, or a request to the model, which do not say which of several
#: processes they mean.
ANYBODYS: Final = frozenset(
    {
        *("said result", "said denial", "said last", "said stop", "said end", "interrupt"),
        *("said attempt", "said refusal"),
    }
)


class Verdict(NamedTuple):
    """The outcome of applying an event."""

    rule: str
    taken: bool
    why: str


def read_table(text: str) -> dict[str, dict[str, str]]:
    """Parse a table: kind → status → name of the rule."""
    head, _, *rows = [ln for ln in text.splitlines() if ln.strip()]
    columns = [c.strip() for c in head.split("|")][1:]
    table = {}
    for row in rows:
        kind, *cells = (c.strip() for c in row.split("|"))
        table[kind] = dict(zip(columns, cells, strict=True))
    return table


def _decide(kind: str, status: str, cell: str) -> tuple[Rule | None, Verdict]:
    """Return the rule of a cell, and the verdict if it is applied."""
    if cell == ".":
        why = NOT_LISTED if status == ABSENT else NOTHING.get(kind, NO_TURN)
        return None, Verdict("", False, why)
    return RULES[cell], Verdict(cell, True, (RULES[cell].__doc__ or "").strip())


TABLE: Final = read_table(TABLE_TEXT)
DECIDED: Final = {
    kind: {status: _decide(kind, status, cell) for status, cell in row.items()}
    for kind, row in TABLE.items()
}


def apply(s: Session, e: Event, o: Options) -> Verdict:
    """Apply an event to a session, in place; return the verdict."""
    before, since = status_of(s), s.since
    rule, verdict = DECIDED[e.kind][before]
    if rule is None:
        if before == ABSENT and any(run.turn != ABSENT for run in s.aside.values()):
            return verdict._replace(why=f"this process (pid {s.pid}) has no turn in this session")
        return verdict
    if e.kind in ANYBODYS and is_disputed(s, e):
        return Verdict(verdict.rule, False, "another process may have written that entry")
    refused = rule(s, e, o)
    after = status_of(s)
    if after != before and s.since == since:
        question = question_of(s) if after == "blocked" else None
        s.since = question.since if question else e.t
    if refused is not None:
        return Verdict(verdict.rule, False, refused)
    if s.held and verdict.rule in ENDS:
        what = "failure" if s.held == "fail" else "end"
        return verdict._replace(why=f"The {what} of the turn is held: {held_by(s)}")
    return verdict


def held_by(s: Session) -> str:
    """Return what the end of a turn waits for, in words."""
    if s.agents:
        return f"{len(s.agents)} agents run" if len(s.agents) > 1 else "1 agent runs"
    if says(s) in {*RUNS, "waiting"}:
        return statement_words(s.stated)
    return "a prompt waits" if s.queue else "nothing shows yet that it rests"


def state(s: Session, clock: float, o: Options) -> Verdict:
    """Set a run to the status that its best source states; later, if this may be a blip."""
    now, before = best(s, s), s.stated
    if is_same(now, before) and s.turn not in (ABSENT, "unknown"):
        s.stated = now
        return Verdict("", False, "nothing else is stated")
    if not now.says and s.turn != ABSENT:  # it may only be exiting
        now = replace(now, at=clock)
    verdict = Verdict("noted", True, "It counts after the settle time.")
    if is_dialog(now) and before.says in SAYS_REST and not s.stood:
        verdict = apply(s, statement(s, clock), o)  # the user opened it, which hides that rest
    s.stated, s.stood = now, counts_at_once(s, now)
    s.leads = s.overruled = 0.0
    return apply(s, statement(s, clock), o) if s.stood else verdict


def is_disputed(s: Session, e: Event) -> bool:
    """Return whether another process may have written an entry, and this one has a session file."""
    if not says(s) or not e.name.startswith("transcript"):
        return False
    return len(s.processes) > 1 or any(e.t <= left for left in s.left.values())
