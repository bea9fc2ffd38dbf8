"""An update replaces the files of the plugin while a host runs, and the host needs one of them."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bellboard import remote
from bellboard.agents import registry
from bellboard.agents.registry import KEYS
from bellboard.core.deadlines import NEVER
from bellboard.hosting.host import Housekeeping, Loading
from bellboard.hosting.jobs import Attempts
from bellboard.storage.event_file import MAGIC
from rig.clock import Clock
from rig.host.hosting import Make, put, put_raw, statuses
from rig.waiting import PATIENCE

OPENCODE = MAGIC + (
    b"agent=opencode\0event=chat.message\0pid=0\0\0"
    b'{"type": "chat.message", "properties": {"sessionID": "s1", "text": "do it"}}'
)


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    """No module is loaded yet, and a failure here fails no other test."""
    registry._loaded.cache_clear()
    yield
    registry.try_again()


class Failing(ModuleType):
    """A module that cannot be loaded now."""

    why: Exception = LookupError("of another version")
    tried = 0

    def __getattr__(self, name: str) -> Any:
        self.tried += 1
        raise self.why


def test_what_decodes_events_is_loaded_before_an_update_replaces_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Decoders follow the modules that all events need, and none loads while the host starts."""
    now = 0.5
    needed = "bellboard.hosting.decode"
    package, _, own = needed.rpartition(".")
    monkeypatch.setattr(sys.modules[package], own, import_module(needed))  # as it is afterwards
    monkeypatch.delitem(sys.modules, needed)
    monkeypatch.setattr("bellboard.hosting.host.clock", lambda: now)
    loading, loaded = Loading(), []
    while (wait := loading.run()) < NEVER:
        loaded.append(registry._loaded.cache_info().currsize)
        now += wait
    assert [0, *range(len(KEYS) + 1)] == loaded
    assert needed in sys.modules


def test_an_event_waits_if_an_update_replaced_what_decodes_it(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that was started before cannot load it, and says so; whoever can folds the event."""
    shared = make()
    spoken = "bellboard.agents.opencode.agent"
    monkeypatch.setitem(sys.modules, spoken, ModuleType(spoken))
    name = put_raw(shared.spool, OPENCODE, clock())
    put(shared.spool, "UserPromptSubmit", "after", clock() + 1)
    shared.turn(clock.advance(2))
    assert {"after": "working"} == statuses(shared.board)
    assert [name] == [file.name for file in shared.spool.new.iterdir()]
    assert {} == shared.spool.counts()["refused"]
    assert "restart this background process" in shared.notes["update"]
    counts = shared.spool.counts()
    assert (1, 0) == (counts["pending"], counts["stuck"])
    monkeypatch.delitem(sys.modules, spoken)
    connection = SimpleNamespace(spool=shared.spool, shared=shared, has_arrived=False)
    upkeep = Housekeeping(connection, Attempts())  # type: ignore[arg-type]
    upkeep.run()
    assert {} == upkeep.notes
    shared.turn(clock.advance(1))
    assert {"s1": "working", "after": "working"} == statuses(shared.board)
    assert "update" not in shared.notes


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, None])
def test_an_event_waits_if_the_system_cannot_load_what_decodes_it(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    """No file is to blame.  What the system lacks ends the step, and the next one tries again."""
    shared, spoken = make(), "bellboard.agents.opencode.agent"
    failing = Failing(spoken)
    failing.why = OSError(number, os.strerror(number)) if number else MemoryError()
    name = put_raw(shared.spool, OPENCODE, clock())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, spoken, failing)
        if number == errno.EIO:  # the disk's: not soon, but at the next rescan
            shared.turn(clock.advance(1))
            assert "Input/output error" in shared.notes["update"]
            shared.try_again()
        else:
            with pytest.raises(type(failing.why)):
                shared.turn(clock.advance(1))
    assert [name] == [file.name for file in shared.spool.new.iterdir()]
    shared.turn(clock.advance(1))
    assert {"s1": "working"} == statuses(shared.board)
    assert {} == shared.spool.counts()["refused"]


def test_what_cannot_be_loaded_is_tried_once_for_all_events_until_the_next_rescan(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each of thousands that wait would take as long as that."""
    shared, failing = make(), Failing("spoken")
    monkeypatch.setitem(sys.modules, "bellboard.agents.opencode.agent", failing)
    for expected in (1, 2):
        for _ in range(10):
            put_raw(shared.spool, OPENCODE, clock())
        shared.turn(clock.advance(1))
        shared.turn(clock.advance(1))
        assert expected == failing.tried
        registry.try_again()
        shared.try_again()
    arrived = shared.spool.new / put(shared.spool, "UserPromptSubmit", "after", clock())
    shared.turn(clock.advance(1), {str(arrived)})
    assert failing.tried == 3  # all that waits is tried, not only what arrived
    assert "update" in shared.notes
    assert 20 == shared.spool.counts()["pending"]


def test_an_event_waits_if_no_event_can_be_decoded(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update may have replaced the decoder of all events by one that lacks a module."""
    shared, name = make(), "bellboard.hosting.decode"
    put(shared.spool, "UserPromptSubmit", "s", clock())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, name, Failing(name))
        shared.turn(clock.advance(1))
        assert "of another version" in shared.notes["update"]
    assert {} == shared.spool.counts()["refused"]
    shared.try_again()
    shared.turn(clock.advance(1))
    assert {"s": "working"} == statuses(shared.board)


def test_a_request_is_refused_if_what_carries_it_out_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neovim waits for the reply."""
    told: list[tuple[object, ...]] = []
    nvim = SimpleNamespace(exec_lua=lambda *given, async_: told.append(given))
    monkeypatch.setattr(remote, "_plugins", [])
    errands = Failing("errands")
    errands.why = PermissionError(errno.EACCES, "Permission denied", "errands.py")
    monkeypatch.setitem(sys.modules, "bellboard.hosting.errands", errands)
    asyncio.run(remote.Bellboard(nvim)._run(7, "request", {}))
    refused = {"ok": False, "why": "Permission denied: errands.py"}
    assert told == [(remote.REPLY, 7, refused)]


def test_a_host_that_cannot_start_ends_even_if_what_words_it_cannot_be_loaded() -> None:
    """Neovim starts it again; one that stayed would never show anything."""
    code = (
        "import sys; from bellboard import remote\n"
        "sys.modules['bellboard.system.lacking'] = None\n"
        "try: remote._die(PermissionError(13, 'Permission denied', 'host.py'))\n"
        "except Exception: sys.exit(0)\n"  # as pynvim handles what a method raises
    )
    run = [sys.executable, "-c", code]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, "Permission denied: 'host.py'" in ended.stderr) == (1, True)
