"""OpenCode: our plugin in it reports sessions; the plugin or OpenCode's server takes answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.observing import Want
from ...core.session import Session
from ..agent import Abilities, Ability, Agent, OpenRequest, Prompt
from ..inputs import beside_bar
from ..installing.hookline import HooksFile, below_home
from ..words import Words
from .dialect import KEY, KINDS, SERVER, event, on_disk, reply, request

if TYPE_CHECKING:
    from ..need import Need, Observing

PLUGIN: Final = Ability("plugin")
#: Measured on 1.18.33.
ABILITIES: Final[Abilities] = {
    "unprompted": Ability("", when="a session begins with its first prompt"),
    "working": PLUGIN,
    "permission": PLUGIN,
    "question": PLUGIN,
    "granted": PLUGIN,
    "denied": PLUGIN,
    "completed": PLUGIN,
    "interrupted": PLUGIN,
    "failed": PLUGIN,
    "ended": Ability("plugin, processes"),
    "itself": Ability(""),
    "answer": Ability("plugin, server"),
}

MARK = "// bellboard's plugin for OpenCode"
HEAD = f"""{MARK}: reports what a session does, and takes answers to what it asks.
//
// It listens on a socket in the state folder, which only its owner can enter. Whoever connects
// names a file there: the answer to exactly what is asked, a prompt, or an order to stop a turn."""

TERMINALS: Final = "opencode terminals"
PRIVATE: Final = "--stdio"  # one that OpenCode 2 starts for the terminal that it is in
HOME: Final = re.compile(r'Ask anything… ".*"', re.DOTALL)  # in its input while no session shows
AGENT: Final = re.compile(r"\S.* · \S.*")  # and its model, below an input; or `Shell`

_config: Final = below_home(".config", "XDG_CONFIG_HOME")


class OpenCode(Agent):
    """See `Agent`."""

    key = KEY
    name = "OpenCode"
    program = "opencode"
    tested = (1, 18, 33)
    abilities = ABILITIES
    resuming = ("-s",)
    prompting = ("--prompt=",)
    keeps = key  # for sockets
    keeps_transcripts = False
    queues = True
    hooks = HooksFile(
        folder=lambda environ: _config(environ) / "opencode",
        name="plugins/bellboard.js",
        own=True,
        mark=MARK,
        note="running sessions load the plugin once they are restarted",
    )
    words = Words(KINDS)

    on_disk = staticmethod(on_disk)
    event = staticmethod(event)
    request = staticmethod(request)
    reply = staticmethod(reply)

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        found = beside_bar(screen, AGENT)
        return None if found and HOME.fullmatch(found.text) else found

    def serves(self, argv: Sequence[str]) -> bool:
        return SERVER in argv[1:] and PRIVATE not in argv

    # ------------------------------------------------------------ doors

    def observing(self, environ: Mapping[str, str], brief: bool) -> Observing:
        from ..need import Observing

        async def observe(need: Need) -> None:
            from .server import observe_terminals  # rarely needed, and loads much

            await observe_terminals(need)

        def wanted(s: Session, now: float) -> Iterator[Want]:
            services = (pid for pid, process in s.processes.items() if process.shared)
            return (Want(TERMINALS, (str(pid),)) for pid in services)

        return Observing({TERMINALS: observe}, wanted)

    def reporting(self, line: Callable[[str], str]) -> str:
        from ...system.files import plugin

        return plugin(HEAD, "opencode.js")

    def say(self, s: Session, pid: int, text: str, home: Path) -> None:
        from . import server

        server.order(home, pid, s.session_id, {"prompt": text})

    def interrupt(self, s: Session, pid: int, home: Path) -> str:
        from . import server

        server.order(home, pid, s.session_id, {"abort": True})
        return ""

    def unshown(self, s: Session, pid: int, home: Path) -> str:
        from . import server

        return server.unshown(home, pid, s.session_id)

    def find(self, waiting: OpenRequest) -> None:
        from . import server

        server.find(waiting)

    def answer(self, waiting: OpenRequest, reply: bytes) -> None:
        from . import server

        server.answer(waiting, reply)
