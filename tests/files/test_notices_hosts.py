"""Notifications with several hosts: each once per machine, by the editor in front."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.core.board import Board
from bellboard.core.notices import Notice
from bellboard.hosting.callbacks import Commands
from bellboard.hosting.jobs import Attempts
from bellboard.hosting.notify import Notifier
from bellboard.storage.spool import Spool
from bellboard.storage.store import Editor, Store
from rig.home import Home
from rig.host.far_feed import FarFeed
from rig.host.hosting import RecordedHost, begins, opened
from rig.host.ringing import Desktop
from rig.machines.ssh import set_followed
from rig.waiting import PATIENCE, eventually, leniency

Start = Callable[..., RecordedHost]


def config(name: str, desktop: float = 0, **more: Any) -> dict[str, Any]:
    """Return options that notify the desktop of blocked sessions after a delay."""
    ladder = {"notify": False, "desktop": desktop, "command": False}
    return {
        "server": f"/nowhere/{name}",
        "notices": {"desktop": "notify-send", "blocked": ladder, "min_turn": 0, **more},
    }


@pytest.fixture
def desktop(home: Home) -> Desktop:
    return Desktop(home)


def becomes(spool: Spool, sid: str, status: str, *hosts: RecordedHost) -> None:
    """Correct its status by hand; wait until these hosts show it."""
    spool.write({"t": time.time(), "set": {"session_id": sid, "status": status}})
    for host in hosts:
        eventually(lambda host=host: host.shown.get(sid) == status, f"{sid} {status}")


def test_three_hosts_send_one_notification_and_show_one_float(
    start: Start, spool: Spool, desktop: Desktop
) -> None:
    """The one that had focus last shows it; all three know."""
    hosts = [start(name, config=config(name)) for name in ("one", "two", "three")]
    begins(spool, "api")
    becomes(spool, "api", "blocked", *hosts)
    desktop.shows("api needs you")
    becomes(spool, "api", "working", *hosts)
    begins(spool, "web")
    becomes(spool, "web", "blocked", *hosts)
    desktop.shows("api needs you", "web needs you")
    eventually(lambda: hosts[2].last("float") == ["web"], "the float")
    fronts = [False, False, True]
    eventually(lambda: [h.last("front") for h in hosts] == fronts, "the one in front")
    eventually(lambda: [h.last("float") for h in hosts[:2]] == [[], []], "no other float")
    assert {h.last("in_front") for h in hosts} == {"/nowhere/three"}
    spool.write({"t": time.time(), "park": {"session_id": "web", "parked": True}})
    eventually(lambda: hosts[2].last("left_out") == {"web": "parked"}, "why it is not in the float")
    assert hosts[0].last("left_out") == {}


def test_another_host_sends_what_a_dead_one_should_have_sent(
    home: Home, start: Start, spool: Spool, desktop: Desktop
) -> None:
    """No notice is lost or sent twice."""
    first = start("first", config=config("first", PATIENCE))
    second = start("second", config=config("second", 2.0))
    begins(spool, "api")
    becomes(spool, "api", "blocked", first, second)
    first.kill()
    desktop.shows("api needs you")
    becomes(spool, "api", "working", second)
    begins(spool, "web")
    becomes(spool, "web", "blocked", second)
    desktop.shows("api needs you", "web needs you")
    with opened(home.bellboard) as shared:
        rung = shared.store.notices(10)
    assert [(r.channel, r.session_id, r.pid) for r in rung] == [
        ("desktop", "api", second.pid),
        ("desktop", "web", second.pid),
    ]


def followed(home: Home) -> tuple[FarFeed, Path]:
    """Follow a machine with a session at work; return it, and the file of its reply."""
    dev = FarFeed(home.root / "dev")
    dev.moved("api", "working", project="api")
    dev.say(dev.hello(), dev.state())
    set_followed(home.bellboard, {"dev": dev.command})
    return dev, dev.folder / "reply"


def test_a_question_that_is_answered_before_its_machine_replies_notifies_nobody(
    home: Home, start: Start, spool: Spool, desktop: Desktop
) -> None:
    dev, reply = followed(home)
    os.mkfifo(reply)  # it replies once this is written to
    host = start("host", config=config("host", min_interval=0))
    eventually(lambda: host.shown == {"dev/claude/api": "working"}, "dev")
    dev.say(dev.moved("api", "blocked", project="api"))
    eventually(lambda: [x for x in dev.asked if x["do"] == "claim"], "a request")
    dev.say(dev.moved("api", "working", project="api"))
    eventually(lambda: host.shown == {"dev/claude/api": "working"}, "the answer")
    reply.write_text('{"ok": true, "granted": true}')
    begins(spool, "web")
    becomes(spool, "web", "blocked", host)
    desktop.shows("web needs you")


def test_a_host_that_dies_before_a_machine_replies_leaves_its_notification_to_the_others(
    home: Home, start: Start, spool: Spool, desktop: Desktop
) -> None:
    """The machine of a session grants it to all of us, and one of us sends it."""
    dev, reply = followed(home)
    reply.write_text('{"ok": false, "why": "its database is busy; try again"}')
    keeper = start("keeper")
    hosts = [start(name, config=config(name, min_interval=0)) for name in ("first", "second")]
    for host in (keeper, *hosts):
        eventually(lambda host=host: host.shown == {"dev/claude/api": "working"}, "dev")
    dev.say(dev.moved("api", "blocked", project="api"))
    eventually(lambda: [x for x in dev.asked if x["do"] == "claim"], "a request")
    with opened(home.bellboard) as shared:
        claimed = [x.pid for x in shared.store.notices(10)]
    dying = next((host for host in hosts if host.pid in claimed), hosts[0])
    dying.kill()
    reply.write_text('{"ok": true, "granted": true}')
    desktop.shows("dev:api needs you")
    hosts.remove(dying)
    hosts.append(start("third", config=config("third", min_interval=0)))
    eventually(lambda: hosts[1].shown == {"dev/claude/api": "blocked"}, "dev")
    dev.say(dev.moved("api", "working", project="api"))
    dev.say(dev.moved("api", "blocked", project="api"))
    desktop.shows("dev:api needs you", "dev:api needs you")
    asked = {x["token"] for x in dev.asked if x["do"] == "claim"}
    assert len(asked) == 2, "one right for each question"


def notifies(spool: Spool, test: Callable[[Notifier, Store], None], **ours: Any) -> None:
    """Run a test on what a host has for its notifications."""

    async def main() -> None:
        store, jobs = Store(spool.home), (Commands(), Attempts(), lambda *_: None)
        notifier = Notifier(spool.home, {"notices": {}, **ours}, {}, os.getpid(), *jobs)
        test(notifier, store)
        notifier.close()
        store.close()

    asyncio.run(main())


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_focus_from_before_the_clock_was_set_back_does_not_last(
    spool: Spool, is_ours: bool
) -> None:
    """Neither that of our editor nor that of another one, until the clock gets there again."""
    later = time.time() + 7200
    other = Editor(os.getppid(), "/nowhere/other", "", "", time.time() - 1 if is_ours else later)

    def test(notifier: Notifier, store: Store) -> None:
        with store.transaction() as tx:
            tx.set_editor(other)
        if is_ours:
            assert notifier._editor is not None
            notifier._editor = notifier._editor._replace(focused=later)
        notifier.focus(time.time())
        notifier.act(store, Board())
        assert notifier.shown()["front"]
        with store.transaction() as tx:
            tx.set_editor(other._replace(focused=time.time()))
        notifier.act(store, Board())
        assert not notifier.shown()["front"]

    notifies(spool, test, server="/nowhere/ours")


def test_a_clock_set_back_is_noticed(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def test(notifier: Notifier, store: Store) -> None:
        with monkeypatch.context() as patch:
            later = time.time() + 7200
            patch.setattr("bellboard.hosting.notify.time.time", lambda: later)
            notifier.act(store, Board())
            notifier.notices.sent(Notice(1, "s", "desktop", "blocked"), later)
        notifier.act(store, Board())
        assert notifier.notices._last["s", "desktop"] <= time.time()

    notifies(spool, test)


def test_quiet_hours_follow_the_time_zone(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a notebook that travels while a host runs; so do the times that it shows."""

    def test(notifier: Notifier, store: Store) -> None:
        for zone, hours in (("UTC-9", 9), ("UTC+5", -5)):
            monkeypatch.setenv("TZ", zone)
            notifier.act(store, Board())
            assert notifier.notices.zone == time.localtime().tm_gmtoff == hours * 3600

    try:
        notifies(spool, test)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_editor_without_a_screen_is_not_in_front(spool: Spool) -> None:
    """Not even if it is the only one; a focus puts it in front again."""
    other = Editor(os.getppid(), "/nowhere/other", "", "", time.time() - 60)

    def test(notifier: Notifier, store: Store) -> None:
        def is_front(*others: Editor) -> bool:
            with store.transaction() as tx:
                tx.drop_editor(other.pid)
                for each in others:
                    tx.set_editor(each)
            notifier.act(store, Board())
            return bool(notifier.shown()["front"])

        assert is_front(other)
        notifier.focus(0)
        assert not is_front(other)
        assert not is_front()
        assert [e.focused for e in store.editors()] == [0]
        notifier.focus(time.time())
        assert is_front(other._replace(focused=0))

    notifies(spool, test, server="/nowhere/ours")


