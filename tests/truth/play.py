"""Scenes played, several at a time against one host, and what came of each."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rig import claude_code
from rig import home as homes
from rig.api import Api
from rig.loopback import Watch
from rig.scenarios import Failure, Scenario
from rig.waiting import PATIENCE, eventually
from truth.account import STANDS, Account, Line, delay, either, unsteady, wrong_times
from truth.listening import Published, Witness
from truth.scenes import Scene
from truth.stage import How, Stage

THINKS: Final = 1.0  # seconds that every answer takes: a status that is over at once proves nothing
UNKNOWN: Final = 10.0  # so long what may never be known is waited for
GONE: Final = 5.0  # longer than the bar for what ended, so that a miss is a figure


@dataclass(frozen=True)
class Row:
    """What came of a scene."""

    scene: Scene
    failure: str = ""  # it could not be played, or ended otherwise than it must
    otherwise: str = ""  # so it ended, where the evidence is not whole
    compared: float = 0.0  # seconds
    wrong: tuple[float, ...] = ()  # stretches
    delays: tuple[float, ...] = ()  # of each change
    unsteady: float = 0.0  # seconds that were wrong after they had been right
    left: float = 0.0  # seconds that it was listed after its end

    @property
    def agrees(self) -> float:
        """The share of the time."""
        return 1 - sum(self.wrong) / self.compared if self.compared else 1.0


@contextlib.contextmanager
def hall() -> Iterator[tuple[homes.Home, Api, Watch, Published]]:
    """What the scenes share: a board with its host, the fake API."""
    home = homes.build()
    try:
        with Api() as api, Watch() as watch:
            api.scenarios = {name: slowed(turns) for name, turns in api.scenarios.items()}
            published = Published(home)
            try:
                yield home, api, watch, published
            finally:
                published.close()
    finally:
        homes.remove(home)


def slowed(turns: Scenario) -> Scenario:
    """The same scenario of a model that thinks a while."""
    return tuple(
        turn if isinstance(turn, Failure) else replace(turn, before=max(turn.before, THINKS))
        for turn in turns
    )


def play(
    scenes: Sequence[Scene],
    how: How,
    jobs: int = 4,
    tell: Callable[[Row], None] = lambda row: None,
    keep: Path | None = None,
) -> list[Row]:
    """A row for each scene that this CLI knows; `keep`: a folder for the traces."""
    known = [s for s in scenes if claude_code.numbers(how.version) >= s.since]
    with hall() as (home, api, watch, published), ThreadPoolExecutor(jobs) as pool:

        def one(scene: Scene) -> Row:
            row = _played(scene, how, home.bellboard, api, watch, published, keep)
            tell(row)
            return row

        rows = list(pool.map(one, known))
        # Agents of others on this machine are found among the processes, and are not ours.
        left = {i: s for i, s in published.listed.items() if not i.startswith("process-")}
        if left:
            rows.append(Row(Scene("nothing left behind", lambda _: None, None), str(left)))
        return rows


def _played(
    scene: Scene,
    how: How,
    board: Path,
    api: Api,
    watch: Watch,
    published: Published,
    keep: Path | None,
) -> Row:
    home = homes.build()
    failure = otherwise = ""
    with Witness(home) as witness:
        stage = Stage(how, home, api, watch, published, witness, board)
        try:
            scene.play(stage)
            if scene.final is not None:
                try:
                    stage.lasts(scene.final, PATIENCE if how.is_seen else UNKNOWN)
                except AssertionError:
                    if how.is_seen:
                        raise
                    otherwise = str(stage.shown())
                stage.leave()
            for agent in stage.agents:
                stage.ends(agent)
        except Exception as error:  # any: it is the row's failure, and the others go on
            failure = f"{type(error).__name__}: {error}"
        finally:
            stage.close()
        trace = witness.trace()
        mine = {x["hook"]["session_id"] for x in trace if "hook" in x}
        with contextlib.suppress(AssertionError):
            eventually(lambda: not mine & published.listed.keys(), within=GONE)
    changes = [c for c in list(published.changes) if c["session_id"] in mine]
    if keep:
        told = [{"t": c["t"], "published": c} for c in changes]
        lines = sorted([*trace, *told], key=lambda x: x["t"])
        name = scene.name.replace("/", "").replace(" ", "-")
        (keep / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    homes.remove(home)
    row = Row(scene, failure, otherwise)
    return judged(row, trace, changes, witness.ended) if trace else row


def judged(row: Row, trace: list[Line], changes: list[Line], ended: dict[int, float]) -> Row:
    """The figures of a scene that was played."""
    stood = [x for x in either(Account(trace).stretches) if x.end - x.start > STANDS]
    compared = [x.compared for x in stood]
    gone = max(ended.values(), default=changes[-1]["t"] if changes else 0.0)
    last = {c["session_id"]: c for c in changes}.values()
    return replace(
        row,
        compared=sum(x.end - x.start for x in compared),
        wrong=tuple(w for x in compared for w in wrong_times(x, changes)),
        delays=tuple(delay(x, changes) for x in stood),
        unsteady=sum(unsteady(x, changes) for x in compared),
        left=max([0.0, *(c["t"] - gone if c["to"] is None else GONE for c in last)]),
    )
