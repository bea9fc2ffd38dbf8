"""The request of a session: read again, its process proven, and bound to its files.

Each request is read again whenever it is shown or answered: its question is open, its process is
proven to be the session's and to ask this now, and the files that it is about are as shown.  What
cannot be shown in full cannot be answered from here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from ..agents.agent import About, OnDisk, OpenRequest, Unanswered, Unclear, Unreachable
from ..agents.parts import at_end, part
from ..agents.registry import agent_of, is_known_agent
from ..agents.trace_line import origin_of
from ..core.events import Event, Origin
from ..core.request import (
    HOOK,
    TERMINAL,
    Given,
    Part,
    Request,
    SentAnswer,
    Went,
    digest_of,
)
from ..core.session import Block, Run, Session, Stated, questions_of
from ..core.text import line, marked
from ..storage.answers import Claims
from ..storage.event_file import NAME
from ..storage.spool import Refused, Spool
from ..system.failures import Declined
from ..system.files import read, real, status_of
from ..system.processes import began_at, is_suspended, started_of
from ..system.reach import reach
from ..witnesses.proof import located, objection
from ..witnesses.repository import main_of

if TYPE_CHECKING:
    from ..storage.store import Logged

Environ = Mapping[str, str]

THERE: Final = "; go there to answer"
ANSWERED: Final = "it has already been answered"
#: Whose answer counted instead → how to say it.
FIRST: Final = {
    TERMINAL: "you answered in the terminal first",
    HOOK: "another hook answered first",
}


class Asked(NamedTuple):
    """An open request, and what it was read from."""

    session: Session
    run: Run
    block: Block
    request: Request
    payload: bytes  # empty if no hook reported it
    about: About


class RequestReader:
    """Reads what the sessions of a board ask.

    `session` folds pending events, and returns a session, or None if it is not listed.  `answers`
    returns the answers to one that were logged, with what followed, oldest first.
    """

    def __init__(
        self,
        spool: Spool,
        session: Callable[[str], Session | None],
        answers: Callable[[str], Sequence[Logged]],
        environ: Environ = os.environ,
    ) -> None:
        self.spool, self.session, self.environ = spool, session, dict(environ)
        self.claims = Claims(spool.home)
        self._answers = answers

    def named(self, given: Given) -> Session:
        """Return the session that a request names."""
        s = self.session(str(given.get("session_id")))
        if s is None:
            raise Declined("the session no longer exists")
        return s

    async def open(self, given: Given, digest: str = "") -> Asked:
        """Return the request that is named; without a name, the one that has waited longest.

        If another one of its session has `digest`, return that.
        """
        s, name = self.named(given), name_in(given)
        if (found := open_question(s, name)) is None:
            raise Declined(self._over(s, name, digest_in(given)))
        return await reach(partial(open_request, s, *found, self.spool, self.environ, digest))

    def stands(self, asked: Asked) -> bool:
        """Return whether its question is still open."""
        s = self.session(asked.session.session_id)
        found = open_question(s, asked.block.request) if s is not None else None
        if found is None:
            return False
        now, block = found[1], asked.block
        return (now.since, now.agent, now.tool) == (block.since, block.agent, block.tool)

    def _over(self, s: Session, name: str, digest: str) -> str:
        """Return why a request can no longer be answered: who did, if that was one of us."""
        if why := _claimed(self.claims, name, digest):
            return why
        given = [x.event for x in self._answers(s.session_id)]
        known = [e for e in given if (e.request == name if name else digest and e.digest == digest)]
        was_shown = bool(NAME.fullmatch(name)) if name else bool(digest)
        return by_whom(known) or (FIRST[TERMINAL] if was_shown else ANSWERED)


def open_request(
    s: Session, run: Run, block: Block, spool: Spool, environ: Environ, digest: str = ""
) -> Asked:
    """Return what a question asks: read again, in full, and proven to be asked now.

    If another open request of its session has `digest`, return that.  Raise `Declined` if nothing
    can be answered from here.  Reads foreign files, so it may hang.
    """
    asked = completed(asked_of(s, run, block, spool), environ)
    if why := _obstacle(asked, environ):
        raise Declined(why)
    if how_it_went_on(asked, environ) is not None:
        who = _claimed(Claims(spool.home), claimed_name(asked.request), "")
        raise Declined(who or FIRST[TERMINAL])
    if digest in ("", asked.request.digest):
        return asked
    found = (completed(other, environ) for other in others(asked, spool))
    return next((other for other in found if other.request.digest == digest), asked)


# ---------------------------------------------------------------- what is read


ELSEWHERE: Final = "In the folder"


def open_question(s: Session, name: str) -> tuple[Run, Block] | None:
    """Return the question with that name; without one, the one that has waited longest."""
    found = [(r, b) for r, b in questions_of(s) if (b.request == name if name else b.shown)]
    return min(found, key=lambda each: each[1].since, default=None)


def others(asked: Asked, spool: Spool) -> list[Asked]:
    """Return the other open requests, as far as they can be read."""
    found = []
    for run, block in questions_of(asked.session):
        if not _is_of(asked, block):
            with suppress(Declined):
                found.append(asked_of(asked.session, run, block, spool))
    return found


def in_its_terminal(asked: Asked, spool: Spool) -> list[Asked]:
    """Return the other requests of its terminal, such as those of other subagents.

    Their dialogs are shown one after the other, in an order that only the screen reveals: if two
    ask at the same moment, their hooks run in parallel.  One that cannot be read may be shown, too.
    """
    s, run, found = asked.session, asked.run, []
    for block in run.blocks.values():
        if not _is_of(asked, block):
            try:
                found.append(asked_of(s, run, block, spool))
            except Declined:
                found.append(_seen(s, run, block))
    return found


def _is_of(asked: Asked, block: Block) -> bool:
    """Return whether two records are of the same question; the later one may say more."""
    return block is asked.block or (bool(block.request) and block.request == asked.block.request)


def asked_of(s: Session, run: Run, block: Block, spool: Spool) -> Asked:
    """Return what a question asks; raise `Declined` if that cannot be answered from here."""
    if not is_known_agent(s.agent):
        raise Declined(f"how {line(s.agent, 20)} takes answers is not known{THERE}")
    asked = _asked_of_record(s, run, block, spool) if block.request else _seen(s, run, block)
    if run.pid not in (0, asked.request.pid):
        raise Declined(f"another process asks that{THERE}")
    return asked


def _asked_of_record(s: Session, run: Run, block: Block, spool: Spool) -> Asked:
    """Read the event that asked, as it is now."""
    try:
        item = spool.request(block.request)
    except (Refused, OSError) as why:
        raise Declined(f"its request cannot be read: {why}{THERE}") from None
    if item is None or item.origin is None:
        raise Declined(f"its request was not kept{THERE}")
    dialect, given = agent_of(s.agent), origin_of(item.origin)
    origin = _within(located(given, item.t) or given)
    request = dialect.request(item.payload, block.request, item.t, origin, item.truncated)
    if request is None:
        raise Declined(f"its request cannot be read{THERE}")
    ids = (s.session_id, *s.previous)
    if request.session_id not in ids or origin.agent != s.agent:
        raise Declined(f"its request is about another session{THERE}")
    event = dialect.event(item.payload, item.t, item.t, origin, item.truncated, item.event)
    about = About(event.detail, event.shown_digest, _folders(s))
    return Asked(s, run, block, placed(request, event.cwd, s), item.payload, about)


def _within(origin: Origin) -> Origin:
    """Return an origin with its repository, in which some settings are written."""
    main = main_of(origin.env.get("project_dir", ""))
    return replace(origin, env={**origin.env, "main_dir": main}) if main else origin


def _seen(s: Session, run: Run, block: Block) -> Asked:
    """Return a question that no hook reported: only one line of it is known."""
    pid = run.pid or next(iter(s.processes), 0)
    facts = (s.agent, s.session_id, pid, block.agent, block.tool, block.detail, block.shown_digest)
    request = Request(
        id="",
        session_id=s.session_id,
        agent=s.agent,
        kind=block.asks,
        digest=digest_of(*facts, block.since),
        pid=pid,
        thread=block.agent,
        tool=block.tool,
        asked_at=block.since,
        title=block.tool,
        parts=(Part("text", text=block.detail),) if block.detail else (),
        complete=False,
        why=f"its full request is not known here{THERE}",
    )
    return Asked(s, run, block, request, b"", About(block.detail, block.shown_digest, _folders(s)))


def placed(request: Request, folder: str, s: Session) -> Request:
    """Return a request that shows where its command would run, unless it is the session's folder.

    An agent may change it, and `rm -r *` looks the same everywhere.  The digest covers it.
    """
    is_elsewhere = folder not in ("", s.project_dir or s.cwd)
    if not is_elsewhere or all(p.kind != "command" for p in request.parts):
        return request
    where = part("file", "", ELSEWHERE, path=folder)
    return replace(request, parts=(*request.parts, where))


def _folders(s: Session) -> list[str]:
    return [folder for folder in (s.cwd, s.project_dir) if folder]


def claimed_name(request: Request) -> str:
    """Return the name under which a request is claimed."""
    return request.id or f"seen.{request.digest}"


def digest_in(given: Given) -> str:
    return line(str(given.get("digest") or ""), 40)


def name_in(given: Given) -> str:
    """Return the name of the request that is wanted, or ""."""
    return str(given.get("request") or given.get("id") or "")


# ---------------------------------------------------------------- whether it is asked now


COARSE: Final = 2.0  # error in the start of a process, in seconds; `btime` has no fractions


def _obstacle(asked: Asked, environ: Mapping[str, str]) -> str:
    """Return why its process does not ask this now, or ""."""
    s, pid = asked.session, asked.request.pid
    process = s.processes.get(pid)
    if process is None:
        return f"cannot verify that the process that asks runs this session{THERE}"
    since, began = asked.block.since, began_at(pid)
    if not process.started and began is not None and began < since - COARSE:
        process = replace(process, started=started_of(pid))  # it is the one that asked
    why = objection(s, process, environ)
    if not why and is_suspended(pid):  # it would take the answer whenever it continues
        why = f"process {pid} is suspended"
    return f"{why}{THERE}" if why else ""


def how_it_went_on(asked: Asked, environ: Mapping[str, str]) -> Went | None:
    """Return how the session went on, as its CLI says before any hook runs. May hang."""
    s, pid = asked.session, asked.request.pid
    known = s.processes.get(pid)
    if known is not None and is_older(known.states, asked.block.since):
        return None  # a slow CLI: its file is older, and does not say yet that it waits
    return agent_of(s.agent).went_on(pid, s, asked.block.since, environ)


def is_older(states: Stated, asked: float) -> bool:
    """Return whether a session file says that its program works, since before it asked."""
    return states.says == "busy" and states.at < asked


def winner(asked: Asked, sent: SentAnswer, home: Path) -> str | None:
    """Return whose answer counted: see `Cli.winner`. May hang.

    What went on before an answer was sent did so without it.
    """
    if sent.went and sent.went.t < sent.t:
        return TERMINAL
    cli = agent_of(asked.session.agent)
    return cli.winner(asked.session, _of_cli(asked, home), asked.block.since, sent)


def _claimed(claims: Claims, name: str, digest: str) -> str:
    """Return in words who of us answers a request, or has just answered it, or ""."""
    other = claims.claimed(name) if name else claims.of(digest) if digest else None
    return f"already answered by {other.by}" if other else ""


def by_whom(logged: Iterable[Event]) -> str:
    """Return in words who has answered, from the log of one request; "" if nobody has.

    An answer that was refused before its outcome was known does not count.
    """
    sent: dict[str, Event] = {}
    for e in logged:
        begun = sent.get(e.viewer)
        if e.source != "none":
            sent.pop(e.viewer, None)
            sent[e.viewer] = e
        elif begun is not None and not begun.message:
            del sent[e.viewer]
    if not sent:
        return ""
    last = [*sent.values()][-1]
    return last.message if last.message in FIRST.values() else f"already answered by {last.viewer}"


# ---------------------------------------------------------------- all that it is about

# By the transcript if no hook reported it, and by the files that it is about.  A file may not be
# the one that its path suggests, may hold what would be lost, or may change after somebody has read
# the request.  So the request shows that, and its digest covers the contents.

LARGEST: Final = 1 << 20  # bytes of a file to show
MOST_FILES: Final = 100  # that are read for one request, each time it is shown or answered
LINKED: Final = "Through a link, this is"
SHORT: Final = "This is"
REPLACED: Final = "In place of all that it holds now"
TOO_LARGE: Final = "In place of what it holds now, which is too large to show"
READS: Final = "in this fleet you may look, but not answer; ask whoever set it up"
UNREADABLE: Final = "In place of what it holds now, which cannot be read"
WITHHELD: Final = "In place of what it holds now, which only a member that may answer can see"


class Unshown(NamedTuple):
    """The contents of a file that cannot be shown."""

    label: str
    changed: int  # when, in nanoseconds


def completed(asked: Asked, environ: Environ) -> Asked:
    """Return the request with everything that it is about."""
    payload = asked.payload
    if not asked.block.request:
        asked, payload = _by_transcript(asked, environ)
    files = agent_of(asked.session.agent).on_disk(payload) if payload else ()
    request = asked.request
    if len(files) > MOST_FILES and request.complete:
        request = _refused(request, f"it changes more than {MOST_FILES} files")
    for disk in files:
        if request.complete:
            request = _bound(request, disk, _path_of(disk, environ), asked.about.folders)
    return asked._replace(request=request)


def all_completed(asked: Sequence[Asked], environ: Environ) -> list[Asked]:
    return [completed(each, environ) for each in asked]


def withheld(request: Request) -> Request:
    """Return a request for who may only look: without choices, and without what its file holds."""
    parts = tuple(_alone(part) if part.label == REPLACED else part for part in request.parts)
    return replace(request, parts=parts, complete=False, choices=(), why=READS)


def _alone(part: Part) -> Part:
    """Return a part without what a file loses."""
    hidden = tuple(words for words in part.warnings if words not in at_end(part.old, part.new))
    alone = replace(part, old="", new="", text=part.new, warnings=hidden)
    return replace(alone, kind="file", label=WITHHELD)


def _by_transcript(asked: Asked, environ: Environ) -> tuple[Asked, bytes]:
    """Return the main thread's question from the transcript, as a hook would report it."""
    s, block, pid = asked.session, asked.block, asked.request.pid
    dialect, origin = agent_of(s.agent), Origin(s.agent, pid)
    payload = b"" if block.agent else agent_of(s.agent).asking(s, environ)
    made = dialect.request(payload, "", block.since, origin) if payload else None
    if made is None or made.tool != (block.tool or made.tool) or made.kind != block.asks:
        return asked, b""
    made = replace(made, digest=digest_of(made.digest, block.since))  # it may be asked again
    event = dialect.event(payload, block.since, block.since, origin)
    about = About(event.detail, event.shown_digest, asked.about.folders)
    return asked._replace(request=placed(made, event.cwd, s), about=about), payload


