"""Codex: hooks, logs and titles report its sessions; its shared server takes answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core.events import Event, Origin
from ...core.last_turn import TurnLog
from ...core.session import Session
from ...core.untrusted import Facts, text_of
from ..agent import Abilities, Ability, Agent, OpenRequest, Prompt, Seen
from ..inputs import after_mark
from ..installing.hookline import SHOWN_IN_PART, GlobalHooks, HooksFile, below_home
from .dialect import KEY, KINDS, SERVER, WORDS, entry, heard, is_noise, is_unread, last_turn
from .request import on_disk, reply, request

if TYPE_CHECKING:
    from ..need import Observing

HOOKS: Final = Ability("hooks")
#: Measured on 0.171.0.
ABILITIES: Final[Abilities] = {
    "unprompted": Ability(
        "locks", when="on Linux, which lists them; elsewhere with its first prompt"
    ),
    "working": HOOKS,
    "permission": Ability("hooks, log, title"),
    "question": HOOKS,
    "granted": Ability(
        "title, server",
        when="in tmux and Neovim, and with its shared server; elsewhere when the tool has finished",
    ),
    "denied": HOOKS,
    "completed": HOOKS,
    "interrupted": HOOKS,
    "failed": Ability("log"),
    "ended": Ability("hooks, processes"),
    "itself": Ability("OSC 7501", when="in a Neovim terminal, from 0.171 on"),
    "answer": Ability("server", when="if it runs with its shared server"),
}

#: Time limit of hooks in seconds, at most: Codex warns of more for hooks that run at an end.
AT_ENDS, OTHERWISE = 3, 60
TIMEOUTS: Final = {
    **{name: OTHERWISE for name, kind in KINDS.items() if kind != "note"},
    "Interrupt": AT_ENDS,
    "SessionEnd": AT_ENDS,
}


def _obstacles(looked: GlobalHooks) -> Iterator[str]:
    from .trust import obstacles

    return obstacles(looked)


def _remarks(looked: GlobalHooks) -> Iterator[str]:
    from .trust import remarks

    return remarks(looked)


#: The user chooses the parts of the title and their order: the spinner may be anywhere, or missing.
_SPINS: Final = re.compile("(?:^| )[\u2801-\u28ff](?: |$)")
_ASKS: Final = re.compile(r"\[ [!.] \] Action Required(?: |$)")

#: What its input begins with, and holds while it is empty; below are a status line and a hint.
_MARK: Final = re.compile("› ")  # noqa: RUF001
HINT: Final = "Ask Codex to do anything"


class Codex(Agent):
    """See `Agent`."""

    key = KEY
    name = "Codex"
    program = "codex"
    variable = "CODEX_HOME"
    tested = (0, 171, 0)
    abilities = ABILITIES
    timeouts = TIMEOUTS
    resuming = ("resume",)
    prompting = ("--",)
    leaving = frozenset({"other"})  # a hang-up ends it without a word
    without_hooks = SHOWN_IN_PART
    hooks = HooksFile(
        folder=below_home(".codex", "CODEX_HOME"),
        name="hooks.json",
        note='Codex asks to review new hooks at its next start: choose "Trust all and continue"',
        obstacles=_obstacles,
        remarks=_remarks,
    )
    words = WORDS
    has_titles = True
    queues = True
    submits = "Tab"  # Enter would cut off the reply that is being written

    entry = staticmethod(entry)
    is_noise = staticmethod(is_noise)
    heard = staticmethod(heard)
    on_disk = staticmethod(on_disk)
    request = staticmethod(request)
    reply = staticmethod(reply)

    def account(self, record: Facts, about: Event) -> Event:
        cwd, origin = text_of(record, "cwd"), Origin(self.key, about.pid)
        return replace(about, name="registry", cwd=cwd, origin=origin)

    def event(
        self,
        payload: bytes,
        t: float,
        clock: float,
        origin: Origin,
        truncated: bool = False,
        name: str = "",
    ) -> Event:
        # Its terminal shows one thread; others go on.
        many = replace(origin, many=True)
        return super().event(payload, t, clock, many, truncated, name)

    def titled(self, text: str) -> Seen | None:
        if _SPINS.search(text):
            return Seen("busy")
        return Seen("waiting", "choice") if _ASKS.match(text) else Seen("idle")

    def at_rest(self, text: str) -> str:
        # Of another thread, or of the list of all threads, it is another one.
        before, *after = _SPINS.split(_ASKS.sub("", text).removeprefix("| "), maxsplit=1)
        return before.rstrip(" |") or "".join(after)

    def serves(self, argv: Sequence[str]) -> bool:
        return SERVER in argv[1:]

    def prompt(self, screen: Sequence[str]) -> Prompt | None:
        return after_mark(screen, _MARK, HINT, below=2)

    # ------------------------------------------------------------ doors

    def observing(self, environ: Mapping[str, str], brief: bool) -> Observing:
        from .witness import observing

        return observing(self, environ, brief)

    def last_turn(self, s: Session, environ: Mapping[str, str]) -> TurnLog | None:
        from ..tailing import newest_first
        from .threads import home_in, thread_log

        path = s.transcript or thread_log(home_in(environ), s.session_id)
        return last_turn(newest_first(path, is_unread)) if path else None

    def say(self, s: Session, pid: int, text: str, home: Path) -> None:
        from . import server

        server.say(pid, s.session_id, text)

    def interrupt(self, s: Session, pid: int, home: Path) -> str:
        from . import server

        return server.interrupt(pid, s.session_id)

    def unshown(self, s: Session, pid: int, home: Path) -> str:
        from ...system.processes import environment_of
        from .threads import in_view_since

        environ = environment_of(pid, ("CODEX_HOME", "HOME"))
        is_in_view = in_view_since(s.session_id, pid, s.began, environ)
        return "" if is_in_view else "its terminal may show another of its threads"

    def find(self, waiting: OpenRequest) -> None:
        from . import server

        server.find(waiting)

    def answer(self, waiting: OpenRequest, reply: bytes) -> None:
        from . import server

        server.answer(waiting, reply)
