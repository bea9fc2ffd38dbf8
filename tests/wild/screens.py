"""The screens as another witness: a dialog is there if, and only if, the session file waits."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final

from rig.agent import spoken
from truth.stage import Stage

EVERY: Final = 1.0  # seconds; what is otherwise twice running is told


class Screens:
    """While open: looks at each terminal now and then."""

    def __init__(self, stage: Stage) -> None:
        self.disagreements: list[str] = []
        self._stage = stage
        self._odd: dict[int, int] = {}  # process → times running
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="screens")

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            for agent in list(self._stage.agents):
                before = self._stage.witness.statuses.get(agent.pid)
                try:
                    text = agent.text()
                except AssertionError:  # its terminal is gone
                    continue
                if before is None or before != self._stage.witness.statuses.get(agent.pid):
                    continue
                asks = spoken(text) == "waiting"
                # Dialogs that the user opens look like nothing else.
                odd = asks != (before[0] == "waiting") and before[1] != "dialog open"
                times = self._odd[agent.pid] = self._odd.get(agent.pid, 0) + 1 if odd else 0
                if times == 2:
                    says = "asks" if asks else "asks nothing"
                    told = f"screen of {agent.pid} {says}, file {before}"
                    self.disagreements.append(told)
                    self._stage.witness.note(f"{told}\n{text}")

    def __enter__(self) -> Screens:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
