"""The output of `record` replays to what happened, and contains nothing private."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict
from msgspec.structs import fields as fields_of

from bellboard.agents import trace_line, traces
from bellboard.agents.anonymous import Names, span, trace_of
from bellboard.core.deadlines import BY_TIME
from bellboard.core.events import Event, line_of
from bellboard.core.machine import TABLE
from bellboard.hosting.turn import SharedBoard
from bellboard.storage.spool import Spool
from bellboard.storage.store import Logged, Store
from rig.examples import examples
from rig.host.playback import TRACES, Line, encoded, play, read_lines

pytestmark = [pytest.mark.files, pytest.mark.quick]

CASES = {
    case["id"]: case["trace"]
    for name in ("cases.jsonl", "more.jsonl", "reports.jsonl")
    for case in read_lines(TRACES / name)
}
RECORDINGS = {path.stem: read_lines(path) for path in sorted((TRACES / "recordings").iterdir())}
EDITS = [
    {
        "t": 1.8e9 + n,
        "hook": {
            "session_id": "s",
            "hook_event_name": "PreToolUse",
            "tool_name": "Edit",
            "tool_input": {"file_path": "a.py", "new_string": new},
        },
    }
    for n, new in enumerate(("one", "two", "one"))
]
IDLE = {
    "t": 1.8e9,
    "origin": {"agent": "opencode"},
    "hook": {"type": "session.idle", "properties": {"sessionID": "s"}},
}
TRACED = CASES | RECORDINGS | {"edits": EDITS, "idle": [IDLE]}
POOL = [line for lines in TRACED.values() for line in lines if "note" not in line]

Told = tuple[list[Line], list[Line]]


def lived(lines: Iterable[Line], home: Path) -> tuple[list[Logged], Told]:
    """Return the log of a host with this evidence, and its published sessions."""
    spool = Spool(home)
    spool.prepare()
    store = Store(home)
    shared = SharedBoard(spool, store)
    for n, line in enumerate(lines):
        t = line["t"]
        path = spool.new / f"evidence.{n}"
        path.write_bytes(encoded([{k: v for k, v in line.items() if k != "arrived"}])[0])
        os.utime(path, ns=(int(t * 1e9),) * 2)
        shared.turn(line.get("arrived", t))
    log, changes = store.log(), [traces.transition_line(c) for c in store.history()]
    store.close()
    return log, (changes, traces.final_line(shared.board)["sessions"])


def essence(told: Told) -> Told:
    """Return the parts that must not differ."""
    changes, final = told
    return (
        [{k: c[k] for k in ("t", "session_id", "from", "to", "rule")} for c in changes],
        [{k: s[k] for k in ("session_id", "status", "since", "hidden", "markers")} for s in final],
    )


def decoded(lines: Iterable[Line]) -> list[Line]:
    """Return lines as read from a file."""
    return [msgspec.json.decode(msgspec.json.encode(line)) for line in lines]


@pytest.mark.parametrize("id", TRACED)
def test_a_recording_replays_to_the_same_changes(id: str, tmp_path: Path) -> None:
    """The private one and the full one; the full one also to the same events, fact by fact."""
    log, told = lived(TRACED[id], tmp_path)
    private, full = (decoded(trace_of(log, private=p)) for p in (True, False))
    assert essence(told) == essence(play(private))
    assert essence(told) == essence(play(full))
    again = [folded.event for folded in traces.replay(encoded(full))]
    assert [row.event for row in log] == again


@st.composite
def histories(draw: st.DrawFn) -> list[Line]:
    """Evidence of any traces, in any order, some of it twice, some late, some at one moment."""
    t, lines = 1_800_000_000.0, []
    for line in draw(st.lists(st.sampled_from(POOL), min_size=2, max_size=25)):
        t += draw(st.sampled_from((0.0, 0.01, 0.1, 0.3, 1.0, 2.5, 20.0, 70.0)))
        late = draw(st.sampled_from((0.0, 0.0, 0.0, 0.2, 3.0, 9.0)))
        facts = {k: v for k, v in line.items() if k != "arrived"}
        lines.append(facts | {"t": t - late} | ({"arrived": t} if late else {}))
        if draw(st.integers(0, 5)) == 0:
            lines.append(lines[-1])
    return lines


@examples(150)
@given(histories(), st.booleans())
def test_any_history_replays_to_the_same_changes(lines: list[Line], private: bool) -> None:
    with tempfile.TemporaryDirectory() as home:
        log, told = lived(lines, Path(home))
    assert essence(play(decoded(trace_of(log, private)))) == essence(told)


def texts(value: Any) -> Iterable[str]:
    """Return every text in a line."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for x in value.values():
            yield from texts(x)
    elif isinstance(value, list):
        for x in value:
            yield from texts(x)


