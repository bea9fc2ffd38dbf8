"""Transcripts: only what is appended, only what matters, and nothing private."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents import tailing
from bellboard.agents.claude.agent import ClaudeCode
from bellboard.agents.claude.hooks import hook
from bellboard.agents.claude.session_files import begun_in, path_of, transcripts_folder
from bellboard.agents.claude.transcript import head_of, is_noise
from bellboard.agents.tailing import Logs, Tail, entry_event, is_needed, known_until
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.events import Event, line_of
from bellboard.core.evidence import Evidence
from bellboard.core.options import Options
from bellboard.core.rules.turns import go_on
from bellboard.core.session import Process, Session, Stated
from bellboard.storage.spool import Spool
from rig import DATA

RECORDINGS = DATA / "traces" / "recordings"
CLAUDE = ClaudeCode()
SID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def at(second: float) -> str:
    """Return a time in the form of an entry."""
    return f"2026-11-20T10:00:{second:06.3f}Z"


def user(text: str, second: float = 1, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "type": "user",
        "message": {"role": "user", "content": text},
        "uuid": f"u-{second}-{text[:9]}",
        "timestamp": at(second),
        **more,
    }


def assistant(*blocks: dict[str, Any], second: float = 2, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 120, "cache_read_input_tokens": 9000, "output_tokens": 42}
    message = {"model": "claude-opus-5-5", "usage": usage, "content": [*blocks], **more}
    same = {"isSidechain": False, "type": "assistant", "timestamp": at(second)}
    return {**same, "uuid": f"a-{second}", "message": message}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def write(path: Path, *entries: dict[str, Any] | bytes, mode: str = "ab") -> None:
    """Append entries, or raw bytes."""
    with path.open(mode) as file:
        for entry in entries:
            compact = (",", ":")
            file.write(
                entry
                if isinstance(entry, bytes)
                else json.dumps(entry, separators=compact).encode() + b"\n"
            )


def events(findings: list[Evidence]) -> list[Event]:
    """Return the decoded events."""
    return [from_line(f.line) for f in findings]


def kinds(findings: list[Evidence]) -> list[str]:
    return [event.kind for event in events(findings)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{SID}.jsonl"


class Transcripts:
    """Transcripts that are followed."""

    def __init__(self) -> None:
        self.logs = Logs(CLAUDE, brief=False)
        self.tails: dict[str, Tail] = {}  # by session

    def follow(self, sid: str, path: Path | str, since: float = 0.0) -> None:
        s = Session(sid, last=since, hooked=True)
        self.tails[sid] = self.logs.tail(s, str(path))


def added(transcripts: Transcripts, now: float) -> list[Evidence]:
    """Return the evidence of new lines in all followed transcripts."""
    return [found for tail in transcripts.tails.values() for found in tail.check(now)]


@pytest.fixture
def followed(path: Path) -> Transcripts:
    """Follow one transcript, which is still empty."""
    write(path)
    transcripts = Transcripts()
    transcripts.follow(SID, path)
    assert [] == added(transcripts, 1.0)
    return transcripts


def recorded() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the entries of all recordings."""
    for file in sorted(RECORDINGS.glob("*.jsonl")):
        for row in file.read_text().splitlines():
            told = json.loads(row)
            if "transcript" in told:
                yield told["transcript"]["session_id"], told["transcript"]["entry"]


def test_a_reported_entry_is_the_same_evidence() -> None:
    """For every entry that the real CLI wrote, but in a few short lines."""
    seen = set()
    for sid, entry in recorded():
        whole = from_line({"t": 1.0, "transcript": {"session_id": sid, "entry": entry}})
        event = entry_event(CLAUDE, sid, entry, 1.0)
        if event is None:
            assert ("note", "") == (whole.kind, whole.title)
            continue
        line = line_of(event)
        assert whole == event == from_line(line)
        seen.add(event.kind)
        assert len(json.dumps(line)) < 2000
    assert {"said prompt", "said tool", "said result", "said end", "interrupt"} <= seen


