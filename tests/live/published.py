"""What is shown: the changes that `bellboard watch --json` prints, with their time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Final

from bellboard.storage.spool import Spool
from live.report import Line
from rig.home import Home
from rig.waiting import eventually

OURS: Final = re.compile(r"\(\w+\.py:\d+\)")  # in a health note: a failure of our code


class Published:
    """A host without an editor, and the changes that it prints, with the time of reading."""

    def __init__(self, home: Home) -> None:
        self.changes: list[Line] = []
        self._home = home
        self._start()

    @property
    def pid(self) -> int:
        """Return the host's process id."""
        return self._host.pid

    def _start(self) -> None:
        self._errors = (self._home.root / "watch.stderr").open("a+")
        self._host = subprocess.Popen(
            [sys.executable, "-m", "bellboard", "watch", "--json"],
            env=self._home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._reader = threading.Thread(target=self._read, name="published")
        self._reader.start()
        beacon = self._home.bellboard / "hosts" / str(self._host.pid)
        eventually(beacon.exists, "a host")

    def _read(self) -> None:
        assert self._host.stdout
        for text in self._host.stdout:
            now = time.time()
            self.changes.append({**json.loads(text), "t": now})

    def restart(self, number: int = signal.SIGKILL) -> None:
        """End the host with a signal, and start another."""
        self._host.send_signal(number)
        self._over()
        self._start()
        found = {row["session_id"]: row["status"] for row in self.rows()}
        known = self.listed
        for sid in found.keys() | known.keys():
            change = {"session_id": sid, "from": known.get(sid), "to": found.get(sid)}
            self.changes.append({**change, "rule": "found", "t": time.time()})

    def rows(self) -> list[Line]:
        """Return the rows of `bellboard list --json`."""
        listed = subprocess.run(
            [sys.executable, "-m", "bellboard", "list", "--json"],
            env=self._home.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        return list(json.loads(listed.stdout)["sessions"])

    def refused(self) -> list[str]:
        """Return what failed in the host because of errors in our code."""
        state = Spool(self._home.bellboard)
        reasons = [why.read_text() for why in sorted(state.new.parent.glob("bad/*.why"))]
        notes = state.hosts.notes_of(self.pid).items()
        return reasons + [f"{job}: {note}" for job, note in notes if OURS.search(note)]

    @property
    def listed(self) -> dict[str, str]:
        """Return the status of each session, as of the last line."""
        known = {c["session_id"]: c["to"] for c in list(self.changes)}
        return {sid: status for sid, status in known.items() if status}

    def close(self) -> None:
        """Stop it."""
        self._host.terminate()
        self._over()

    def _over(self) -> None:
        self._host.wait(20)
        self._reader.join()
        if self._host.stdout:
            self._host.stdout.close()
        self._errors.close()
