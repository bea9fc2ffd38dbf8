"""The own reports of a CLI (OSC 7501), with nothing else, compared with its screen.

It was recorded in terminals of Neovim:
`make live ONLY=scenes AGENT=codex,pi ARGS="--editor 0.12 --keep …"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from live.report import Line, Row
from live.screens import judged_by_screens
from live.stands import SPEAKING, Stand
from rig.host.playback import TRACES, play, read_lines

RECORDED: Final = sorted((TRACES / "own_reports").glob("*.jsonl"))
TYPED: Final = "it takes what you type for a sign that you have seen how the turn ended"
UNSAID: Final = "an extension asks, and does not say so"
DRAWN: Final = "it is drawn later than reported"
#: What its screen says, and what it reports meanwhile → why.
CAUSES: Final = {
    ("completed", "idle"): TYPED,
    ("error", "idle"): TYPED,
    ("blocked", "working"): UNSAID,
}
LATER: Final = 3.0  # seconds after a report in which a busy machine draws the same


def alone(scene: str, lines: Iterable[Line]) -> Row:
    """Return the figures of a trace, as if its host had only been told its reports and its end."""
    told = [x for x in lines if is_own(x)]
    changes, _ = play(told)
    marks: dict[str, list[tuple[float, str]]] = {}
    for x in lines:
        if "truth" in x:
            marks.setdefault(x["tty"], []).append((x["t"], x["truth"]))
    ttys = {x["osc7501"]["pid"]: x["osc7501"]["tty"] for x in told if "osc7501" in x}
    places = {sid: [ttys[int(sid.split("-")[1])]] for sid in {c["session_id"] for c in changes}}
    return judged_by_screens(scene, marks, changes, places, slowness=0.0)


def is_own(x: Line) -> bool:
    """Return whether a line is a report, or the end of a process."""
    return "osc7501" in x or x.get("decoded", {}).get("kind") == "process gone"


def causes(rows: Sequence[Row]) -> dict[str, float]:
    """Return the seconds of each cause of a difference, the longest first."""
    seconds: dict[str, float] = {}
    for wrong in (text for row in rows for text in row.instead):
        said, _, rest = wrong.partition(": ")
        shown, lasted, _ = rest.rsplit(" ", 2)
        unknown = DRAWN if float(lasted) < LATER else f"its screen says {said}, and it {shown}"
        cause = CAUSES.get((said, shown), unknown)
        seconds[cause] = seconds.get(cause, 0.0) + float(lasted)
    return dict(sorted(seconds.items(), key=lambda each: -each[1]))


HEAD: Final = """### What they report of themselves

Codex and Pi report their status to their terminal (OSC 7501). Here is how right bellboard is if it
knows nothing else: no hook, no log, no title. The reports were recorded in terminals of Neovim, and
are compared with the screens there, as above.

* Codex says that it is idle, works, asks for a permission or a question, has completed its turn, or
  failed. It does not say what it asks, what failed, which of its agents asks, that a turn was
  compacted or interrupted, or which session this is. As soon as you type, it calls a turn that has
  completed or failed idle. It does not ask whether anybody reads that, so tmux gets it as well.
* Pi says the same, and with it the title of a question, the first line of an error, in which the
  reply of a server may be, and that it compacts. It asks for no permission itself: extensions do,
  and for Pi that is a question. One that draws its own dialog has to say so, and many do not.
  Without an answer to its query it stays silent, as in tmux.
* Neither says how it ends if it is killed; its process tells.
"""


def section() -> str:
    """Return the part of doc/truth.md about that."""
    lines = [HEAD]
    for stand in SPEAKING.values():
        rows = [alone(path.stem, read_lines(path)) for path in recorded(stand)]
        seconds = sum(row.compared for row in rows)
        right = 1 - sum(sum(row.wrong) for row in rows) / seconds
        slowest = max(row.slowest for row in rows)
        why = "; ".join(f"{cause} ({lasted:.1f} s)" for cause, lasted in causes(rows).items())
        lines += [
            f"* {stand.name} {stand.version}: {len(rows)} scenes, {right:.2%} of {seconds:.0f} s,"
            f" the slowest change after {slowest:.2f} s. Otherwise: {why}.",
        ]
    return "\n".join([*lines, ""])


def recorded(stand: Stand) -> list[Path]:
    """Return the traces of a CLI."""
    return [path for path in RECORDED if path.name.startswith(f"{stand.key}_")]
