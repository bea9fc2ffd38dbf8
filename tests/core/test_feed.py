"""The lines of a feed: what is written is read again, and no line of a stranger does harm."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from bellboard.core import feed
from bellboard.core.events import is_id
from bellboard.core.far import MACHINE, id_of
from bellboard.core.feed import (
    Beat,
    Cursor,
    FeedChange,
    FeedProblem,
    FeedState,
    Gone,
    HealthNotes,
    Hello,
    Junk,
    Moved,
    Of,
    Reply,
)
from bellboard.core.published import publish
from bellboard.core.row import LONGEST_SENT, Row, row, row_of
from bellboard.core.session import Block, Session, Subagent
from bellboard.core.text import Lines
from rig import schema

HOSTILE = (
    *("\x1b]0;owned\x07\x1b[2J", "a\x00b", "\u202egpj.exe", "\u2066x\u2069", "\ud800", "\n\r\n"),
    *("x" * 1000, "/", "../..", "a/b", "$(reboot)", "`x`", "'", '"', "-rf", "", " ", "\u3164"),
)


def written(**more: Any) -> bytes:
    return json.dumps(more).encode()


def session(**more: Any) -> Session:
    """A session that has everything that must stay on its machine."""
    known: dict[str, Any] = {
        "session_id": "s1",
        "turn": "working",
        "since": 5.0,
        "cwd": "/home/secret/folder",
        "project_dir": "/home/secret/folder",
        "transcript": "/home/secret/log",
        "prompt": "a secret prompt",
        "prompts": ("a secret prompt",),
        "message": "a secret message",
        "tty": "/dev/pts/secret",
        "tmux": "/tmp/secret",
        "pane": "%7",
        "pane_tty": "/dev/pts/secret",
        "kitty": "unix:/secret",
        "parent": "secret",
        "edited": {"/home/secret/file": 1.0},
        "facts": {"repository": "acme/api", "branch": "main", "remote": "https://secret"},
        "agents": {"x": Subagent("x", "Explore", 2.0, "looks")},
        "blocks": {"b": Block("permission", 4.0, tool="Bash", detail="make", shown=True)},
    }
    return Session(**(known | more))


def a_row(sid: str = "s1", **more: Any) -> Row:
    made = row({"session_id": sid, "status": "idle", **more})
    assert made is not None
    return made


def a_move(number: int, **more: Any) -> Moved:
    known = {"session_id": "s1", "from": "working", "to": "blocked", "rule": "ask", "t": 3.0}
    made = feed.moved_of({"id": number, **known, **more})
    assert made is not None
    return made


def test_a_row_has_what_is_shown_and_nothing_else() -> None:
    """No prompt, message, folder, socket or terminal leaves a machine."""
    made = row(publish(session()))
    assert made is not None
    shown = json.loads(msgspec.json.encode(made))
    assert "secret" not in json.dumps(shown)
    assert shown == {
        "session_id": "s1",
        "status": "blocked",
        "urgency": 0,
        "agent": "claude",
        "since": 5.0,
        "kind": "permission",
        "tool": "Bash",
        "detail": "make",
        "asked_at": 4.0,
        "project": "api",
        "repository": "acme/api",
        "branch": "main",
        "agents": [{"id": "x", "type": "Explore", "since": 2.0, "description": "looks"}],
        "terminal": "tmux",
    }


def reread(line: bytes) -> feed.Line | None:
    """Read a line that was written, and is as the schema says."""
    schema.check_line("feed", line)
    return feed.read(line)


def test_a_state_is_read_as_it_was_written() -> None:
    sent = row(publish(session()))
    assert sent is not None
    (line,) = feed.state(9.0, [sent], [a_move(7)], Cursor("db", 7), True)
    assert FeedState(9.0, "db.7", ("s1",), (sent,), (a_move(7),), True) == reread(line)


def test_other_lines_are_read_as_they_were_written() -> None:
    hello = Hello("0.9", "m1", "b1", 5.0, True, ("claude", "codex"), 2, "jo")
    for said in (hello, Beat(5.0, "db.3"), FeedProblem("no more")):
        assert said == reread(feed.encoded(said))
    notes = feed.HealthNotes({"fleet": "no server"})
    assert notes == reread(feed.encoded(notes))
    line = feed.replied(4, {"ok": False, "why": "it is gone", "rows": ["a"]})
    assert Reply(4, False, "it is gone", {"rows": ["a"]}) == reread(line)
    (line,) = feed.changes(2.0, [a_row()], ["s2"], [], Cursor("db", 3), Cursor("db", 4))
    assert FeedChange(2.0, "db.4", (a_row(),), ("s2",)) == reread(line)


def test_what_one_of_many_machines_says_is_read_as_it_was_written() -> None:
    """A name that no machine can have, or a line that is none of a machine, is skipped."""
    state = FeedState(9.0, "db.7", ("s1",), (a_row(),), (a_move(7),))
    hello = Hello("0.9", "m1", "b1", 5.0, True, ("claude",), 2, "jo")
    for said in (
        state,
        hello,
        FeedChange(2.0, "db.8"),
        Beat(5.0, "db.3"),
        FeedProblem("x"),
        Gone(),
    ):
        (line,) = feed.of("dev", said)
        assert Of("dev", said) == reread(line)
    for odd in ({"machine": "../x"}, {"machine": 1}, {"said": []}, {"said": {"type": "reply"}}):
        given = {"type": "of", "machine": "dev", "said": {"type": "gone"}, **odd}
        assert feed.read(json.dumps(given).encode()) is None
    nested = {"type": "of", "machine": "dev", "said": {"type": "of", "machine": "x", "said": {}}}
    assert feed.read(json.dumps(nested).encode()) is None
    notes = {"fleet": "down\x1b[0m", "odd": 1}
    said = feed.read(json.dumps({"type": "notes", "notes": notes}).encode())
    assert isinstance(said, HealthNotes) and [*said.notes] == ["fleet"]
    assert said.notes["fleet"].isprintable()
    assert HealthNotes({}) == feed.read(b'{"type":"notes","notes":[]}')


def test_what_is_asked_is_read_exactly() -> None:
    """An answer must be the typed text."""
    fields = {"session_id": "s1", "message": "two\nlines \t“x”", "answers": {"Which?": ["a b"]}}
    asked = feed.asked(feed.asking(3, "answer", fields))
    assert asked == feed.Ask(3, "answer", fields)
    assert asked is not None and asked.session_id == "s1"


def test_rows_that_do_not_fit_into_a_line_follow() -> None:
    """The cursor never runs ahead of the transitions that were sent."""
    rows = [a_row(f"s{n}", detail="x" * 190, title="y" * 190) for n in range(2000)]
    moves = [a_move(n, why="z" * 300) for n in range(11, 1011)]
    lines = list(feed.state(9.0, rows, moves, Cursor("db", 1010), True))
    assert len(lines) > 2
    assert max(map(len, lines)) < feed.LONGEST
    read = [feed.read(line) for line in lines]
    first, rest = read[0], read[1:]
    assert isinstance(first, FeedState) and set(first.all) == {r.session_id for r in rows}
    told = [first, *(x for x in rest if isinstance(x, FeedChange))]
    assert len(told) == len(lines)
    assert sum(len(x.sessions) for x in told) == 2000
    assert [m for x in told for m in x.transitions] == moves
    known = 10
    for x in told:
        known = max([known, *(m.id for m in x.transitions)])
        assert x.cursor == f"db.{known}"


def test_the_most_urgent_sessions_come_first() -> None:
    """The most urgent are those that are kept if there are too many."""
    rows = [a_row(f"s{n}") for n in range(2100)] + [a_row("b", status="blocked")]
    read = feed.read(next(feed.state(9.0, rows, [], Cursor("db", 0), False)))
    assert isinstance(read, FeedState) and read.all[0] == "b" and len(read.all) == feed.MOST


def test_a_reply_that_is_too_long_says_so() -> None:
    read = feed.read(feed.replied(5, {"ok": True, "text": "x" * (2 << 20)}))
    assert isinstance(read, Reply) and not read.ok and "2048 kB" in read.why


@pytest.mark.parametrize(
    ("spoken", "text"),
    [
        (2, "it speaks protocol 2, this one 1: update bellboard here"),
        (0, "it speaks protocol 0, this one 1: update bellboard there"),
        (10**30, "it speaks protocol (an invalid number), this one 1: update bellboard here"),
        ("1", "it does not say which protocol it speaks: update bellboard there"),
        (True, "it does not say which protocol it speaks: update bellboard there"),
    ],
)
def test_another_version_is_reported(spoken: object, text: str) -> None:
    assert FeedProblem(text) == feed.read(written(type="hello", feed=spoken))


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x00", b"Welcome to dev!", b"[" * 100_000, b'{"type":', b"[1]", b'{"type":7}', b"\xff"],
)
def test_a_line_of_something_else_is_junk(raw: bytes) -> None:
    assert isinstance(feed.read(raw), Junk)


def test_a_hello_behind_what_a_login_shell_printed_is_read() -> None:
    """A prompt or a greeting may not end its line."""
    raw = feed.encoded(Hello(version="1", now=5.0))
    assert feed.read(b"{Welcome}> \x1b[0m" + raw) == feed.read(raw)
    assert isinstance(feed.read(b"> " + raw[:-9]), feed.Junk)
    assert isinstance(feed.read(b'> {"type":"hello","feed":2}'), feed.FeedProblem)


def test_unknown_fields_are_skipped() -> None:
    """A newer machine may send more."""
    assert feed.read(written(type="weather", rain=True)) is None
    read = feed.read(written(type="beat", now=4, cursor="db.1", moon="full"))
    assert Beat(4.0, "db.1") == read
    shown = a_row(status="meditating", aura="green")
    assert shown.status == "unknown"


@pytest.mark.parametrize("key", ["all", "sessions", "transitions", "removed"])
def test_too_many_sessions_are_reported(key: str) -> None:
    kind = "change" if key == "removed" else "state"
    read = feed.read(written(**{"type": kind, "all": [], key: [0] * 2001}))
    assert isinstance(read, FeedProblem)
    assert read.text.startswith("it has 2001 ")


@given(st.lists(st.binary(max_size=12)))
def test_lines_are_split_wherever_they_are_read(pieces: list[bytes]) -> None:
    """The beginning of a line that is too long comes once."""
    read = Lines(3)
    found = [each for piece in pieces for each in read.take(piece)]
    *whole, rest = b"".join(pieces).split(b"\n")
    expected = [each[:4] for each in whole] + [rest[:4]] * (len(rest) > 3)
    assert expected == found


def test_too_long_a_line_is_reported() -> None:
    read = feed.read(b" " * (feed.LONGEST + 1))
    assert FeedProblem("it sent a line of more than 1024 kB") == read
    assert feed.asked(b" " * (feed.LONGEST + 1)) is None


def test_a_state_without_a_list_drops_no_session() -> None:
    """A damaged line would otherwise say that all are gone."""
    assert isinstance(feed.read(written(type="state", all={"a": 1})), FeedProblem)


@pytest.mark.parametrize("sid", [*HOSTILE, "x" * 201, 7, None, [], True])
def test_a_dangerous_id_is_refused(sid: object) -> None:
    """An id stands in file names, in commands, between slashes, and on screens."""
    said = {"session_id": sid, "status": "idle"}
    read = feed.read(written(type="state", all=[sid, "s"], sessions=[said], transitions=[said]))
    assert FeedState(0.0, "", ("s",), skipped=2) == read
    assert row(said) is None


def test_an_id_that_would_be_too_long_behind_its_machine_is_refused_and_counted() -> None:
    """All that are read can be on a board."""
    longest, machine, agent = "x" * LONGEST_SENT, "m" * 63, "a" * 32
    assert is_id(id_of(machine, agent, longest)) and MACHINE.fullmatch(machine)
    ids = [longest, longest + "x"]
    rows = [{"session_id": sid, "agent": agent, "status": "idle"} for sid in ids]
    read = feed.read(written(type="change", sessions=rows))
    assert isinstance(read, FeedChange)
    assert ([longest], 1) == ([r.session_id for r in read.sessions], read.skipped)


def test_a_session_that_is_named_twice_counts_once() -> None:
    twice = [{"session_id": "s", "title": x} for x in "ab"]
    read = feed.read(written(type="change", sessions=twice, removed=["x", "x"]))
    assert FeedChange(0.0, "", (a_row("s", status="", title="b"),), ("x",), skipped=1) == read


def test_a_row_that_is_not_in_the_list_is_skipped() -> None:
    read = feed.read(written(type="state", all=["a"], sessions=[{"session_id": "b"}]))
    assert FeedState(0.0, "", ("a",), skipped=1) == read


@pytest.mark.parametrize(
    "cursor", ["", "db", "db.", ".1", "d b.1", "db.-1", "db.1;reboot", "db.1\n", "x" * 65 + ".1", 1]
)
def test_an_invalid_cursor_is_dropped(cursor: object) -> None:
    """A cursor becomes an argument of a command."""
    assert feed.cursor_of(cursor) is None
    assert Beat(0.0, "") == feed.read(written(type="beat", cursor=cursor))


def test_a_reply_shows_hidden_characters_as_marks() -> None:
    """An answer is bound to the shown text."""
    asked = {"te\u200bxt": "rm\x1b[2J\n\ta"}
    read = feed.read(written(type="reply", id=1, ok=True, request=asked))
    assert isinstance(read, Reply)
    assert {"request": {"te<U+200B>xt": "rm<U+001B>[2J\n\ta"}} == read.more
    again = feed.read(feed.replied(1, {"ok": True, **read.more}))
    assert read == again


# ---------------------------------------------------------------- anything at all

KEYS = (
    *("type", "feed", "all", "sessions", "transitions", "removed", "id", "ok", "why", "now"),
    *("cursor", "text", "agents", "do", "session_id", *Row.__struct_fields__),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**30), 2**53, 1 << 31]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(HOSTILE),
    st.sampled_from(["s1", "blocked", "db.3", "claude", "parked"]),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=5)), inner, max_size=8),
    ),
    max_leaves=20,
)
lines = st.builds(
    lambda kind, known, more: {**more, **known, "type": kind},
    st.sampled_from(["hello", "state", "change", "beat", "reply", "problem", "new"]),
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(KEYS, values) | {"feed": st.just(1), "all": st.just(["s1", "s2"])},
    ),
    st.dictionaries(st.text(max_size=5), values, max_size=3),
)


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Struct):
        return texts(msgspec.to_builtins(value))
    if isinstance(value, dict):
        return [t for pair in value.items() for x in pair for t in texts(x)]
    return [t for x in value for t in texts(x)] if isinstance(value, list | tuple) else []


def is_harmless(text: str) -> bool:
    return all(
        c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in text
    ) and not any(c in text for c in "\u202e\u2066\u200b\ufeff")


@given(st.one_of(lines, values))
def test_any_line_is_read_or_refused_with_a_reason(value: Any) -> None:
    """No line raises; the kept part is short and harmless, and can be sent on."""
    read = feed.read(json.dumps(value).encode())
    if read is None:
        return
    kept = texts(read)
    assert [] == [t for t in kept if not is_harmless(t)]
    if not isinstance(read, Reply):
        assert all(len(t) <= 400 for t in kept)
    if isinstance(read, Hello | Beat | FeedProblem):
        assert read == feed.read(feed.encoded(read))
    if isinstance(read, FeedState | FeedChange):
        assert all("/" not in r.session_id and "/" not in r.agent for r in read.sessions)
        for sent in read.sessions:
            assert sent == row_of(json.loads(msgspec.json.encode(sent)))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_reason(raw: bytes) -> None:
    feed.read(raw)
    feed.asked(raw)


@given(values)
def test_any_request_is_read_or_refused(value: Any) -> None:
    asked = feed.asked(json.dumps(value).encode())
    assert asked is None or (asked.id > 0 and all(map(str.isprintable, asked.do)))


@given(values)
def test_any_reply_can_be_written(value: Any) -> None:
    read = feed.read(feed.replied(3, {"ok": True, "more": value}))
    assert isinstance(read, Reply) and read.id == 3
