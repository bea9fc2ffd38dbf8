"""Play scenes, several at a time with one host, and return their results."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from live.account import Account, Line, most_urgent
from live.listening import Published, Witness
from live.listing import Listing
from live.own.score import of_processes
from live.rows import GONE, Row, judged
from live.scene import GONE as IS_GONE
from live.scene import Scene
from live.stage import CLOSING, SOON, How, Stage
from rig import home as homes
from rig.api import Api
from rig.home import Home
from rig.loopback import Watch
from rig.scenarios import Failure, Scenario
from rig.waiting import eventually

THINKS: Final = 1.0  # seconds that every answer takes, so that statuses last
UNKNOWN: Final = 10.0  # seconds to wait for a status that may never be known


@dataclass(frozen=True)
class Hall:
    """Shared by scenes: a home with a host, and the fake API."""

    home: Home
    api: Api
    watch: Watch
    published: Published


@contextlib.contextmanager
def hall() -> Iterator[Hall]:
    """Provide the hall while scenes are played."""
    home = homes.build()
    try:
        with Api() as api, Watch() as watch:
            api.scenarios = {name: slowed(turns) for name, turns in api.scenarios.items()}
            published = Published(home)
            try:
                yield Hall(home, api, watch, published)
            finally:
                published.close()
    finally:
        homes.remove(home)


def slowed(turns: Scenario) -> Scenario:
    """Return a scenario with slower answers."""
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
    until: float = float("inf"),
    listing: bool = False,
) -> list[Row]:
    """Return a row for each scene that this CLI supports; `keep`: a folder for the traces.

    No scene starts after `until` (time.monotonic). With `listing`, the CLI's own listing is
    compared too, every few seconds.
    """
    how.fetch()
    known = [s for s in scenes if s.suits(how)]
    with hall() as shared, ThreadPoolExecutor(jobs) as pool:

        def one(scene: Scene) -> list[Row]:
            if time.monotonic() > until or CLOSING.is_set():
                return []
            row = _played(scene, how, shared, keep, listing)
            tell(row)
            return [row]

        rows = [row for one_or_none in pool.map(one, known) for row in one_or_none]
        # The host also finds other agents that run on this machine.
        listed = shared.published.listed
        left = {i: s for i, s in listed.items() if not i.startswith("process-")}
        if left:
            rows.append(Row("nothing left behind", str(left)))
        if refused := shared.published.refused():
            rows.append(Row("nothing refused", "\n".join(refused)))
        return rows


def _played(scene: Scene, how: How, hall: Hall, keep: Path | None, listing: bool) -> Row:
    home = homes.build()
    failure = otherwise = ""
    published, host_home = hall.published, hall.home
    if not (
        how.hooked or how.is_alone
    ):  # only a host of this home knows where its session files are
        published, host_home = Published(home), home
    with Witness(home) as witness, Listing(home, how.version, witness, listing) as third:
        stage = Stage(how, home, hall.api, hall.watch, published, witness, host_home.bellboard)
        try:
            scene.play(stage)
            if scene.final != IS_GONE:
                try:
                    stage.lasts(scene.final, SOON if how.is_seen else UNKNOWN)
                except AssertionError:
                    if how.is_seen:
                        raise
                    otherwise = str(stage.shown())
                stage.leave()
            for agent in stage.agents:
                stage.ends(agent)
        except Exception as error:  # any kind: it is noted in the row, and the others continue
            failure = f"{type(error).__name__} at “{stage.step}”: {error}"
        finally:
            stage.close()
        trace = witness.trace()
        unnamed = stage.unnamed if how.is_alone else {}
        mine = unnamed.keys() or {x["hook"]["session_id"] for x in trace if "hook" in x}
        with contextlib.suppress(AssertionError):
            eventually(lambda: not mine & published.listed.keys(), within=GONE)
    if published is not hall.published:
        published.close()
    changes = [c for c in list(published.changes) if c["session_id"] in mine]
    if keep:
        write(keep / f"{how.version}-{slug(scene.name)}.jsonl", trace, changes)
    homes.remove(home)
    if not trace:
        return Row(scene.name, failure, otherwise)
    stood = most_urgent(Account(trace).stretches)
    if how.is_alone:
        stood = of_processes(trace)
        changes = [{**c, "session_id": str(unnamed[c["session_id"]])} for c in changes if unnamed]
    row = judged(scene.name, stood, changes, witness.ended)
    told = {"listed": third.compared, "disagreements": tuple(third.disagreements)}
    return replace(row, failure=failure, otherwise=otherwise, **told)


def slug(scene: str) -> str:
    """Return the name of a scene as a part of that of a file."""
    return scene.replace("/", "").replace(" ", "-")


def write(path: Path, trace: Sequence[Line], changes: Sequence[Line]) -> None:
    """Write a trace, with notes of what was published."""
    notes = [{"t": c["t"], "note": f"published {json.dumps(c)}"} for c in changes]
    lines = sorted([*trace, *notes], key=lambda x: x["t"])
    path.write_text("".join(json.dumps(x) + "\n" for x in lines))