def test_the_float_moves_to_the_previous_editor_when_one_is_closed(
    start: Start, spool: Spool, desktop: Desktop
) -> None:
    """At once, because its end is watched; its views end too."""
    one, two = (start(name, config=config(name)) for name in ("one", "two"))
    begins(spool, "api")
    spool.write({"t": time.time(), "view": {"session_id": "web"}, "viewer": "nvim /nowhere/two"})
    becomes(spool, "api", "blocked", one, two)
    begins(spool, "web")
    becomes(spool, "web", "blocked", one, two)
    eventually(lambda: two.last("float") == ["api"], "web is in view")
    two.kill()
    eventually(lambda: one.last("float") == ["api", "web"], "the float")
    assert one.last("front") is True


def test_twenty_rapid_transitions_send_one_notification(
    start: Start, spool: Spool, desktop: Desktop
) -> None:
    host = start("host", config=config("host", min_interval=60))
    begins(spool, "api")
    for _ in range(10):
        becomes(spool, "api", "blocked", host)
        becomes(spool, "api", "working", host)
    begins(spool, "web")
    becomes(spool, "web", "blocked", host)
    desktop.shows("api needs you", "web needs you")


def test_sessions_answered_or_in_view_send_no_notification(
    start: Start, spool: Spool, desktop: Desktop
) -> None:
    """Sessions are answered within the delay, looked at, parked, or snoozed."""
    host = start("host", config=config("host", min(6.0, 2.0 * leniency(1.0))))
    begins(spool, "answered")
    becomes(spool, "answered", "blocked", host)
    becomes(spool, "answered", "working", host)
    for sid in ("viewed", "parked", "snoozed", "api"):
        begins(spool, sid)
    now = time.time()
    spool.write({"t": now, "view": {"tmux": "/t", "pane": "%1"}, "viewer": "tmux"})
    spool.write({"t": now, "view": {"session_id": "viewed"}, "viewer": "nvim"})
    spool.write({"t": now, "park": {"session_id": "parked", "parked": True}})
    spool.write({"t": now, "snooze": {"session_id": "snoozed", "until": now + 900}})
    for sid in ("viewed", "parked", "snoozed"):
        becomes(spool, sid, "blocked", host)
    becomes(spool, "api", "blocked", host)
    desktop.shows("api needs you")
    assert host.last("float") == ["api"]


