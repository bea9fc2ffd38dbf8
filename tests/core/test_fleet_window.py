"""A large fleet: what is shown of it, and that it stays bounded."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core import feed
from bellboard.core.feed import (
    LONGEST,
    SILENT_AFTER,
    Cursor,
    FeedChange,
    FeedProblem,
    FeedState,
    Gone,
    Moved,
    Of,
    OfOne,
    read,
)
from bellboard.core.published import needs_somebody
from bellboard.core.row import Row
from bellboard.fleet.followed import Followed, Window
from bellboard.fleet.member import Joined
from bellboard.fleet.publisher import written
from bellboard.fleet.streams import TTL, Stored
from bellboard.fleet.subjects import Key
from bellboard.hosting.feed_server import Unsent
from bellboard.hosting.fleet import Members
from bellboard.storage.feed_position import Position
from bellboard.storage.machines import prepare
from rig.host.hosting import made
from rig.machines.fleets import a_row

MOST = 5
STATUSES = ("working", "idle", "blocked", "completed", "error", "")


def key_of(n: int) -> Key:
    return Key(f"m{n % 3}", "claude", f"s{n}")


class ShownState:
    """The messages to a host, and the state that it should have then."""

    def __init__(self, **settings: object) -> None:
        self.followed = Followed(Joined("nats://x", "t", "here", **settings))  # type: ignore[arg-type]
        self.followed.window = Window(MOST)
        self.rows: dict[tuple[str, str], Row] = {}
        self.seq = 0
        for n in range(3):
            self.beat(f"m{n}", age=0.0)

    def beat(self, machine: str, age: float) -> None:
        beat = msgspec.json.encode({"type": "hello", "feed": 1, "machine": machine})
        self.followed.row(Key(machine), self.item(beat), age)

    def item(self, data: bytes) -> Stored:
        self.seq += 1
        return Stored("", data, "" if data else "DEL", self.seq, float(self.seq))

    def put(self, n: int, status: str, **more: object) -> None:
        row = a_row(f"s{n}", status, **more) if status else None
        data = written(row, None, "") if row is not None else b""
        key = key_of(n)._replace(agent=str(more.get("agent", "claude")))
        self.followed.row(key, self.item(data), 0.0)

    def take(self) -> int:
        """Take messages; return the number of rows in them."""
        count = 0
        for machine, said in self.followed.take(0.0):
            if isinstance(said, FeedState):
                self.rows = {k: r for k, r in self.rows.items() if k[0] != machine}
            if isinstance(said, FeedState | FeedChange):
                for row in said.sessions:
                    self.rows[machine, row.session_id] = row
                count += len(said.sessions)
            for sid in said.removed if isinstance(said, FeedChange) else ():
                del self.rows[machine, sid]  # a host is told of the end of what it knows
        return count


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(STATUSES)), max_size=60), st.data())
def test_whoever_needs_somebody_is_shown_and_the_rest_as_far_as_there_is_room(
    steps: list[tuple[int, str]], data: st.DataObject
) -> None:
    """Sessions may come and go, and be read, at any time."""
    reader, there = ShownState(), {}
    complete = data.draw(st.integers(0, len(steps)))
    for step, (n, status) in enumerate(steps):
        if step == complete:
            reader.followed.complete()
        reader.put(n, status)
        there[n] = status
        if data.draw(st.booleans()):
            reader.take()
    if complete == len(steps):
        reader.followed.complete()
    reader.followed.watch(time.monotonic())
    reader.take()
    there = {n: status for n, status in there.items() if status}
    urgent = {n for n, status in there.items() if needs_somebody(status, (), False)}
    shown = {int(sid[1:]) for _, sid in reader.rows}
    assert len(shown) == min(MOST, len(there))
    assert urgent <= shown or (len(urgent) > MOST and shown <= urgent)
    assert {n: there[n] for n in shown} == {
        int(sid[1:]): row.status for (_, sid), row in reader.rows.items()
    }
    assert sum(reader.followed.window.left_out.values()) == len(there) - len(shown)


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_no_machine_hides_the_questions_of_another(machines: list[str]) -> None:
    """Each machine shows all its questions, or about as many as any other."""
    window, asking = Window(MOST), Counter(machines)
    for n, machine in enumerate(["evil"] * 2 * MOST + machines):
        window.put(Key(machine, "claude", f"s{n}"), a_row(f"s{n}", "blocked"))
    shown = Counter(key.machine for key in window._urgent)
    assert sum(shown.values()) == MOST
    assert all(shown[m] in (asking[m], *range(max(shown.values()) - 1, MOST)) for m in asking)


def test_a_question_that_is_left_out_comes_before_what_is_calm() -> None:
    """Once there is room, the question is shown."""
    window, keys = Window(2), [key_of(n) for n in range(4)]
    statuses = ("blocked", "blocked", "working", "blocked")
    for key, status in zip(keys, statuses, strict=True):
        window.put(key, a_row(key.session, status))
    assert window.is_short
    window.drop(keys[0])
    assert [keys[3]] == window.vacancies()


def test_what_a_machine_shows_beyond_the_limit_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The publisher counts a session until it is gone, or sent in the place of another."""
    monkeypatch.setattr("bellboard.hosting.feed_server.MOST", 2)
    unsent = Unsent(None)

    def told(*sids: str, removed: tuple[str, ...] = (), full: bool = False) -> tuple[int, str]:
        sessions = [{"session_id": sid, "status": "blocked"} for sid in sids]
        more = {"removed": removed, "full": full, "transitions": ()}
        unsent.take({"sessions": sessions, **more})
        if unsent.wants_state:
            (line,) = unsent.state(1.0, Position(Cursor("db", 1), [], True))
        else:
            assert unsent.is_due
            (line,) = unsent.changes(1.0)
        said = read(line)
        assert isinstance(said, FeedState | FeedChange)
        return said.beyond, "".join(row.session_id for row in said.sessions)

    assert (2, "ab") == told(*"abcd", full=True)
    assert (3, "") == told(*"e")
    assert (1, "c") == told("c", removed=("a", "d"))
    assert (0, "") == told(removed=("e",))
    assert (0, "ef") == told(*"ef", full=True)


