"""The dialects of all CLIs: what one says harms no session of another, whoever decodes it."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timezone
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents.agent import Agent
from bellboard.agents.registry import KEYS, agent_of, all_agents
from bellboard.agents.trace_line import SCREENS, from_line
from bellboard.core.board import Board
from bellboard.core.events import Event, Origin
from bellboard.core.machine import TABLE
from bellboard.core.request import Answer
from bellboard.core.untrusted import WRONG_SHAPE
from playback import TRACES, Line, play, read_lines

T = 1.8e9
FILES = ("cases", "more", "owners", "clis", "documented")

pytestmark = pytest.mark.pure


def said() -> tuple[list[tuple[str, bytes]], list[Line]]:
    """Return the payloads with their events, and the transcript entries, of all cases.

    Of those with the same fields and events, one is enough.
    """
    payloads: dict[str, tuple[str, bytes]] = {}
    entries: dict[str, Line] = {}
    for file in FILES:
        for case in read_lines(TRACES / f"{file}.jsonl"):
            for line in case["trace"]:
                if "hook" in line:
                    name, text = line.get("event", ""), json.dumps(line["hook"])
                    payloads[shape_of(name, line["hook"])] = (name, text.encode())
                elif "transcript" in line:
                    entry = line["transcript"].get("entry")
                    entries[shape_of("", entry)] = entry
    return list(payloads.values()), list(entries.values())


def shape_of(name: str, given: Any) -> str:
    if not isinstance(given, dict):
        return repr(given)
    named = [given.get(key) for key in ("hook_event_name", "notification_type", "type")]
    ids = [given.get(key) for key in ("session_id", "sessionId")]
    return repr((name, named, ids, sorted(given)))


PAYLOADS, ENTRIES = said()


def decoded(dialect: Agent, payload: bytes, name: str, t: float = T + 5) -> Event:
    return dialect.event(payload, t, t, Origin(dialect.key), name=name)


def test_each_agent_is_loaded_by_its_name() -> None:
    """The lists name them once more, so that one can be loaded without the others."""
    assert [agent_of(key).key for key in KEYS] == [*KEYS]
    assert [agent_of(key).key for key in KEYS] == [*KEYS]


#: Kinds that stand only in the table of an agent, which reads a more exact one from each payload.
OWN_KINDS = {"claude": {"notification"}}


@pytest.mark.parametrize("dialect", all_agents(), ids=KEYS)
def test_each_kind_of_a_hook_event_is_a_row_of_the_table(dialect: Agent) -> None:
    """An event of any other kind would change nothing."""
    kinds = TABLE.keys() | OWN_KINDS.get(dialect.key, set())
    odd = {name: kind for name, kind in dialect.kinds.items() if kind not in kinds}
    assert odd == {}, f"{dialect.key}: these kinds are no rows of TABLE_TEXT (core/machine.py)"


@pytest.mark.parametrize("dialect", all_agents(), ids=KEYS)
def test_a_dialect_reads_whatever_another_cli_says(dialect: Agent) -> None:
    """Each payload and entry of each CLI is decoded, or refused with a reason; nothing raises."""
    for name, payload in PAYLOADS:
        assert isinstance(decoded(dialect, payload, name), Event)
        dialect.request(payload, "1", T, Origin(dialect.key))
        dialect.reply(payload, Answer("allow"))
    for entry in ENTRIES:
        with suppress(WRONG_SHAPE):
            assert isinstance(dialect.entry("s", entry, T, T), Event)


@pytest.mark.parametrize("dialect", all_agents(), ids=KEYS)
def test_what_one_agent_says_changes_no_session_of_another(dialect: Agent) -> None:
    """Hooks under one agent's name leave sessions of other agents as they are."""
    board = Board()
    ids = {i for name, payload in PAYLOADS if (i := decoded(dialect, payload, name).session_id)}
    others = [key for key in KEYS if key != dialect.key]
    for n, sid in enumerate(sorted(ids | {"s", "s1"})):
        origin = Origin(others[n % len(others)])
        board.fold(Event("prompt", "prompt", T, T, sid, origin, key=1))
    before = dict(board.sessions)
    for name, payload in PAYLOADS:
        board.fold(decoded(dialect, payload, name))
    assert {sid: board.sessions[sid] for sid in before} == before