def _bound(request: Request, disk: OnDisk, path: str, folders: Iterable[str]) -> Request:
    """Bind a request to the file that it is about, as that is now."""
    if not path.startswith("/") or "\0" in path:
        return _refused(request, f"it is not known which file “{marked(disk.path)}” is")
    if disk.holds is not None:
        held = _held(path)
        if isinstance(held, bytes) and held.strip() == disk.holds.strip().encode(errors="replace"):
            return request
        return _refused(request, f"{marked(path)} no longer holds what you were asked about")
    parts, facts = request.parts, []
    if (there := real(path)) != _expected(path, folders):
        parts = (*parts, part("file", "", LINKED, path=there))
        facts.append(there)
    elif (plain := os.path.normpath(path)) != disk.path:
        parts = (*parts, part("file", "", SHORT, path=plain))
        facts.append(plain)
    if disk.how != "read":
        held = _held(path)
        facts.append("" if held is None else digest_of(held))
        if disk.how == "replaced" and held is not None:
            parts = (_replacing(parts[0], held), *parts[1:])
    if any(facts):
        request = replace(request, digest=digest_of(request.digest, *map(os.fsencode, facts)))
    return replace(request, parts=parts)


def _refused(request: Request, why: str) -> Request:
    return replace(request, complete=False, choices=(), why=f"{why}{THERE}")


