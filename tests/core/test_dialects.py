"""The dialects of all CLIs: what one says harms no session of another, whoever decodes it."""

from __future__ import annotations

import json
from contextlib import suppress
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
from rig.host.playback import TRACES, Line, play, read_lines

T = 1.8e9
FILES = ("cases", "more", "owners", "clis", "documented")


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


def decoded(dialect: Agent, payload: bytes, name: str) -> Event:
    return dialect.event(payload, T + 5, T + 5, Origin(dialect.key), name=name)


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


def test_two_questions_of_copilot_may_be_reported_in_any_order() -> None:
    """Its hooks and its log report each of them, as in the trace; one answer leaves the other."""
    (case,) = (case for case in read_lines(TRACES / "clis.jsonl") if case["id"] == "GC26")
    first, *reports, tick, answer, other = case["trace"]
    (expected,) = (check["transitions"] for check in case["check"])
    for order in permutations(reports):
        lines = [{**report, "t": T + 1 + n / 100} for n, report in enumerate(order)]
        changes, (shown,) = play([first, *lines, tick, answer])
        assert shown["status"] == "blocked", order
        changes, (shown,) = play([first, *lines, tick, answer, other])
        assert expected == [[c["from"] or "absent", c["to"]] for c in changes], order


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


PATCH = "*** Begin Patch\n*** Update File: a.py\n*** Add File: /srv/b.py\n*** End Patch"
#: Agent, event, and what it says of a tool → the files that the tool is about to change.
WRITES = {
    "an edit": (
        "claude",
        "PreToolUse",
        {"tool_name": "Edit", "tool_input": {"file_path": "/a.py"}},
    ),
    "a notebook": (
        "claude",
        "PreToolUse",
        {"tool_name": "NotebookEdit", "tool_input": {"notebook_path": "/a.py"}},
    ),
    "a question": (
        "claude",
        "PermissionRequest",
        {"tool_name": "Write", "tool_input": {"file_path": "/a.py", "content": ""}},
    ),
    "a patch": (
        "codex",
        "PreToolUse",
        {"tool_name": "apply_patch", "tool_input": {"command": PATCH}, "cwd": "/srv"},
    ),
    "a call": ("opencode", "tool.execute.before", {"tool": "edit", "args": {"filePath": "/a.py"}}),
    "a read": ("claude", "PreToolUse", {"tool_name": "Read", "tool_input": {"file_path": "/a.py"}}),
    "no path": ("claude", "PreToolUse", {"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}),
}
CHANGED = {"a patch": ("/srv/a.py", "/srv/b.py"), "a read": (), "no path": ()}


@pytest.mark.parametrize("case", WRITES)
def test_files_that_a_tool_is_about_to_change_are_known(case: str) -> None:
    """By their whole paths, to warn of unsaved changes."""
    agent, name, given = WRITES[case]
    about = {"session_id": "s1", "hook_event_name": name, "sessionID": "s1", "type": name}
    payload = json.dumps({**about, **given, "properties": {"sessionID": "s1", **given}}).encode()
    event = decoded(agent_of(agent), payload, name)
    assert event.kind in ("tool", "request")
    assert event.writes == CHANGED.get(case, ("/a.py",))