TITLES = [
    *("\u280b proj", "[ ! ] Action Required | proj", "[ . ] Action Required | proj", "proj"),
    *("\u2726  Working\u2026 (proj)", "\u23f2  Working\u2026 (proj)", "\u25c7  Ready (proj)"),
    *("\u270b  Action Required (proj)", "\u25d0 Qwen - proj", "\u2733 Qwen - proj"),
    *("Qwen - proj", "GitHub Copilot", "OpenCode", "\u2733 Claude Code", ""),
]
STATES: list[Line] = [
    {"type": "active", "activeFlags": []},
    {"type": "active", "activeFlags": ["waitingOnApproval"]},
    *({"type": kind} for kind in ("idle", "systemError", "notLoaded")),
]
MESSAGES: list[Line] = [
    {"method": "thread/status/changed", "params": {"threadId": "s", "status": status}}
    for status in STATES
]


@pytest.mark.parametrize("dialect", all_agents(), ids=KEYS)
def test_a_dialect_reads_the_titles_of_every_cli(dialect: Agent) -> None:
    """A CLI with titles shows work, a question and rest in them; others are not read."""
    seen = [seen for text in TITLES if (seen := dialect.titled(text)) is not None]
    assert {each.says for each in seen} == (SCREENS if dialect.has_titles else set())


@pytest.mark.parametrize("dialect", all_agents(), ids=KEYS)
def test_what_one_agent_shows_changes_no_session_of_another(dialect: Agent) -> None:
    """Titles and messages of a server change only their own session."""
    board = Board()
    for pid, key in enumerate(KEYS, 11):
        board.fold(Event("prompt", "prompt", T, T, key, Origin(key, pid), key=pid))
    before = dict(board.sessions)
    shown = [(seen, "title") for text in TITLES if (seen := dialect.titled(text)) is not None]
    shown += [(said.seen, "server") for said in map(dialect.heard, MESSAGES) if said is not None]
    pid = 11 + [*KEYS].index(dialect.key)
    for n, (seen, where) in enumerate(shown):
        board.fold(from_line(seen.evidence(T + 5 + n / 100, dialect.key, pid, where=where).line))
    moved = {sid for sid, session in board.sessions.items() if before.get(sid) != session}
    assert moved == ({dialect.key} if shown else set())


NAMES = sorted({name for dialect in all_agents() for name in dialect.kinds})
KEYS_SEEN = sorted({key for _, payload in PAYLOADS for key in json.loads(payload)})
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(
    name=st.sampled_from(NAMES) | st.text(max_size=8),
    payload=st.dictionaries(st.sampled_from(KEYS_SEEN), values, max_size=8),
    cut=st.integers(0, 200),
)
def test_no_payload_makes_a_dialect_raise(name: str, payload: Line, cut: int) -> None:
    """Making up a payload takes longer than decoding it, so all dialects get the same."""
    raw = json.dumps({"session_id": "s", "sessionId": "s", "hook_event_name": name} | payload)
    for dialect, said in product(all_agents(), (raw.encode(), raw.encode()[:cut])):
        truncated = len(said) < len(raw)
        event = dialect.event(said, T, T, Origin(dialect.key), truncated, name)
        Board().fold(event)
        dialect.request(said, "1", T, Origin(dialect.key), truncated)


@given(text=st.sampled_from(TITLES) | st.text(max_size=8), rest=st.text(max_size=8), given=values)
def test_no_title_and_no_message_makes_a_dialect_raise(text: str, rest: str, given: Any) -> None:
    """A meaning has the words of a session file, and can be folded."""
    changed = MESSAGES[0]["method"]
    messages: list[Line] = [
        {"method": given},
        {"method": changed, "params": given},
        {"method": changed, "params": {"threadId": given, "status": STATES[0]}},
        {"method": changed, "params": {"threadId": "s", "status": given}},
        {"method": changed, "params": {"threadId": "s", "status": {**STATES[1], "type": given}}},
        {
            "method": changed,
            "params": {"threadId": "s", "status": {**STATES[1], "activeFlags": given}},
        },
    ]
    for dialect in all_agents():
        heard = [said.seen for said in map(dialect.heard, messages) if said is not None]
        for seen in (dialect.titled(text + rest), *heard):
            if seen is not None:
                assert seen.says in SCREENS
                Board().fold(from_line(seen.evidence(T, "s", 11, where="title").line))


def hook(agent: str, event: str, t: float, pid: int = 11, **payload: Any) -> Line:
    return {"t": T + t, "event": event, "hook": payload, "origin": {"agent": agent, "pid": pid}}