def test_appended_lines_are_reported_once(path: Path, followed: Transcripts) -> None:
    """By any number of hosts, under one key."""
    other = Transcripts()
    other.follow(SID, path)
    write(path, user("fix it"), assistant(says("Done."), stop_reason="end_turn"))
    found = added(followed, 5.0)
    assert ["said prompt", "said last"] == kinds(found)
    assert [f.key for f in found] == [f.key for f in added(other, 6.0)]
    prompt, last = events(found)
    assert ("fix it", SID) == (prompt.prompt, prompt.session_id)
    assert ("Done.", "claude-opus-5-5", 9120) == (last.message, last.model, last.context)
    assert [] == added(followed, 7.0)
    write(path, {"type": "system", "subtype": "turn_duration", "uuid": "t", "timestamp": at(3)})
    assert ["said end"] == kinds(added(followed, 8.0))


def test_lines_that_are_read_at_once_keep_their_order(path: Path, followed: Transcripts) -> None:
    """In the spool, where files are ordered by time, and by a name derived from their key."""
    write(path, *(user(f"{n}", n) for n in range(10)))
    spool = Spool(path.parent / "home")
    spool.prepare()
    for finding in added(followed, 5.0):
        spool.write(finding.line, finding.key)
    items = [spool.read(name) for name in spool.scan()]
    prompts = [from_line(json.loads(item.payload)).prompt for item in items if item]
    assert [str(n) for n in range(10)] == prompts


def test_irrelevant_lines_are_skipped(path: Path, followed: Transcripts) -> None:
    """Noise, subagents' lines, meta, unknown types, and lines that are not JSON."""
    write(
        path,
        {"type": "attachment", "uuid": "1"},
        {"type": "system", "subtype": "informational"},
        {"type": "queue-operation", "content": "secret"},
        user("of a subagent", isSidechain=True),
        {**user("of another"), "isSidechain": True, "parentUuid": "x" * 300},
        user("a summary", isCompactSummary=True),
        user("<command-name>/clear</command-name>"),
        b'{"type":"api-request","body":' + b'"' + b"x" * 5000 + b'"}\n',
        b"not json\n\n[]\n17\n{}\n" + bytes(range(256)) + b"\n" + b"[" * 100_000 + b"\n",
        {"type": "user"},
        {"type": "user", "message": 5},
        {"type": ["user"]},
        {"type": "assistant", "message": {"content": [5, {"type": 5}, {"text": 5}], "usage": []}},
    )
    assert ["said text"] == kinds(added(followed, 1.0))


def test_nothing_private_is_reported(path: Path, followed: Transcripts) -> None:
    """A short line of each message; nothing from files, results or thoughts."""
    secret = "SECRET-" * 100
    thought = {"type": "thinking", "thinking": secret}
    given = {"file_path": "/a/b.py", "content": secret, "old": {"x": secret}, "n": [{"y": secret}]}
    tool = {"type": "tool_use", "id": "t1", "name": "Write", "input": given}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [says(secret)]}
    write(path, user("x" * 5000), assistant(thought, says("y" * 5000), tool))
    write(path, {**user(""), "message": {"content": [result]}, "toolUseResult": {"stdout": secret}})
    found = added(followed, 1.0)
    assert ["said prompt", "said tool", "said result"] == kinds(found)
    assert ("/a/b.py", "t1") == (events(found)[1].detail, events(found)[2].tool_id)
    assert all(len(json.dumps(f.line)) < 2000 for f in found)
    assert 300 > len(re.findall("SECRET", json.dumps([f.line for f in found])))


