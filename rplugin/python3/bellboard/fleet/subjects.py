"""Names on the wire: streams, keys, subjects.  Names from outside are encoded; no I/O here.

A NATS subject is tokens with dots between them, and `*` and `>` match any.  So each byte of a
machine, an agent or a session that is not a letter, a digit, `-` or `_` is written like `=2E`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..core.events import LONGEST_ID
from ..core.far import MACHINE

TEAM: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
MEMBER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
INBOX: Final = "_INBOX"
NUMBER: Final = re.compile(r"[0-9a-f]{16}")  # of a request
BEAT: Final = "beat"

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_TOKEN: Final = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")


def token(text: str) -> str:
    """Return a token for any text; no two texts have the same token."""
    raw = text.encode("utf-8", "replace")
    return "".join(chr(b) if b in _PLAIN else f"={b:02X}" for b in raw) or "="


def token_text(token: str) -> str | None:
    """Return the text of a token, or None if bellboard did not write it."""
    if token == "=":
        return ""
    if not _TOKEN.fullmatch(token):
        return None
    raw = re.sub(r"=(..)", lambda found: chr(int(found[1], 16)), token).encode("latin-1")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= LONGEST_ID else None


class Key(NamedTuple):
    """The subject of a row: a session, or without agent and session the beat of a machine."""

    machine: str
    agent: str = ""
    session: str = ""

    @property
    def is_beat(self) -> bool:
        return not self.session


class MemberRequest(NamedTuple):
    """A request, as in its subject, which the server lets only its member use."""

    do: str
    member: str
    number: str


class Subjects:
    """The names of a team: a message under `bellboard.TEAM` is stored, then repeated."""

    def __init__(self, team: str) -> None:
        if not TEAM.fullmatch(team):
            raise ValueError(f"{team!r} is not a valid team name: use letters, digits, - and _")
        self.team = team
        self.rows = f"bellboard_{team}_rows"
        self.relay = f"bellboard_{team}_relay"
        self.claims = f"bellboard_{team}_claims"
        self.older = f"KV_bellboard_{team}"  # the stream of rows before members had accounts
        self._own = f"bellboard.{team}"
        self._seen = f"bellboard_seen.{team}"

    @property
    def said(self) -> str:
        """Return the filter for all messages of members."""
        return f"{self._own}.>"

    def seen(self, subject: str) -> str:
        """Return the subject under which the server repeats a stored message."""
        return self._seen + subject.removeprefix(self._own)

    def info(self, stream: str) -> str:
        """Return the subject on which a member with its own account asks about a stream."""
        return f"{self._own}.info.{stream}"

    def get(self, subject: str) -> str:
        """Return the subject on which it gets the last message of a subject or a filter."""
        return f"{self._own}.get{subject.removeprefix(self._own)}"

    # ------------------------------------------------------------ rows

    def row(self, key: Key) -> str:
        """Return the subject of a session's row, or of a machine's beat."""
        if key.is_beat:
            return f"{self._own}.row.{token(key.machine)}.{BEAT}"
        return f"{self._own}.row.{token(key.machine)}.{token(key.agent)}.{token(key.session)}"

    def rows_of(self, machine: str = "") -> str:
        """Return the filter for the rows of one machine, or of all."""
        return f"{self._own}.row.{token(machine)}.>" if machine else f"{self._own}.row.>"

    @property
    def beats(self) -> str:
        """Return the filter for the beats of all machines."""
        return f"{self._own}.row.*.{BEAT}"

    def key(self, subject: str) -> Key | None:
        """Return the key of a row or a transition, or None if the subject is not ours."""
        for prefix in (f"{self._own}.row.", f"{self._seen}.row.", f"{self._seen}.moved."):
            if subject.startswith(prefix):
                return _key(subject[len(prefix) :].split("."))
        return None

    # ------------------------------------------------------------ transitions, requests, claims

    def moved(self, key: Key) -> str:
        """Return the subject of a transition."""
        return f"{self._own}.moved.{token(key.machine)}.{token(key.agent)}.{token(key.session)}"

    def moved_of(self, machine: str = "") -> str:
        """Return the filter for the transitions of one machine, or of all."""
        return f"{self._own}.moved.{token(machine)}.>" if machine else f"{self._own}.moved.>"

    def ask(self, machine: str, do: str, member: str, number: str = "*") -> str:
        """Return the subject of a request; the server checks that this member sends it."""
        there = machine if machine == "*" else token(machine)
        return f"{self._own}.ask.{there}.{token(do) if do != '*' else do}.{member}.{number}"

    def asks_of(self, machine: str) -> str:
        """Return the filter for the requests to a machine."""
        return f"{self._own}.ask.{token(machine)}.*.*.*"

    def asked(self, subject: str, machine: str) -> MemberRequest | None:
        """Return the request to a machine in a subject, or None if it has none."""
        tokens = subject.removeprefix(f"{self._seen}.ask.{token(machine)}.").split(".")
        if len(tokens) != 3 or not MEMBER.fullmatch(tokens[1]) or not NUMBER.fullmatch(tokens[2]):
            return None
        return MemberRequest(token_text(tokens[0]) or "", tokens[1], tokens[2])

    def reply(self, machine: str, member: str, number: str = "*") -> str:
        """Return the subject of a reply: only the machine may use it, only the member see it."""
        there = machine if machine == "*" else token(machine)
        return f"{self._own}.reply.{there}.{member}.{number}"

    def replied(self, subject: str) -> tuple[str, str]:
        """Return the machine that replied, and the number of the request."""
        machine, _, number = subject.split(".")[-3:]
        return token_text(machine) or "", number

    def tick(self, member: str) -> str:
        """Return the subject that a member may always use, to learn the server's time."""
        return f"{self._own}.tick.{member}"

    def claim(self, machine: str, digest: str) -> str:
        """Return the subject of a claim about a session of a machine."""
        return f"{self._own}.claim.{'*' if machine == '*' else token(machine)}.{digest}"

    def screen(self, machine: str, member: str, by: str) -> str:
        """Return the subject of a screen that shows the sessions of a machine; "": of all."""
        return f"{self._own}.screen.{'*' if machine == '*' else token(machine)}.{member}.{by}"

    def screens_of(self, machine: str) -> str:
        """Return the filter for the screens that show one machine; "": that show all."""
        return f"{self._own}.screen.{token(machine)}.*.*"

    @property
    def all_screens(self) -> str:
        return f"{self._own}.screen.*.*.*"

    def is_screen(self, subject: str) -> bool:
        return subject.startswith(f"{self._seen}.screen.".lower())


def inbox(member: str) -> str:
    """Return the prefix of a member's inboxes."""
    return f"{INBOX}.{member}"


def screen_of(subject: str) -> tuple[str | None, str]:
    """Return the machine that a screen shows, or None for a wrong name, and the screen."""
    of, _, by = subject.split(".")[-3:]
    return token_text(of), by


def _key(tokens: list[str]) -> Key | None:
    texts = [token_text(t) for t in tokens]
    if not texts or texts[0] is None or not MACHINE.fullmatch(texts[0]):
        return None
    if tokens[1:] == [BEAT]:
        return Key(texts[0])
    if len(texts) == 3 and texts[1] is not None and texts[2]:
        return Key(texts[0], texts[1], texts[2])
    return None