def qwen_said(event: str, t: float, **more: Any) -> Line:
    return hook("qwen", event, t, session_id="s", hook_event_name=event, **more)


def opencode_said(kind: str, t: float, **more: Any) -> Line:
    payload = {"type": kind, "properties": {"sessionID": "s", **more}, "directory": "/p"}
    return {"t": T + t, "hook": payload, "origin": {"agent": "opencode", "pid": 11}}


@pytest.mark.parametrize(
    ("agent", "event"), [("gemini", "BeforeAgent"), ("qwen", "UserPromptSubmit")]
)
def test_the_text_of_files_that_a_prompt_names_is_not_kept(agent: str, event: str) -> None:
    """The CLI adds it to the prompt before its hook runs."""
    files = (
        "\n--- Content from referenced files ---\nContent from @a:\nsecret\n--- End of content ---"
    )
    payload = {"session_id": "s1", "hook_event_name": event, "prompt": "look at @a" + files}
    told = agent_of(agent).event(json.dumps(payload).encode(), 1.8e9, 1.8e9, Origin(agent, 7))
    assert (told.kind, told.prompt) == ("prompt", "look at @a")


def test_a_copilot_event_without_its_name_is_refused() -> None:
    """Copilot's payloads do not name their event: the hook has to."""
    copilot = agent_of("copilot")
    assert decoded(copilot, b'{"sessionId": "s"}', "").kind == "junk"
    assert decoded(copilot, b'{"sessionId": "s"}', "agentStop").kind == "stop"


def test_a_claude_hook_that_copilot_runs_lists_no_session_of_claude() -> None:
    """A repository's Claude hooks run in Copilot, too; there, the process says whose they are."""
    payload = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "do it"}
    ran = {"agent": "claude", "pid": 11, "env": {"COPILOT_LOADER_PID": "11"}}
    line: Line = {"t": T, "event": "UserPromptSubmit", "hook": payload, "origin": ran}
    assert play([line])[1] == []
    # In a Claude Code that Copilot's shell started, it is another process.
    nested = {**line, "origin": {**ran, "pid": 12}}
    assert [s["status"] for s in play([nested])[1]] == ["working"]


def test_a_queued_prompt_of_qwen_starts_a_turn_but_the_prompts_between_tools_do_not() -> None:
    lines = [
        qwen_said("UserPromptSubmit", 1, prompt="do it", prompt_id="s#0"),
        qwen_said("UserPromptSubmit", 2, prompt="", prompt_id="s#0"),
        qwen_said("Stop", 3, prompt_id="s#0", background_tasks=[], crons=[]),
        qwen_said("UserPromptSubmit", 4, prompt="more", prompt_id="s#1"),
    ]
    changes, (shown,) = play(lines)
    assert [c["to"] for c in changes] == ["working", "completed", "working"]
    assert shown["prompt"] == "more"


def test_a_background_agent_of_qwen_keeps_its_session_working() -> None:
    task = {"id": "a1", "status": "running", "agent_type": "general-purpose", "description": "look"}
    lines = [
        qwen_said("UserPromptSubmit", 1, prompt="do it"),
        qwen_said("SubagentStart", 2, agent_id="a1", agent_type="general-purpose"),
        qwen_said("Stop", 3, background_tasks=[task], crons=[]),
    ]
    assert [s["status"] for s in play(lines)[1]] == ["working"]
    lines.append(qwen_said("Stop", 9, background_tasks=[{**task, "status": "completed"}], crons=[]))
    assert [s["status"] for s in play(lines)[1]] == ["completed"]


def test_an_interrupt_that_qwen_does_not_report_is_marked_as_inferred() -> None:
    """Qwen is at rest without a Stop; a reported end is observed."""
    prompt = qwen_said("UserPromptSubmit", 1, prompt="do it")
    rests = {"notification_type": "idle_prompt"}
    (shown,) = play([prompt, qwen_said("Notification", 3, **rests)])[1]
    assert (shown["status"], shown["markers"]) == ("idle", ["interrupted", "inferred"])
    (shown,) = play([prompt, qwen_said("Stop", 3), qwen_said("Notification", 3.1, **rests)])[1]
    assert (shown["status"], shown["markers"]) == ("completed", ["unseen"])
    (shown,) = play(
        [prompt, qwen_said("Notification", 3, **rests), qwen_said("StopFailure", 3.01)]
    )[1]
    assert (shown["status"], shown["markers"]) == ("error", ["unseen"])


