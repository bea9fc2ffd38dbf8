"""The actions of a walk, their weights, and how walks are drawn."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

TERMINALS: Final = 3  # at a time
Draw = Callable[[random.Random], str]


@dataclass(frozen=True)
class Action:
    """An action in one terminal, and the pause after it."""

    name: str
    text: str = ""
    terminal: int = 0
    pause: float = 0.3

    def __str__(self) -> str:
        return f"{self.terminal}: {self.name} {self.text}".rstrip()


@dataclass(frozen=True)
class Walk:
    """Everything needed to repeat a walk."""

    seed: int
    version: str
    actions: tuple[Action, ...]
    hooks: tuple[tuple[str, str], ...] = field(default=())  # the user's hooks: event, command

    def written(self) -> str:
        """Return a walk as JSON."""
        return json.dumps(asdict(self), indent=1)


def read(text: str) -> Walk:
    """Read a walk from JSON."""
    facts = json.loads(text)
    actions = tuple(Action(**each) for each in facts.pop("actions"))
    hooks = tuple((event, command) for event, command in facts.pop("hooks"))
    return Walk(**facts, actions=actions, hooks=hooks)


def weighed(table: str) -> dict[str, int]:
    """Parse weights such as `3 this | 1 that other`."""
    pairs = (entry.strip().partition(" ") for entry in table.split("|"))
    return {what: int(weight) for weight, _, what in pairs}


#: What the fake model plays (rig/scenarios.py).
SCENARIOS: Final = weighed(
    "1 text | 1 bash | 1 bashfail | 1 parallel | 1 badtool | 1 read | 1 tasks"
    "| 2 slow | 2 hang | 2 pause | 2 sleep | 2 pauses | 2 pausewords"
    "| 2 perm | 2 perms | 2 ask | 2 asks | 2 plan | 2 elicit | 1 write | 1 danger"
    "| 2 askread | 2 askpause | 2 askperm | 2 permpause | 2 pauseask"
    "| 2 agent | 2 agentbg | 2 agentperm | 2 agentbgperm | 2 agentaside"
    "| 2 agentpermlate | 2 agentasklate | 2 agentwordslate | 2 agentlong"
    "| 2 bgshell | 2 forced | 2 forcedtool | 2 forcedperm"
    "| 1 e400 | 1 e401 | 1 e429 | 1 e500 | 1 e529once | 1 bashe529"
)
KEYS: Final = weighed(
    "14 Enter | 10 Escape | 3 Escape Escape | 3 Escape C-u | 4 C-u | 4 Down Enter"
    "| 3 Down | 3 Up | 2 Tab | 1 BTab | 2 1 | 2 2 | 1 3"
    "| 2 C-b | 3 C-c | 1 C-c C-c | 1 C-z | 1 C-o | 1 C-t | 1 C-r | 1 C-l | 1 C-_"
    "| 1 Escape Escape Escape | 1 Left | 1 Space | 1 ?"
)
COMMANDS: Final = weighed(
    "8 /clear | 4 /compact | 6 /resume | 4 /model | 4 /rewind | 2 /branch | 2 /exit"
    "| 2 /status | 2 /context | 4 !echo hi | 2 !sleep 2"
    "| 1 /agents | 1 /config | 1 /permissions | 1 /tasks | 1 /mcp | 1 /hooks | 1 /help | 1 /theme"
    "| 1 /diff | 1 /export | 1 /copy | 1 /rename walker | 1 /add-dir /tmp | 1 /btw which one"
    "| 1 /goal until it is done | 1 /fork go on | 1 /plan | 1 /effort | 1 /cost | 1 /skills"
    "| 1 /clear now | 1 /no-such-command | 1 /compact keep the names | 1 /init"
)
STARTS: Final = weighed(
    "1 --permission-mode auto | 1 --permission-mode plan | 1 --permission-mode acceptEdits"
    "| 5 --continue | 5 | 1 --continue --fork-session | 1 --resume | 1 play:perm"
    "| 1 --permission-mode dontAsk"
)
MOVES: Final = weighed("1 break-pane | 1 join-pane | 1 swap-pane | 1 resize-window")
SIGNALS: Final = weighed("3 freeze cli | 2 freeze host | 1 freeze both | 3 host | 1 kill")
TYPED: Final = weighed("2 some words typed ahead | 1 /exit | 1 wait")
QUEUED: Final = weighed("2 and this | 2 look at the tests too | 1 fg")  # fg: after Ctrl-Z
HOOKS: Final = (
    ("Stop", "sleep 3"),
    ("Stop", "sleep 1; exit 1"),
    ("Stop", '[ $(($(date +%s) % 3)) = 0 ] || exit 0; echo "go on" >&2; exit 2'),
    ("PreToolUse", "sleep 1"),
    ("PreToolUse", "sleep 4"),
    ("PreToolUse", '[ $(($(date +%s) % 4)) = 0 ] || exit 0; echo "not this" >&2; exit 2'),
    ("PermissionRequest", "sleep 5"),
    (
        "PermissionRequest",
        'sleep 2; echo \'{"hookSpecificOutput": {"hookEventName": "PermissionRequest", '
        '"decision": {"behavior": "allow"}}}\'',
    ),
    ("UserPromptSubmit", "sleep 1"),
    ("SubagentStop", "sleep 2"),
    ("PostToolUse", "exit 1"),
    ("PostToolUse", "sleep 2"),
    ("SessionStart", "sleep 2"),
    ("SessionEnd", "sleep 2"),
    ("Notification", "sleep 3"),
    ("PreCompact", "sleep 2"),
    ("StopFailure", "sleep 2"),
    ("SubagentStart", "sleep 2"),
    ("UserPromptSubmit", '[ $(($(date +%s) % 4)) = 0 ] || exit 0; echo "not now" >&2; exit 2'),
    ("Stop", "kill -9 $$"),
)


def one_of(weights: dict[str, int]) -> Draw:
    """Draw one by weight."""
    return lambda chance: chance.choices(list(weights), list(weights.values()))[0]


#: Name → weight, and what to draw.  `type` types ahead, without Enter.
VOCABULARY: Final[dict[str, tuple[int, Draw]]] = {
    "prompt": (24, one_of(SCENARIOS)),
    "queue": (5, one_of(QUEUED)),
    "type": (6, one_of(TYPED)),
    "press": (40, one_of(KEYS)),
    "command": (9, one_of(COMMANDS)),
    "start": (6, one_of(STARTS)),
    "signal": (4, one_of(SIGNALS)),
    "move": (3, one_of(MOVES)),
    "look": (3, one_of({"": 1})),
}
PAUSES: Final = ((0.05, 0.3), (0.3, 1.2), (1.2, 3.5), (3.5, 7.0))
PAUSE_WEIGHTS: Final = (4, 5, 4, 2)


def drawn(seed: int, version: str, seconds: float) -> Walk:
    """Return the walk of a seed, of about that length; it depends only on this file."""
    chance = random.Random(seed)
    hooks = tuple(chance.sample(HOOKS, chance.choice((0, 0, 1, 1, 2))))
    names = list(VOCABULARY)
    weights = [VOCABULARY[name][0] for name in names]
    actions = [Action("start", pause=1.0)]
    used, at, terminal = 4.0, 0.0, 0
    while used + at < seconds:
        if chance.random() < 0.2:  # usually stay in a terminal for a while
            terminal = chance.choices(range(TERMINALS), (4, 2, 1))[0]
            actions.append(Action("start", one_of(STARTS)(chance), terminal, 0.5))
        name = chance.choices(names, weights)[0]
        pause = chance.uniform(*chance.choices(PAUSES, PAUSE_WEIGHTS)[0])
        text = VOCABULARY[name][1](chance)
        actions.append(Action(name, text, terminal, round(pause, 2)))
        at += pause + 0.25
        used += 4.0 if name == "start" else 0.0
    return Walk(seed, version, tuple(actions), hooks)


def summary(actions: Sequence[Action]) -> str:
    """Return a walk in one line."""
    return " · ".join(map(str, actions))
