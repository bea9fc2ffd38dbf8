"""Commands about the past: history, explain, rules, record, replay."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import Args, Subcommands, add, add_session, filled, minutes
from .home import Problem, find_session, opened, print_json, print_line, verify, warn

if TYPE_CHECKING:
    from ..core.board import Board
    from ..hosting.turn import SharedBoard
    from ..storage.store import SentNotice

MOST = 1000  # notifications to list
NAMED = 24  # cells of a title beside the name of a project


def add_to(commands: Subcommands) -> None:
    history = add(commands, "history", show_history, "list status changes and answers")
    add_session(history, nargs="?", help="only this session")
    history.add_argument(
        "--since", type=minutes, metavar="MINUTES", help="only the last MINUTES minutes"
    )
    history.add_argument("--notices", action="store_true", help="list notifications instead")
    history.add_argument("--json", action="store_true", help="print one JSON object per line")
    explain = add(
        commands, "explain", explain_session, "list every event of a session and its effect"
    )
    add_session(explain)
    rules = add(
        commands,
        "rules",
        show_rules,
        "list permission rules that would spare you repeated questions",
    )
    rules.add_argument("--json", action="store_true", help="print one JSON object per line")
    record = add(
        commands, "record", record_trace, "print a trace for a bug report, without private text"
    )
    record.add_argument(
        "--minutes",
        type=minutes,
        default=10.0,
        help="sessions active in the last MINUTES minutes, each from its start (default: 10)",
    )
    record.add_argument("--session", metavar="SESSION", type=filled, help="only this session")
    record.add_argument("--full", action="store_true", help="include private text")
    replay = add(commands, "replay", replay_trace, "replay a trace through the live code")
    replay.add_argument("file", metavar="FILE", nargs="?", help="default: standard input")
    replay.add_argument("--json", action="store_true", help="print one JSON object per line")


def show_history(args: Args) -> None:
    with opened() as shared:
        since = time.time() - args.since * 60 if args.since is not None else 0.0
        sid = find_session(shared, args.session) if args.session else ""
        found = shared.store.history(since, sid)
        answers = shared.store.answers(since, sid)
        sent = shared.store.notices(MOST) if args.notices else []
        shown = {r.session_id for r in sent}
        if not args.notices:
            shown = {c.session_id for c in found} | {a.session_id for a in answers}
        names = _names(shared.board, shown)
    if args.notices:
        show_notices([r for r in sent if r.t >= since and sid in ("", r.session_id)], names, args)
        return
    if args.json:
        from ..agents.traces import answer_line, transition_line

        lines = [transition_line(change) for change in found]
        lines += [answer_line(a.event.t, a.session_id, a.event) for a in answers]
        for line in sorted(lines, key=lambda line: float(line["t"])):
            print_json(line)
        return
    from ..screen.history import as_change, show_changes

    show_changes(sorted([*found, *map(as_change, answers)], key=lambda c: c.t), names)


def show_notices(sent: list[SentNotice], names: dict[str, str], args: Args) -> None:
    from ..core import words

    if not sent and not args.json:
        print(" No notifications.")
    for r in sent:
        if args.json:
            print_json(r._asdict())
            continue
        when = time.strftime("%d %b %H:%M:%S", time.localtime(r.t))
        name = names.get(r.session_id) or words.plain(r.session_id[:8])
        said = words.plain(r.text) or f"{name}: {r.status or 'ended'}, {words.plain(r.why)}"
        print(f" {when}  {r.channel:8} {said}")


def explain_session(args: Args) -> None:
    with opened() as shared:
        verify(shared)
        sid = find_session(shared, args.session, also_logged=True)
        log, session = shared.store.log(sid), shared.board.sessions.get(sid)
        in_float = _in_float(shared, sid)
    from ..screen.history import show_reason, show_story

    show_reason(session, in_float)
    show_story(log)


def _in_float(shared: SharedBoard, sid: str) -> str:
    """Return the place of a blocked session in the float, or why it has none.

    The default settings apply: only a host knows the user's.
    """
    from ..core.notices import Notices, Policy
    from ..core.session import is_hidden, published_status
    from ..storage.store import in_front
    from ..system.processes import is_alive

    now, session, store = time.time(), shared.board.sessions.get(sid), shared.store
    if session is None or published_status(session) != "blocked":
        return ""
    if is_hidden(session):
        return "not in the float: hidden on every screen"
    notices = Notices(Policy())
    notices.zone = time.localtime(now).tm_gmtoff
    notices.see(shared.board.sessions, (sid,), now)
    if why := notices.list_for_float(now)[1].get(sid):
        return f"not in the float: {why}"
    front = in_front((e for e in store.editors() if is_alive(e.pid)), now)
    if front is None:
        return "not in the float: no Neovim with a screen is open"
    more = "`:checkhealth bellboard` there says more"
    return f"by default settings, in the float of {front.server}, which had the focus last; {more}"


def show_rules(args: Args) -> None:
    from msgspec import to_builtins

    from ..agents.registry import agent_of
    from ..core import words
    from ..core.spared import OFTEN, spared

    with opened() as shared:
        log = [(row.session_id, row.event) for row in shared.store.log()]
        folders = {sid: s.project_dir or s.cwd for sid, s in shared.board.sessions.items()}
    found = spared(log, folders)
    if args.json:
        for each in found:
            print_json(to_builtins(each))
        return
    if not found:
        print(f" No permission in the log was granted {OFTEN} times or more.")
        return
    user_home = os.environ.get("HOME", "")
    for agent in dict.fromkeys(each.agent for each in found):
        print(f" To be asked less often, add to {agent_of(agent).rules}:")
        for each in (x for x in found if x.agent == agent):
            where = ", ".join(words.plain(words.tilde(path, user_home)) for path in each.folders)
            print(f'   "{words.plain(each.rule)}"  asked {each.count} times in {where or "?"}')


def record_trace(args: Args) -> None:
    from ..agents.anonymous import span, trace_of

    with opened() as shared:
        log = shared.store.log()
        since = time.time() - args.minutes * 60
        if args.session:
            only = {find_session(shared, args.session, also_logged=True)}
        else:
            only = {c.session_id for c in shared.store.history(since)}
            only |= {row.session_id for row in log if row.event.clock >= since} - {""}
        options = shared.store.option("config")
    for line in trace_of(span(log, only, options), private=not args.full):
        print_line(line)


def replay_trace(args: Args) -> int:
    from ..agents import traces
    from ..core.board import Board

    board = Board()
    lines = _Lines(args.file)
    folded = traces.replay(lines, board)
    if args.json:
        for one in folded:
            for change in one.changes:
                print_json(traces.transition_line(change))
        print_json(traces.final_line(board))
    else:
        from ..screen.history import show_replay

        show_replay(folded, board)
    counted = sum(n for name, n in board.ledger.counts.items() if name.startswith("junk"))
    if counted:
        which = f"{counted} of {lines.count} lines" if counted < lines.count else "all lines"
        warn(f"{lines.name}: {which} are invalid; is this a trace?")
    return 1 if counted and counted >= lines.count else 0


class _Lines:
    """Iterate over the lines of a trace, counting them."""

    def __init__(self, file: str | None) -> None:
        self.count = 0
        self.name = file or "standard input"
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        for line in self._read():
            if line.strip():
                self.count += 1
                yield line
        if not self.count:
            raise Problem(
                f"{self.name}: there is no trace in it; `bellboard record >FILE` makes one"
            )

    def _read(self) -> Iterable[bytes]:
        if self._file is None or self._file == "-":
            return sys.stdin.buffer
        try:
            return Path(self._file).read_bytes().splitlines()
        except OSError as e:
            raise Problem(f"cannot read the trace {self._file}: {e.strerror}") from None


def _names(board: Board, shown: Collection[str]) -> dict[str, str]:
    """Return the names of sessions: of several with that name, each with its title."""
    from ..core.published import project_of
    from ..core.text import cut, plain

    sessions = {sid: s for sid, s in board.sessions.items() if sid in shown}
    names = {sid: plain(s.name or project_of(s)) for sid, s in sessions.items()}
    count = Counter(names.values())
    for sid, s in sessions.items():
        if count[names[sid]] > 1:
            title = cut(plain(s.title or s.prompt), NAMED) or plain(sid[:8])
            names[sid] += f" {title}"
    return names