def test_a_failure_of_qwen_is_one_also_while_its_title_spins() -> None:
    """Qwen may report the failure and the rest in any order."""
    failed = hook("qwen", "StopFailure", 3, session_id="s", error="rate_limit")
    rests = hook("qwen", "Notification", 3, session_id="s", notification_type="idle_prompt")
    prompt = hook("qwen", "UserPromptSubmit", 1, session_id="s", prompt="do it")
    spins = {"t": T + 1.1, "title": {"session_id": "s", "pid": 11, "says": "busy"}}
    for ends in permutations([failed, rests]):
        (shown,) = play([prompt, spins, *ends])[1]
        assert shown["status"] == "error", ends


@pytest.mark.parametrize("how", ["hook", "log"])
def test_a_hook_that_reports_an_interrupt_is_believed_while_the_title_spins(how: str) -> None:
    """A hook reports it at once, and the title follows; a line of the log may be a second late."""
    aborted = {"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}}
    reports: dict[str, Line] = {
        "hook": hook("codex", "Interrupt", 3, session_id="s", hook_event_name="Interrupt"),
        "log": {
            "t": T + 3,
            "transcript": {"session_id": "s", "agent": "codex", "entry": aborted},
        },
    }
    prompted = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "do it"}
    spins = [
        {"t": T + t, "title": {"session_id": "s", "pid": 11, "says": says}}
        for t, says in ((0.5, "idle"), (1.1, "busy"))
    ]
    started = hook("codex", "SessionStart", 0.1, session_id="s", hook_event_name="SessionStart")
    prompt = hook("codex", "UserPromptSubmit", 1, **prompted)
    (shown,) = play([started, spins[0], prompt, spins[1], reports[how]])[1]
    assert (shown["status"], shown["markers"]) == {
        "hook": ("idle", ["interrupted", "inferred"]),  # that title is set aside
        "log": ("working", []),
    }[how]


def logged(t: float, kind: str, **data: Any) -> Line:
    """Return an entry of Copilot's log, and when it was read: its own time may be earlier."""
    at = datetime.fromtimestamp(T + data.pop("at", t), timezone.utc).isoformat()
    entry = {"type": kind, "data": data, "timestamp": at}
    return {"t": T + t, "transcript": {"session_id": "s", "agent": "copilot", "entry": entry}}


def asked_by_log(t: float, tool_id: str, command: str = "", at: float = 0.0) -> Line:
    request = {"kind": "shell", "toolCallId": tool_id, "fullCommandText": command or tool_id}
    return logged(t, "permission.requested", permissionRequest=request, at=at or t)


def answered_by_log(t: float, tool_id: str) -> Line:
    return logged(t, "permission.completed", toolCallId=tool_id)


def begun_by_log(t: float, tool_id: str, command: str, at: float = 0.0) -> Line:
    given = {"toolName": "bash", "arguments": {"command": command}}
    return logged(t, "tool.execution_start", toolCallId=tool_id, at=at or t, **given)


def ended_by_log(t: float, tool_id: str, at: float = 0.0) -> Line:
    return logged(t, "tool.execution_complete", toolCallId=tool_id, at=at or t)


def ended_by_hook(t: float, command: str) -> Line:
    given = {"toolName": "bash", "toolArgs": {"command": command}}
    return hook("copilot", "postToolUse", t, sessionId="s", **given)


def asked_by_hook(t: float, command: str) -> Line:
    asks = {"notification_type": "permission_prompt", "message": f"Run command: {command}"}
    return hook("copilot", "notification", t, sessionId="s", **asks)


#: What was before a permission of `make`, whose tool is `b` → the lines up to that.
BEFORE: dict[str, list[Line]] = {
    "another tool has just ended": [
        begun_by_log(1.0, "a", "ls"),
        ended_by_hook(1.1, "ls"),
        asked_by_hook(1.2, "make"),
        ended_by_log(1.4, "a", at=1.11),
        begun_by_log(1.4, "b", "make", at=1.15),
        asked_by_log(1.4, "b", "make", at=1.2),
    ],
    "the same was just denied": [
        begun_by_log(1.0, "a", "make"),
        asked_by_log(1.0, "a", "make"),
        answered_by_log(1.1, "a"),
        asked_by_hook(1.2, "make"),
        ended_by_log(1.4, "a", at=1.11),
        begun_by_log(1.4, "b", "make", at=1.15),
        asked_by_log(1.4, "b", "make", at=1.2),
    ],
    "another tool of that reply ends while it asks": [
        begun_by_log(1.0, "a", "ls"),
        begun_by_log(1.0, "b", "make"),
        asked_by_hook(1.1, "make"),
        asked_by_log(1.1, "b", "make"),
        ended_by_hook(1.3, "ls"),
    ],
    "another tool runs": [
        begun_by_log(1.0, "a", "ls"),
        asked_by_hook(1.2, "make"),
        begun_by_log(1.4, "b", "make", at=1.15),
        asked_by_log(1.4, "b", "make", at=1.2),
    ],
}


