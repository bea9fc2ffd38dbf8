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
from examples import examples

pytestmark = pytest.mark.pure

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


def test_channels_escalate_one_after_the_other() -> None:
    house = House()
    house.be("blocked")
    assert house.float == ["s"]
    assert house.wait(29) == []
    assert house.wait(2) == ["desktop"]
    assert house.wait(90) == ["command"]
    assert house.wait(10_000) == []


@pytest.mark.parametrize("answer", ["working", "idle", "error"])
def test_nothing_is_sent_for_what_is_answered_within_the_delay(answer: str) -> None:
    house = House(ladders(desktop=30, command=60))
    house.be("blocked")
    house.wait(29)
    house.be(answer)
    assert house.float == []
    rang = [n for _, n in house.rung]
    house.wait(29)
    assert [n.status for _, n in house.rung if n not in rang] == []


def test_twenty_rapid_transitions_notify_once() -> None:
    """On every channel; the float lists what is so at each moment."""
    house = House(ladders(notify=0, desktop=0, bell=0))
    for n in range(20):
        house.be("blocked" if n % 2 == 0 else "working")
        house.wait(0.3)
        assert house.float == ([] if n % 2 else ["s"])
    channels = [n.channel for _, n in house.rung]
    assert sorted(channels) == ["bell", "desktop", "notify"]


def test_a_session_in_view_is_quiet_and_starts_again_when_left() -> None:
    house = House(ladders(desktop=30))
    house.be("blocked")
    house.wait(20)
    house.change(viewers={"nvim": house.now})
    assert house.float == []
    assert house.wait(1000) == []
    house.change(viewers={})
    assert house.float == ["s"]
    assert house.wait(29) == []
    assert house.wait(2) == ["desktop"]


def test_a_snoozed_session_notifies_later_and_a_parked_one_never() -> None:
    house = House(ladders(desktop=0))
    house.be("working")
    house.change(snoozed_until=START + 900)
    house.be("blocked")
    assert (house.wait(899), house.float) == ([], [])
    assert (house.wait(1), house.float) == (["desktop"], ["s"])
    house.be("working")
    house.change(parked=True)
    house.be("blocked")
    assert (house.wait(10_000), house.float) == ([], [])


def test_unwatched_changes_are_not_announced() -> None:
    """The float shows the present state and announces nothing from the past."""
    house = House(ladders(desktop=0))
    house.be("blocked", live=False)
    assert (house.wait(1000), house.float) == ([], ["s"])


def test_a_new_host_skips_what_was_due_and_continues_with_the_rest() -> None:
    house = House(ladders(desktop=30, command=120))
    house.be("blocked")
    house.now += 60
    house.notices.pass_over(house.now)
    assert house.wait(1000) == ["command"]


@pytest.mark.parametrize(
    ("mode", "status", "expected"),
    [
        ("quiet", "blocked", []),
        ("quiet", "error", []),
        ("normal", "blocked", ["notify"]),
        ("normal", "error", ["notify"]),
        ("normal", "completed", ["notify"]),
        ("normal", "background", ["notify"]),
        ("normal", "working", []),
        ("all", "completed", ["notify"]),
        ("all", "background", ["notify"]),
        ("all", "idle", []),
    ],
)
def test_the_mode_limits_what_is_announced(mode: str, status: str, expected: list[str]) -> None:
    house = House(ladders(notify=0)._replace(mode=mode))
    house.be(status)
    assert house.wait(100) == expected
    assert house.float == (["s"] if status == "blocked" else [])


def test_done_is_one_message_unless_all_is_announced() -> None:
    """A person beside it gets no desktop notification for each turn, and can turn it off."""
    for mode, expected in (("normal", ["notify"]), ("all", ["notify", "desktop"])):
        house = House(Policy()._replace(mode=mode))
        house.be("completed")
        assert house.wait(100) == expected
    house = House(policy_of({"completed": {"notify": False}}))
    house.be("completed")
    assert house.wait(100) == []


def test_a_new_mode_counts_from_now_on() -> None:
    """Suppressed notices are not announced afterwards."""
    house = House(ladders(notify=0, desktop=60)._replace(mode="quiet"))
    house.be("blocked")
    house.wait(30)
    house.notices.set_mode("normal", house.now)
    assert house.wait(1000) == ["desktop"]


def test_a_label_overrides_the_delays() -> None:
    """ONEOFF is announced when done, even in the mode that announces nothing done."""
    house = House()
    house.be("working")
    house.change(label="ONEOFF")
    house.be("completed")
    assert sorted(house.wait(100)) == ["desktop", "notify", "sound"]
    house.be("blocked")
    assert house.wait(35) == ["desktop"], "statuses that a label leaves out keep their delays"


def test_a_custom_label_works() -> None:
    policy = policy_of({"labels": {"DEPLOY": {"blocked": {"bell": True, "desktop": False}}}})
    house = House(policy)
    house.be("working")
    house.change(label="DEPLOY")
    house.be("blocked")
    assert house.wait(60) == ["bell"]


def test_a_short_turn_ends_silently() -> None:
    house = House(ladders(notify=0)._replace(mode="all"))
    house.be("working")
    house.be("completed", began=house.now - 3)
    assert house.wait(100) == []
    house.be("working")
    house.be("error", began=house.now - 3)
    assert house.wait(100) == ["notify"], "an error is never too short"


def test_in_quiet_hours_there_is_only_the_float() -> None:
    """Unanswered requests are announced when the hours end."""
    house = House(ladders(desktop=0)._replace(quiet=(7 * 60, 9 * 60)))
    house.be("blocked")
    assert (house.wait(3599), house.float) == ([], ["s"])
    assert house.wait(2) == ["desktop"]


def test_many_at_once_are_limited_per_minute() -> None:
    house = House(ladders(desktop=0)._replace(max_per_minute=3))
    for n in range(7):
        house.be("blocked", f"s{n}")
    assert len(house.wait(59)) == 3
    assert len(house.wait(60)) == 3
    assert len(house.wait(60)) == 1
    assert len(house.float) == 7, "the float has them all"


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


def test_the_float_lists_a_session_that_asks_again_at_once() -> None:
    """The float is a list, not a message: `min_interval` holds for the other channels only."""
    house = House()
    house.be("blocked")
    assert house.float == ["s"]
    house.be("working")
    assert house.float == []
    house.wait(2)
    house.be("blocked")
    assert house.notices.list_for_float(house.now) == (["s"], {})


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