def events(lines: Iterable[Line]) -> list[Line]:
    """Return the events of a recording, without its final time."""
    return [line["decoded"] for line in lines if "decoded" in line]


SECRET = "heron"
HOSTILE: list[Line] = [
    {"hook_event_name": "SessionStart", "source": "startup", "session_title": f"the {SECRET}"},
    {"hook_event_name": "UserPromptSubmit", "prompt": f"tell {SECRET} apart"},
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": f"rm {SECRET}"},
    },
    {"hook_event_name": "PreToolUse", "tool_name": f"mcp__{SECRET}__{SECRET}", "tool_input": {}},
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": f"/{SECRET}"},
    },
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "WebFetch",
        "tool_input": {"url": f"ftp://{SECRET}"},
    },
    {
        "hook_event_name": "PermissionRequest",
        "tool_name": "AskUserQuestion",
        "tool_input": {"questions": [{"question": f"{SECRET}?"}]},
    },
    {
        "hook_event_name": "PermissionRequest",
        "tool_name": "WebFetch",
        "tool_input": {"url": f"https://{SECRET}.org/"},
        "permission_suggestions": [
            {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "WebFetch"}]}
        ],
    },
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "AskUserQuestion",
        "agent_id": "a1",
        "tool_input": {"questions": [{"question": f"{SECRET} or not?"}]},
    },
    {"hook_event_name": "Elicitation", "mcp_server_name": SECRET, "message": f"{SECRET}!"},
    {"hook_event_name": "Notification", "message": f"{SECRET} needs your permission"},
    {"hook_event_name": "SubagentStart", "agent_id": f"{SECRET}@team", "agent_type": SECRET},
    {"hook_event_name": "UserPromptExpansion"},
    {"hook_event_name": "NotYetInvented"},
    {"hook_event_name": "TaskCreated", "task_subject": f"{SECRET}"},
    {"hook_event_name": "StopFailure", "error": "rate_limit", "error_details": f"of {SECRET}"},
    {
        "hook_event_name": "Stop",
        "last_assistant_message": f"{SECRET} is done",
        "background_tasks": [{"id": "b1", "type": "shell", "command": f"run {SECRET}"}],
    },
]
ANSWER: Line = {"session_id": "s", "choice": "deny", "way": "hook", "by": SECRET, "digest": SECRET}
OTHERS: list[Line] = [
    {
        "registry": {
            "pid": 7,
            "record": {"sessionId": "s", "status": "idle", "name": SECRET, "cwd": f"/x/{SECRET}"},
        }
    },
    {"transcript": {"session_id": "s", "entry": {"type": "custom-title", "customTitle": SECRET}}},
    {"transcript": {"session_id": "s", "entry": {"type": "user", "message": {"content": SECRET}}}},
    {"answer": {**ANSWER, "message": SECRET, "answers": {SECRET: SECRET}, "input": SECRET}},
    {"answer": {**ANSWER, "outcome": f"nothing followed {SECRET}"}},
    {"label": {"session_id": "s", "label": SECRET}},
    {"name": {"session_id": "s", "name": SECRET}},
    {"view": {"session_id": "s"}, "viewer": f"nvim /run/{SECRET}"},
    {"pane": {"tmux": f"/tmp/{SECRET}/default", "pane": "%1", "alive": True}},
    {
        "facts": {
            "session_id": "s",
            "branch": SECRET,
            "repository": f"{SECRET}/{SECRET}",
            "urls": [f"https://{SECRET}.example"],
        }
    },
    {"goto": {"session_id": "s"}},
    {"set": {"session_id": "s", "status": "error"}},
    {"park": {"session_id": "s", "parked": False}},
    {"submit": {"session_id": "s", "by": f"a shell of {SECRET}"}},
    {"snooze": {"session_id": "s", "until": 1.9e9}},
    {"process": {"pid": 7, "alive": True, "tty": "/dev/pts/1", "children": 2}},
    {"process": {"pid": 7, "alive": True, "tmux": f"/tmp/{SECRET}/x", "nvim": f"/run/{SECRET}"}},
    {
        "osc7501": {
            "pid": 9,
            "started": "5",
            "tty": "/dev/pts/9",
            "command": SECRET,
            "cwd": f"/home/{SECRET}",
            "body": f"state=working:app={SECRET}:id={SECRET}/x",
        }
    },
    {"raw": f"not JSON but {SECRET}"},
    {"forget": {"session_id": "s"}},
]
ENVIRONMENT = {
    "CLAUDE_PROJECT_DIR": f"/home/{SECRET}/project",
    "CLAUDE_CONFIG_DIR": f"/home/{SECRET}/.claude",
    "CLAUDE_JOB_DIR": f"{SECRET}",
    "SSH_CONNECTION": f"{SECRET} 22",
}


