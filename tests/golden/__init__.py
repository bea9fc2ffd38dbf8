"""A golden day: one hour at thirty places, and everything that was published from it.

`day.py` composes the hour from the recordings and cases that `scenes.txt` names: it moves each to a
time of its own and gives it ids, processes and panes of its own.  `program.py` is the only file
that imports the program.  `player.py` folds the day and writes down what it publishes: each push,
row for other machines, notice, float, status bar and change of status; `list` and `list --json` at
fixed moments; at the end `explain`, `replay`, the ended sessions and what was counted.
`outcome/` holds that as it was.

    python -m golden            what differs
    python -m golden --write    keep it as the new outcome

A difference that is wanted gets a row in `differences.md`, with its reason.

It runs 87 of 100 lines of `core/` and of `screen/`, and most of the dialects of Claude Code, Codex,
Copilot, Gemini, OpenCode and Qwen.  What nothing here covers:

* the hook, the spool, the database, several hosts, their claims, what a restart does not announce;
* witnesses, which read files, screens, terminals and processes: their evidence is here, as lines;
* answers on their way, the requests that they are shown from, and `bellboard rules`;
* the push as it goes to Lua (numbers, order, several in one), and all that Lua draws;
* links, feeds and the fleet beyond the row of a session; other agents' dialects;
* installing, doctor, health; settings other than the usual ones and the mode `all`;
* the commands' arguments, colors, and what a command asks the machine (clock, processes, icons):
  their lines are printed here by the functions that print them there.
"""

from __future__ import annotations

from .day import day, digest, kinds
from .outcome import DAY, Outcome
from .player import Player


def play() -> Outcome:
    """Return the outcome of the day, and the digest of its trace."""
    told = day()
    return {
        DAY: [digest(told), *(f"{kind} {n}" for kind, n in kinds(told).items())],
        **Player().play(told),
    }
