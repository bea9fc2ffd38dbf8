"""Names, permissions and settings of a fleet on the wire."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core.row import Row
from bellboard.fleet.member import Joined, UnusableSetting, check_settings, machine_name
from bellboard.fleet.permits import Grant, allowed, server_configuration
from bellboard.fleet.publisher import written
from bellboard.fleet.streams import LARGEST_ROW, streams
from bellboard.fleet.subjects import Key, Subjects, token, token_text
from rig.machines.fleets import a_row

S = Subjects("core")
PLAIN = {*string.ascii_letters, *string.digits, *"-_="}
HOSTILE = ("a.b", "a b", "*", ">", "a.>", "$JS.API.>", "\r\nPUB x 1", "ü", "=2E", "", "=", "\0")


@given(st.text(max_size=60))
def test_any_name_becomes_one_token_and_comes_back(text: str) -> None:
    """No name of a machine, an agent or a session can end a token, or be a wildcard."""
    whole = text.encode("utf-8", "replace").decode()
    made = token(text)
    assert made
    assert set(made) <= PLAIN
    assert whole == token_text(made)


def test_hostile_names_stay_apart() -> None:
    """Two names never share a key."""
    assert len(HOSTILE) == len({token(name) for name in HOSTILE})


@pytest.mark.parametrize("name", ["a.b", "dev-1", "Box_2"])
def test_a_key_comes_back_from_its_subject(name: str) -> None:
    """The subject alone names the machine of a row: the server checks the writer."""
    for key in (Key(name), Key(name, "claude", "s.1 *"), Key(name, "codex", "beat")):
        assert key == S.key(S.row(key))
    assert Key(name, "claude", "s") == S.key(S.seen(S.moved(Key(name, "claude", "s"))))


@pytest.mark.parametrize(
    "subject",
    [
        *("bellboard.core.row.dev", "bellboard.core.row.dev.a", "bellboard.other.row.dev.beat"),
        *(
            "bellboard.core.row.=20.beat",
            "bellboard.core.row.machines=2Ejson.beat",
            "bellboard.core.row.d.=FF.s",
            "bellboard.core.row.d.a.s.x",
        ),
        *("", "bellboard.core.ask.dev.answer.alice"),
    ],
)
def test_a_subject_that_nobody_of_us_writes_is_nobodys(subject: str) -> None:
    """Wrong counts of tokens, other teams, names that cannot be a machine."""
    assert S.key(subject) is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://h:1", "not a server address"),
        ("tls://", "not a server address"),
        ("tls://h:99999", "not a server address"),
        ("tls://alice:secret@h:4222", "file"),
        ("nats://example.org:4222", "not encrypted"),
    ],
)
def test_a_url_that_would_leak_or_fail_is_refused(url: str, why: str) -> None:
    """The refusal comes before anything is sent, and says what to give instead."""
    with pytest.raises(UnusableSetting, match=why):
        check_settings(Joined(url, "core", "dev"), unencrypted=False)
    check_settings(Joined("nats://127.0.0.1:4222", "core", "dev"), unencrypted=False)
    check_settings(Joined("tls://example.org", "core", "dev"), unencrypted=False)


def test_a_machine_gets_a_usable_name() -> None:
    """Its host may have any name."""
    assert "dev" == machine_name("dev.example.org")
    assert "a-b" == machine_name("a b")
    assert "machine" == machine_name("---.x")


def test_a_publisher_may_write_under_its_own_name_only() -> None:
    """A publisher reads nothing of others."""
    may = allowed(S, Grant("dev", "K", frozenset({"publish"}), "dev.1"))
    own = ("tick.dev", "row.dev=2E1.>", "moved.dev=2E1.>", "claim.dev=2E1.*", "reply.dev=2E1.*.*")
    assert [f"bellboard.core.{x}" for x in own] == may.say
    heard = ("ask.dev=2E1.*.*.*", "screen.dev=2E1.*.*", "screen.=.*.*")
    assert [f"bellboard_seen.core.{x}" for x in heard] == may.hear
    got = [x for name, x in may.look.items() if ".get." in name]
    assert ["$JS.API.DIRECT.GET.bellboard_core_rows.bellboard.core.row.dev=2E1.>"] == got


def test_only_who_answers_may_ask_for_changes() -> None:
    """A reader may look at a question, under its own name."""
    reader = allowed(S, Grant("bob", "K", frozenset({"read"}))).say
    asks = [x for x in reader if ".ask." in x]
    looks = "request", "preview", "clock"
    assert [f"bellboard.core.ask.*.{do}.bob.*" for do in looks] == asks
    assert "bellboard.core.screen.*.bob.*" in reader
    answerer = allowed(S, Grant("bob", "K", frozenset({"read", "answer"}), only=("dev",))).say
    assert ["bellboard.core.ask.dev.*.bob.*"] == [x for x in answerer if ".ask." in x]


def test_the_configuration_names_each_member_once() -> None:
    """A member stands there with its key and no secret."""
    grants = [Grant("a", "UA", frozenset({"read"})), Grant("b", "UB", frozenset({"publish"}), "b")]
    text = server_configuration("core", grants, "/srv/fleet")
    assert 2 == text.count("nkey: U")
    assert "seed" not in text
    assert text.count("{") == text.count("}")


def test_everything_on_the_server_is_bounded() -> None:
    """The bounds are those of age and size; nobody deletes what others wrote."""
    for stream in streams(S):
        assert stream["max_age"] > 0
        assert stream["max_bytes"] > 0
        assert not stream["allow_rollup_hdrs"]


def test_a_row_that_is_too_large_loses_its_lists() -> None:
    """A session with a hundred background tasks is still seen."""
    tasks = [{"id": f"{n}", "description": "d" * 199} for n in range(100)]
    row: Row = a_row("s", "blocked", background=tasks, title="t")
    value = written(row, None, "db.1")
    assert len(value) <= LARGEST_ROW
    assert b'"title":"t"' in value
