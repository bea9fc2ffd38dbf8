"""A large fleet: what is shown of it, and that it stays bounded."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.core.feed import Change, Hello, State
from bellboard.core.published import needs_somebody
from bellboard.core.row import Row
from bellboard.fleet.far import Gone, Said
from bellboard.fleet.followed import Followed
from bellboard.fleet.member import Joined
from bellboard.fleet.publisher import Shelf, Update, written
from bellboard.fleet.stored import Item
from bellboard.fleet.streams import TTL
from bellboard.fleet.subjects import Key
from bellboard.fleet.window import Window
from bellboard.hosting.mates import Mates
from bellboard.storage.machines import prepare
from fleets import a_row
from hosting import made
from rig.waiting import PATIENCE

pytestmark = pytest.mark.pure

MOST = 5
STATUSES = ("working", "idle", "blocked", "completed", "error", "")


def key_of(n: int) -> Key:
    return Key(f"m{n % 3}", "claude", f"s{n}")


class Reader:
    """What a host is told, and what it should know then."""

    def __init__(self, **settings: object) -> None:
        self.followed = Followed(Joined("nats://x", "t", "here", **settings))  # type: ignore[arg-type]
        self.followed.window = Window(MOST)
        self.rows: dict[tuple[str, str], Row] = {}
        self.seq = 0
        for n in range(3):
            beat = msgspec.json.encode({"type": "hello", "feed": 1, "machine": f"m{n}"})
            self.followed.row(Key(f"m{n}"), self.item(beat), 0.0)

    def item(self, data: bytes) -> Item:
        self.seq += 1
        return Item("", data, "" if data else "DEL", self.seq, float(self.seq))

    def put(self, n: int, status: str, **more: object) -> None:
        row = a_row(f"s{n}", status, **more) if status else None
        data = written(row, None, "") if row is not None else b""
        key = key_of(n)._replace(agent=str(more.get("agent", "claude")))
        self.followed.row(key, self.item(data), 0.0)

    def take(self) -> int:
        """Take what is said; return how many rows that told of."""
        count = 0
        for machine, said in self.followed.take(0.0):
            if isinstance(said, State):
                self.rows = {k: r for k, r in self.rows.items() if k[0] != machine}
            if isinstance(said, State | Change):
                for row in said.sessions:
                    self.rows[machine, row.session_id] = row
                count += len(said.sessions)
            for sid in said.removed if isinstance(said, Change) else ():
                del self.rows[machine, sid]  # a host is told of the end of what it knows
        return count


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(STATUSES)), max_size=60), st.data())
def test_whoever_needs_somebody_is_shown_and_the_rest_as_far_as_there_is_room(
    steps: list[tuple[int, str]], data: st.DataObject
) -> None:
    """Whatever comes and goes, and whenever it is read."""
    reader, there = Reader(), {}
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
    """Each shows all of them, or about as many as any other."""
    window, asking = Window(MOST), Counter(machines)
    for n, machine in enumerate(["evil"] * 2 * MOST + machines):
        window.put(Key(machine, "claude", f"s{n}"), a_row(f"s{n}", "blocked"))
    shown = Counter(key.machine for key in window._urgent)
    assert sum(shown.values()) == MOST
    assert all(shown[m] in (asking[m], *range(max(shown.values()) - 1, MOST)) for m in asking)


def test_a_question_that_is_left_out_comes_before_what_is_calm() -> None:
    """Once there is room."""
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
    """Until it is gone, or published in the place of another."""
    monkeypatch.setattr("bellboard.fleet.publisher.MOST", 2)
    shelf = Shelf("dev", "dev", Hello)
    shelf.take(Update([a_row(sid) for sid in "abcd"], full=True))
    shelf.take(Update([a_row(sid, "blocked") for sid in "cd"]))
    assert ["c", "d"] == sorted(key.session for key in shelf.left_out)
    shelf.take(Update([a_row("c")], removed=["a", "d"]))
    assert (set(), {"b", "c"}) == (shelf.left_out, {key.session for key in shelf.rows})
    shelf.take(Update([a_row("d")]))
    shelf.take(Update([a_row(sid) for sid in "ef"], full=True))
    assert set() == shelf.left_out


def test_what_is_left_out_costs_the_host_nothing() -> None:
    """Its changes are not told; only that there is more is."""
    reader = Reader()
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
    reader = Reader(agents=("claude",), repositories=("api",))
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


def test_a_machine_that_is_gone_for_long_gives_its_place_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As containers come and go; one that still publishes keeps it, and the rest is counted."""
    monkeypatch.setattr("bellboard.fleet.followed.MACHINES", 3)
    reader = Reader()
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
    """Such as one in the place of whose folder there is a file; health says so."""
    spool = made(tmp_path)
    (prepare(spool.home) / "odd").touch()
    mates = Mates(spool, {})
    said: list[tuple[str, Said]] = [(name, State(1.0, "a.1", ("s1",))) for name in ("odd", "dev")]
    asyncio.run(asyncio.wait_for(mates.take(said), PATIENCE))
    assert [*mates.followers] == ["odd", "dev"]
    assert mates.followers["odd"].is_up
    assert mates.why.startswith("odd cannot be asked: ")
    asyncio.run(mates.take([("odd", Gone())]))
    assert mates.why == ""
    asyncio.run(mates.take(said))
    (spool.home / "links/odd").unlink()
    asyncio.run(mates.take([("odd", Change(2.0, "a.2", (), (), ()))]))
    assert mates.why == ""


@pytest.mark.files
def test_a_machine_that_is_forgotten_goes_on_where_it_was(tmp_path: Path) -> None:
    """Otherwise what was told of it would be told again; of one that is unknown nothing is said."""
    spool = made(tmp_path)
    mates = Mates(spool, {"dev": "abc.5"})

    def take(machine: str, what: Said) -> None:
        asyncio.run(mates.take([(machine, what)]))

    take("dev", Change(1.0, "abc.90", (), (), ()))
    assert mates.followers["dev"].cursor == "abc.90"
    take("dev", Gone())
    take("other", Gone())
    assert mates.followers == {}
    said = [path.read_text() for path in spool.new.iterdir() if '"gone"' in path.read_text()]
    assert ["dev" in text for text in said] == [True]
    take("dev", Change(2.0, "abc.91", (), (), ()))
    assert mates.followers["dev"].cursor == "abc.91"
    take("dev", Gone())
    assert mates._cursors["dev"] == "abc.91"
