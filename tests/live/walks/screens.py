"""Compare screens with session files: a dialog must be open exactly while the file waits."""

from __future__ import annotations

from typing import Final

from live.claude import ClaudeStage
from rig.agents.agent import spoken
from rig.beside import Beside

EVERY: Final = 1.0  # seconds; a difference is reported if it is seen twice in a row


class Screens(Beside):
    """While open, checks each terminal at intervals."""

    def __init__(self, stage: ClaudeStage) -> None:
        super().__init__(self._look)
        self.disagreements: list[str] = []
        self._stage = stage
        self._odd: dict[int, int] = {}  # process → times in a row

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            for agent in list(self._stage.clis):
                before = self._stage.witness.statuses.get(agent.pid)
                try:
                    text = agent.text()
                except AssertionError:  # its terminal is gone
                    continue
                if before is None or before != self._stage.witness.statuses.get(agent.pid):
                    continue
                asks = spoken(text) == "waiting"
                # Dialogs that the user opened have no common form.
                odd = asks != (before[0] == "waiting") and before[1] != "dialog open"
                times = self._odd[agent.pid] = self._odd.get(agent.pid, 0) + 1 if odd else 0
                if times == 2:
                    says = "asks" if asks else "asks nothing"
                    told = f"screen of {agent.pid} {says}, file {before}"
                    self.disagreements.append(told)
                    self._stage.witness.note(f"{told}\n{text}")
