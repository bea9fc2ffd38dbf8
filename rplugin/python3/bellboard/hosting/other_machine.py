"""Carry out errands about sessions of another machine: ask that machine over its link.

The reply says what happened, or why nothing can be asked of that machine now.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from ..core.evidence import ASKABLE
from ..core.far import MACHINE
from ..core.request import CHECK, Given, Reply, understood
from ..core.session import Session
from ..storage import machines
from ..storage.machines import Mailbox
from ..system import kitty, remotely, ssh
from ..system.failures import Declined, described
from ..system.inotify import Inotify, arm
from ..system.processes import is_alive
from ..system.reach import reach

PATIENCE: Final = 15.0  # seconds for a reply; over a fleet, `fleet/requests.py` waits 14
TAKEN: Final = 3.0  # seconds until somebody takes a request: a host is starting, or taking over
DEEDS: Final = (
    "answer",
    "send",
    "interrupt",
    "stop",
)  # that may have been done although no reply came
LOOK: Final = 0.05  # seconds between two checks where the system does not report new files
#: A program in a container would mistake the tmux or the Neovim around it for its own.
APART: Final = ("env", "-u", "TMUX", "-u", "TMUX_PANE", "-u", "NVIM")
#: Evidence of what a user did to a session → what its machine is asked for.
DOES: Final = {key: do for do, key in ASKABLE.items()}


class OtherMachines:
    """Sends errands to other machines; `home` is our state folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def do(self, what: str, s: Session, given: Given) -> Reply:
        """Carry out a request about a session; raise `Declined` if it is not carried out."""
        fields = {key: value for key, value in given.items() if key != "session_id"}
        if what == "goto":
            return await self._goto(s, fields.get("attach") is True)
        reply = await self._ask(s, what, fields)
        for part in ("request", "turn"):
            if isinstance(shown := reply.get(part), dict):
                shown["session_id"] = s.session_id  # what it is called here
        return reply

    async def claim(self, s: Session, fields: Given) -> Reply:
        """Claim a notification, also of our own session, if we are in a fleet."""
        if s.machine:
            return await self._ask(s, "claim", fields)
        return await self._ask_at(machines.OURS, "the fleet", s.session_id, "claim", fields)

    async def mark(self, s: Session, evidence: Given) -> None:
        """Report what a user did to a session, which its own machine keeps."""
        (what, fields), *_ = ((k, v) for k, v in evidence.items() if k != "t")
        if what not in DOES:
            raise Declined(f"this has to be done on {s.machine} itself")
        rest = {key: value for key, value in fields.items() if key != "session_id"}
        if until := rest.get("until"):
            rest["until"] = until + await self._ahead(s)
        await self._ask(s, DOES[what], rest)

    async def _ahead(self, s: Session) -> float:
        """Return how far the clock of its machine is ahead of ours, in whole seconds."""
        began = time.time()
        now = (await self._ask(s, "clock", {})).get("now")
        if not isinstance(now, int | float):
            return 0.0
        return float(round(now - (began + time.time()) / 2))

    async def _goto(self, s: Session, attach: bool) -> Reply:
        """Show it in the terminal here that shows its machine, or return a command that opens one.

        `attach`: open one in any case.  The reply has `command`, or `place`, where its terminal is
        to be shown here, or, once it is shown, what `jump.show` returns.
        """
        if attach:
            return {"command": self._terminal(s)}
        own = await reach(ssh.own)
        reply = await self._ask(s, "goto", {"clients": [*own]})
        pid = own.get(str(reply.get("client")))
        if pid is None:
            return {"command": self._terminal(s)}
        place = await reach(partial(ssh.terminal_at, pid))
        if place.kitty:
            try:
                await reach(partial(kitty.show, place.kitty, place.tty))
            except Declined as why:
                raise Declined(f"it is shown on {place.tty}, but {why}") from None
            return {}
        if not (place.pane or place.nvim):
            return {"tty": place.tty, "where": f"shown in the other terminal, {place.tty}"}
        return {"place": {key: value for key, value in place._asdict().items() if value}}

    def _terminal(self, s: Session) -> list[str]:
        """Return the command that shows a session in a terminal that is opened for it."""
        words = machines.known(self._home).all.get(s.machine)
        if words is None:
            raise Declined(f"{s.machine} is no longer followed here")
        command = remotely.command_of(words, ["goto", _there(s), "--attach"], terminal=True)
        return command if remotely.is_ssh(words) else [*APART, *command]

    async def _ask(self, s: Session, do: str, fields: Given) -> Reply:
        """Ask the machine of a session; return its reply, or raise `Declined` with the reason."""
        if not MACHINE.fullmatch(s.machine):
            raise Declined("its machine cannot be asked")
        return await self._ask_at(s.machine, s.machine, _there(s), do, fields)

    async def _ask_at(self, machine: str, called: str, sid: str, do: str, fields: Given) -> Reply:
        try:
            mailbox = Mailbox(self._home, machine)
            async with _arrivals(mailbox.replied) as arrived:
                name = mailbox.ask({"do": do, "session_id": sid, **fields})
                reply = await self._reply(mailbox, name, machine, called, do, arrived)
        except (OSError, ValueError) as error:
            raise Declined(f"{called} cannot be asked: {described(error)}") from None
        if reply.get("ok") is not True:
            raise Declined(str(reply.get("why") or f"{called} gave no reason"))
        if (known := understood(do, reply)) is None:
            raise Declined(f"{called} sent a reply that cannot be read; update bellboard there")
        return known

    async def _reply(
        self,
        mailbox: Mailbox,
        name: str,
        machine: str,
        called: str,
        do: str,
        arrived: asyncio.Event | None,
    ) -> Reply:
        begun = time.monotonic()
        while (reply := mailbox.take_reply(name)) is None:
            waited = time.monotonic() - begun
            if waited > TAKEN and not self._is_kept(machine) and mailbox.withdraw(name):
                raise Declined(
                    f"no background process follows {called}: start Neovim or `bellboard serve`"
                )
            if waited > PATIENCE:
                is_unclear = not mailbox.withdraw(name) and do in DEEDS
                check = CHECK if is_unclear else ""
                raise Declined(f"{called} has not replied for {PATIENCE:.0f} s{check}")
            await _wait(arrived)
        return reply

    def _is_kept(self, machine: str) -> bool:
        pid = machines.lock_of(self._home, machine).holder()
        return pid is not None and is_alive(pid)


def _there(s: Session) -> str:
    """Return the id of a session on its own machine."""
    return str(s.row.get("session_id", ""))


@contextlib.asynccontextmanager
async def _arrivals(folder: Path) -> AsyncIterator[asyncio.Event | None]:
    """Yield an event that is set when a file comes into a folder; None if nothing reports that."""
    arrived = asyncio.Event()
    with contextlib.ExitStack() as stack:
        reported: asyncio.Event | None = arrived
        try:
            watch = stack.enter_context(contextlib.closing(Inotify(lambda _: arrived.set())))
            watch.add(str(folder), arm(watch.descriptor, str(folder), True), True)
        except (OSError, AttributeError):  # no inotify, or no more of it
            reported = None
        yield reported


async def _wait(arrived: asyncio.Event | None) -> None:
    if arrived is None:
        await asyncio.sleep(LOOK)
        return
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(arrived.wait(), 1.0)
    arrived.clear()
