"""Which session a command is about: lua/bellboard/action/which.lua accepts the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .home import Problem

if TYPE_CHECKING:
    from ..core.published import Published
    from ..core.session import Session
    from ..hosting.folding import Clerk

SHORTEST: Final = 4  # characters of an id in a message
SOME: Final = 4  # sessions that it names
ROOM: Final = 24  # cells for the title of each


def find(clerk: Clerk, called: str) -> str:
    """Return the id of the one session with that id, start of an id, or name; listed ones first."""
    from ..core.published import publish
    from ..core.session import is_listed

    sessions = {sid: s for sid, s in clerk.board.sessions.items() if sid}
    if called in sessions:
        return called
    names = {sid: _names(publish(s)) for sid, s in sessions.items() if is_listed(s)}

    def meant(called: str) -> list[str]:
        alike = {sid for sid in sessions if called and sid.startswith(called)}
        named = [sid for sid in names if sid in alike or (called and called in names[sid])]
        return named or [*alike]

    found = sorted(meant(called))
    if len(found) == 1:
        return found[0]
    if not found:
        raise Problem(f"no session matches {called}; run `bellboard list` to see them all")
    starts = {}
    for sid in found[:SOME]:
        own = (sid[:n] for n in range(SHORTEST, len(sid)) if meant(sid[:n]) == [sid])
        starts[sid] = next(own, sid)
    some = ", ".join(_told(start, sessions[sid]) for sid, start in starts.items())
    more = ", …" if len(found) > SOME else ""
    raise Problem(f"{len(found)} sessions match {called}: {some}{more}; give one of these ids")


def _names(p: Published) -> set[object]:
    """Return its names besides its id: all that completion in Neovim offers."""
    from ..core import words

    shown = p.get("name") or words.title(p)
    return {shown, p.get("title"), words.project(p), words.repository(p)}


def _told(start: str, s: Session) -> str:
    """Return the start of an id, and what tells the session apart from others of that name."""
    from ..core import words
    from ..core.cells import cut
    from ..core.published import publish

    title = cut(words.title(publish(s)), ROOM)
    return f"{start} ({title})" if title else start
