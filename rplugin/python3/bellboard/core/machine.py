"""The rule book of one session: which evidence changes which status, and why.

TABLE says, for every kind of evidence in every status, which rule applies; a cell `.` changes
nothing.  The rules themselves are in `rules/`.  `board.py` decides which session a piece of evidence
is about, and the agents' dialects of what kind it is.  This file does no I/O, and knows neither a
clock nor any other session.

The theory.  A session runs in one process or more.  Each has one main thread, which is in a *turn*
or at rest, and any number of open *questions*, each of them asked by one thread (the main one or a
subagent) about one tool.  Turns, questions, tools and what was typed ahead belong to their process,
thread and tool: no news of another ends them, because the rules see the run of one process alone
(`front.py`).  It shows `blocked` while a question stands, else the state of its turn, and of several
processes the most urgent one.

Hooks tell what happened, at once, but not everything: nothing tells of Esc, of a denial, of an
approval, of a kill.  The registry (the CLI's own session file) tells in which state the CLI is, a
moment later; the transcript tells what was said.  So each rule guards against evidence that is older
than what contradicts it:

* a registry value counts once it has *stood* for the settle time with no newer hook against it;
* a transcript entry counts by its own time, once, and never against a newer hook or another turn;
* an end older than the prompt ends nothing, and what is older than an end wakes nothing;
* a Stop is the end once the CLI rests after it, a question is asked once the CLI shows its dialog.

Time is an argument everywhere.  What happens by time alone is a deadline (`deadlines.py`), which
becomes evidence of a kind of its own and goes through the same table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .events import Event
from .options import Options
from .rules import RULES, Rule
from .session import Session, question_of, status_of

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