@pytest.mark.parametrize("before", BEFORE)
def test_a_permission_of_copilot_is_of_its_own_tool(before: str) -> None:
    """Its hooks name no tool by id, and run before the log says what it does."""
    lines = [hook("copilot", "userPromptSubmitted", 0, sessionId="s", prompt="do it")]
    lines += BEFORE[before]
    assert [s["status"] for s in play([*lines, {"t": T + 2, "tick": {}}])[1]] == ["blocked"]
    lines.append(answered_by_log(3, "b"))
    assert [s["status"] for s in play(lines)[1]] == ["working"]


ORDERS = list(permutations(["hook a", "hook b", "log a", "log b"]))


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_of_two_questions_of_copilot_one_stays_open(order: tuple[str, ...]) -> None:
    """Hooks and log may report the questions in any order."""
    asks = {"notification_type": "permission_prompt", "message": "Run command"}
    lines = [hook("copilot", "userPromptSubmitted", 0, sessionId="s", prompt="do it")]
    for n, what in enumerate(order, 1):
        t, (how, which) = 1 + n / 100, what.split()
        told = hook("copilot", "notification", t, sessionId="s", timestamp=n, **asks)
        lines.append(told if how == "hook" else asked_by_log(t, which))
    assert [s["status"] for s in play([*lines, {"t": T + 2, "tick": {}}])[1]] == ["blocked"]
    lines.append(answered_by_log(3, "a"))
    assert [s["status"] for s in play(lines)[1]] == ["blocked"]
    lines.append(answered_by_log(4, "b"))
    assert [s["status"] for s in play(lines)[1]] == ["working"]


def listed(t: float, works: bool) -> Line:
    at = datetime.fromtimestamp(T + t, timezone.utc).isoformat()
    record = {"sessionId": "s", "working": works, "refreshedAt": at}
    return {"t": T + t, "registry": {"pid": 11, "agent": "copilot", "record": record}}


def test_a_compaction_is_no_turn_in_the_list_of_copilot() -> None:
    """The list says that the session rests; only hook and log report a compaction, and its end."""
    lines = [
        listed(0, works=False),
        hook("copilot", "userPromptSubmitted", 1, sessionId="s", prompt="do it"),
        listed(1.1, works=True),
        hook("copilot", "agentStop", 2, sessionId="s"),
        listed(2.1, works=False),
        hook("copilot", "preCompact", 5, sessionId="s", trigger="manual"),
        {"t": T + 20, "tick": {}},
    ]
    assert [s["status"] for s in play(lines)[1]] == ["working"]
    lines.append(logged(21, "session.compaction_complete"))
    assert [s["status"] for s in play(lines)[1]] == ["completed"]


def test_what_copilot_and_qwen_ask_is_shown_in_full_and_cannot_be_answered_here() -> None:
    by_key = {dialect.key: dialect for dialect in all_agents()}
    asked = {"session_id": "s", "hook_event_name": "PermissionRequest"}
    asked |= {"tool_name": "run_shell_command", "tool_input": {"command": "ls", "is_background": 0}}
    shown = by_key["qwen"].request(json.dumps(asked).encode(), "1", T, Origin("qwen", 11))
    assert shown is not None
    assert [p.text for p in shown.parts if p.kind == "command"] == ["ls"]
    told = {"sessionId": "s", "message": "Run command: ls", "title": "Permission needed"}
    told |= {"notification_type": "permission_prompt"}
    other = by_key["copilot"].request(json.dumps(told).encode(), "1", T, Origin("copilot", 11))
    assert other is not None
    assert [p.text for p in other.parts] == ["Run command: ls"]
    for request in (shown, other):
        assert not request.complete
        assert request.choices == ()
        assert "answer in its terminal" in request.why


