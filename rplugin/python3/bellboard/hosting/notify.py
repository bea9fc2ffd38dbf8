"""Which notification is due here, and claimed once for all hosts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..core.board import Board
from ..core.deadlines import NEVER
from ..core.notices import AWAY, MODES, Notice, Notices, policy_of
from ..core.published import Published, publish
from ..core.session import Session, is_listed, published_status
from ..core.text import whole
from ..core.untrusted import decimal
from ..storage.feed_position import token_of
from ..storage.machines import OPTION
from ..storage.store import Busy, Change, Editor, Store, in_front
from ..system.deaths import Deaths
from ..system.failures import Backoff, Declined
from ..system.processes import is_alive, runs, started_of
from ..system.tmux import socket_in
from .callbacks import PAUSE, Commands
from .channels import Channels, wording
from .jobs import Attempts
from .other_machine import OtherMachines

# Who can notify: machines that follow this one, and hosts here with a desktop.
#
# While somebody follows, this machine leaves notifications to the machine its reader sits at.
# Hosts note this in the database with their process, and renew nothing: the others watch that
# process, so a note ends with it, whatever killed it.


#: Shared options: process and why → when it started.
FOLLOWERS: Final = "followers"
SCREENS: Final = "screens"


def present(store: Store, which: str) -> dict[int, str]:
    """Return the processes that are noted and still run, and their starts."""
    return {pid: started for (pid, _), started in _noted(store, which).items()}


def is_published(store: Store) -> bool:
    """Return whether other machines of a fleet may notify of our sessions too."""
    joined = store.option(OPTION)
    return isinstance(joined, dict) and joined.get("publishes") is not False


def note(store: Store, which: str, pid: int, why: str, is_so: bool, now: float) -> bool:
    """Note something for as long as this process runs, or no longer; return whether that is new."""
    known = _noted(store, which)
    if ((pid, why) in known) == is_so:
        return False
    with store.transaction() as tx:
        known = _noted(store, which)
        known.pop((pid, why), None)
        if is_so:
            known[pid, why] = started_of(pid)
        value = {f"{p} {w}": started for (p, w), started in known.items()}
        tx.set_option(which, value, pid, now)
    return True


def _noted(store: Store, which: str) -> dict[tuple[int, str], str]:
    known = store.option(which)
    found = {}
    for key, started in known.items() if isinstance(known, dict) else ():
        pid, _, why = str(key).partition(" ")
        if (number := decimal(pid)) and runs(number, started):
            found[number, why] = started
    return found


# Ask the machines of sessions for the right to send notifications; each is granted once.
#
# In a fleet its server is asked, even about our own sessions; about these we notify if nobody
# replies, as nobody else can then. Another machine that cannot be asked is asked once it is
# followed again, if the notification is still due: perhaps nobody there has sent it meanwhile.
#
# The right is granted to this machine: all of its hosts ask with one token, so repeating a
# request is harmless. Once granted, they claim the notification here, and whichever gets it
# sends it at once. So a host that dies while it waits takes nothing with it.


LONGEST_PAUSE: Final = 60.0  # seconds between two requests


@dataclass
class Wish:
    """A notification that needs a grant."""

    notice: Notice
    session: Session
    token: str
    send: Callable[[], object]
    backoff: Backoff = field(default_factory=partial(Backoff, 2.0, LONGEST_PAUSE))


class Grants:
    """Asks for grants, and collects them; `replied` is called after each request."""

    def __init__(self, home: Path, replied: Callable[[], object]) -> None:
        self._elsewhere, self._replied = OtherMachines(home), replied
        self._asking: set[asyncio.Task[None]] = set()
        self._unasked: list[Wish] = []
        self._granted: list[Wish] = []

    def ask(self, notice: Notice, s: Session, token: str, send: Callable[[], object]) -> None:
        """Ask the machine of a session to grant a notification to our machine."""
        self._start(Wish(notice, s, token, send))

    def take(self, sessions: Mapping[str, Session]) -> list[Wish]:
        """Return the granted notifications that are still due, each once."""
        granted, self._granted = self._granted, []
        return [wish for wish in granted if _is_due(wish, sessions)]

    def put_back(self, wishes: list[Wish]) -> None:
        """Keep the grants that could not be claimed yet."""
        self._granted = [*wishes, *self._granted]

    def ask_again(self, sessions: Mapping[str, Session]) -> float:
        """Ask again for grants that are still due; return the seconds until the next time."""
        wishes, self._unasked, wait = self._unasked, [], NEVER
        for wish in wishes:
            if not _is_due(wish, sessions):
                continue
            s = sessions[wish.notice.session_id]
            if not (wish.backoff.is_waiting or s.stale):
                self._start(wish)
                continue
            self._unasked.append(wish)
            if not s.stale:
                wait = min(wait, wish.backoff.until - time.monotonic())
        return wait

    def _start(self, wish: Wish) -> None:
        task = asyncio.get_running_loop().create_task(self._ask(wish))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, wish: Wish) -> None:
        notice, s = wish.notice, wish.session
        effect = f"notice {notice.channel}"
        about = {"status": notice.status, "effect": effect, "token": wish.token}
        try:
            if (await self._elsewhere.claim(s, about)).get("granted") is True:
                self._granted.append(wish)
        except Declined:
            if not s.machine:
                self._granted.append(wish)
            else:
                wish.backoff.fail()
                self._unasked.append(wish)
        self._replied()


def _is_due(wish: Wish, sessions: Mapping[str, Session]) -> bool:
    """Return whether the session still has the status that the notification is about."""
    s = sessions.get(wish.notice.session_id)
    return s is not None and published_status(s) == wish.notice.status


# Send this host's notifications.
#
# `notices.py` decides what is due and `channels.py` knows how to send it. This file connects
# both with what all hosts share: claims, so that only one sends a notification, open editors,
# mode.


MODE: Final = "mode"  # the shared option
LADDER: Final = 86400.0  # seconds; anything announced earlier is not escalated further

Report = Callable[[Mapping[str, Any], "str | None"], None]


class Notifier:
    """Sends notifications for one host; `report` writes to the spool, which wakes all hosts."""

    def __init__(
        self,
        home: Path,
        config: Mapping[str, Any],
        environ: Mapping[str, str],
        pid: int,
        commands: Commands,
        attempt: Attempts,
        report: Report,
    ) -> None:
        settings = config.get("notices")
        self.pid = pid
        self.sends = isinstance(settings, Mapping)  # only the float without settings
        settings = settings if isinstance(settings, Mapping) else {}
        self.notices = Notices(policy_of(settings))
        self.channels = Channels(settings, environ)
        self._own_mode = self.notices.policy.mode
        self._commands, self._attempt, self._report = commands, attempt, report
        self._editor = _editor_of(config, environ, pid)
        self._in_front = self._editor  # until the other editors are known
        self._is_noted = False  # whether the others know of our editor and desktop
        self._recovers = True  # whether current statuses may predate this host
        self._unheard: list[Change] = []
        self._lines: list[dict[str, Any]] = []  # for the editor to show
        self._wish = ""  # a mode to set
        self._acted = 0.0  # when it last acted
        self._deaths: Deaths | None = None
        self._grants = Grants(home, self._wake)

    # ------------------------------------------------------------ input

    def see(self, board: Board, sid: str) -> None:
        """Note that a session may have changed."""
        self.notices.see(board.sessions, (sid,), time.time())

    def hear(self, changes: Sequence[Change]) -> None:
        """Take committed transitions."""
        self._unheard += changes

    def renew(self) -> None:
        """Start over: the database was replaced, or could not be reached."""
        self._recovers, self._is_noted = True, False

    def focus(self, t: float) -> None:
        """Note that our editor has had the focus since `t`; 0: it has no screen."""
        if self._editor is None or t == self._editor.focused:
            return
        now = time.time()
        t = min(t, now)
        if not (0 < t <= self._editor.focused <= now):
            self._editor = self._editor._replace(focused=t)
            self._is_noted = False

    def set_mode(self, mode: str) -> None:
        """Set the mode, for every host."""
        self._wish = mode if isinstance(mode, str) and mode in MODES else self._wish

    def shown(self) -> dict[str, Any]:
        """Return the fields for an editor besides the sessions."""
        if self._editor is None:
            return {}
        front = self._is_front
        listed, left_out = self.notices.list_for_float(time.time()) if front else ([], {})
        return {
            "front": front,
            "in_front": self._in_front.server if self._in_front is not None else "",
            "float": listed,
            "left_out": left_out,
            "mode": self.notices.policy.mode,
        }

    def health(self) -> dict[str, str]:
        """Return the lines of :checkhealth about notifications."""
        if not self.sends:
            return {}
        player = self.channels.player
        return {
            "mode": self.notices.policy.mode,
            "desktop": self.channels.desktop or "not available",
            "sound": player[0] if player else "no player found",
            **(
                {"left to": "another machine that follows this one"}
                if self.notices.is_followed
                else {}
            ),
        }

    # ------------------------------------------------------------ output

    def act(self, store: Store, board: Board) -> float:
        """Send the notifications that are due; return the seconds until the next call."""
        before, self._acted = self._acted, time.time()
        if self._acted < before:
            self.notices.set_back(self._acted)
        self._listen(store)
        self._share(store)
        self._read_others(store)
        now = time.time()
        time.tzset()  # for the whole process: a traveler's zone may have changed since its start
        self.notices.zone = time.localtime(now).tm_gmtoff
        later = self._grants.ask_again(board.sessions)
        if not self._send_granted(store, board):
            return PAUSE
        able, wait = self._able()
        while (notice := self.notices.next(now, able)) is not None:
            session = board.sessions.get(notice.session_id)
            speak = partial(self._speak, notice, session, board)
            speak = partial(self._attempt.once, "notices", notice.session_id, speak)
            if notice.channel in AWAY and session is not None and _is_shared(session, store):
                token = token_of(store, notice.id, self.pid, now)
                self._grants.ask(notice, session, token, speak)
            else:
                ours = self._claim(store, notice, session, board)
                if ours is None:
                    return PAUSE
                if ours:
                    speak()
                    able, wait = self._able()
            self.notices.sent(notice, now)
        when = self.notices.wake(now, able)
        return min(wait, later, when - now if when < NEVER else NEVER)

    def said(self) -> list[dict[str, Any]]:
        """Return, once, the notifications that the editor is to show."""
        lines, self._lines = self._lines, []
        return lines

    def leave(self, store: Store) -> None:
        """Note that our editor is closing."""
        if self._editor is not None:
            with store.transaction() as tx:
                tx.drop_editor(self.pid)
            self._look_away(self._editor)

    def close(self) -> None:
        """Stop watching other editors."""
        if self._deaths is not None:
            self._deaths.close()

    @property
    def _is_front(self) -> bool:
        return self._in_front is not None and self._in_front.pid == self.pid

    def _able(self) -> tuple[frozenset[str], float]:
        """Return the channels that can send now, and when to check those that are busy."""
        able = self.channels.able(self._is_front) if self.sends else frozenset({"float"})
        programs = {c: p for c in able if (p := self.channels.program_of(c))}
        full = {c for c, program in programs.items() if not self._commands.has_room(program)}
        return able - full, self._commands.patience() if full else NEVER

    def _send_granted(self, store: Store, board: Board) -> bool:
        """Send granted notifications that no other host has sent; return False if some wait."""
        wishes = self._grants.take(board.sessions)
        while wishes:
            ours = self._claim(store, wishes[0].notice, wishes[0].session, board)
            if ours is None:
                self._grants.put_back(wishes)
                return False
            wish = wishes.pop(0)
            if ours:
                wish.send()
        return True

    def _claim(
        self, store: Store, notice: Notice, session: Session | None, board: Board
    ) -> bool | None:
        """Claim a notification; return whether it is ours, or None while the lock is taken."""
        text = ""
        if session is not None:
            text = ": ".join(filter(None, wording(notice, _published(session, board))))
        try:
            claim = notice.id, f"notice {notice.channel}"
            return store.announce(claim, text, self.pid, time.time())
        except Busy:
            return None

    def _speak(self, notice: Notice, session: Session | None, board: Board) -> None:
        if session is None:
            return
        published = _published(session, board)
        if command := self.channels.command_of(notice, published):
            self._commands.start(command)
        elif notice.channel != "sound":
            self._lines.append(self.channels.line_of(notice, published))

    def _wake(self) -> None:
        self._report({"tick": {}}, None)

    def _listen(self, store: Store) -> None:
        """Process transitions, but do not announce a status that predates this host."""
        now, changes = time.time(), self._unheard
        if self._recovers:
            self.notices.hear(store.standing(now - LADDER))
            self.notices.pass_over(now, {c.transition.session_id for c in changes if c.live})
            self._recovers = False
        self._unheard = []
        self.notices.hear(changes)

    def _share(self, store: Store) -> None:
        """Write this host's entry for the other hosts."""
        news = False
        if not self._is_noted:
            if self._editor is not None:
                with store.transaction() as tx:
                    tx.set_editor(self._editor)
                news = True
            if self.sends and self.channels.desktop:
                news |= note(store, SCREENS, self.pid, "desktop", True, time.time())
            self._is_noted = True
        if self._wish:
            with store.transaction() as tx:
                tx.set_option(MODE, self._wish, self.pid, time.time())
            self._wish, news = "", True
        if news:
            self._wake()

    def _read_others(self, store: Store) -> None:
        """Read the entries of the other hosts, and drop editors that are gone."""
        mode = store.option(MODE)
        self.notices.set_mode(mode if isinstance(mode, str) else self._own_mode, time.time())
        self._deaths = self._deaths or Deaths(self._died)
        following = present(store, FOLLOWERS) if self.sends else {}
        self.notices.is_followed = bool(following)
        for pid, started in following.items():
            self._deaths.watch(pid, started)
        if self._editor is None:
            return
        alive = [self._editor]
        for editor in store.editors():
            if editor.pid == self.pid:
                continue
            if is_alive(editor.pid):
                self._deaths.watch(editor.pid)
                alive.append(editor)
            else:
                with store.transaction() as tx:
                    tx.drop_editor(editor.pid)
                self._look_away(editor)
        self._in_front = in_front(alive, time.time())

    def _look_away(self, editor: Editor) -> None:
        """End the view of an editor that is gone; this also wakes the other hosts."""
        line = {"view": False, "viewer": f"nvim {editor.server}"}
        self._report(line, f"gone {editor.pid} {editor.focused}")

    def _died(self, pid: int, started: str) -> None:
        self._wake()  # to drop that editor


def _published(session: Session, board: Board) -> Published:
    others = (s for s in board.sessions.values() if s.agent != session.agent)
    return publish(session) | {"mixed": any(map(is_listed, others))}


def _is_shared(session: Session, store: Store) -> bool:
    """Return whether other machines may notify of a session, too."""
    return bool(session.machine) or is_published(store)


def _editor_of(config: Mapping[str, Any], environ: Mapping[str, str], pid: int) -> Editor | None:
    """Return the editor that this host belongs to, if any."""
    server = config.get("server")
    if not isinstance(server, str) or not server:
        return None
    since, focused = time.time(), config.get("focused")
    if isinstance(focused, int | float) and 0 <= focused <= since:
        since = float(focused)
    tmux, pane = socket_in(environ), environ.get("TMUX_PANE", "")
    return Editor(pid, whole(server), whole(tmux), whole(pane), since)
