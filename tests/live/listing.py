"""Compare `claude agents --json` with the session files."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Final

from live.listening import Witness
from rig import claude_code
from rig.agent import QUIET
from rig.beside import Beside
from rig.home import Home

EVERY: Final = 5.0  # seconds: each call is a process that takes 0.2 s of a core
SINCE: Final = (2, 1, 197)  # the first version known to list interactive sessions
TIME: Final = 20.0


class Listing(Beside):
    """While open, runs it at intervals, and notes what neither the file before nor after says."""

    def __init__(self, home: Home, version: str, witness: Witness, asks: bool = True) -> None:
        super().__init__(self._ask)
        self.disagreements: list[str] = []
        self.compared = 0
        self._program = claude_code.executable(version)
        self._asks = asks and claude_code.numbers(version) >= SINCE
        self._home = home
        self._witness = witness

    def _ask(self) -> None:
        while self._asks and not self._over.wait(EVERY):
            before = self._witness.statuses
            listed = self.listed()
            if listed is None:
                continue
            after = self._witness.statuses
            for pid in before.keys() & after.keys():
                self.compared += 1
                said = listed.get(pid)
                if said not in (before[pid], after[pid]):
                    told = f"agents --json: {pid} {said}, file {before[pid]} → {after[pid]}"
                    self.disagreements.append(told)
                    self._witness.note(told)

    def listed(self) -> dict[int, tuple[str, str]] | None:
        """Return status and waitingFor of each process; None if the CLI did not answer."""
        try:
            done = subprocess.run(
                [str(self._program), "agents", "--json"],
                env={**self._home.env, **QUIET},
                cwd=self._home.project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIME,
                check=False,
            )
            rows: list[dict[str, Any]] = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            return None
        return {
            row["pid"]: (row.get("status", ""), row.get("waitingFor", ""))
            for row in rows
            if row.get("pid")
        }
