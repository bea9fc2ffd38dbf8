"""The rule table is complete: every kind in every status is decided, and says why."""

from __future__ import annotations

from copy import copy
from functools import cache
from itertools import islice, product

import pytest
from msgspec.json import encode

from bellboard.agents.claude import hooks as dialects
from bellboard.agents.claude.hooks import hook
from bellboard.agents.opencode import dialect as opencode
from bellboard.agents.trace_line import READERS, from_line
from bellboard.agents.words import STARTS
from bellboard.core import deadlines, machine
from bellboard.core.board import Board
from bellboard.core.events import Event, Origin
from bellboard.core.far import OF_LINKS
from bellboard.core.machine import DECIDED, NO_TURN, NOTHING, RULES, TABLE, TABLE_TEXT, read_table
from bellboard.core.options import Options
from bellboard.core.published import publish
from bellboard.core.routes import ROUTES
from bellboard.core.session import (
    ABSENT,
    STATUSES,
    Block,
    Process,
    Session,
    Stated,
    Tool,
    status_of,
)
from bellboard.core.sources import statement
from rig.host.playback import TRACES, encoded, read_lines

COLUMNS = {ABSENT, *STATUSES}
T = 1.8e9
SAID = {"choice": "allow", "way": "hook"}
MANY = 30  # deadlines: no session has half as many

# ---------------------------------------------------------------- completeness


@cache
def kinds_of_events() -> set[str]:
    """Return every kind that an event of OpenCode can become, by name, fields and thread."""
    found = set()
    for name in [*opencode.KINDS, "no.such"]:
        for parent in ("", "p"):
            for said in ({"status": {"type": "retry"}}, {"reply": "reject"}, {}):
                given = {"type": name, "parent": parent, "properties": {"sessionID": "s", **said}}
                found.add(opencode.event(encode(given), T, T, Origin("opencode")).kind)
    return found


@cache
def kinds_of_hooks() -> set[str]:
    """Return every kind that a hook's payload can become, by name, fields and thread."""
    tools = ["Bash", *dialects.QUESTIONS]
    sources = ["startup", *STARTS]
    found = set()
    for name in [*dialects.KINDS, "NoSuchEvent"]:
        for agent in ("", ', "agent_id": "a1"'):
            for tool in tools:
                for source in sources:
                    for note in ["", *dialects.NOTIFICATIONS]:
                        for prompt in ("do it", "<task-notification>"):
                            told = (
                                f'{{"session_id": "s", "hook_event_name": "{name}", '
                                f'"tool_name": "{tool}", "source": "{source}", '
                                f'"notification_type": "{note}", "prompt": "{prompt}"{agent}}}'
                            )
                            found.add(hook(told.encode(), T, T).kind)
    return found


@cache
def kinds_of_other_clis() -> set[str]:
    """Return the kinds of the hooks in recordings of CLIs other than Claude Code."""
    lines = [line for case in read_lines(TRACES / "clis.jsonl") for line in case["trace"]]
    return {from_line(line).kind for line in lines if "hook" in line}


def kinds_of_statements() -> set[str]:
    said = ["busy", "idle", "waiting", "shell", "", "something new"]
    values = [Stated(x, asks) for x in said for asks in ("", "permission")]
    return {statement(Session("s", stated=x), T).kind for x in values}


@cache
def kinds_of_other_evidence() -> set[str]:
    """Return the kinds in recordings and cases besides hooks, and those of the readers."""
    files = [*TRACES.glob("*.jsonl"), *(TRACES / "recordings").glob("*.jsonl")]
    lines = [line for f in files for x in read_lines(f) for line in x.get("trace", [x])]
    found = {from_line(x).kind for x in lines if "hook" not in x and "raw" not in x}
    people = {"goto", "set", "label", "name", "park", "snooze", "forget", "facts"} & READERS.keys()
    answers = [{"session_id": "s", **SAID, **more} for more in ({}, {"outcome": "taken"})]
    lines = [*({key: {"session_id": "s"}} for key in people), *({"answer": x} for x in answers)]
    return found | {from_line({"t": T, **line}).kind for line in lines}


#: Deadlines that become the kind for what is stated.
BY_STATEMENT = {deadlines.STOOD, deadlines.STANDS}


def deadline_kinds() -> set[str]:
    """Return each kind that `deadlines` can name, from sessions with one of everything."""
    parts: list[dict[str, object]] = [
        {"turn": "working", "stated": Stated("busy"), "stood": False},
        {"turn": "working", "stated": Stated("idle"), "leads": T},
        {"turn": "working", "stated": Stated("busy", source="file"), "held": "stop"},
        {"turn": "idle", "blocks": {":": Block("permission", T)}},
        {"turn": "working", "held_until": T, "compacting": T, "trusted_until": T},
        {"turn": "idle", "team_over": T},
        {"turn": "completed", "viewers": {"": T}},
        {"turn": "working", "tools": {"x": Tool("Bash", T)}},
        {"turn": "working"},
        {"turn": "working", "machine": "dev", "link_since": T},
    ]
    options = Options(approval={"slow": 8.0})
    sessions = [Session("s", **p) for p in parts]  # type: ignore[arg-type]
    return {d.kind for s in sessions for d in deadlines.deadlines(s, options)} - BY_STATEMENT


