"""The rules of notifications: what is announced, on which channel, after how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core.board import Board
from bellboard.core.clock import set_back
from bellboard.core.events import Event
from bellboard.core.notices import (
    CHANNELS,
    LADDERS,
    MINUTE,
    MODES,
    NEVER,
    Notice,
    Notices,
    Policy,
    policy_of,
)
from bellboard.core.records import Transition
from bellboard.core.session import STATUSES, Block, Session, status_of
from rig.examples import examples

START = 1_800_000_000.0  # 08:00 UTC
ALL = frozenset(CHANNELS)


class House:
    """Sessions, the notices of one host, and the sent notifications."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.now = START
        self.notices = Notices(policy or Policy())
        self.sessions: dict[str, Session] = {}
        self.rung: list[tuple[float, Notice]] = []
        self.serial = 0

    def be(self, status: str, sid: str = "s", live: bool = True, **more: Any) -> None:
        """Put a session into a status now."""
        old = self.sessions.get(sid) or Session(sid)
        before = status_of(old) if sid in self.sessions else None
        blocks = {":": Block("permission", self.now, shown=True)} if status == "blocked" else {}
        session = Session(
            sid,
            turn="working" if status == "blocked" else status,
            since=self.now,
            began=self.now - 100,
            blocks=blocks,
            unseen=status == "background",
            viewers=old.viewers,
            parked=old.parked,
            snoozed_until=old.snoozed_until,
            label=old.label,
        )
        self.change(session, **more)
        self.serial += 1
        told = Transition(self.now, sid, before, status, "", "")
        self.notices.hear([(self.serial, told, live)])

    def change(self, session: Session | str = "s", **fields: Any) -> None:
        """Change another property of a session."""
        s = self.sessions[session] if isinstance(session, str) else session
        for name, value in fields.items():
            setattr(s, name, value)
        self.sessions[s.session_id] = s
        self.notices.see(self.sessions, [s.session_id], self.now)

    def wait(self, seconds: float) -> list[str]:
        """Advance from one wake to the next, as a host does; return the channels that were used."""
        until, before = self.now + seconds, len(self.rung)
        while True:
            self.send()
            when = self.notices.wake(self.now, ALL)
            assert when > self.now, "a host would wake for ever"
            if when > until:
                break
            self.now = when
        self.now = until
        self.send()
        return [notice.channel for _, notice in self.rung[before:]]

    def send(self) -> None:
        while (notice := self.notices.next(self.now, ALL)) is not None:
            self.notices.sent(notice, self.now)
            self.rung.append((self.now, notice))

    @property
    def float(self) -> list[str]:
        return self.notices.list_for_float(self.now)[0]


def ladders(**delays: float) -> Policy:
    """Return the same delays for every status, and the float for blocked."""
    row = {**dict.fromkeys(CHANNELS, NEVER), **delays}
    return Policy(ladders={s: row | ({"float": 0.0} if s == "blocked" else {}) for s in LADDERS})


# Which channels notify


