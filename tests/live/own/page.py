"""A program's own reports, compared with other sources of its status, for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from live.account import Line, Wrong
from live.own.reported import (
    FILE,
    FILE_LATER,
    FLICKER,
    LOGIN,
    SCREEN,
    WHICH_END,
    Difference,
    compared,
)
from live.own.rules import Decided, decided
from live.own.score import Score, read, scored, speaks_since
from live.page import OWN

OTHERS: Final = (FILE, SCREEN)
RIGHT: Final = (LOGIN, FILE_LATER, FLICKER)  # causes that are none of the report's
MOMENT: Final = 0.01  # seconds that are not worth a cause
FEW: Final = 3  # differences that a row names
NAMES: Final = {
    "hooks": "hooks alone, by the rules of a tracker for tmux",
    "newer hooks": "hooks alone, by its newer rules",
    "screen": "the screen: spinner, `esc to interrupt`, numbered choices",
    "session file": "the session file alone",
    "report": "its own report alone, as it stands",
    "alone": "bellboard, with its own report and nothing else",
    "everything": "bellboard, with everything",
}
HEAD: Final = f"""{OWN}

Claude Code since 2.1.295, Codex and other programs report their status to the terminal that they
run in (OSC 7501), if it says that it reads such reports. Here a `:terminal` of Neovim did. Each
scene was played once, and hooks, session file, transcript, reports and screen were recorded side by
side, so that each way to know the status is scored on the same moments: those from the first report
of a program on. All but the last two ways are a few simple rules, without any of the exceptions
that bellboard makes; the last two are bellboard itself, as it replays the recordings. No way is
late here: the screen is looked at ten times a second, and hooks count from the moment at which they
ran. The machine was busy, so that session files often came some time after the report.

Each cell says how much of the time it agreed with the session file, and how long the slowest change
took. A question is missed while one is open that is not shown, and false while one is shown that is
not open; both in seconds, of {{asked:.0f}} s in which a question was open.
"""
DIFFERS: Final = """### Where a report differs from the session file, or the screen

*Counted*: the seconds in which bellboard was wrong above, with its own report and nothing else.
*File* and *screen*: every second in which they differ from the report, and how often, of
{total:.0f} s. Here, moments around changes count, too, and those before the first report. The word
`idle` of the file is what the turn ended as. When a program ends, its report is taken back before
its file is removed."""
CANNOT: Final = """### What a program cannot say this way

* Anything before its first report, {first:.1f} s (median) after its session file appeared. The
  dialog that asks whether to trust a folder comes even earlier.
* Who asks, if several subagents do: one record asks at a time, that of the whole program.
* That it retries a failed call, or compacts: it is `working` all the same, then `done`.
* Why an Esc came: whether a turn was ended, or a question refused.
* That a hook of yours refused the prompt: it is `done`, as after an answer.
* That it was killed: no report follows. The end of its process tells.
* That only a shell or an MCP call in the background is left, in a word of its own: it is `working`
  until that has ended, too. The session file calls this `shell`, or `idle` where it is an MCP call,
  and bellboard `background`, because it reads "1 shell still running" in the text of the report.
* Which session it is: another process of the same session, `/clear` and `/resume` look the same.
* Anything in tmux: tmux does not answer the question whether it reads reports, and so Claude Code
  makes none there. Older versions than 2.1.295, and those started with
  `CLAUDE_CODE_DISABLE_TERMINAL_TITLE`, make none anywhere.
* That it is true: whatever can write to the terminal can write a report, too.
"""
EXCUSED: Final = """\
Three of the causes are none of the report's: it says that somebody has to log in where the file
is silent, it comes before the file, and the file flickers. Without these seconds, bellboard with
its own report and nothing else agreed for {told} of the time."""
BETTER: Final = """### What it says better than the session file

* It says it earlier, and tells how a turn ended, where the file only says `idle`.
* When the API refuses the key, it is `blocked` until you have logged in. The file says `idle`.
* When a limit is used up, the CLI asks what to do. The report says `blocked`, the file `waiting`
  for a `dialog open`, as for a dialog that you open yourself, which no report calls a question.
* It says what is asked, and what each agent and background task does.
"""
RULES: Final = """### Which rules decided, where the program speaks

With everything known, these rules of bellboard changed what is shown in the same scenes. *Already*:
the program had reported that status by then. *Soon*: it did so within 1 s. *Unsaid*: it had not
reported anything yet. *Otherwise*: it went on to say something else. `gone` is the end of a
session.

