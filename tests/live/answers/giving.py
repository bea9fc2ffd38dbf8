"""Give answers as a user does, with `bellboard answer`, and read what the model's next request has.

The hook is that of this checkout, and waits because a host runs with answers on. A form is answered
with keys, as its hook never waits.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Final

from bellboard.core.request import Answer
from bellboard.hosting.answering import FOLLOWS
from live.answers.cases import FORM, PLANNING, PLAYED, Case
from live.answers.place import Place, place, serving
from rig import agent, claude_code
from rig.agent import Agent, spoken
from rig.api import Request
from rig.waiting import eventually

NAME: Final = "answers"  # of the folder that the CLI runs in


def give(version: str, cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Yield each case with what did not arrive; one CLI plays all that start alike."""
    known = [case for case in cases if claude_code.numbers(version) >= case.since]
    groups: dict[object, list[Case]] = {}
    for case in known:  # a plan ends the mode that it needs
        is_alone = case.alone or case.args == PLANNING
        groups.setdefault(case.name if is_alone else case.args, []).append(case)
    for group in groups.values():
        with place(version) as made, serving(made):
            made.api.scenarios = PLAYED
            args = group[0].args
            cli = made.start(NAME, agent.elicitation(made.home) if args == FORM else args)
            for case in group:
                yield case, played(case, cli, made)


def played(case: Case, cli: Agent, made: Place) -> str:
    """Play a case; return what did not arrive."""
    count, stops = len(made.api.played(case.scenario)), len(cli.events("Stop"))
    asks, before = len(cli.events("PermissionRequest")), len(made.api.requests)
    cli.submit(f"play:{case.scenario} please")
    way = "keys" if case.args == FORM else "hook"
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
    return "\n".join(
        [x for x in found if isinstance(x, str)] + [str(b.get("text")) for b in blocks]
    )