#: Kinds that a route finds the session of, and that a rule then decides.
ROUTED = {"restart", "view", "process gone", "pane gone", *OF_LINKS}


def missing(table: dict[str, dict[str, str]]) -> list[str]:
    """Return the missing cells of the table."""
    kinds = (
        kinds_of_hooks()
        | kinds_of_events()
        | kinds_of_other_clis()
        | kinds_of_statements()
        | kinds_of_other_evidence()
        | deadline_kinds()
    ) - (ROUTES.keys() - ROUTED)
    holes = [f"no row for {kind}" for kind in sorted(kinds - table.keys())]
    holes += [f"nothing makes {kind}" for kind in sorted(table.keys() - kinds)]
    holes += [
        f"{kind}: {sorted(COLUMNS ^ row.keys())}"
        for kind, row in table.items()
        if row.keys() != COLUMNS
    ]
    named = {cell for row in table.values() for cell in row.values()} - {"."}
    holes += [f"no rule {rule}" for rule in sorted(named - RULES.keys())]
    holes += [f"rule {rule} is in no cell" for rule in sorted(RULES.keys() - named)]
    return holes


def test_every_kind_is_decided_in_every_status() -> None:
    assert missing(TABLE) == []


def test_a_deleted_row_is_missed() -> None:
    """The check above fails for every deleted row."""
    assert {f"no row for {kind}" for kind in TABLE} <= set(missing({}))


def test_a_deleted_cell_is_missed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        read_table(TABLE_TEXT.replace("| begin     | begin     |", "| begin     |", 1))


def test_every_empty_cell_says_why() -> None:
    """Kinds with a reason of their own have an empty cell; all others say that no turn runs."""
    empty = {kind for kind, row in TABLE.items() if "." in [row[s] for s in STATUSES]}
    by_time_alone = deadline_kinds()  # these only occur where they have a rule
    assert NOTHING.keys() <= empty - by_time_alone
    told = {kind: DECIDED[kind]["idle"][1].why for kind in empty if TABLE[kind]["idle"] == "."}
    assert told == {kind: NOTHING.get(kind, NO_TURN) for kind in told}


def test_every_rule_says_in_a_sentence_what_it_means() -> None:
    told = {name: (rule.__doc__ or "").strip() for name, rule in RULES.items()}
    assert {n: s for n, s in told.items() if not s.endswith(".") or "\n" in s} == {}


# ---------------------------------------------------------------- time


def worst_of(status: str) -> Session:
    """Return a session in a status, with every possible deadline set."""
    s = Session(
        "s",
        turn="working" if status == "blocked" else status,
        held="report",
        held_until=T,
        compacting=T,
        trusted_until=T,
        team=("kid",),
        team_over=T,
        viewers={"": T},
        unseen=True,
        rested="completed",
        tools={"t1": Tool("Bash", T), "t2": Tool("Edit", T)},
        pid=7,
        processes={7: Process(7, states=Stated("idle", at=T, source="file"))},
        stated=Stated("idle", at=T, source="file"),
        stood=False,
        blocks={"a1:": Block("permission", T, agent="a1")},
        last=T,
        since=T,
    )
    if status == "blocked":
        s.blocks = {**s.blocks, ":": Block("question", T, shown=True)}
    return s


@pytest.mark.parametrize("status", [ABSENT, *STATUSES])
def test_deadlines_come_to_an_end(status: str) -> None:
    """No deadline fires for ever, whatever the evidence, with hooks and without."""
    options = Options(approval={"slow": 8.0, "fast": 3.0})
    assert status_of(worst_of(status)) == status
    for kind, hooked, is_led in product([None, *TABLE], [True, False], [True, False]):
        s = worst_of(status)
        s.hooked = hooked
        if is_led:
            s.stated, s.stood, s.leads = Stated("busy", at=T, source="file"), True, T
            s.held, s.tools = "stop", s.tools if kind == "approval overdue" else {}
        if kind is not None:
            about = {"pid": 7, "tool": "Bash", "tool_id": "t1", "status": "busy"}
            machine.apply(s, Event(kind, kind, T + 1, T + 1, "s", **about), options)
        fired = []
        for event in islice(deadlines.expire(s, T + 1e6, options), MANY):
            machine.apply(s, event, options)
            fired.append(event.kind)
        assert len(fired) < MANY, (kind, hooked, is_led, fired)
        due = deadlines.due(s, options)
        assert due is None or due > T + 1e6


def test_deadlines_fall_due_in_order() -> None:
    s = worst_of("working")
    times = []
    for event in deadlines.expire(s, T + 1e6, Options()):
        times.append(event.clock)
        machine.apply(s, event, Options())
    assert times == sorted(times)