def test_what_is_left_out_costs_the_host_nothing() -> None:
    """The host hears no changes of such sessions; only of their number."""
    reader = ShownState()
    reader.followed.complete()
    for n in range(100):
        reader.put(n, "working")
    assert MOST == reader.take()
    for step in range(3):
        for n in range(MOST, 100):
            reader.put(n, "working", detail=f"step {step}")
    assert 0 == reader.take()
    reader.put(77, "blocked")
    assert 1 == reader.take()
    assert {MOST} == {len(reader.rows)}
    assert "blocked" == reader.rows[key_of(77).machine, "s77"].status
    reader.followed.watch(time.monotonic())
    assert {"working": 100 - MOST} == reader.followed.left_out
    assert not reader.followed.window.is_short


def test_only_wanted_agents_and_repositories_are_followed() -> None:
    """A repository by its name with or without its owner; one that changes is gone."""
    reader = ShownState(agents=("claude",), repositories=("api",))
    reader.followed.complete()
    reader.put(0, "working", repository="acme/api")
    reader.put(1, "working", repository="acme/web")
    reader.put(2, "working", repository="acme/api", agent="codex")
    reader.put(3, "working", repository="api")
    reader.take()
    assert {"s0", "s3"} == {sid for _, sid in reader.rows}
    reader.put(0, "working", repository="acme/web")
    reader.take()
    assert {"s3"} == {sid for _, sid in reader.rows}


def test_a_machine_that_fell_silent_before_it_is_followed_is_reported_as_lost() -> None:
    """Its rows are still stored, and would look as if it were there."""
    reader = ShownState()
    reader.beat("gone", age=SILENT_AFTER + 1.0)
    reader.followed.complete()
    said = [machine for machine, said in reader.followed.take(0.0) if isinstance(said, FeedProblem)]
    assert ["gone"] == said


