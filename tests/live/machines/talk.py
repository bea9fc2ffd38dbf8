"""A prompt into a session on another machine, its whole reply, and an interrupt."""

from __future__ import annotations

import json

from live.answers.sending import squeezed
from live.machines.place import becomes, laptops, stations
from rig.agents.api import Request
from rig.waiting import eventually

TEXT = "first line\n  second: 漢 😀 $(x)\n" + "words of some length\n" * 2000


def talk() -> None:
    """The model there gets what was sent here, once."""
    with stations("dev") as (dev,), laptops() as (laptop,):
        cli = dev.start()
        sid = dev.id(cli)
        laptop.follow(dev)
        host = laptop.host()
        becomes(host, sid, "idle")
        said = json.loads(laptop.bellboard("send", sid, TEXT, "--submit", "--json"))
        assert said.get("outcome") == "taken", said
        wanted = squeezed(TEXT)

        def heard() -> list[Request]:
            return [r for r in dev.api.requests if wanted in squeezed(r.said)]

        assert len(eventually(heard, "the model's request")) == 1
        becomes(host, sid, "completed")
        shown = laptop.bellboard("show", sid)
        assert "Hello from the fake model." in shown, shown
        assert "second: 漢" in shown, shown
        assert json.loads(laptop.bellboard("send", sid, "play:slow", "--submit", "--json"))["ok"]
        becomes(host, sid, "working")
        cli.shows("word2")
        said = json.loads(laptop.bellboard("interrupt", sid, "--json"))
        assert said.get("outcome") == "taken", said
        becomes(host, sid, "idle")
        cli.pane.type("half a thought")
        said = json.loads(laptop.bellboard("send", sid, "more", "--submit", "--json"))
        assert "half a thought" in said["why"], said
        print(f"   sent {len(TEXT)} characters, interrupted, refused: {said['why']}", flush=True)
