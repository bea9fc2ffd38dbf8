"""The configuration of a server for a team: the permissions of members by subject; no I/O here.

    publish   write the rows of one machine, and carry out requests to it
    read      see rows and transitions; look at a question
    answer    everything that changes a session: answer, stop, label, snooze, …

Each member has an account of its own on the server, and its imports are all that it may do.  A
server checks the subject of a message, but never the subject for the reply: in an account shared by
all, a member could have the server, or an honest machine, say anything to anybody.  With an account
of its own, a subject for a reply stays within that account.

    say    (import of a service)   messages to the account of the team, under this subject only
    hear   (import of a stream)    messages that the streams of the team have stored, and repeat
    look   (import of a service)   the server's own replies, about streams and their content

No member may make a consumer: it would deliver within the account of the team.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from .subjects import Subjects

ROLES: Final = ("publish", "read", "answer")
LOOKS: Final = ("request", "preview", "clock")  # requests that a reader may make as well
ADMIN: Final = "admin"


class Grant(NamedTuple):
    """A member, its public key, and its permissions."""

    member: str
    key: str
    roles: frozenset[str]
    machine: str = ""  # the machine that it publishes
    only: tuple[str, ...] = ()  # machines that it may see; empty: all


class Allowed(NamedTuple):
    """Subjects of the team's account that a member imports."""

    say: list[str]
    hear: list[str]
    look: dict[str, str]  # name for the member → subject of the server


def server_configuration(team: str, grants: list[Grant], where: str, port: int = 4222) -> str:
    """Return the text of a configuration of nats-server; its files are in the folder `where`."""
    s = Subjects(team)
    admins = [g for g in grants if ADMIN in g.roles]
    members = "".join(_account(s, g) for g in grants if g not in admins)
    return f"""\
# nats-server -c {where}/server.conf     (Debian: apt install nats-server)
# Any member can end a server older than 2.9.15: have it start again by itself, or use a newer one.
# To revoke, remove a member below or what it imports, then: nats-server --signal reload
# To add one, restart the server: nats-server 2.9 ignores the imports of an account that is new.
host: 0.0.0.0
port: {port}
max_payload: 128KB
max_control_line: 4KB

jetstream {{
  store_dir: "{where}/data"
  max_mem: 64MB
  max_file: 1GB
}}

# The certificate of this server: of your authority, or of one of your own.
tls {{
  cert_file: "{where}/server.pem"
  key_file: "{where}/server.key"
}}

accounts {{
  # The team.  Only the admin is in this account: add nobody, whoever is in it can be anybody.
  {_team(s)} {{
    jetstream: enabled
    users: [{", ".join(f"{{ nkey: {g.key} }}" for g in admins)}]
    exports: [
      {{ service: "{s.said}" }},
      {{ stream: "{s.seen(s.said)}" }},
      {_lines("{ service: " + f'"{to}"' + " }" for to in _looks(s, ("",)).values())}
    ]
  }}
{members}}}
"""


def allowed(s: Subjects, g: Grant) -> Allowed:
    """Return the imports of a member; an admin is in the team's account instead."""
    say, hear, machines = [s.tick(g.member)], [], []
    if "publish" in g.roles:
        machines.append(g.machine)
        say += [s.rows_of(g.machine), s.moved_of(g.machine), s.claim(g.machine, "*")]
        say.append(s.reply(g.machine, "*"))
        hear += [s.asks_of(g.machine), s.screens_of(g.machine), s.screens_of("")]
    if "read" in g.roles:
        machines += g.only or ("",)
        hear += [f(m) for m in g.only or ("",) for f in (s.rows_of, s.moved_of)]
        say += [s.ask(m, do, g.member) for m in g.only or ("*",) for do in LOOKS]
        say += [s.claim(m, "*") for m in g.only or ("*",)]
        say += [s.screen(m, g.member, "*") for m in g.only or ("*",)]
        hear += [s.screens_of(m) for m in ("", *g.only)] if g.only else [s.all_screens]
    if "answer" in g.roles:
        say += [s.ask(m, "*", g.member) for m in g.only or ("*",)]
    if {"read", "answer"} & g.roles:
        hear.append(s.reply("*", g.member))
    return Allowed(_widest(say), _widest([s.seen(x) for x in hear]), _looks(s, machines))


def _looks(s: Subjects, machines: list[str] | tuple[str, ...]) -> dict[str, str]:
    """Return the requests to the server itself: it replies to the asker, and changes nothing.

    In each account, the server takes all of `$JS.API` for itself, so they have other names.
    """
    found = {s.info(x): f"$JS.API.STREAM.INFO.{x}" for x in (s.rows, s.relay, s.claims)}
    rows = _widest([s.rows_of(m) for m in machines])
    return found | {s.get(x): f"$JS.API.DIRECT.GET.{s.rows}.{x}" for x in rows}


def _widest(subjects: list[str]) -> list[str]:
    """Return subjects without those that another includes, so that no message comes twice."""
    each = list(dict.fromkeys(subjects))
    return [x for x in each if not any(_includes(y, x) for y in each if y != x)]


def _includes(wide: str, narrow: str) -> bool:
    ours, theirs = wide.split("."), narrow.split(".")
    for n, part in enumerate(ours):
        if part == ">":
            return n < len(theirs)
        if n >= len(theirs) or theirs[n] == ">" or (part != "*" and part != theirs[n]):
            return False
    return len(ours) == len(theirs)


def _team(s: Subjects) -> str:
    return f"bellboard_{s.team}"


def _account(s: Subjects, g: Grant) -> str:
    may = allowed(s, g)
    roles = ", ".join(sorted(g.roles)) + (f" as {g.machine}" if g.machine else "")
    imports = [
        *(_import(s, "service", x) for x in may.say),
        *(_import(s, "stream", x) for x in may.hear),
        *(_import(s, "service", to, name) for name, to in may.look.items()),
    ]
    return f"""\
  # {g.member}: {roles}{f" (only {', '.join(g.only)})" if g.only else ""}
  {_team(s)}_{g.member} {{
    users: [{{ nkey: {g.key} }}]
    imports: [
      {_lines(imports)}
    ]
  }}
"""


def _import(s: Subjects, kind: str, subject: str, name: str = "") -> str:
    under = f', to: "{name}"' if name not in ("", subject) else ""
    return f'{{ {kind}: {{ account: {_team(s)}, subject: "{subject}" }}{under} }}'


def _lines(parts: Iterable[str]) -> str:
    return ",\n      ".join(parts)