def _path_of(disk: OnDisk, environ: Environ) -> str:
    """Return the whole path of a file; it does not start with a slash if that is not known."""
    if disk.path.startswith("~/") and (home := environ.get("HOME")):
        return home + disk.path[1:]
    is_below = disk.folder and not disk.path.startswith(("/", "~"))
    return os.path.join(disk.folder, disk.path) if is_below else disk.path  # noqa: PTH118


def _expected(path: str, folders: Iterable[str]) -> str:
    """Return where a file is if no link leads from its project to elsewhere."""
    for folder in folders:
        if path.startswith(f"{folder}/"):
            return os.path.normpath(real(folder) + path.removeprefix(folder))
    return os.path.normpath(path)


def _held(path: str) -> bytes | Unshown | None:
    """Return the content of a file; None if there is none."""
    try:
        return read(path, LARGEST, ours=False)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        label = TOO_LARGE if error.errno == errno.EFBIG else UNREADABLE
    with suppress(OSError):
        return Unshown(label, status_of(path).st_mtime_ns)
    return Unshown(label, 0)


def _replacing(whole: Part, held: bytes | Unshown) -> Part:
    """Return a part that also shows what a file loses."""
    if isinstance(held, Unshown):
        return replace(whole, label=held.label)
    old, new = marked(held.decode(errors="backslashreplace")), whole.text
    hidden = (*whole.warnings, *at_end(old, new))
    return replace(whole, kind="diff", label=REPLACED, text="", old=old, new=new, warnings=hidden)


# ---------------------------------------------------------------- its server, its terminal


def is_served(asked: Asked, home: Path) -> bool:
    """Return whether a server or plugin of its CLI has the request. May take seconds.

    Raise `Declined` if it says that the request is over, or another.
    """
    try:
        if asked.payload:
            agent_of(asked.session.agent).find(_of_cli(asked, home))
    except Unreachable:
        return False
    except Unanswered as why:
        raise Declined(str(why)) from None
    return bool(asked.payload)


def answer_by_server(asked: Asked, home: Path, reply: bytes) -> None:
    """Give an answer to a server or plugin; raise `Declined` if it does not take it.

    It may still take it later, as what follows will show.
    """
    try:
        agent_of(asked.session.agent).answer(_of_cli(asked, home), reply)
    except Unclear:
        return
    except Unanswered as why:
        raise Declined(str(why)) from None


def _of_cli(asked: Asked, home: Path) -> OpenRequest:
    ids = asked.request.session_id, asked.request.pid, asked.block.tool_id
    return OpenRequest(*ids, asked.payload, home)
