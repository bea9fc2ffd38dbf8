"""Play scenes: several at a time on Claude Code, with one host; or one on another CLI."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from live.account import GONE, Account, Line, judged, most_urgent
from live.claude import ClaudeStage
from live.own.score import of_processes
from live.published import Published
from live.report import Row
from live.scene import FREE, IS_GONE, Scene
from live.screens import ScreenStage, judged_by_screens
from live.stage import CLOSING, SOON, How
from live.stands import Stand
from live.witness import Listing, Witness
from rig import home as homes
from rig.agents.api import Api
from rig.agents.scenarios import Failure, Scenario
from rig.home import Home
from rig.machines.loopback import Watch
from rig.waiting import eventually, leniency

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
            api.scenarios = slowed(api.scenarios, THINKS)
            published = Published(home)
            try:
                yield Hall(home, api, watch, published)
            finally:
                published.close()
    finally:
        homes.remove(home)


def slowed(scenarios: dict[str, Scenario], seconds: float) -> dict[str, Scenario]:
    """Return scenarios with slower answers."""
    return {
        name: tuple(
            turn if isinstance(turn, Failure) else replace(turn, before=max(turn.before, seconds))
            for turn in turns
        )
        for name, turns in scenarios.items()
    }


def play(
    scenes: Sequence[Scene],
    how: How,
    jobs: int = 4,
    tell: Callable[[Row], None] = lambda row: None,
    keep: Path | None = None,
    until: float = float("inf"),
    listing: bool = False,
) -> list[Row]:
    """Return a row for each scene that this Claude Code can play; `keep`: a folder for the traces.

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
    if not (how.hooked or how.is_alone):  # only a host of this home knows its session files
        published, host_home = Published(home), home
    with Witness(home) as witness, Listing(home, how.version, witness, listing) as third:
        given = (how, home, hall.api, hall.watch, published, witness, host_home.bellboard)
        stage = ClaudeStage(*given)
        try:
            scene.play(stage)
            if scene.final != IS_GONE:
                stage.step = "its end"
                try:
                    stage.lasts(scene.final, SOON if how.is_seen else UNKNOWN)
                except AssertionError:
                    if how.is_seen:
                        raise
                    otherwise = str(stage.shown())
                stage.leave()
            for cli in stage.clis:
                stage.ends(cli)
        except Exception as error:  # any kind: it is noted in the row, and the others continue
            failure = stage.failed(error)
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


def played(stand: Stand, scene: Scene, keep: Path | None = None, how: How | None = None) -> Row:
    """Play a scene on another CLI; return its figures."""
    failure = ""
    with ScreenStage(stand, FREE in scene.tags, how) as stage:
        try:
            scene.play(stage)
            stage.leave()
        except Exception as error:  # any kind: it is noted in the row, and the others continue
            failure = stage.failed(error)
        terminals = {each.place: each.marks for each in stage.started}
        changes, slowness = list(stage.published.changes), leniency()
        outside = stage.watch.spoke_out()
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            kept = {"terminals": terminals, "changes": changes, "places": stage.places}
            name = f"{stand.key}-{slug(scene.name)}.json"
            (keep / name).write_text(json.dumps({**kept, "evidence": stage.evidence()}))
            if stage.how.editor:
                words = re.sub(r"\W+", "_", scene.name).lower()
                path = keep / f"{stand.key}_{words}-{stand.version}.jsonl"
                write_lines(path, stage.recorded(), is_ascii=False)
    row = judged_by_screens(scene.name, terminals, changes, stage.places, slowness)
    if outside and not failure:
        failure = f"it spoke to {', '.join(sorted(outside))}"
    return replace(row, failure=failure)


def slug(scene: str) -> str:
    """Return the name of a scene as a part of that of a file."""
    return scene.replace("/", "").replace(" ", "-")


def write(path: Path, trace: Sequence[Line], changes: Sequence[Line]) -> None:
    """Write a trace, with notes of what was published."""
    notes = [{"t": c["t"], "note": f"published {json.dumps(c)}"} for c in changes]
    write_lines(path, sorted([*trace, *notes], key=lambda x: x["t"]))


def write_lines(path: Path, lines: Iterable[dict[str, Any]], is_ascii: bool = True) -> None:
    """Write lines of JSON."""
    path.write_text("".join(json.dumps(x, ensure_ascii=is_ascii) + "\n" for x in lines))