#: Steps: a status (of `s`, or of those named; `/3`: after a turn of 3 s; `past`: before we looked),
#: `float` and whom it lists, another change, or seconds that pass and the channels used meanwhile.
AGAIN = "working; float; 0.3; blocked; float s; 0.3; "
HISTORIES: dict[str, tuple[Policy, str]] = {
    "channels escalate": (
        Policy(),
        "blocked; float s; 29; 2 desktop; 90 command; 10000",
    ),
    **{
        f"{answer} within the delay": (
            ladders(desktop=30, command=60),
            f"blocked; 29; {answer}; float; 29",
        )
        for answer in ("working", "idle", "error")
    },
    "twenty rapid transitions": (
        ladders(notify=0, desktop=0, bell=0),
        f"blocked; float s; 0.3 bell desktop notify; {9 * AGAIN}working; float; 0.3",
    ),
    "the float lists at once what asks again": (
        Policy(),
        "blocked; float s; working; float; 2; blocked; float s",
    ),
    "in view it is quiet, and starts again when left": (
        ladders(desktop=30),
        "blocked; 20; view; float; 1000; leave; float s; 29; 2 desktop",
    ),
    "snoozed": (
        ladders(desktop=0),
        "working; snooze 900; blocked; 899; float; 1 desktop; float s",
    ),
    "parked": (ladders(desktop=0), "working; park; blocked; 10000; float"),
    "nothing from the past is announced": (ladders(desktop=0), "past blocked; 1000; float s"),
    "a new host skips what was due": (
        ladders(desktop=30, command=120),
        "blocked; host 60; 1000 command",
    ),
    "quiet mode": (ladders(notify=0)._replace(mode="quiet"), "blocked; 100; float s; error; 100"),
    "normal mode": (
        ladders(notify=0, desktop=0),
        "background; 100 notify; working; 100; blocked; 100 desktop notify; float s",
    ),
    "all but work and rest": (
        ladders(notify=0)._replace(mode="all"),
        "working; 100; background; 100 notify; idle; 100",
    ),
    "done is one message": (Policy(), "completed; 100 notify"),
    "done, if all is announced": (Policy(mode="all"), "completed; 100 desktop notify"),
    "done, turned off": (policy_of({"completed": {"notify": False}}), "completed; 100"),
    "a new mode counts from now on": (
        ladders(notify=0, desktop=60)._replace(mode="quiet"),
        "blocked; 30; mode normal; 1000 desktop",
    ),
    "a label has its own delays, and else those of its status": (
        Policy(),
        "working; label ONEOFF; completed; 100 desktop notify sound; blocked; 35 desktop",
    ),
    "a label of the user": (
        policy_of({"labels": {"DEPLOY": {"blocked": {"bell": True, "desktop": False}}}}),
        "working; label DEPLOY; blocked; 60 bell",
    ),
    "a short turn ends silently, unless it fails": (
        ladders(notify=0)._replace(mode="all"),
        "working; completed/3; 100; working; error/3; 100 notify",
    ),
    "in quiet hours there is only the float": (
        ladders(desktop=0)._replace(quiet=(7 * 60, 9 * 60)),
        "blocked; 3599; float s; 2 desktop",
    ),
    "a limit per minute": (
        ladders(desktop=0)._replace(max_per_minute=2),
        "blocked a b c d e; 59 desktop desktop; 60 desktop desktop; 60 desktop; float a b c d e",
    ),
}


def happen(house: House, step: str) -> None:
    word, *more = step.split()
    status, _, took = word.partition("/")
    if status in STATUSES:
        for sid in more or ["s"]:
            house.be(status, sid, began=house.now - float(took or 100))
    elif word == "float":
        assert more == sorted(house.float), step
    elif word == "past":
        house.be(more[0], live=False)
    elif word == "host":
        house.now += float(more[0])
        house.notices.pass_over(house.now)
    elif word == "mode":
        house.notices.set_mode(more[0], house.now)
    elif word[0].isdecimal():
        assert more == sorted(house.wait(float(word))), step
    else:
        fields: dict[str, dict[str, Any]] = {
            "view": {"viewers": {"nvim": house.now}},
            "leave": {"viewers": {}},
            "park": {"parked": True},
            "snooze": {"snoozed_until": house.now + float(more[0])} if word == "snooze" else {},
            "label": {"label": "".join(more)},
        }
        house.change(**fields[word])


@pytest.mark.parametrize("history", HISTORIES)
def test_each_history_uses_these_channels(history: str) -> None:
    policy, steps = HISTORIES[history]
    house = House(policy)
    for step in steps.split("; "):
        happen(house, step)


def test_a_clock_set_back_delays_no_notification() -> None:
    """Such as after the start of a machine whose clock was hours ahead."""
    house = House(ladders(desktop=0, sound=60)._replace(max_per_minute=3))
    house.now += 7200
    for n in range(3):
        house.be("blocked", f"s{n}")
    house.be("blocked", "seen")
    house.change("seen", viewers=frozenset({"nvim"}))
    assert len(house.wait(1)) == 3
    house.now -= 7200
    board = Board()
    board.sessions |= house.sessions
    set_back(board, Event("clock", "clock", house.now, house.now))
    for s in board.sessions.values():
        house.change(s)
    house.notices.set_back(house.now)
    house.now += 1
    house.change("seen", viewers=frozenset())
    house.be("blocked", "new")
    house.be("blocked", "s0")
    house.rung.clear()
    house.wait(MINUTE + 1)
    rung = {(notice.session_id, notice.channel) for _, notice in house.rung}
    assert rung >= {("new", "desktop"), ("seen", "desktop"), ("s0", "desktop"), ("s1", "sound")}