def test_interrupts_denials_retries_and_errors_are_found(path: Path, followed: Transcripts) -> None:
    """No hook reports these."""
    rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    denied = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": rejected}
    error = assistant(says("API Error: 529 overloaded"), model="<synthetic>")
    write(
        path,
        {**user(""), "message": {"content": [says("x"), says("[Request interrupted by user]")]}},
        {**user(""), "message": {"content": [denied]}},
        {
            **user(""),
            "message": {"content": [{**denied, "content": ""}]},
            "toolDenialKind": "user-rejected",
        },
        {"type": "system", "subtype": "api_error", "retryAttempt": 2, "maxRetries": 10},
        {**error, "isApiErrorMessage": True},
    )
    found = events(added(followed, 1.0))
    expected = ["interrupt", "said denial", "said denial", "said retry", "said error"]
    assert expected == [event.kind for event in found]
    assert ("attempt 2 of 10", "API Error: 529 overloaded") == (found[3].detail, found[4].error)


def test_a_partial_last_line_waits(path: Path, followed: Transcripts) -> None:
    """The line is read once its rest arrives, however small the pieces."""
    data = json.dumps(user("grüße")).encode() + b"\n"
    for n in range(0, len(data) - 1, 7):
        write(path, data[n : min(n + 7, len(data) - 1)])
        assert [] == added(followed, 1.0)
    write(path, b"\n")
    assert ["grüße"] == [event.prompt for event in events(added(followed, 2.0))]


def test_a_line_of_30_mb_is_skipped(path: Path, followed: Transcripts) -> None:
    """Whole or in pieces, without keeping it in memory; what follows counts."""
    piece = b"x" * (1 << 20)
    tracemalloc.start()
    for whole in (True, False):
        write(path, b'{"type":"user","message":{"content":"')
        for _ in range(3):
            write(path, piece)
            if not whole:
                assert [] == added(followed, 1.0)
        write(path, b'"}}\n', user("after", 5))
        assert ["after"] == [event.prompt for event in events(added(followed, 2.0))]
    with path.open("ab") as file:  # more than it will read
        for _ in range(30):
            file.write(piece)
        file.write(b'"}}\n')
    write(path, user("at the end", 6))
    assert ["at the end"] == [event.prompt for event in events(added(followed, 3.0))]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 << 20


def test_a_reader_far_behind_continues_at_the_tail(path: Path, followed: Transcripts) -> None:
    """The part in between is not reported line by line."""
    for n in range(6):
        write(path, *(user("x" * 1000, n) for _ in range(1000)))
    write(path, user("now", 7))
    found = events(added(followed, 1.0))
    assert len(found) < 10
    assert "now" == found[-1].prompt


def test_of_many_lines_at_once_few_are_reported(path: Path, followed: Transcripts) -> None:
    """Each becomes a file of the spool: 38,000 blocked a host for four seconds."""
    write(path, *(user("x", n / 1000) for n in range(1000)), user("now", 7))
    found = events(added(followed, 1.0))
    assert len(found) < 10
    assert "now" == found[-1].prompt


def test_the_first_look_is_at_the_tail(path: Path) -> None:
    """Facts and the state of the turn, in a few lines, however long the transcript."""
    for n in range(3000):
        write(path, user(f"prompt {n}", n / 100), assistant(says(f"answer {n}"), second=n / 100))
    write(path, {"type": "custom-title", "customTitle": "Mine", "sessionId": SID})
    write(path, {"type": "ai-title", "aiTitle": "Its own", "sessionId": SID})
    write(path, user("the last", 31))
    tool = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}}
    write(path, *(assistant(tool, second=32 + n) for n in range(9)))
    transcripts = Transcripts()
    transcripts.follow(SID, path)
    found = events(added(transcripts, 1.0))
    assert len(found) < 12
    assert ["Mine", "Its own"] == [event.title for event in found if event.title]
    assert ["the last"] == [event.prompt for event in found if event.prompt]
    assert "said tool" == found[-1].kind
    assert [] == added(transcripts, 2.0)


