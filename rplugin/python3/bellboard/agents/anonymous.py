"""Replace private text in events: prompts, messages, titles, commands, paths, addresses, names.

Each text gets a placeholder that names its kind.  The same text always gets the same placeholder,
and a path stays below its folder.  Session ids (with the names of machines in them), process ids,
terminals, and names that the CLIs chose (events, tools, models, modes) are kept, because a trace is
useless without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ..core.deadlines import BY_TIME
from ..core.events import MATE, Event, Origin, Task, line_of
from ..core.outward import BOARD
from ..storage.store import Logged
from .registry import agent_of, is_known_agent

#: Parts of paths that reveal nothing; the first two are of a worktree.
COMMON: Final = frozenset(
    (
        *(".claude", "worktrees", "projects", "sessions", "home", "Users", "private", "tmp", "var"),
        *("usr", "opt", "etc", "srv", "mnt", "run", "src", "lib", "bin", "dev", "tests", "docs"),
        *(".", "..", "~", "root", "folders", "user"),
    )
)
LABELS: Final = frozenset({"ONEOFF", "HEAVY", "IMPORTANT"})
AGENTS: Final = frozenset({"general-purpose", "Explore", "Plan", "statusline-setup", MATE})
KEPT_VARIABLES: Final = frozenset({"entrypoint", "attended", "parent", "terminal"})
KEPT_OF_ROW: Final = frozenset(
    (
        *("session_id", "agent", "status", "markers", "kind", "request", "mode", "model"),
        *("terminal", "tasks"),
    )
)
_ID = re.compile(r"[A-Za-z]{0,6}_?[A-Za-z0-9]{0,30}\d[A-Za-z0-9_-]{0,40}")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_MCP = re.compile(r"mcp__(.+?)__(.+)")


class Names:
    """Placeholders for the texts of one trace."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def event(self, e: Event) -> Event:
        """Return the event without private text."""
        return replace(
            e,
            origin=self.origin(e.origin),
            agent=self.id(e.agent),
            spawned=self.id(e.spawned),
            member=self.id(e.member),
            agent_type=e.agent_type if e.agent_type in AGENTS else self("agent type", e.agent_type),
            tool=self.tool(e),
            detail=self.detail(e),
            shown_digest=self("digest", e.shown_digest),
            digest=self("digest", e.digest),
            rule=self("rule", e.rule),
            file=self.path(e.file),
            prompt=self.prompt(e.prompt),
            message=self("message", e.message),
            error=self.error(e.error),
            title=self("title", e.title),
            cwd=self.path(e.cwd),
            transcript=self.path(e.transcript),
            tasks=None if e.tasks is None else tuple(map(self.task, e.tasks)),
            status=self.status(e),
            viewer=self("viewer", e.viewer),
            why=self("reason", e.why),  # the reason of junk may quote the input
            settings=self.settings(e.settings),
            row=self.row(e.row),
            key=self.number("key", e.key),
            tool_key=self.number("tool key", e.tool_key),
        )

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Replace the texts of a session on another machine."""
        kept = {
            k: v for k, v in row.items() if k in KEPT_OF_ROW or isinstance(v, bool | int | float)
        }
        shown = {k: self(k, v) for k, v in row.items() if k not in kept and isinstance(v, str)}
        if "ssh" in shown:
            shown["ssh"] = self.connection(row["ssh"])
        return {**kept, **shown}

    def __call__(self, kind: str, text: str) -> str:
        """Return the placeholder for a text."""
        if not text:
            return text
        known = self._known.get((kind, text))
        if known is None:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._known[kind, text] = f"{kind} {count}"
        return known

    def number(self, kind: str, checksum: int) -> int:
        """Return a small number for a checksum, which could confirm a guess at the text."""
        return int(self(kind, str(checksum)).rpartition(" ")[2]) if checksum else 0

    # ------------------------------------------------------------ by kind

    def path(self, text: str) -> str:
        """Replace a path by a path of the same depth, below the same folders."""
        return "/".join(map(self._part, text.split("/")))

    def _part(self, part: str) -> str:
        if not part or part in COMMON:
            return part
        suffix = _SUFFIX.search(part)
        return self("d", part).replace(" ", "") + (suffix.group() if suffix else "")

    def id(self, text: str) -> str:
        """Keep a generated id; replace an id that is a name, also in a path of ids."""
        if text.startswith(BOARD):
            return text
        return "/".join(
            part if _ID.fullmatch(part) else self("agent", part).replace(" ", "-")
            for part in text.split("/")
        )

    def tool(self, e: Event) -> str:
        """Keep the name of a built-in tool; replace those of MCP servers and their tools."""
        if agent_of(e.origin.agent).kinds.get(e.name) in ("form", "form answer"):
            return self("server", e.tool).replace(" ", "")
        mcp = _MCP.fullmatch(e.tool)
        if mcp is None:
            return e.tool
        server = self("server", mcp.group(1)).replace(" ", "")
        return f"mcp__{server}__{self('tool', mcp.group(2)).replace(' ', '')}"

    def prompt(self, text: str) -> str:
        """Replace a prompt; a command at its start gets the same placeholder as elsewhere."""
        command, blank, rest = text.partition(" ")
        if not command.startswith("/"):
            return self("prompt", text)
        return self.path(command) + blank + self("prompt", rest)

    def detail(self, e: Event) -> str:
        if e.kind == "said retry" or not e.detail:
            return e.detail
        if "/" in e.detail and " " not in e.detail and "://" not in e.detail:
            return self.path(e.detail)
        return self("command" if e.tool == "Bash" else e.asks or "detail", e.detail)

    def error(self, text: str) -> str:
        """Keep the CLI's name of an error; replace its text."""
        name, _, rest = text.partition(":")
        if re.fullmatch(r"[a-z_]{3,40}", name):
            return f"{name}: {self('error', rest)}" if rest else name
        return self("error", text)

    def task(self, x: Task) -> Task:
        return Task(self.id(x.id), x.type, self("task", x.description))

    def status(self, e: Event) -> str:
        if e.kind not in ("label", "name") or e.status in LABELS:
            return e.status
        return self(e.kind, e.status)

    def origin(self, o: Origin) -> Origin:
        env = {
            k: v
            if k in KEPT_VARIABLES
            else self.path(v)
            if v.startswith("/")
            else self(k.lower().replace("_", " "), v)
            for k, v in o.env.items()
        }
        sockets = {name: self._socket(getattr(o, name)) for name in ("tmux", "nvim", "kitty")}
        ways = {"through": self("way", o.through), "connection": self.connection(o.connection)}
        return replace(o, agent=self.program(o.agent), **sockets, **ways, env=env)

    def connection(self, text: str) -> str:
        """Replace the addresses of a connection, and keep its ports."""
        return " ".join(
            word if n % 2 else f"10.0.0.{self('address', word).rpartition(' ')[2]}"
            for n, word in enumerate(text.split())
        )

    def program(self, agent: str) -> str:
        """Keep the name of an agent or a board; replace that of another program."""
        is_kept = is_known_agent(agent) or agent.startswith(BOARD)
        return agent if is_kept else self("program", agent).replace(" ", "-")

    def _socket(self, path: str | None) -> str | None:
        return self.path(path) if path else path

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keep numbers and replace text in options and facts."""
        return {k: v if k == "session_id" else self._value(k, v) for k, v in given.items()}

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith("/"):
                return self.path(value)
            return self(key, value)
        if isinstance(value, list):
            return [self._value(key, x) for x in value]
        if isinstance(value, dict):
            return {k: self._value(k, v) for k, v in value.items()}
        return value


# Turn the event log into a trace that can be replayed, and shared without private text.
#
# * Deadlines are left out: they fall due again when the trace is replayed.
# * An event about several sessions (a view, a restart) is one line.
#
# This file does no I/O and knows no clock.


Line = dict[str, Any]


def trace_of(log: Iterable[Logged], private: bool = True) -> Iterator[Line]:
    """Yield the lines of a trace; its replay makes the same changes as this log."""
    names = Names() if private else None
    clock, last = 0.0, None
    for row in log:
        e = row.event
        clock = e.clock if e.kind == "clock" else max(clock, e.clock)
        seen = (row.file, replace(e, alive=True))
        if e.kind not in BY_TIME and seen != last:
            last = seen
            yield line_of(names.event(e) if names else e)
    if clock:
        yield {"t": clock, "tick": {}}


def span(
    log: Iterable[Logged], sessions: set[str], options: Mapping[str, Any] | None = None
) -> list[Logged]:
    """Return the part of a log about these sessions, each from its last start.

    The options of that time come first: the last that were set before it, or the given ones.
    """
    rows = list(log)
    begins: dict[str, int] = {}
    for n, row in enumerate(rows):
        begun = row.before is None and row.after is not None
        if row.session_id in sessions and (begun or row.session_id not in begins):
            begins[row.session_id] = n
    first = min(begins.values(), default=len(rows))
    found = [
        row
        for n, row in enumerate(rows)
        if n >= first and n >= begins.get(row.session_id, len(rows) if row.session_id else 0)
    ]
    config = [row for row in rows[:first] if row.event.kind == "config"][-1:]
    if found and options and not any(row.event.kind == "config" for row in rows):
        t = found[0].event.clock
        event = Event("config", "config", t, t, settings=dict(options))
        config = [Logged(0, "", event, "", "", True, "", None, None)]
    return config + found
