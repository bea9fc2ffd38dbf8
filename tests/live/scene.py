"""The scenes of `scenes.txt`, one a row: a name, the status at the end, and the steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from live.stage import How, Stage
from live.words import WORDS, take
from rig.fetched import claude_code

FILE: Final = Path(__file__).with_name("scenes.txt")
OWN: Final = "own"  # the tag of scenes that are recorded for what a program reports of itself
TMUX: Final = "tmux"  # of those that only tmux can play
OTHERS: Final = "others"  # of those of other CLIs than Claude Code
FREE: Final = "free"  # of those in which nothing is asked
IS_GONE: Final = "gone"  # in place of a status at the end
VERSION: Final = re.compile(r"[\d.]+")


@dataclass(frozen=True)
class Scene:
    """Its steps are done one after the other; then `final` must be shown."""

    name: str
    final: str  # a status, several (a|b), or that the session is gone (of others, `-`)
    steps: tuple[str, ...]
    tags: frozenset[str]
    group: str

    @property
    def since(self) -> tuple[int, ...]:
        """Return the first version that can play it."""
        found = [claude_code.numbers(tag) for tag in self.tags if VERSION.fullmatch(tag)]
        return max(found, default=(0,))

    def suits(self, how: How) -> bool:
        """Return whether it can be played there."""
        is_able = not (TMUX in self.tags and how.editor)
        return is_able and claude_code.numbers(how.version) >= self.since

    def matches(self, wanted: str) -> bool:
        """Return whether one of these (A|B) is in its name, or is one of its tags."""
        return any(part in self.name or part in self.tags for part in wanted.split("|"))

    def play(self, stage: Stage[Any]) -> None:
        """Do its steps."""
        for step in self.steps:
            take(stage, step)


def read(text: str) -> Iterator[Scene]:
    """Yield the scenes of a text; raise ValueError for a row that cannot be played."""
    named: dict[str, str] = {}
    group, shared = "", frozenset[str]()
    for number, row in enumerate(text.splitlines(), 1):
        if row.startswith("## "):
            group, shared = tagged(row[3:])
        elif found := re.fullmatch(r"([A-Z_]+) = (.*)", row):
            named[found[1]] = found[2]
        elif row and not row.startswith("#"):
            head, *rest = row.split(" | ")
            name, tags = tagged(head)
            final, *steps = rest or [""]
            steps = [re.sub(r"<([A-Z_]+)>", lambda at: named[at[1]], step) for step in steps]
            for step in steps:
                if (word := step.partition(" ")[0]) not in WORDS:
                    raise ValueError(f"{FILE.name}:{number}: no word {word!r} ({', '.join(WORDS)})")
            if not steps:
                raise ValueError(f"{FILE.name}:{number}: NAME | STATUS | STEP | STEP …")
            yield Scene(name, final, tuple(steps), shared | tags, group)


def tagged(text: str) -> tuple[str, frozenset[str]]:
    """Return a text without the tags at its end, and these."""
    text, *tags = text.split(" #")
    return text, frozenset(tags)


ALL: Final = tuple(read(FILE.read_text()))
#: Those of Claude Code and of the other CLIs; and with those that are only recorded.
SCENES: Final = tuple(scene for scene in ALL if not {OWN, OTHERS} & scene.tags)
OF_OTHERS: Final = tuple(scene for scene in ALL if OTHERS in scene.tags and OWN not in scene.tags)
SPOKEN: Final = tuple(scene for scene in ALL if OWN in scene.tags and OTHERS not in scene.tags)
SPOKEN_OF_OTHERS: Final = tuple(scene for scene in ALL if OTHERS in scene.tags)
GROUPS: Final[Mapping[str, list[Scene]]] = {
    group: [scene for scene in SCENES if scene.group == group]
    for group in dict.fromkeys(scene.group for scene in SCENES)
}