def test_quiet_is_quiet_in_every_host(start: Start, spool: Spool, desktop: Desktop) -> None:
    """The mode is shared, and the float stays."""
    noisy, quiet = start("noisy", config=config("noisy")), start("quiet", config=config("quiet"))
    with opened(spool.home) as shared, shared.store.transaction() as tx:
        tx.set_option("mode", "quiet", 1, time.time())
    spool.write({"t": time.time(), "tick": {}})
    for host in (noisy, quiet):
        eventually(lambda host=host: host.last("mode") == "quiet", "the mode")
    begins(spool, "api")
    becomes(spool, "api", "blocked", noisy, quiet)
    eventually(lambda: quiet.last("float") == ["api"], "the float")
    with opened(spool.home) as shared, shared.store.transaction() as tx:
        tx.set_option("mode", "normal", 1, time.time())
    spool.write({"t": time.time(), "tick": {}})
    begins(spool, "web")
    for host in (noisy, quiet):
        eventually(lambda host=host: host.last("mode") == "normal", "the mode")
    becomes(spool, "web", "blocked", noisy, quiet)
    desktop.shows("web needs you")


def test_a_host_without_an_editor_notifies_if_configured(
    start: Start, spool: Spool, desktop: Desktop
) -> None:
    """Such a host has no float and no say in the mode."""
    settings = config("x")["notices"]
    host, mute = start("serve", config={"notices": settings}), start("watch")
    begins(spool, "api")
    becomes(spool, "api", "blocked", host, mute)
    desktop.shows("api needs you")
    assert [host.last("float"), mute.last("float")] == [None, None]