| rule | evidence | times | already | soon | unsaid | otherwise | shown, but reported |
|---|---|--:|--:|--:|--:|--:|---|"""


def section(folders: Sequence[Path]) -> list[str]:
    """Return that part of the page, of the traces that were kept in some folders."""
    played: dict[str, list[Path]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl")):
        played.setdefault(version_of(path), []).append(path)
    scores = {version: scored(files) for version, files in played.items()}
    asked = sum(each["report"].asked for each in scores.values())
    lines = [HEAD.format(asked=asked)]
    names = [f"{version}, {len(files)} scenes" for version, files in played.items()]
    lines += [f"| way | {' | '.join(names)} | missed | false |", "|---" * (len(played) + 3) + "|"]
    for way, name in NAMES.items():
        mine = [each[way] for each in scores.values()]
        missed, false = (sum(x) for x in zip(*((s.missed, s.false) for s in mine), strict=True))
        cells = [f"{s.agrees:.2%} · {s.slowest:.2f} s" for s in mine]
        lines.append(f"| {name} | {' | '.join(cells)} | {missed:.1f} s | {false:.1f} s |")
    files = [path for each in played.values() for path in each]
    alone = {version: each["alone"] for version, each in scores.items()}
    first = median(late for path in files for late in silent(read(path)))
    lines += ["", *differing(files, alone), BETTER, CANNOT.format(first=first), RULES]
    rows = sorted(decided(files).items(), key=lambda x: (-x[1].times, x[0]))
    return [*lines, *(rule(*key, row) for key, row in rows), ""]


def silent(trace: Sequence[Line]) -> Iterator[float]:
    """Yield how long after the first status in its file each program reports for the first time."""
    for pid, t in speaks_since(trace).items():
        of = (x for x in trace if x.get("registry", {}).get("pid") == pid)
        yield next((t - x["t"] for x in of if "status" in (x["registry"]["record"] or {})), 0.0)


def differing(files: Sequence[Path], alone: Mapping[str, Score]) -> list[str]:
    """Return the table of every second in which reports differ from session files or screens.

    `alone`: the scores of bellboard with nothing but reports, by version.
    """
    seconds = {other: Counter() for other in OTHERS}
    times = {other: Counter() for other in OTHERS}
    counted = {version: Counter() for version in alone}
    total = 0.0
    for path in files:
        trace = read(path)
        for other in OTHERS:
            comparison = compared(trace, other)
            seconds[other].update(comparison.by_cause)
            times[other].update(x.cause for x in comparison.differences)
            if other == FILE:
                total += comparison.seconds
                version = version_of(path)
                for scene, each in alone[version].wrong:
                    if scene == path.stem:
                        counted[version].update(causes(each, comparison.differences))
    all_counted = sum(counted.values(), Counter())
    lines = [DIFFERS.format(total=total), "", "| cause | counted | file | screen |"]
    lines += ["|---|--:|--:|--:|"]
    named = {*all_counted, *seconds[FILE], *seconds[SCREEN]}
    for cause in sorted(named, key=lambda x: (-all_counted[x], -seconds[FILE][x], x)):
        cells = [f"{seconds[o][cause]:.1f} s ({times[o][cause]})" for o in OTHERS]
        lines.append(f"| {cause} | {all_counted[cause]:.1f} s | {' | '.join(cells)} |")
    left = {
        version: 1 - sum(s for cause, s in each.items() if cause not in RIGHT) / of.compared
        for (version, of), each in zip(alone.items(), counted.values(), strict=True)
    }
    told = ", ".join(f"{share:.2%} ({version})" for version, share in left.items())
    return [*lines, "", EXCUSED.format(told=told), ""]


def causes(wrong: Wrong, differences: Sequence[Difference]) -> dict[str, float]:
    """Return why a wrong status was shown, in seconds; what no file told is how a turn ended."""
    found: dict[str, float] = {}
    for x in differences:
        shared = min(wrong.end, x.start + x.seconds) - max(wrong.start, x.start)
        if x.pid == wrong.stretch.pid and shared > 0:
            found[x.cause] = found.get(x.cause, 0.0) + shared
    if (rest := wrong.seconds - sum(found.values())) > MOMENT:
        found[WHICH_END] = found.get(WHICH_END, 0.0) + rest
    return found


def version_of(path: Path) -> str:
    """Return the version that a kept trace is of."""
    return path.name.partition("-")[0]


def rule(name: str, evidence: str, row: Decided) -> str:
    """Return a row of the table of rules."""
    most = row.otherwise.most_common(FEW)
    other = ", ".join(f"{shown}, but {said} ({n})" for (shown, said), n in most)
    counts = (row.times, row.already, row.soon, row.unsaid, row.otherwise.total())
    return f"| {name} | {evidence} | {' | '.join(map(str, counts))} | {other} |"
