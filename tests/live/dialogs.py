"""Answer a real CLI by keys, and keep what its terminal shows before each of them.

    python -m live.dialogs VERSION…    writes data/dialogs/VERSION/NAME.txt

A walk is screens, each followed by a line `── press KEY` or `── type TEXT`; `test_pressing.py`
walks them again.  The last line is what was asked, and what the model got.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from bellboard.agents.agent import About, Press
from bellboard.agents.claude.dialog import press
from bellboard.agents.claude.hooks import hook
from bellboard.agents.claude.request import request
from bellboard.core.events import Origin
from bellboard.core.request import Answer
from bellboard.hosting.keyboard import PaneTerminal, enter
from bellboard.system.failures import Declined
from rig import DATA
from rig import home as homes
from rig.agents import agent
from rig.agents import api as apis
from rig.agents.scenarios import QUESTION, Scenario, Tool, Turn, call, say
from rig.home import Home
from rig.machines.loopback import Watch
from rig.tmux import Server
from rig.waiting import eventually, rest

FOLDER: Final = DATA / "dialogs"
MANY: Final = {
    "question": "Which extras?",
    "header": "Extras",
    "multiSelect": True,
    "options": [
        {"label": "Horn", "description": "loud"},
        {"label": "Bell, small", "description": "bright"},
        {"label": "Lamp", "description": "light"},
    ],
}
LONG: Final = {
    "question": "Which of these long things would you like to have, considering that this text is "
    "long enough to be wrapped, even in a terminal that is as wide as this one?",
    "header": "Long one",
    "multiSelect": False,
    "options": [
        {
            "label": "An option whose label is so long that it has to be wrapped as well, which is "
            "more than an agent should write, but some do",
            "description": "and a description that is long as well, so that it is wrapped over "
            "some lines of the terminal",
        },
        {"label": "Other", "description": ""},
    ],
}
PLAN: Final = "# Plan\n\n1. Touch **a** file\n2. Be `done`\n"
PLANNED: Final = {"plan": PLAN}


def asks(*questions: dict[str, Any]) -> Scenario:
    return (Turn((Tool("AskUserQuestion", {"questions": [*questions]}),)), say("You chose."))


SCENARIOS: Final[dict[str, Scenario]] = {
    "askmany": asks(MANY),
    "asklong": asks(LONG),
    "askthree": asks(QUESTION, MANY, LONG),
    "planned": (
        call("Write", file_path="$PLAN", content=PLAN),
        call("ExitPlanMode", **PLANNED),
        say("Plan done."),
    ),
}
WORDS: Final = "Use another name, 1 or 2; please"


class Play(NamedTuple):
    """Arguments of the CLI, the scenario, the answer, and the width of the terminal."""

    args: tuple[str, ...]
    scenario: str
    answer: Answer
    columns: int = 110


#: Half of a Neovim of 80 columns, where `:ClaudeSessions new` opens a terminal.
NARROW: Final = 39


PLAN_MODE: Final = ("--permission-mode", "plan")
#: By name.
WALKS: Final[dict[str, Play]] = {
    "allow": Play((), "perm", Answer("allow")),
    "stop": Play((), "perm", Answer("stop")),
    "deny": Play((), "perm", Answer("deny", WORDS)),
    "write": Play((), "write", Answer("deny", WORDS)),
    "edits": Play((), "write", Answer("edits")),
    "narrow-edits": Play((), "write", Answer("edits"), NARROW),
    "choose": Play((), "ask", Answer("choose", answers={"Which colour?": ["Blue"]})),
    "typed": Play(
        (), "ask", Answer("choose", answers={"Which colour?": "2 shades of green; dark"})
    ),
    "long": Play(
        (),
        "asklong",
        Answer("choose", answers={LONG["question"]: [LONG["options"][0]["label"]]}),
    ),
    "many": Play(
        (), "askmany", Answer("choose", answers={"Which extras?": ["Lamp", "Bell, small"]})
    ),
    "three": Play(
        (),
        "askthree",
        Answer(
            "choose",
            answers={
                "Which colour?": "1 green",
                "Which extras?": ["Horn", "Bell, small"],
                LONG["question"]: ["Other"],
            },
        ),
    ),
    "approve": Play(PLAN_MODE, "planned", Answer("approve")),
    "approve-edits": Play(PLAN_MODE, "planned", Answer("approve-edits")),
    "keep": Play(PLAN_MODE, "planned", Answer("keep", WORDS)),
    "narrow-deny": Play((), "perm", Answer("deny", WORDS), NARROW),
    "narrow-keep": Play(PLAN_MODE, "planned", Answer("keep", WORDS), NARROW),
    "bare": Play(PLAN_MODE, "plan", Answer("approve")),
    "fill": Play(("elicit",), "elicit", Answer("fill", content={"name": "Ada L; 1"})),
    "decline": Play(("elicit",), "elicit", Answer("decline")),
}


KEPT = {
    *("hook_event_name", "tool_name", "tool_input", "permission_suggestions", "session_id", "cwd"),
    *("mcp_server_name", "message", "mode", "requested_schema"),
}


class Recorded:
    """A pane whose screens are kept."""

    def __init__(self, pane: PaneTerminal) -> None:
        self._pane = pane
        self.walk: list[str] = []
        self._rows: Sequence[str] = ()

    def rows(self) -> Sequence[str]:
        self._rows = self._pane.rows()
        return self._rows

    def type(self, press: Press) -> bool:
        typed = self._pane.type(press)
        if typed:
            done = f"press {press.key}" if press.key else f"type {press.text}"
            self.walk += [*self._rows, f"── {done}{' (last)' if press.last else ''}"]
        return typed


class Recorder:
    """CLIs of one version with the same arguments, on one fake API."""

    def __init__(self, home: Home, api: apis.Api, watch: Watch, server: Server) -> None:
        self.home, self.api, self.watch, self.server = home, api, watch, server

    def play(self, version: str, name: str) -> str:
        """Start a CLI, let it ask, answer it, and write the walk; return what the model got."""
        args, scenario, answer, columns = WALKS[name]
        more = agent.elicitation(self.home) if "elicit" in args else args
        how = {"version": version, "args": more}
        launch = agent.prepare(self.home, self.api, self.watch, **how)  # type: ignore[arg-type]
        running = agent.Agent.start(launch, self.server, name, self.watch, columns)
        running.submit(f"play:{scenario} please")
        payload = eventually(
            lambda: (running.events("PermissionRequest") or running.events("Elicitation"))[-1:]
        )[0]
        raw, origin = json.dumps(payload).encode(), Origin(pid=running.pid)
        asked, event = request(raw, name, 1.0, origin), hook(raw, 1.0, 1.0, origin)
        assert asked is not None, payload
        about = About(event.detail, event.shown_digest, [str(launch.cwd)])

        def following(rows: Sequence[str]) -> Press:
            return press(rows, asked, answer, about)

        pane = Recorded(PaneTerminal(str(self.server.socket), running.pane.id, running.pane.tty))
        eventually(lambda: not following(pane.rows()).why)
        rest(0.5)  # until it takes keys
        before = len(self.api.requests)

        async def ours(types: bool) -> bool:
            return True

        asyncio.run(enter(pane, following, ours))
        heard = "" if answer.choice == "stop" else eventually(lambda: self._heard(before))
        kept = {key: value for key, value in payload.items() if key in KEPT}
        text = "\n".join([*pane.walk, json.dumps({"payload": kept, "heard": heard}), ""])
        path = FOLDER / version / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(str(self.home.root), "/home/me"))
        running.pane.close()
        return heard

    def _heard(self, before: int) -> str:
        later = [result for r in self.api.requests[before:] for result in r.results]
        return later[0] if later else ""


def record(version: str, names: Sequence[str]) -> None:
    """Record walks, each in a home of its own."""
    for name in names or WALKS:
        home = homes.build()
        server = Server(home)
        try:
            with apis.Api() as api, Watch() as watch:
                api.scenarios |= SCENARIOS
                print(
                    version,
                    name,
                    Recorder(home, api, watch, server).play(version, name),
                    flush=True,
                )
        except (AssertionError, Declined) as why:
            print(version, name, f"not recorded: {why}", flush=True)
        finally:
            server.close()
            homes.remove(home)


if __name__ == "__main__":
    for each in [x for x in sys.argv[1:] if x[0].isdigit()]:
        record(each, [x for x in sys.argv[1:] if not x[0].isdigit()])