def test_what_a_plugin_of_ours_says_twice_happened_twice() -> None:
    """OpenCode is at rest, ends a tool that was running, and is at rest again, as it said."""
    tool = {"tool": "bash", "callID": "c1"}
    lines = [
        opencode_said("chat.message", 1, text="do it"),
        opencode_said("tool.execute.before", 2, **tool, args={"command": "sleep 20"}),
        opencode_said("session.error", 5, error={"name": "MessageAbortedError"}),
        opencode_said("session.idle", 5.1),
        opencode_said("tool.execute.after", 5.4, **tool),
        opencode_said("session.idle", 5.5, answered=False),
    ]
    assert [s["status"] for s in play(lines)[1]] == ["idle"]


def test_a_turn_of_opencode_that_nothing_has_answered_was_interrupted() -> None:
    """OpenCode may not report an Esc before the first word, or between two attempts."""
    failed = {"name": "APIError", "data": {"message": "no"}}
    for before, answered, then in (
        ((), True, "completed"),
        ((), False, "idle"),
        ((opencode_said("session.error", 2, error=failed),), False, "error"),
    ):
        lines = [opencode_said("chat.message", 1, text="do it"), *before]
        idle = {"status": {"type": "idle"}, "answered": answered}
        for end in (
            opencode_said("session.status", 3, **idle),
            opencode_said("session.idle", 3, answered=answered),
        ):
            assert [s["status"] for s in play([*lines, end])[1]] == [then]


def test_two_short_turns_of_pi_are_two() -> None:
    turn = ({"event": "before_agent_start", "prompt": "hi"}, {"event": "agent_settled"})
    lines: list[Line] = [
        {"t": T + n / 2, "hook": {"session": "s", **said}, "origin": {"agent": "pi", "pid": 11}}
        for n, said in enumerate(turn * 2)
    ]
    assert [s["status"] for s in play(lines)[1]] == ["completed"]


def test_pi_works_between_its_retries_and_an_error_is_one() -> None:
    """It says what failed, without the secrets in it."""
    secret = "rt_9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    failed = {"stopReason": "error", "errorMessage": f'529: {{"refresh_token":"{secret}"}}'}
    said: list[Line] = [
        {"event": "before_agent_start", "prompt": "hi"},
        {"event": "agent_start"},
        {"event": "agent_end", **failed},
        {"event": "agent_end", **failed},
        {"event": "message_update"},
        {"event": "agent_end", **failed},
        {"event": "agent_settled", **failed},
    ]
    rows = []
    for n in range(1, len(said) + 1):
        lines: list[Line] = [
            {"t": T + each, "hook": {"session": "s", **said[each]}, "origin": {"agent": "pi"}}
            for each in range(n)
        ]
        (s,) = play(lines)[1]
        rows.append((s["status"], "retrying" in s["markers"], s["detail"]))
    why = '529: {"refresh_token":***}'
    working, retrying = ("working", False, ""), ("working", True, why)
    assert rows == [working, working, retrying, retrying, working, retrying, ("error", False, why)]


def halved(value: Any) -> Any:
    """Return a value whose texts end with half a character, as those do that are cut in JavaScript.

    Names and ids stay.
    """
    if isinstance(value, str) and " " in value:
        return value + "\ud83d"
    if isinstance(value, dict):
        found = {key: x if "session" in key else halved(x) for key, x in value.items()}
        return found | {"\ud83d": "\ud83d"}
    return [halved(x) for x in value] if isinstance(value, list) else value


@pytest.mark.parametrize("dialect", all_agents(), ids=KEYS)
def test_half_a_character_loses_no_event(dialect: Agent) -> None:
    """It may be in a text or in the input of a tool."""
    for name, payload in PAYLOADS:
        event = decoded(dialect, payload, name)
        half = decoded(dialect, json.dumps(halved(json.loads(payload))).encode(), name)
        assert half.kind == event.kind, payload


def test_no_entry_that_says_something_is_skipped_unread() -> None:
    """Each entry of a log in the cases would also be read from a file."""
    for case in read_lines(TRACES / "clis.jsonl"):
        for said in (x["transcript"] for x in case["trace"] if "transcript" in x):
            dialect, raw = agent_of(said["agent"]), json.dumps(said["entry"]).encode()
            if dialect.entry("s1", said["entry"], 1.0, 1.0).kind != "note":
                assert not dialect.is_noise(raw), raw
