"""The configuration of a server for a team: who may do what, subject by subject; no I/O here.

    publish   write the rows of one machine, and carry out what is asked of it
    read      see rows and transitions; look at a question
    answer    everything that changes a session: answer, stop, label, snooze, …

A member sends requests under its own name only, and gets replies in an inbox that no other member
may read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .subjects import Subjects, inbox

ROLES: Final = ("publish", "read", "answer")
LOOKS: Final = ("request", "preview", "clock")  # what a reader may ask as well
ADMIN: Final = "admin"


class Grant(NamedTuple):
    """A member, its public key, and what it may do."""

    member: str
    key: str
    roles: frozenset[str]
    machine: str = ""  # that it publishes
    only: tuple[str, ...] = ()  # machines that it may see; empty: all


def server(team: str, grants: list[Grant], where: str, port: int = 4222) -> str:
    """Return the text of a configuration of nats-server; `where`: the folder of its files."""
    users = "\n".join(_user(Subjects(team), g) for g in grants)
    return f"""\
# nats-server -c {where}/server.conf     (Debian: apt install nats-server)
# To revoke: remove a member below, then: nats-server --signal reload
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
  bellboard_{team} {{
    jetstream: enabled
    users: [
{users}
    ]
  }}
}}
"""


def allowed(s: Subjects, g: Grant) -> tuple[list[str], list[str]]:
    """Return the subjects that a member may publish to, and those that it may subscribe to."""
    if ADMIN in g.roles:
        return [">"], [">"]
    to: list[str] = [f"$JS.API.STREAM.INFO.{name}" for name in (s.rows, s.news, s.claims)]
    of: list[str] = [f"{inbox(g.member)}.>"]
    if "publish" in g.roles:
        own = s.rows_of(g.machine)
        to += [own, s.news_of(g.machine)]
        to += [*_consumer(s.rows, own), f"$JS.API.DIRECT.GET.{s.rows}.{own}"]
        to.append(s.claim(g.machine, "*"))
        of += [s.asks_of(g.machine), s.screens_of(g.machine), s.screens_of("")]
    if "read" in g.roles:
        for machine in g.only or ("",):
            to += _consumer(s.rows, s.rows_of(machine))
            to += _consumer(s.news, s.news_of(machine))
        to += [s.ask(m, do, g.member) for m in g.only or ("*",) for do in LOOKS]
        to += [s.claim(m, "*") for m in g.only or ("*",)]
        to += [s.screen(m, g.member, "*") for m in g.only or ("*",)]
        of += [s.screens_of(m) for m in ("", *g.only)] if g.only else [s.all_screens]
    if "answer" in g.roles:
        to += [s.ask(m, "*", g.member) for m in g.only or ("*",)]
    return list(dict.fromkeys(to)), of


def _consumer(stream: str, subject: str) -> list[str]:
    return [
        f"$JS.API.CONSUMER.CREATE.{stream}.*.{subject}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
    ]


def _user(s: Subjects, g: Grant) -> str:
    to, of = allowed(s, g)
    roles = ", ".join(sorted(g.roles)) + (f" as {g.machine}" if g.machine else "")
    replies = ', allow_responses: { max: 1, expires: "1m" }' if "publish" in g.roles else ""
    return f"""\
      # {g.member}: {roles}{f" (only {', '.join(g.only)})" if g.only else ""}
      {{ nkey: {g.key}
        permissions: {{
          publish: {{ allow: [{_list(to)}] }}
          subscribe: {{ allow: [{_list(of)}] }}{replies}
        }}
      }}"""


def _list(subjects: list[str]) -> str:
    return ", ".join(f'"{subject}"' for subject in subjects)
