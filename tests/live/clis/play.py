"""Play a scene on a CLI, and compare what was shown with what its screen said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from live.clis.account import Row, judged
from live.clis.scenes import FREE, GONE, SPOKEN
from live.clis.stage import IN_TMUX, How, Stage
from live.clis.stands import Stand
from rig.waiting import leniency


def played(stand: Stand, name: str, keep: Path | None = None, how: How = IN_TMUX) -> Row:
    """Play a scene; return its figures."""
    failure = ""
    with Stage(stand, free=name in FREE, how=how) as stage:
        try:
            SPOKEN[name](stage)
            if name not in GONE:
                while any(seen.status != "ended" for seen in stage.seen):
                    stage.leave()
                    stage.turn_to(0)
        except Exception as error:  # any kind: it is noted in the row, and the others continue
            failure = f"{type(error).__name__}: {error}"
        terminals = {seen.place: seen.marks for seen in stage.seen}
        changes, slowness = list(stage.published.changes), leniency()
        outside = stage.watch.spoke_out()
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            kept = {
                "terminals": terminals,
                "changes": changes,
                "places": stage.places,
                "evidence": stage.evidence(),
            }
            if how.editor:
                told = "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in stage.recorded())
                words = re.sub(r"\W+", "_", name).lower()
                (keep / f"{stand.key}_{words}-{stand.version}.jsonl").write_text(told)
            (keep / f"{stand.key}-{name.replace(' ', '-')}.json").write_text(json.dumps(kept))
    row = judged(name, terminals, changes, stage.places, slowness)
    if outside and not failure:
        failure = f"it spoke to {', '.join(sorted(outside))}"
    return replace(row, failure=failure)