def hostile() -> list[Line]:
    """Return one line of each kind of evidence, with a secret in every text."""
    lines: list[Line] = []
    t = 1_800_000_000.0
    common = {
        "session_id": "s",
        "cwd": f"/home/{SECRET}/.claude/worktrees/{SECRET}",
        "transcript_path": f"/home/{SECRET}/.claude/projects/{SECRET}.jsonl",
    }
    where = {
        "agent": "claude",
        "pid": 7,
        "tmux": f"/tmp/{SECRET}/default",
        "pane": "%1",
        "nvim": f"/run/{SECRET}/nvim.1.0",
        "env": ENVIRONMENT,
    }
    hooks = ({"hook": {**common, **payload}, "origin": where} for payload in HOSTILE)
    lines.extend({"t": (t := t + 3), **told} for told in (*hooks, *OTHERS))
    return lines


def test_nothing_private_is_left(tmp_path: Path) -> None:
    """And nothing else is changed: a worktree stays one, so its session stays hidden."""
    log, told = lived(hostile(), tmp_path)
    recorded = decoded(trace_of(log))
    assert [x for x in texts(recorded) if SECRET in x] == []
    assert essence(play(recorded)) == essence(told)


def test_text_quoted_from_junk_is_removed() -> None:
    junk = Event("junk", "registry", 1.8e9, 1.8e9, why=f"registry: ValueError('{SECRET}')")
    (line, _) = trace_of([Logged(0, "x", junk, "", "", False, "", None, None)])
    assert line == {
        "t": 1.8e9,
        "decoded": {"kind": "junk", "name": "registry", "t": 1.8e9, "why": "reason 1"},
    }


def test_no_checksum_can_confirm_a_guess(tmp_path: Path) -> None:
    """Keys are checksums of private text; a recording numbers them instead."""
    log, _ = lived(hostile(), tmp_path)
    told = events(trace_of(log))
    for field, places in (("key", len(HOSTILE) - 1), ("tool_key", 7)):
        numbers = [e[field] for e in told if field in e]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) == places
    shown = [e["shown_digest"] for e in told if "shown_digest" in e]
    bound = [e["digest"] for e in told if "digest" in e]
    assert shown + bound == [f"digest {n}" for n in (1, 2, 3, 3)]


def test_public_text_is_kept(tmp_path: Path) -> None:
    """A trace must be readable: events, tools, error names, models, ids."""
    log, _ = lived(hostile(), tmp_path)
    kept = set(texts(decoded(trace_of(log))))
    assert {"Bash", "Stop", "AskUserQuestion", "s", "rate_limit: error 1", "b1"} <= kept
    assert "/home/d1/.claude/worktrees/d1" in kept