def test_the_first_look_reads_little_and_not_the_start(path: Path) -> None:
    """The file may have 20 GB."""
    write(path, user("the start"))
    os.truncate(path, 20 << 30)  # a hole uses no disk, but reading it would take half a minute
    write(path, b"\n", user("the end", 2))
    transcripts = Transcripts()
    transcripts.follow(SID, path)
    assert ["the end"] == [event.prompt for event in events(added(transcripts, 1.0))]


def test_if_the_tail_is_not_enough_it_reads_further_back(path: Path) -> None:
    """The last line may be a large result, or the tail may begin exactly with a line."""
    write(path, user("the prompt", 1))
    write(path, {"type": "progress", "data": "x" * (tailing.TAIL + 5)})
    transcripts = Transcripts()
    transcripts.follow(SID, path)
    assert ["the prompt"] == [event.prompt for event in events(added(transcripts, 1.0))]
    exact = path.with_name("exact.jsonl")
    rows = [json.dumps(user(text, 2)).encode() + b"\n" for text in ("exact", "second")]
    write(exact, b"{}\n", *rows, b"\n" * (tailing.TAIL - len(b"".join(rows))))
    transcripts.follow("other", exact)
    assert ["exact", "second"] == [event.prompt for event in events(added(transcripts, 1.0))]


def test_entries_older_than_other_evidence_only_give_facts(path: Path) -> None:
    """A starting host must not report an old interrupt to a session that has moved on."""
    write(path, {"type": "ai-title", "aiTitle": "Its own"})
    write(path, user("[Request interrupted by user]", 1), user("again", 2), assistant(second=3))
    [moment] = [from_line({"t": 1.0, "transcript": {"session_id": SID, "entry": user("x", 10)}}).t]
    transcripts = Transcripts()
    transcripts.follow(SID, path, since=moment)
    found = added(transcripts, moment + 1)
    assert ["note", "said prompt", "said text"] == kinds(found)
    write(path, user("[Request interrupted by user]", 11))
    assert ["interrupt"] == kinds(added(transcripts, moment + 2))


def test_without_hooks_how_a_turn_ended_is_read_even_if_its_file_says_that_it_did() -> None:
    """The session file is as new as that end, and the host started after both."""
    s = Session("s", turn="working", last=130.0, over=130.0)
    go_on(s, Event("said prompt", "transcript prompt", 100.0, 100.1), Options())
    s.processes, s.pid = {7: Process(7)}, 7
    s.stated = Stated("idle", at=130.0, source="file")
    assert 100.0 == known_until(s)
    s.hooked = True
    assert 130.0 == known_until(s)


def test_without_hooks_what_came_before_a_question_is_read() -> None:
    """The transcript was read only once the session asked; it was not needed until then."""
    board = Board()
    for t, said in [(1.0, {"status": "idle"}), (60.0, {"status": "waiting", "waitingFor": "x"})]:
        record = {"pid": 7, "sessionId": SID, "cwd": "/srv", "procStart": "1", **said}
        board.fold(from_line({"t": t, "registry": {"pid": 7, "record": record}}))
        board.advance(t + 1)
    assert 0.5 < known_until(board.sessions[SID]) <= 1.0


def test_a_transcript_is_continued_where_it_was_left(path: Path, followed: Transcripts) -> None:
    """No line is repeated or missed, and no file opened meanwhile."""
    write(path, user("one", 1))
    assert ["said prompt"] == kinds(added(followed, 1.0))
    followed.tails.clear()
    write(path, user("two", 2))
    assert [] == added(followed, 2.0)
    followed.follow(SID, path)
    assert ["two"] == [event.prompt for event in events(added(followed, 3.0))]


