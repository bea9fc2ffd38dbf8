"""An update replaces the files of the plugin while a host runs, and the host needs one of them."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from bellboard.agents import dialects
from bellboard.agents.dialects import KEYS
from bellboard.core.deadlines import NEVER
from bellboard.hosting.loading import Loading
from bellboard.storage.header import MAGIC
from hosting import Make, put, put_raw, statuses
from rig.clock import Clock

pytestmark = pytest.mark.files


def test_what_decodes_events_is_loaded_before_an_update_replaces_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One after the other after what all events need, and none while the host starts."""
    now = 0.5
    needed = ("bellboard.hosting.decoding", "bellboard.core.shellwords")
    for name in needed:
        package, _, own = name.rpartition(".")
        monkeypatch.setattr(sys.modules[package], own, import_module(name))  # as it is afterwards
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("bellboard.hosting.loading.clock", lambda: now)
    loading, loaded = Loading(), []
    dialects._loaded.cache_clear()
    while (wait := loading.run()) < NEVER:
        loaded.append(dialects._loaded.cache_info().currsize)
        now += wait
    assert [0, 0, *range(len(KEYS) + 1)] == loaded
    assert sys.modules.keys() >= {*needed}


def test_an_event_waits_if_an_update_replaced_what_decodes_it(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that was started before cannot load it, and says so; whoever can folds the event."""
    clerk = make()
    spoken = "bellboard.agents.opencode.dialect.spoken"
    monkeypatch.setitem(sys.modules, spoken, ModuleType(spoken))
    dialects._loaded.cache_clear()
    head = b"agent=opencode\0event=session.created\0pid=0\0\0"
    name = put_raw(clerk.spool, MAGIC + head + b'{"session_id": "ses_1"}', clock())
    put(clerk.spool, "UserPromptSubmit", "after", clock() + 1)
    clerk.step(clock.advance(2))
    assert {"after": "working"} == statuses(clerk.board)
    assert [name] == [file.name for file in clerk.spool.new.iterdir()]
    assert {} == clerk.spool.counts()["refused"]
    assert "restart this background process" in clerk.notes["update"]
    counts = clerk.spool.counts()
    assert (1, 0) == (counts["pending"], counts["stuck"])
    monkeypatch.delitem(sys.modules, spoken)
    clerk.try_again()
    clerk.step(clock.advance(1))
    assert [] == list(clerk.spool.new.iterdir())
    assert "update" not in clerk.notes


def test_an_event_waits_if_no_event_can_be_decoded(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if an update had replaced what decodes them all, by what needs more than there is."""
    clerk, name = make(), "bellboard.hosting.decoding"

    class Replaced(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise LookupError("of another version")

    put(clerk.spool, "UserPromptSubmit", "s", clock())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, name, Replaced(name))
        clerk.step(clock.advance(1))
        assert "of another version" in clerk.notes["update"]
    assert {} == clerk.spool.counts()["refused"]
    clerk.try_again()
    clerk.step(clock.advance(1))
    assert {"s": "working"} == statuses(clerk.board)