@pytest.mark.parametrize("status", STATUSES)
def test_what_is_for_information_only_brings_no_deadline_nearer(status: str) -> None:
    """So deadlines are not computed again, which many events would cause for nothing."""
    s = worst_of(status)
    s.hooked = True
    before = copy(s)
    note = Event("note", "InstructionsLoaded", T + 1, T + 1, "s", pid=s.pid)
    assert machine.apply(s, note, Options()).why == "for information only"
    assert not deadlines.is_due_sooner(s, before, Options())


def test_tasks_are_counted_as_they_come_and_are_done() -> None:
    """A task whose start was missed counts as well."""
    board, counted = Board(), []
    names = ("UserPromptSubmit", "TaskCreated", "TaskCreated", *["TaskCompleted"] * 3)
    for n, name in enumerate(names):
        told = {"session_id": "s", "hook_event_name": name, "task_id": str(n)}
        board.fold(from_line({"t": T + n, "hook": told}))
        counted.append(publish(board.sessions["s"]).get("tasks"))
    expected = [(0, 1), (0, 2), (1, 2), (2, 2), (3, 3)]
    assert [None, *({"done": done, "total": total} for done, total in expected)] == counted


def test_a_workflow_is_one_agent_however_many_it_runs() -> None:
    """Before a Stop lists it, and after, when it starts more; a question of one of them is its."""
    board, shown = Board(), []
    flow = {"id": "w1", "type": "workflow", "status": "running", "description": "Find all bugs"}
    asks = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    for n, (name, more) in enumerate(
        (
            ("UserPromptSubmit", {"prompt": "go"}),
            ("SubagentStart", {"agent_id": "a1", "agent_type": "workflow-subagent"}),
            ("SubagentStart", {"agent_id": "a2", "agent_type": "workflow-subagent"}),
            ("Stop", {"background_tasks": [flow]}),
            ("SubagentStart", {"agent_id": "a3", "agent_type": "workflow-subagent"}),
            ("SubagentStart", {"agent_id": "a4", "agent_type": "Explore"}),
            ("PermissionRequest", {"agent_id": "a3", **asks}),
        )
    ):
        told = {"session_id": "s", "hook_event_name": name, **more}
        board.fold(from_line({"t": T + n, "hook": told}))
        agents = publish(board.sessions["s"]).get("agents", [])
        shown.append([(a["type"], a["description"]) for a in agents])
    board.advance(T + 10)
    before, after = ("workflow", ""), ("workflow", "Find all bugs")
    both = [after, ("Explore", "")]
    assert [[], [before], [before], [after], [after], both, both] == shown
    agents = publish(board.sessions["s"])["agents"]
    assert {"workflow": True, "Explore": False} == {a["type"]: a["blocked"] for a in agents}


def test_hooks_say_where_it_works_and_its_file_where_it_began() -> None:
    """The file follows no `cd`; if it names another folder than before, that counts."""
    board, shown = Board(), []
    for n, (hooked, cwd) in enumerate(
        ((True, "/p"), (False, "/p"), (True, "/p/sub"), (False, "/p"), (False, "/tree"))
    ):
        told = {"session_id": "s", "hook_event_name": "Stop" if n else "SessionStart", "cwd": cwd}
        line = {"hook": told, "origin": {"pid": 7}}
        if not hooked:
            at = {"status": "idle", "statusUpdatedAt": (T + n) * 1000}
            line = {"registry": {"pid": 7, "record": {"sessionId": "s", "cwd": cwd, **at}}}
        board.fold(from_line({"t": T + n, **line}))
        shown.append(board.sessions["s"].cwd)
    assert ["/p", "/p", "/p/sub", "/p/sub", "/tree"] == shown


def test_the_permission_mode_shows_while_hooks_tell_it() -> None:
    """A key changes it at rest, and nothing says so."""
    board, shown = Board(), []
    for n, (name, more) in enumerate(
        (
            ("SessionStart", {"source": "startup"}),
            ("UserPromptSubmit", {"prompt": "go", "permission_mode": "plan"}),
            ("PreToolUse", {"tool_name": "Bash", "permission_mode": "acceptEdits"}),
            ("Stop", {"permission_mode": "acceptEdits", "background_tasks": []}),
            ("UserPromptSubmit", {"prompt": "more"}),
        )
    ):
        told = {"session_id": "s", "hook_event_name": name, **more}
        board.fold(from_line({"t": T + n, "hook": told}))
        shown.append(publish(board.sessions["s"]).get("mode"))
        if name == "Stop":  # the hooks are removed, and a turn runs without them
            at = {"sessionId": "s", "status": "busy", "statusUpdatedAt": (T + n + 0.2) * 1000}
            board.fold(from_line({"t": T + n + 0.3, "registry": {"pid": 7, "record": at}}))
            board.advance(T + n + 0.8)
            p = publish(board.sessions["s"])
            assert (p["status"], p.get("mode")) == ("working", None)
    assert [None, "plan", "acceptEdits", None, None] == shown


def test_every_trace_line_of_the_project_is_read() -> None:
    told = [x for c in read_lines(TRACES / "more.jsonl") for x in c["trace"]]
    junk = [x for x in told if from_line(x).kind == "junk" and "raw" not in x]
    assert junk == []
    assert len(encoded(told)) > 500