def test_a_replaced_file_is_another_transcript(path: Path, followed: Transcripts) -> None:
    """Replaced, truncated, deleted and recreated: nothing is reported twice."""
    write(path, user("one", 1), user("two", 2))
    assert 2 == len(added(followed, 1.0))
    new = path.with_suffix(".new")
    write(new, user("one", 1), user("two", 2), user("[Request interrupted by user]", 3))
    new.rename(path)
    found = events(added(followed, 2.0))
    assert [("said prompt", "two"), ("interrupt", "")] == [(e.kind, e.prompt) for e in found]
    write(path, user("four", 4), mode="wb")
    assert ["four"] == [event.prompt for event in events(added(followed, 3.0))]
    path.unlink()
    assert [] == added(followed, 4.0)
    write(path, user("five", 5))
    assert ["five"] == [event.prompt for event in events(added(followed, 5.0))]
    # No read in between, and the same inode, as after a quick removal.
    for second, text in ((6, "six "), (7, "seven, which is longer")):
        write(path, user(text, second), mode="wb")
        assert [text.strip()] == [event.prompt for event in events(added(followed, float(second)))]


def test_a_path_that_is_not_a_transcript_does_no_harm(tmp_path: Path) -> None:
    """The path comes from a payload and may name anything: nothing hangs, nothing is raised."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    odd = ["", "/", "/dev/zero", "/no\0where", "x" * 5000, str(tmp_path / "pipe")]
    odd += [str(tmp_path / "loop"), str(tmp_path / "pipe" / "below"), "\ud800"]
    transcripts = Transcripts()
    for n, path in enumerate(odd):
        transcripts.follow(f"s{n}", path)
    assert [] == added(transcripts, 1.0)


def test_it_is_read_while_something_may_happen() -> None:
    """And a little longer: title, usage and errors are written after the end."""
    for status in ("working", "blocked", "unknown"):
        assert is_needed(status, 0.0, 1e9)
    for status in ("idle", "completed", "error", "background"):
        assert is_needed(status, 100.0, 105.0)
        assert not is_needed(status, 100.0, 200.0)
        assert is_needed(status, 100.0, 200.0, alone=True)


def test_offsets_of_old_sessions_do_not_pile_up(tmp_path: Path) -> None:
    """A host may run for months."""
    transcripts = Transcripts()
    for n in range(tailing.KEPT + 10):
        transcripts.follow(f"s{n}", tmp_path / f"{n}")
    assert tailing.KEPT == len(transcripts.logs._tails)
    transcripts.follow("s", tmp_path / "s")
    transcripts.logs.forget("s")
    assert "s" not in transcripts.logs._tails


def test_a_transcript_is_found_without_a_hook(tmp_path: Path) -> None:
    """By the folder's likely name, else in any folder; an id that is a path finds none."""
    usual = tmp_path / "projects" / "-home-me-my-proj" / f"{SID}.jsonl"
    odd = tmp_path / "projects" / "named" / "other.jsonl"
    cwd = "/home/me/my.proj"
    assert str(usual) == path_of(tmp_path, SID, cwd)
    for each in (usual, odd):
        each.parent.mkdir(parents=True)
        each.write_text("")
    assert str(usual) == path_of(tmp_path, SID, cwd) == path_of(tmp_path, SID, "")
    assert str(odd) == path_of(tmp_path, "other", cwd)
    assert "" == path_of(tmp_path, "../named/other", cwd)
    assert "" == path_of(tmp_path / "nowhere", SID, "")


def test_noise_is_recognized_by_its_start() -> None:
    """A person's text that looks like it is not noise."""
    assert is_noise(b'{"type":"api-request-blob","x":1}')
    assert is_noise(b'{"parentUuid":null,"isSidechain":true,"type":"user"}')
    for text in ('"type":"api-request', '"isSidechain":true'):
        assert not is_noise(json.dumps(user(text), separators=(",", ":")).encode())