def test_the_same_text_gets_the_same_placeholder(tmp_path: Path) -> None:
    lines = [
        {
            "t": 1.8e9 + n,
            "hook": {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": p},
        }
        for n, p in enumerate(("one", "two", "one"))
    ]
    log, _ = lived(lines, tmp_path)
    prompts = [e["prompt"] for e in events(trace_of(log))]
    assert prompts == ["prompt 1", "prompt 2", "prompt 1"]


def test_repeats_and_differences_survive(tmp_path: Path) -> None:
    """Two prompts without their private texts are still two; a repeated one is still one."""

    def told(t: float, prompt: str) -> Line:
        return {
            "t": t,
            "hook": {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        }

    log, _ = lived(
        [told(1.8e9, "a" * 900 + "1"), told(1.8e9, "a" * 900 + "2"), told(1.8e9, "a" * 900 + "1")],
        tmp_path,
    )
    again, _ = lived(decoded(trace_of(log)), tmp_path / "again")
    verdicts = [(row.taken, row.why) for row in log]
    assert [(row.taken, row.why) for row in again] == verdicts
    assert verdicts[2] == (False, "duplicate event")


def test_a_restart_is_recorded(tmp_path: Path) -> None:
    """The restart ended every view; otherwise a replay would keep them."""
    told = [
        {"view": {"session_id": "s"}},
        {"restart": {}},
        *(
            {"hook": {"session_id": "s", "hook_event_name": n}}
            for n in ("UserPromptSubmit", "Stop")
        ),
        {"hook": {"session_id": "t", "hook_event_name": "SessionStart"}},
    ]
    log, lived_through = lived([{"t": 1.8e9 + 30 * n} | x for n, x in enumerate(told)], tmp_path)
    assert essence(play(decoded(trace_of(log)))) == essence(lived_through)


def test_a_clock_that_was_set_back_is_recorded(tmp_path: Path) -> None:
    """The Stop has an earlier stamp than the prompt, and still ends its turn."""
    hooks = ((1000, "SessionStart"), (1001, "UserPromptSubmit"), (10, "Stop"), (12, "SessionEnd"))
    told = [
        {"t": 1.8e9 + t, "hook": {"session_id": "s", "hook_event_name": name}} for t, name in hooks
    ]
    log, (changes, final) = lived(told, tmp_path)
    assert [c["to"] for c in changes] == ["idle", "working", "completed", None]
    assert essence(play(decoded(trace_of(log)))) == essence((changes, final))


def test_an_event_about_many_sessions_is_one_line(tmp_path: Path) -> None:
    told = [
        *({"hook": {"session_id": sid, "hook_event_name": "SessionStart"}} for sid in "st"),
        {"restart": {}},
    ]
    log, _ = lived([{"t": 1.8e9 + n} | x for n, x in enumerate(told)], tmp_path)
    assert [row.event.kind for row in log] == ["start", "start", "restart", "restart"]
    assert [e["kind"] for e in events(trace_of(log))] == ["start", "start", "restart"]


def test_a_span_starts_where_each_session_last_began(tmp_path: Path) -> None:
    """So the last minutes can be replayed although the session is older."""

    def told(t: float, sid: str, name: str) -> Line:
        return {"t": 1.8e9 + t, "hook": {"session_id": sid, "hook_event_name": name}}

    lines = [
        {"t": 1.8e9, "config": {"grace": 3}},
        told(1, "other", "SessionStart"),
        told(2, "s", "SessionStart"),
        told(3, "s", "SessionEnd"),
        told(100, "s", "SessionStart"),
        told(101, "other", "UserPromptSubmit"),
        told(102, "s", "UserPromptSubmit"),
        told(103, "s", "Stop"),
    ]
    log, (changes, _) = lived(lines, tmp_path)
    recorded = decoded(trace_of(span(log, {"s"})))
    assert [e["kind"] for e in events(recorded)] == ["config", "start", "prompt", "stop"]
    wanted = [c for c in changes if c["session_id"] == "s" and c["t"] >= 1.8e9 + 100]
    assert essence(play(recorded))[0] == essence((wanted, []))[0]


def test_a_span_begins_with_the_options_in_force(tmp_path: Path) -> None:
    log, _ = lived(
        [{"t": 1.8e9, "hook": {"session_id": "s", "hook_event_name": "SessionStart"}}], tmp_path
    )
    first = next(iter(trace_of(span(log, {"s"}, {"grace": 3.0}))))
    assert first["decoded"]["settings"] == {"grace": 3.0}


def test_every_kind_can_be_recorded_or_comes_from_a_deadline() -> None:
    """A new kind of evidence cannot be forgotten."""
    others = [
        {"t": 1.8e9, "decoded": {"kind": kind, "name": "of another CLI", "session_id": "s"}}
        for kind in ("rest", "granted", "said failure", "said cancel")
    ]
    told = {e.kind: e for e in map(trace_line.event_in, encoded([*POOL, *hostile(), *others]))}
    assert not told.keys() & BY_TIME
    assert told.keys() | BY_TIME >= TABLE.keys()
    for e in told.values():
        assert trace_line.from_line(line_of(e)) == e


def test_a_recording_keeps_the_window_of_kitty() -> None:
    """An origin is read alike in evidence and in a decoded event."""
    e = trace_line.from_line({"t": 1.8e9, "process": {"pid": 7, "alive": True, "kitty": "/tmp/k"}})
    assert "/tmp/k" == e.origin.kitty == trace_line.from_line(line_of(e)).origin.kitty


def test_a_line_cannot_contain_a_deadline() -> None:
    """Such a line would lack the state that its rule needs."""
    for kind in BY_TIME:
        event = trace_line.from_line({"t": 1.8e9, "decoded": {"kind": kind, "session_id": "s"}})
        assert (event.kind, event.name) == ("junk", "decoded")


def test_a_decoded_event_is_read_no_less_strictly_than_a_hook() -> None:
    """A trace may come from anyone: no escape codes, no endless text, no odd process."""
    told = {
        "kind": "prompt",
        "session_id": "s",
        "prompt": "a\x1b[31mb " + "x" * 900,
        "pid": -5,
        "children": -9,
        "origin": {"pid": True, "env": {"PATH": "/bin", "TERM_PROGRAM": "ghostty"}},
    }
    e = trace_line.from_line({"t": 1.8e9, "decoded": told})
    assert (e.kind, e.name, e.t, e.clock) == ("prompt", "prompt", 1.8e9, 1.8e9)
    assert e.prompt == "ab"
    assert (e.pid, e.children) == (None, trace_line.UNCOUNTED)
    assert (e.origin.pid, e.origin.env) == (None, {"terminal": "ghostty"})
    for wrong in ({"kind": 5}, {}, [], None, {"kind": "prompt", "session_id": 7}, {"t": -1}):
        assert trace_line.from_line({"t": 1.8e9, "decoded": wrong}).kind == "junk"


def test_other_keys_beside_a_hook_are_ignored() -> None:
    """Recordings of several agents name the event as configured, and what they saw on a screen."""
    payload = {"session_id": "s", "hook_event_name": "Stop"}
    beside = {"agent": "codex", "event": "Stop", "seen": "⏎", "version": 3}
    e = trace_line.from_line({"t": 1.8e9, **beside, "hook": payload})
    assert e == trace_line.from_line({"t": 1.8e9, "hook": payload})
    assert e.kind == "stop"


def test_an_event_of_a_version_to_come_changes_nothing() -> None:
    later = {"kind": "applause", "name": "Applause", "session_id": "s"}
    changes, final = play([{"t": 1.8e9, "decoded": later}])
    assert (changes, final) == ([], [])


#: Texts that a recording keeps: generated ones, and names that the CLIs chose.
KEPT = {
    *("name", "session_id", "tool", "tool_id", "prompt_id", "source", "mode", "model", "started"),
    *("request", "pipe", "reviewer", "about", "cursor", "machine", "lead"),
}


def test_every_text_of_an_event_is_replaced_or_known_to_be_public() -> None:
    """A new field is not forgotten here."""
    texts = {f.name: f"the {SECRET}" for f in fields_of(Event) if f.type is str}
    e = Event(**texts | {"kind": "label", "asks": "permission", "t": 1.0, "clock": 1.0})
    made = asdict(Names().event(e))
    assert {name for name in texts if SECRET in made[name]} == KEPT