def test_a_machine_that_is_gone_for_long_gives_its_place_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Containers come and go; a machine that publishes keeps its place, others are counted."""
    monkeypatch.setattr("bellboard.fleet.followed.MACHINES", 3)
    reader = ShownState()
    reader.followed.complete()
    reader.put(0, "working")
    reader.take()
    reader.followed.row(Key("m3"), reader.item(b""), 0.0)
    assert ["m0", "m1", "m2"] == [*reader.followed.machines]
    assert {"m3": 1} == reader.followed.refused
    later = time.monotonic() + TTL + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    reader.followed.watch(later)
    reader.take()
    reader.followed.row(Key("m3"), reader.item(b""), 0.0)
    assert [("m0", Gone())] == [x for x in reader.followed.take(0.0) if isinstance(x[1], Gone)]
    assert ["m1", "m2", "m3"] == [*reader.followed.machines]


@pytest.mark.files
def test_a_machine_that_cannot_be_asked_is_shown_and_delays_no_other(tmp_path: Path) -> None:
    """A file stands in the place of its folder; health says so."""
    spool = made(tmp_path)
    (prepare(spool.home) / "odd").touch()
    members = Members(spool, {}, lambda: None)
    for name in ("odd", "dev"):
        members.take(Of(name, FeedState(1.0, "a.1", ("s1",))))
    assert [*members.followers] == ["odd", "dev"]
    assert members.followers["odd"].is_up
    assert members.notes["fleet writing"].startswith("odd cannot be asked: ")
    members.take(Of("odd", Gone()))
    assert members.notes == {}
    members.take(Of("odd", FeedState(1.0, "a.1", ("s1",))))
    (spool.home / "links/odd").unlink()
    members.take(Of("odd", FeedChange(2.0, "a.2", (), (), ())))
    assert members.notes == {}


@pytest.mark.files
def test_a_machine_that_is_forgotten_goes_on_where_it_was(tmp_path: Path) -> None:
    """Otherwise old changes would be told again; of an unknown machine nothing is told."""
    spool = made(tmp_path)
    members = Members(spool, {"dev": "abc.5"}, lambda: None)

    def take(machine: str, what: OfOne) -> None:
        members.take(Of(machine, what))

    take("dev", FeedChange(1.0, "abc.90", (), (), ()))
    assert members.followers["dev"].cursor == "abc.90"
    take("dev", Gone())
    take("other", Gone())
    assert members.followers == {}
    said = [path.read_text() for path in spool.new.iterdir() if '"gone"' in path.read_text()]
    assert ["dev" in text for text in said] == [True]
    take("dev", FeedChange(2.0, "abc.91", (), (), ()))
    assert members.followers["dev"].cursor == "abc.91"
    take("dev", Gone())
    assert members._cursors["dev"] == "abc.91"


@pytest.mark.files
@pytest.mark.parametrize("known", ["db.400", "db.10", "", "other.5"])
def test_of_a_state_in_many_lines_only_what_is_new_is_announced(tmp_path: Path, known: str) -> None:
    """The same holds for a state in one line; a row never comes before its transitions."""
    spool = made(tmp_path)
    members = Members(spool, {"dev": known}, lambda: None)
    rows = [a_row(f"s{n}", "blocked", detail="x" * 300) for n in range(1000)]
    moved = tuple(Moved(n + 1, 1.0, f"s{n}", "working", "blocked", live=True) for n in range(1000))
    ids = tuple(row.session_id for row in rows)
    lines = [*feed.of("dev", FeedState(9.0, "db.1000", ids, tuple(rows), moved))]
    assert len(lines) > 1 and max(map(len, lines)) < LONGEST
    for line in lines:
        said = read(line)
        assert isinstance(said, Of)
        cursor = getattr(said.said, "cursor", "")
        assert cursor == ("db.1000" if line is lines[-1] else "db.0")
        members.take(said)
    new = {n for n in range(1000) if known.startswith("db.") and n + 1 > int(known[3:])}
    texts = [path.read_text() for path in spool.new.iterdir()]
    told = [given["far"] for text in texts if "row" in (given := json.loads(text)).get("far", {})]
    assert len(told) == 1000
    assert new == {int(x["row"]["session_id"][1:]) for x in told if "found" not in x}


@pytest.mark.files
def test_the_program_may_start_again_before_its_machines_are_shown_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health has the outage at once, and the rows a while later."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    members = Members(made(tmp_path), {}, lambda: None)
    members.take(FeedState(1.0, "", ()))
    members.take(Of("dev", FeedState(1.0, "a.1", ("s1",))))
    members.lose("it has ended")
    assert members.notes["fleet"].endswith(": it has ended")
    assert not members.is_up and members.followers["dev"].is_up
    now += 5.0
    members.lose("it has ended")
    assert members.followers["dev"].is_up
    now += 5.0
    members.lose("it has ended")
    assert not members.followers["dev"].is_up
    members.take(FeedState(1.0, "", ()))
    members.take(Of("dev", FeedProblem("it publishes nothing")))
    assert members.notes == {
        "fleet machines": "dev: not followed now; see `bellboard fleet status`"
    }
