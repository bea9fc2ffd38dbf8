"""Keeps the link to a machine for a test: replies as instructed, and records what was asked."""

from __future__ import annotations

import threading
from typing import Any

from bellboard.storage import machines
from bellboard.storage.machines import Mailbox
from bellboard.storage.spool import Spool
from rig.home import Home

Reply = dict[str, Any]


class LinkKeeper:
    """Stands in for the host that keeps the link to dev."""

    def __init__(self, home: Home) -> None:
        Spool(home.bellboard).prepare()
        self.replies: dict[str, Reply] = {}
        self.asked: list[Reply] = []
        self.claim = machines.lock_of(home.bellboard, "dev")
        assert self.claim.take()
        self._mailbox = Mailbox(home.bellboard, "dev")
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(0.005):
            for name, request in self._mailbox.take():
                self.asked.append(request)
                self._mailbox.reply(name, self.replies.get(request["do"], {"ok": True}))

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self.claim.close()