def test_notifications_of_other_machines_never_delay_those_of_this_one() -> None:
    """Each kind has its own limit."""
    house = House(ladders(desktop=1)._replace(max_per_minute=3))
    for n in range(300):
        house.be("blocked", f"box/claude/{n}", machine="box")
    house.wait(120)
    house.rung.clear()
    house.be("blocked", "mine")
    house.wait(2)
    assert "mine" in [n.session_id for _, n in house.rung]
    house.wait(60)
    assert len([n for _, n in house.rung if n.is_far]) <= 6


def test_two_hosts_agree_on_who_notified() -> None:
    """The host that lost the claim records it too, and neither notifies again."""
    one, two = House(ladders(desktop=5)), House(ladders(desktop=5))
    for house in (one, two):
        house.be("blocked")
        house.now += 5
    notice = one.notices.next(one.now, ALL)
    assert notice is not None
    assert notice == two.notices.next(two.now, ALL)
    one.notices.sent(notice, one.now)
    two.notices.sent(notice, two.now)
    assert one.wait(1000) == two.wait(1000) == []


# The policy


def test_settings_of_the_wrong_type_are_ignored() -> None:
    wrong = {
        "mode": "loud",
        "blocked": {"desktop": "soon", "float": None, "horn": 1},
        "error": 3,
        "min_interval": True,
        "max_per_minute": -1,
        "quiet_hours": "25:99-",
        "labels": [1],
    }
    assert policy_of(wrong) == Policy(labels=Policy().labels)
    assert policy_of({"quiet_hours": "22:00-07:30"}).quiet == (1320, 450)
    assert policy_of({"blocked": {"desktop": False, "bell": True}}).ladders["blocked"] == {
        **LADDERS["blocked"],
        "desktop": NEVER,
        "bell": 0.0,
    }


def test_every_mode_decides_every_status_that_notifies() -> None:
    assert {tuple(row) for row in MODES.values()} == {tuple(LADDERS)}
    assert set(LADDERS) <= set(STATUSES)


# Why the float does not list a session


@pytest.mark.parametrize(
    ("policy", "change", "expected"),
    [
        ({}, {}, ""),
        ({}, {"viewers": {"nvim": START}}, "somebody looks at it: nvim"),
        ({}, {"parked": True}, "parked"),
        ({}, {"snoozed_until": START + 901}, "snoozed until 09:15:01"),
        ({"blocked": {"float": False}}, {}, "`notices.blocked.float` is false"),
        (
            {"labels": {"LATER": {"blocked": {"float": False}}}},
            {"label": "LATER"},
            "`notices.labels.LATER.blocked.float` is false",
        ),
        ({"blocked": {"float": 20}}, {}, "held back by `notices.blocked.float` until 09:00:20"),
    ],
)
def test_it_is_said_why_the_float_does_not_list_a_session(
    policy: dict[str, Any], change: dict[str, Any], expected: str
) -> None:
    """There is one reason, and its end in local time."""
    house = House(policy_of(policy))
    house.notices.zone = 3600.0
    house.be("blocked")
    house.change(**change)
    assert house.notices.list_for_float(house.now)[1] == ({"s": expected} if expected else {})
    assert house.float == ([] if expected else ["s"])


def test_only_what_the_float_could_list_has_a_reason() -> None:
    house = House(policy_of({"error": {"float": 0}}))
    for status in ("completed", "working", "idle"):
        house.be(status, status, parked=True)
    house.be("error", "error", parked=True)
    assert house.notices.list_for_float(house.now)[1] == {"error": "parked"}


# Random histories

SIDS = st.sampled_from(["a", "b", "c"])
STEPS = st.one_of(
    st.tuples(
        st.just("be"),
        SIDS,
        st.sampled_from(["blocked", "error", "completed", "working", "idle"]),
    ),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 7.0, 31.0, 200.0, 2000.0]), st.none()),
    st.tuples(st.just("view"), SIDS, st.booleans()),
    st.tuples(st.just("park"), SIDS, st.booleans()),
    st.tuples(st.just("snooze"), SIDS, st.sampled_from([0.0, 5.0, 600.0])),
    st.tuples(st.just("mode"), st.sampled_from(sorted(MODES)), st.none()),
)
POLICIES = st.builds(
    Policy,
    mode=st.sampled_from(sorted(MODES)),
    min_interval=st.sampled_from([0.0, 3.0, 30.0]),
    max_per_minute=st.integers(0, 4),
    quiet=st.none() | st.tuples(st.integers(0, 1439), st.integers(0, 1439)),
    ladders=st.fixed_dictionaries(
        {
            status: st.fixed_dictionaries(
                {c: st.sampled_from([0.0, 0.5, 20.0, 120.0, NEVER]) for c in CHANNELS}
            )
            for status in LADDERS
        }
    ),
)


