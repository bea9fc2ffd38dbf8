"""Give answers through a hook that waits for them, and read what the model's next request has."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from answers.cases import FORM, PLANNING, PLAYED, Case
from bellboard.agents.dialects import dialect_of
from bellboard.core.events import AGENT, Origin
from bellboard.core.request import check
from rig import agent, claude_code
from rig import home as homes
from rig.agent import Agent, spoken
from rig.api import Api, Request
from rig.home import Home
from rig.loopback import Watch
from rig.tmux import Server
from rig.waiting import eventually

#: Shows what it reads, waits for the answer, and prints it.
WAITER: Final = """\
cd "$1" || exit 0
cat >payload.tmp && mv payload.tmp payload
until [ -e said ]; do sleep 0.05; done
cat said
rm said
"""


class Waiting:
    """The hook that waits, and who answers through it."""

    def __init__(self, folder: Path, version: str) -> None:
        folder.mkdir()
        self._folder = folder
        script = folder / "waiter"
        script.write_text(WAITER)
        entry = {"type": "command", "command": f"sh {script} {folder}", "timeout": 120}
        names = ["PermissionRequest"]
        if claude_code.numbers(version) >= (2, 1, 119):
            names.append("Elicitation")
        self.settings: dict[str, Any] = {"hooks": {name: [{"hooks": [entry]}] for name in names}}

    def give(self, case: Case, pid: int) -> None:
        """Wait for a question, and answer it as a host would."""
        file = self._folder / "payload"
        eventually(file.exists, f"the question of {case.name}")
        payload, dialect = file.read_bytes(), dialect_of(AGENT)
        file.unlink()
        request = dialect.request(payload, "here", 1.0, Origin(pid=pid))
        assert request is not None and request.complete
        assert check(request, case.answer) == "", (request, case.answer)
        draft = self._folder / "draft"
        draft.write_bytes(dialect.reply(payload, case.answer) + b"\n")
        draft.rename(self._folder / "said")


@contextlib.contextmanager
def started(
    home: Home, api: Api, watch: Watch, version: str, waiting: Waiting, args: tuple[str, ...]
) -> Iterator[Agent]:
    """Start a CLI whose hook waits."""
    own = agent.elicitation(home) if args == FORM else args
    launch = agent.prepare(home, api, watch, version=version, args=own, settings=waiting.settings)
    server = Server(home)
    try:
        yield Agent.start(launch, server, "answers", watch)
    finally:
        server.close()


def give(version: str, cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Yield each case with what did not arrive; one CLI plays all that start alike."""
    known = [case for case in cases if claude_code.numbers(version) >= case.since]
    groups: dict[object, list[Case]] = {}
    for case in known:  # a plan ends the mode that it needs
        groups.setdefault(case.name if case.args == PLANNING else case.args, []).append(case)
    for group in groups.values():
        home = homes.build()
        try:
            with Api() as api, Watch() as watch:
                watch.old = True
                api.scenarios = PLAYED
                waiting = Waiting(home.root / "waiting", version)
                with started(home, api, watch, version, waiting, group[0].args) as cli:
                    for case in group:
                        yield case, played(case, cli, api, home, waiting)
        finally:
            homes.remove(home)


def played(case: Case, cli: Agent, api: Api, home: Home, waiting: Waiting) -> str:
    """Play a case; return what did not arrive."""
    count, stops = len(api.played(case.scenario)), len(cli.events("Stop"))
    asks, before = len(cli.events("PermissionRequest")), len(api.requests)
    cli.submit(f"play:{case.scenario} please")
    waiting.give(case, cli.pid)
    if case.stops:
        eventually(lambda: spoken(cli.text()) == "idle", "the end of the turn")
        assert len(api.played(case.scenario)) == count + 1
        cli.submit("play:text please")
    cli.happens("Stop", times=stops + 1)
    again = len(cli.events("PermissionRequest")) - asks
    mode = str(cli.events("Stop")[-1].get("permission_mode", ""))
    arrived = heard(api.requests[before:])

    def wrong() -> str:
        return case.wrong(home, cli.launch.version, arrived, mode, again)

    with contextlib.suppress(AssertionError):  # settings may be written a moment later
        eventually(lambda: not wrong(), within=3)
    return wrong()


def heard(requests: Iterable[Request]) -> str:
    """Return the texts of the tool results that the model got."""
    found = [json.loads(result) for request in requests for result in request.results]
    blocks = [block for each in found if isinstance(each, list) for block in each]
    return "\n".join(
        [x for x in found if isinstance(x, str)] + [str(b.get("text")) for b in blocks]
    )
