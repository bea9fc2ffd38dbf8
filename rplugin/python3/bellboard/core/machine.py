"""The state machine of a session: which evidence changes its status, and why.

TABLE gives, for every kind of evidence in every status, the rule that applies; a cell `.` changes
nothing.  The rules are in `rules/`.  `board.py` decides which session a piece of evidence is about,
and the agents' dialects decide its kind.  This file does no I/O, and knows neither the clock nor
other sessions.

A session runs in one or more processes.  Each has a main thread, which is in a *turn* or at rest,
and any number of open *questions*, each asked by a thread (the main one or a subagent) about a
tool.  Turns, questions, tools and queued prompts belong to their process, thread and tool, and an
event about another never ends them: a rule sees only the run of one process (`front.py`).  A run
shows `blocked` while a question is open, else the state of its turn; a session shows its most
urgent run.

Hooks report at once what happens, but they miss Esc, denials, approvals and kills.  The registry
(the CLI's own session file) reports the state of the CLI a moment later, and the transcript reports
what was said.  So each rule ignores evidence that is older than what contradicts it:

* a registry value counts once it has lasted for the settle time without a newer hook against it, or
  for a few seconds against hooks that are newer by no more than that: they may run late; a hook
  that is read late is as old as its stamp;
* a transcript entry counts once, by its own time, and never against a newer hook or another turn;
* an end that is older than the prompt ends nothing, and nothing older than an end starts a turn;
* a Stop ends the turn once the CLI is at rest, and a question shows once the CLI shows its dialog.

Time is always an argument.  A deadline (`deadlines.py`) becomes evidence of its own kind and goes
through the same table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .events import Event
from .options import Options
from .rules import RULES, Rule
from .session import Session, question_of, says, status_of

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
stop             | .       | amend     | finish    | finish    | recount   | catch_up  | recount    | finish
failure          | .       | fail      | fail      | fail      | fail      | explain   | fail       | fail
interrupt        | .       | .         | break_off | break_off | .         | .         | .          | break_off
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

registry busy    | work    | go_busy   | go_on     | answered  | go_busy   | go_busy   | go_busy    | go_busy
registry idle    | begin   | settle    | settle    | settle    | .         | .         | settle     | settle
registry waiting | ask     | ask       | ask       | confirm   | ask       | ask       | ask        | ask
registry shell   | begin   | settle    | settle    | settle    | settle    | .         | .          | settle
registry dialog  | begin   | .         | offer     | .         | .         | .         | .          | offer
registry silent  | begin   | .         | release   | withdraw  | .         | .         | .          | .

said prompt      | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said text        | hear    | hear      | go_on     | .         | hear      | hear      | hear       | hear
said tool        | hear    | hear      | go_on     | name_tool | hear      | hear      | hear       | hear
said result      | .       | hear      | move_on   | move_on   | hear      | hear      | hear       | hear
said denial      | .       | .         | move_on   | move_on   | .         | .         | .          | .
said last        | .       | .         | hear_end  | .         | .         | .         | .          | hear_end
said stop        | .       | .         | hear_end  | .         | .         | .          | .         | hear_end
said end         | .       | amend     | hear_end  | .         | .         | .         | .          | hear_end
said queue       | .       | dequeue   | dequeue   | dequeue   | dequeue   | dequeue   | dequeue    | dequeue
said feedback    | .       | sent_on   | sent_on   | .         | sent_on   | .         | sent_on    | sent_on
said error       | .       | amend     | fail      | fail      | .         | explain   | .          | fail
said failure     | .       | amend     | fail_late | fail_late | fail_late | .         | .          | fail_late
said cancel      | .       | amend     | esc_late  | esc_late  | esc_late  | .         | .          | esc_late
said refusal     | .       | excuse    | reject    | reject    | .         | .         | .          | reject
said attempt     | .       | .         | attempt   | .         | .         | .         | .          | attempt
said retry       | .       | .         | retry     | .         | .         | .         | .          | retry

own report       | state   | state     | state     | state     | state     | state     | state      | state

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
answer           | .       | reply     | reply     | reply     | reply     | reply     | reply      | reply
answer outcome   | .       | outcome   | outcome   | outcome   | outcome   | outcome   | outcome    | outcome
facts            | .       | learn     | learn     | learn     | learn     | learn     | learn      | learn
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


#: Why a kind changes nothing where its row says `.`; without an entry, no session is listed there.
NOTHING: Final = {
    "stop": "no turn is running",
    "failure": "no turn is running",
    "interrupt": "no turn is running",
    "compacted": "no compaction is running",
    "batch": "no turn is running",
    "form answer": "nothing was asked",
    "idle nudge": "already at rest",
    "rest": "already at rest",
    "agent start": "a subagent does not start a session",
    "agent stop": "a subagent does not end a session",
    "agent tool": "a subagent's tool does not change the status",
    "agent tool end": "a subagent's tool does not change the status",
    "agent batch": "a subagent's tool does not change the status",
    "note": "for information only",
    "registry idle": "already at rest",
    "registry shell": "a running shell does not clear an error",
    "registry dialog": "the dialog is not a question of the agent",
    "registry silent": "the CLI reports no status",
    "said prompt": "only its own tool or thread answers a question",
    "said text": "only its own tool or thread answers a question",
    "said denial": "no turn is running",
    "said last": "no turn is running",
    "said stop": "no turn is running",
    "said end": "no turn is running",
    "said feedback": "no turn has ended",
    "said error": "no turn is running",
    "said failure": "no turn is running",
    "said cancel": "no turn is running",
    "said refusal": "no turn is running",
    "said attempt": "no turn is running",
    "said retry": "no turn is running",
    "jump": "there is nothing to clear",
    "restart": "the status cannot have changed meanwhile",
}
NOT_LISTED: Final = "the session is not listed"
#: Transcript entries about an end, or a request to the model, which do not say which of several
#: processes they mean.
ANYBODYS: Final = frozenset(
    {
        *("said result", "said denial", "said last", "said stop", "said end", "interrupt"),
        "said attempt",
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


def _decide(kind: str, cell: str) -> tuple[Rule | None, Verdict]:
    """Return the rule of a cell, and the verdict if it is applied."""
    if cell == ".":
        return None, Verdict("", False, NOTHING.get(kind, NOT_LISTED))
    return RULES[cell], Verdict(cell, True, (RULES[cell].__doc__ or "").strip())


TABLE: Final = read_table(TABLE_TEXT)
DECIDED: Final = {
    kind: {status: _decide(kind, cell) for status, cell in row.items()}
    for kind, row in TABLE.items()
}


def apply(s: Session, e: Event, o: Options) -> Verdict:
    """Apply an event to a session, in place; return the verdict."""
    before, since = status_of(s), s.since
    rule, verdict = DECIDED[e.kind][before]
    if rule is None:
        return verdict
    if e.kind in ANYBODYS and is_disputed(s, e):
        return Verdict(verdict.rule, False, "another process may have written that entry")
    refused = rule(s, e, o)
    after = status_of(s)
    if after != before and s.since == since:
        question = question_of(s) if after == "blocked" else None
        s.since = question.since if question else e.t
    return verdict if refused is None else Verdict(verdict.rule, False, refused)


def is_disputed(s: Session, e: Event) -> bool:
    """Return whether another process may have written an entry, and this one has a session file."""
    if not says(s) or not e.name.startswith("transcript"):
        return False
    return len(s.processes) > 1 or any(e.t <= left for left in s.left.values())