WORDS = st.sampled_from(
    [
        *("type", "user", "assistant", "system", "message", "content", "text", "tool_use", "input"),
        *("tool_result", "usage", "input_tokens", "timestamp", "model", "subtype", "api_error"),
        *("retryAttempt", "name", "id", "questions", "question", "isMeta", "ai-title", "aiTitle"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(["user", "assistant", "system", "ai-title"])


@given(KINDS, VALUES, VALUES, VALUES, VALUES)
def test_no_entry_raises(kind: str, content: Any, use: Any, more: Any, when: Any) -> None:
    """Anything that a future CLI writes is understood or ignored."""
    block = {**(use if isinstance(use, dict) else {}), "type": "tool_use", "input": more}
    message = {"content": [content, block], "usage": more, "model": when}
    for body in (message, {"content": content}, content):
        entry = {"type": kind, "message": body, "timestamp": when, "aiTitle": more}
        event = entry_event(CLAUDE, SID, entry, 1.0)
        if event is not None:
            msgspec.json.encode(line_of(event))


def test_a_transcript_names_the_session_of_a_process(tmp_path: Path) -> None:
    """The only one in its directory's folder written since the process started."""
    folder = Path(transcripts_folder(str(tmp_path), "/srv/my project"))
    assert folder == tmp_path / "projects" / "-srv-my-project"
    assert "" == begun_in(str(tmp_path), "/srv/my project", 0.0, ())
    folder.mkdir(parents=True)
    for name, t in [("old", 100), ("new", 200), ("notes.txt", 300)]:
        path = folder / (name if "." in name else f"{name}.jsonl")
        path.write_text("{}\n")
        os.utime(path, (t, t))
    found = partial(begun_in, str(tmp_path), "/srv/my project")
    assert "new" == found(150.0, ())
    assert "" == found(50.0, ())  # either may be the one
    assert "old" == found(50.0, ("new",))
    assert "" == found(250.0, ())


@pytest.mark.core
def test_of_a_request_to_the_model_only_the_head_is_read() -> None:
    """A request holds the whole conversation: even if that is broken, type and time are known."""
    head = b'{"type":"api-request","sessionId":"s","id":"1","timestamp":"2026-11-29T13:40:11.524Z",'
    expected = {"type": "api-request", "timestamp": "2026-11-29T13:40:11.524Z"}
    assert head_of(head + b'"params":{"SECRET": \xff') == expected
    assert head_of(b'{"type":"api-request","params":{"timestamp":"2026-11-29T13:40:11Z"}}') is None
    assert head_of(b'{"type":"api-request-blob","timestamp":"2026-11-29T13:40:11Z"}') is None
    assert head_of(b'{"type":"user","text":"{\\"type\\":\\"api-request\\""}') is None


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("a.py:3-5\n```python\nx = 1\n```\nmake it faster\n", "make it faster"),
        ("why?\n```\nx\n```\nand\n```sh\ny\n```", "why? and"),
        ("a.py:3\n```python\nx = 1\n```\n", "a.py:3 ```python x = 1 ```"),
        ("it says ``` here", "it says ``` here"),
        ("```" * 3000 + "\n" + "a:" * 9000, None),
    ],
)
def test_a_session_is_named_by_the_words_of_a_prompt(prompt: str, named: str | None) -> None:
    """Not by the code that goes with them."""
    told = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    found = hook(json.dumps(told).encode(), 1.0, 1.0).prompt
    assert found == named if named else found.startswith("```")


def test_the_tag_of_a_paste_is_no_part_of_a_prompt(path: Path, followed: Transcripts) -> None:
    """Neither of a hook's nor of a transcript's: a session is named by its prompt."""
    pasted = 'Look:\n<pasted_content id="1b1e">\none\ntwo\n</pasted_content id="1b1e">\nand fix it'
    write(path, user(pasted))
    told = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": pasted}
    hooked = hook(json.dumps(told).encode(), 1.0, 1.0)
    found = [hooked, *events(added(followed, 1.0))]
    assert ["Look: one two and fix it"] * 2 == [event.prompt for event in found]
