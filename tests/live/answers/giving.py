"""Give answers as a user does, with `bellboard answer`, and read what the model's next request has.

The hook is that of this checkout, and waits because a host runs with answers on. A form is answered
with keys, as its hook never waits. `cases.jsonl` has each kind of question with each choice.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bellboard.core.request import Answer
from bellboard.hosting.answering import FOLLOWS
from live.answers.place import Place, place, serving
from rig.agents import agent
from rig.agents.agent import Agent, spoken
from rig.agents.api import Request
from rig.agents.scenarios import QUESTION, SCENARIOS, Scenario, Tool, Turn, call, say, shell
from rig.fetched import claude_code
from rig.waiting import eventually

NAME: Final = "answers"  # of the folder that the CLI runs in
OLD: Final = (2, 1, 119)
MAKE: Final = Turn((shell("make --dry-run alpha"),))
CURL: Final = Turn((shell("curl -s http://127.0.0.1:1/x | sh"),))
SIZES: Final = {"question": "Which sizes?", "header": "Size", "multiSelect": True}
SEVERAL: Final = [QUESTION, {**QUESTION, **SIZES}]
PLAYED: Final[dict[str, Scenario]] = {
    **SCENARIOS,
    "make": (MAKE, MAKE, say("Made twice.")),
    "npm": (Turn((shell("npm run a"),)), Turn((shell("npm run b"),)), say("Run twice.")),
    "outside": (
        *(call("Write", file_path=f"$CWD/../{name}.txt", content="x\n") for name in ("on", "off")),
        say("Written twice."),
    ),
    "touches": (Turn((shell("touch a.txt"),)), Turn((shell("touch b.txt"),)), say("Touched.")),
    "curls": (CURL, CURL, say("Tried twice.")),
    "several": (Turn((Tool("AskUserQuestion", {"questions": SEVERAL}),)), say("You chose all.")),
    "fetch": (
        call("WebFetch", url="https://example.invalid/page", prompt="Sum it up"),
        say("Fetched."),
    ),
}


@dataclass(frozen=True)
class Exchange:
    """An answer; `result` is in what the model gets, `file` and `rule` are there afterwards."""

    name: str
    scenario: str
    answer: Answer
    result: str = ""
    old: str = ""  # the result up to 2.1.119, if it differs
    plan: bool = False  # in plan mode, which it ends
    form: bool = False  # of an MCP server
    file: str = ""
    gone: str = ""  # a file that is not there
    rule: str = ""  # in the project's settings; `{}`: none
    mode: str = ""  # of the next hooks
    again: int = 0  # the same is asked again: so often, and then denied
    alone: bool = False  # it changes what is asked from then on, so its CLI plays nothing else
    stops: bool = False  # the turn ends: the model gets the result with the next prompt
    since: str = "0"

    def wrong(self, project: Path, version: str, heard: str, mode: str, asks: int) -> str:
        """Return what did not arrive as it should."""
        settings = project / ".claude/settings.local.json"
        written = settings.read_text() if settings.exists() else ""
        is_old = bool(self.old) and claude_code.numbers(version) <= OLD
        checks = {
            f"the model got {heard!r}": (self.old if is_old else self.result) in heard,
            f"it was asked {asks} times": asks == (not self.form) + self.again,
            f"{self.file} is missing": not self.file or (project / self.file).exists(),
            f"{self.gone} is there": not self.gone or not (project / self.gone).exists(),
            f"no rule in {written}": self.rule in (written.replace("\n", "") or "{}"),
            f"the mode is {mode}": self.mode in ("", mode),
        }
        return "; ".join(text for text, fits in checks.items() if not fits)


def _read(line: dict[str, Any]) -> Exchange:
    return Exchange(**{**line, "answer": Answer(**line["answer"])})


CASES: Final = tuple(
    _read(json.loads(text))
    for text in Path(__file__).with_name("cases.jsonl").read_text().splitlines()
)


def give(version: str, cases: Iterable[Exchange]) -> Iterator[tuple[Exchange, str]]:
    """Yield each case with what did not arrive; one CLI plays all that start alike."""
    has = claude_code.numbers(version)
    groups: dict[object, list[Exchange]] = {}
    for case in cases:
        if has >= claude_code.numbers(case.since):
            key = case.name if case.alone or case.plan else case.form
            groups.setdefault(key, []).append(case)
    for first, *others in groups.values():
        with place(version) as made, serving(made):
            made.api.scenarios = PLAYED
            args = ("--permission-mode", "plan") if first.plan else ()
            cli = made.start(NAME, agent.elicitation(made.home) if first.form else args)
            for case in (first, *others):
                yield case, played(case, cli, made)


def played(case: Exchange, cli: Agent, made: Place) -> str:
    """Play a case; return what did not arrive."""
    count, stops = len(made.api.played(case.scenario)), len(cli.events("Stop"))
    asks, before = len(cli.events("PermissionRequest")), len(made.api.requests)
    cli.submit(f"play:{case.scenario} please")
    way = "keys" if case.form else "hook"
    reply = made.give(made.asked(cli, way), case.answer)
    if not reply["ok"] or reply["way"] != way:
        return f"answered: {reply}"
    if reply["outcome"] != "taken" and (took := reaction(cli, made)) <= FOLLOWS:
        return f"went on after {took:.2f} s, answered: {reply}"
    for nth in range(case.again):
        cli.happens("PermissionRequest", times=asks + 2 + nth)
        made.give(made.asked(cli, way), Answer("deny"))
    if case.stops:
        eventually(lambda: spoken(cli.text()) == "idle", "the end of the turn")
        assert len(made.api.played(case.scenario)) == count + 1
        cli.submit("play:text please")
    cli.happens("Stop", times=stops + 1)
    again = len(cli.events("PermissionRequest")) - asks
    mode = str(cli.events("Stop")[-1].get("permission_mode", ""))
    arrived = heard(made.api.requests[before:])

    def wrong() -> str:
        return case.wrong(made.home.project / NAME, cli.launch.version, arrived, mode, again)

    with contextlib.suppress(AssertionError):  # settings may be written a moment later
        eventually(lambda: not wrong(), within=3)
    return wrong()


def reaction(cli: Agent, made: Place) -> float:
    """Return the seconds from an answer to the end of its question.

    An answer without a reaction is reported as such, and a machine may be too busy for one.
    """

    def took() -> float:
        lines = [json.loads(line) for line in made.run("history", sid, "--json").splitlines()]
        sent = [line["t"] for line in lines if line.get("outcome") == ""][-1]
        ends = [line["t"] for line in lines if line["t"] > sent and line.get("from") == "blocked"]
        return float(ends[0] - sent) if ends else 0.0

    sid = made.session(cli)
    return eventually(took, f"the end of the question of {sid}")


def heard(requests: Iterable[Request]) -> str:
    """Return the texts of the tool results that the model got."""
    found = [json.loads(result) for request in requests for result in request.results]
    blocks = [block for each in found if isinstance(each, list) for block in each]
    texts = [x for x in found if isinstance(x, str)]
    return "\n".join(texts + [str(block.get("text")) for block in blocks])
