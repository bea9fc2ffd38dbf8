"""Answer requests full screen, such as in a tmux popup, one session after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ..core import words
from ..core.published import publish
from ..core.session import is_far, questions_of
from ..core.text import plain
from ..screen.picker import operate
from ..screen.prompt import SOON, ShownRequest
from ..screen.request import TURN, asker, turn_request, wrapped
from ..screen.styled import StyledText
from .edits import SNOOZE, elsewhere
from .goto import flashing
from .goto import jump_to as go_there
from .home import (
    OFTEN,
    Problem,
    find_session,
    has_terminal,
    listed,
    opened,
    paints,
    with_pane_names,
)
from .runner import Runner, asking, asks, decoded, waiting
from .sessions import rests

if TYPE_CHECKING:
    from ..core.published import Published
    from ..core.request import Request
    from ..hosting.turn import SharedBoard

EVERY: Final = 1.0  # seconds between checks that a request is still open
FOLLOWS: Final = 2.0  # seconds for a session's next dialog; it is busy in between
DONE: Final = frozenset({"completed", "error"})
RequestKey = tuple[str, str, float]  # where, request, since when


def answer_full_screen(called: str = "", client: str = "", has_replies: bool = False) -> int:
    """Show open requests, longest waiting first, until the last is gone or the user quits.

    The session that is called comes first; so does its reply, if it rests.
    """
    if not (has_terminal() and paints()):
        raise Problem(
            "`bellboard answer --popup` needs a terminal whose cursor can be moved; "
            "leave out --popup"
        )
    with opened() as shared:
        first = _first(shared, called) if called else ""
        flow = Flow(shared, Runner(shared, "a popup"), first, has_replies)
        operate(flow, EVERY)
    if flow.goes is not None:
        with flashing(client):
            go_there(flow.goes, client)
    return 0 if flow.answered or flow.goes else 1


def _first(shared: SharedBoard, called: str) -> str:
    """Return the session with that name, which asks or rests."""
    sid = find_session(shared, called, makes_sense=asks)
    s = shared.board.sessions.get(sid)
    return sid if s is not None and rests(publish(s)) else asking(shared, called)["session_id"]


class Flow:
    """The request on the screen, the outcome of the last one, and those still to come.

    `has_replies`: after them come the replies of sessions that are done.
    """

    def __init__(
        self, shared: SharedBoard, runner: Runner, first: str, has_replies: bool = False
    ) -> None:
        self.over = False
        self.goes: Published | None = None  # the session to jump to
        self.answered = 0
        self._shared_board, self._runner, self._first = shared, runner, first
        self._has_replies = has_replies
        self._over: set[RequestKey] = set()  # answered or skipped
        self._notes: list[str] = []
        self._done = 0.0  # when the last request left the screen
        self._awaits = False  # whether a session goes on to its next dialog
        self._asks: RequestKey | None = None
        self._session: Published = {}
        self._prompt: ShownRequest | None = None
        self._looked = 0.0  # when the request was last checked

    def press(self, key: str, now: float) -> None:
        """Apply a key; send the answer once it is complete."""
        prompt = self._prompt
        if prompt is None:
            self.over = now > self._done + SOON  # earlier, a key is meant for the last request
            self._done = now
            return
        prompt.press(key, now)
        if prompt.taken is not None:
            self._give(prompt)
        elif prompt.does in ("skip", "snooze", "seen") and self._asks:
            self._over.add(self._asks)
            self._done = now
            if prompt.does == "snooze":
                self._snooze(now)
            elif prompt.does == "seen":
                self._edit(now, "goto", {})
        elif prompt.does:
            self.over = True
            self.goes = self._session if prompt.does == "go" else None
        if prompt.over:
            self._asks = self._prompt = None

    def lines(self, now: float, columns: int, height: int) -> list[StyledText]:
        """Return the screen; replace a request that is no longer open by the next one."""
        self._look(now)
        notes = [row for note in self._notes[-3:] for row in wrapped(note, columns, " ", "dim")]
        if self._prompt is not None:
            return [*notes, *self._prompt.lines(now, columns, height - len(notes))]
        none = "No session is asking anything."
        if self._awaits:
            none = "Waiting for the next request…"
        elif self._over or self._notes:
            none = "No more requests."
        return [*notes, StyledText(f" {none}"), StyledText(" Press any key to close.", "dim")]

    def _look(self, now: float) -> None:
        """Bring the board up to date and choose the request to show."""
        self._runner.session("")  # brings the board up to date
        sessions = listed(self._shared_board, OFTEN)
        due = [*waiting(sessions), *filter(self._is_reply, sessions)]
        asking = [p for p in due if _asks(p) not in self._over]
        asking.sort(key=lambda p: p["session_id"] != self._first)
        same = next((p for p in asking if _asks(p) == self._asks), None)
        shows_reply = self._prompt is not None and self._prompt.request.kind == TURN
        why = "it has gone on" if shows_reply else "answered elsewhere"
        if same is not None and self._stands(same):
            self._session = same  # the same session, perhaps with another id now
            if not (why := self._why_over(now)):
                return
        gone = self._prompt if self._asks else None
        if gone is not None:
            typed = f"; not sent: “{gone.unsent}”" if gone.unsent else ""
            self._note(self._session, f"{why}{typed}")
            if same is not None:
                self._leave(gone.request)
            asking = [p for p in asking if _asks(p) not in self._over]
            self._done = now
        self._asks = self._prompt = None
        self._awaits = False
        looked = now
        for n, session in enumerate(asking):
            begun = time.monotonic()
            what = "turn" if rests(session) else "request"
            reply = self._runner.do(what, {"session_id": session["session_id"]})
            now += time.monotonic() - begun  # keys pressed meanwhile were not meant for it
            if not reply["ok"]:
                if self._goes_on(session, looked):
                    self._awaits = True
                else:
                    self._note(session, reply["why"])
                    self._over.add(_asks(session))
                continue
            left = f"{len(asking) - n} left · " if len(asking) - n > 1 else ""
            heading = left + words.project(session)
            if rests(session):
                request = turn_request(reply["turn"], session)
            else:
                request = decoded(reply["request"])
            who = asker(with_pane_names([session])[0], request)
            self._prompt = ShownRequest(request, heading, who, now)
            self._session, self._asks = session, _asks(session)
            self._looked = now
            return
        if gone is not None:
            self._done = now

    def _is_reply(self, p: Published) -> bool:
        """Return whether to show the reply of a session: of the chosen one, or of what is done."""
        is_muted = "parked" in p["markers"] or p.get("snoozed_until", 0.0) > time.time()
        is_done = p["status"] in DONE and not is_muted
        return rests(p) if p["session_id"] == self._first else self._has_replies and is_done

    def _stands(self, session: Published) -> bool:
        """Return whether the request on the screen is open, even if its session names another."""
        name = self._prompt.request.id if self._prompt is not None else ""
        s = self._shared_board.board.sessions.get(session["session_id"])
        if not name or s is None or s.machine:  # only its own machine knows its other requests
            return True
        return any(block.request == name for _, block in questions_of(s))

    def _why_over(self, now: float) -> str:
        """Return why the request on the screen can no longer be answered, or "".

        Without a host, evidence arrives only from hooks, and a tool may run for long before the
        next hook.  So the files of the agent are read.
        """
        if (
            self._prompt is None
            or self._prompt.request.kind == TURN
            or is_far(self._session["session_id"])
            or now < self._looked + EVERY
        ):
            return ""
        self._looked = now
        about = {"session_id": self._session["session_id"], "request": self._prompt.request.id}
        reply = self._runner.do("request", {**about, "ways": False})
        return "" if reply["ok"] else str(reply["why"])

    def _goes_on(self, session: Published, now: float) -> bool:
        """Return whether a session may still go on from the last answer to its next dialog."""
        is_last = session["session_id"] == self._session.get("session_id")
        return is_last and now < self._done + FOLLOWS

    def _give(self, prompt: ShownRequest) -> None:
        """Give the answer, or send what was written after a reply; a text that is refused stays."""
        request, given = prompt.request, prompt.taken or {}
        about = {"session_id": self._session["session_id"]}
        if request.kind == TURN:
            reply = self._runner.do("send", {**about, "text": given["message"], "submit": True})
        else:
            about |= {"request": request.id, "digest": request.digest}
            reply = self._runner.do("answer", {**about, **given})
        taken = bool(reply["ok"] and reply["outcome"] != "nothing")
        self.answered += taken
        self._done = time.time()
        outcome = reply["text"] if reply["ok"] else reply["why"]
        self._note(self._session, f"“{prompt.chosen}”: {outcome}")
        if request.kind == TURN and not taken:
            prompt.taken = None
        else:
            self._leave(request)

    def _snooze(self, now: float) -> None:
        until = now + 60 * SNOOZE
        self._edit(now, "snooze", {"until": until})
        self._note(self._session, f"snoozed until {time.strftime('%H:%M', time.localtime(until))}")

    def _edit(self, now: float, what: str, fields: dict[str, object]) -> None:
        s = self._shared_board.board.sessions[self._session["session_id"]]
        if s.machine:
            elsewhere(self._shared_board, s, {what: fields})
        else:
            about = {"session_id": s.session_id, **fields}
            self._shared_board.spool.write({"t": now, what: about})

    def _leave(self, request: Request) -> None:
        """Do not show a request again, even while the board still lists it.

        The terminal may have shown another request than the session's own, which comes next then.
        """
        is_another = request.id != self._session.get("request", "")
        if self._asks and not is_another:
            self._over.add(self._asks)

    def _note(self, session: Published, text: str) -> None:
        self._notes.append(plain(f"{words.project(session)}: {text}"))


def _asks(p: Published) -> RequestKey:
    """Return the key of a session's request, which stays when the session gets another id."""
    name = p.get("request", "")
    where = p.get("machine", "") if name else p["session_id"]
    return where, name, float(p["since"] if rests(p) else p.get("asked_at", 0.0))