class Checked(House):
    """Checks that only permitted notifications are sent."""

    def send(self) -> None:
        while (notice := self.notices.next(self.now, ALL)) is not None:
            s, policy = self.sessions[notice.session_id], self.notices.policy
            assert status_of(s) == notice.status, "after the answer"
            assert not s.viewers and not s.parked and s.snoozed_until <= self.now
            assert policy.after_quiet(self.now, 0.0) == self.now, "in quiet hours"
            assert self.now >= s.since + policy.ladders[notice.status][notice.channel]
            assert policy.mode != "quiet"
            if policy.mode == "normal" and notice.status == "completed":
                assert notice.channel == "notify"
            same = [t for t, n in self.rung if n.channel == notice.channel]
            assert len([t for t in same if t > self.now - MINUTE]) < policy.max_per_minute
            of_session = [
                t
                for t, n in self.rung
                if (n.session_id, n.channel) == (notice.session_id, notice.channel)
            ]
            assert all(self.now - t >= policy.min_interval for t in of_session)
            assert (notice.id, notice.channel) not in {(n.id, n.channel) for _, n in self.rung}
            self.notices.sent(notice, self.now)
            self.rung.append((self.now, notice))


def steps_of(house: House, steps: list[tuple[str, Any, Any]]) -> Iterator[None]:
    for what, one, two in steps:
        if what == "be":
            house.be(two, one)
        elif what == "wait":
            house.wait(one)
        elif what == "mode":
            house.notices.set_mode(one, house.now)
        elif one in house.sessions:
            fields: dict[str, Any] = {
                "view": {"viewers": {"v": house.now} if two else {}},
                "park": {"parked": two},
                "snooze": {"snoozed_until": house.now + (two or 0.0)},
            }[what]
            house.change(one, **fields)
        yield


@examples(60)
@given(policy=POLICIES, steps=st.lists(STEPS, max_size=40))
def test_nothing_is_announced_that_must_not_be(
    policy: Policy, steps: list[tuple[str, Any, Any]]
) -> None:
    """Never twice for one block, after the answer, in view, in quiet hours, or over the cap."""
    house = Checked(policy)
    for _ in steps_of(house, steps):
        house.send()
        listed, silent = house.float, house.notices.list_for_float(house.now)[1]
        blocked = {sid for sid, s in house.sessions.items() if status_of(s) == "blocked"}
        assert blocked <= {*listed, *silent} and not {*listed} & {*silent}
        for sid in listed:
            s = house.sessions[sid]
            assert not s.viewers and not s.parked and s.snoozed_until <= house.now


@examples(40)
@given(policy=POLICIES, steps=st.lists(STEPS, max_size=30), part=st.floats(0.0, 0.999))
def test_nothing_is_due_before_the_host_wakes(
    policy: Policy, steps: list[tuple[str, Any, Any]], part: float
) -> None:
    """wake() names the moment when something is due or the float changes, and none later."""
    house = House(policy)
    for _ in steps_of(house, steps):
        house.send()
    before = house.float
    when = house.notices.wake(house.now, ALL)
    if when == NEVER:
        when = house.now + 100_000
    between = house.now + (when - house.now) * part
    if between < when:
        assert house.notices.next(between, ALL) is None
        assert house.notices.list_for_float(between)[0] == before


def test_while_followed_only_the_editor_and_sessions_of_other_machines_notify() -> None:
    """Afterwards, waiting notices are announced."""
    house = House(Policy(min_interval=0.0))
    house.notices.is_followed = True
    house.be("blocked")
    house.be("blocked", "dev/claude/s", machine="dev")
    house.wait(200)
    assert {(n.session_id, n.channel) for _, n in house.rung} == {
        ("dev/claude/s", "desktop"),
        ("dev/claude/s", "command"),
    }
    house.rung.clear()
    house.notices.is_followed = False
    house.wait(1)
    assert {(n.session_id, n.channel) for _, n in house.rung} == {
        ("s", "desktop"),
        ("s", "command"),
    }
