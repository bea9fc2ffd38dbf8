"""Names on the wire: buckets, keys, subjects.  Names from outside are encoded; no I/O here.

A NATS subject is tokens with dots between them, and `*` and `>` match any.  So each byte of a
machine, an agent or a session that is not a letter, a digit, `-` or `_` is written as `=2E`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..core.events import LONGEST_ID
from ..core.far import MACHINE

TEAM: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
MEMBER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
INBOX: Final = "_INBOX"
BEAT: Final = "beat"

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_TOKEN: Final = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")


def token(text: str) -> str:
    """Return a token that can hold any text; no other text has the same one."""
    raw = text.encode("utf-8", "replace")
    return "".join(chr(b) if b in _PLAIN else f"={b:02X}" for b in raw) or "="


def text_of(token: str) -> str | None:
    """Return the text that a token holds, or None if bellboard did not write it."""
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
    """What a message is about; without agent and session it is the beat of a machine."""

    machine: str
    agent: str = ""
    session: str = ""

    @property
    def is_beat(self) -> bool:
        return not self.session


class Subjects:
    """The names that a team uses."""

    def __init__(self, team: str) -> None:
        if not TEAM.fullmatch(team):
            raise ValueError(f"{team!r} is not a valid team name: use letters, digits, - and _")
        self.team = team
        self.bucket = f"bellboard_{team}"
        self.rows = f"KV_{self.bucket}"  # the stream behind the bucket
        self.news = f"{self.bucket}_news"
        self.claims = f"KV_{self.bucket}_claims"
        self._row = f"$KV.{self.bucket}"
        self._claim = f"$KV.{self.bucket}_claims"
        self._own = f"bellboard.{team}"

    # ------------------------------------------------------------ rows

    def row(self, key: Key) -> str:
        """Return the subject of a session's row, or of a machine's beat."""
        if key.is_beat:
            return f"{self._row}.{token(key.machine)}.{BEAT}"
        return f"{self._row}.{token(key.machine)}.{token(key.agent)}.{token(key.session)}"

    def rows_of(self, machine: str = "") -> str:
        """Return the filter for the rows of one machine, or of all."""
        return f"{self._row}.{token(machine)}.>" if machine else f"{self._row}.>"

    def key(self, subject: str) -> Key | None:
        """Return what a row or an item of news is about, or None if it is none of ours."""
        for prefix in (f"{self._row}.", f"{self._own}.news."):
            if subject.startswith(prefix):
                return _key(subject[len(prefix) :].split("."))
        return None

    # ------------------------------------------------------------ news, requests, claims

    def item(self, key: Key) -> str:
        """Return the subject of a transition."""
        return f"{self._own}.news.{token(key.machine)}.{token(key.agent)}.{token(key.session)}"

    def news_of(self, machine: str = "") -> str:
        """Return the filter for the transitions of one machine, or of all."""
        return f"{self._own}.news.{token(machine)}.>" if machine else f"{self._own}.news.>"

    def ask(self, machine: str, do: str, member: str) -> str:
        """Return the subject of a request; the server checks that the member is who asks."""
        there = machine if machine == "*" else token(machine)
        return f"{self._own}.ask.{there}.{token(do) if do != '*' else do}.{member}"

    def asks_of(self, machine: str) -> str:
        """Return the filter for the requests to a machine."""
        return f"{self._own}.ask.{token(machine)}.>"

    def asked(self, subject: str) -> tuple[str, str]:
        """Return what is asked, and which member asks."""
        do, _, member = subject.removeprefix(f"{self._own}.ask.").partition(".")[2].partition(".")
        return text_of(do) or "", member

    def claim(self, machine: str, digest: str) -> str:
        """Return the subject of a claim about a session of a machine."""
        return f"{self._claim}.{'*' if machine == '*' else token(machine)}.{digest}"

    @property
    def all_claims(self) -> str:
        return f"{self._claim}.>"

    def screen(self, machine: str, member: str, by: str) -> str:
        """Return where a screen says that it shows the sessions of a machine; "": of all."""
        return f"{self._own}.screen.{'*' if machine == '*' else token(machine)}.{member}.{by}"

    def screens_of(self, machine: str) -> str:
        """Return the filter for the screens that show one machine; "": that show all."""
        return f"{self._own}.screen.{token(machine)}.>"

    @property
    def all_screens(self) -> str:
        return f"{self._own}.screen.>"

    def is_screen(self, subject: str) -> bool:
        return subject.startswith(f"{self._own}.screen.".lower())


def inbox(member: str) -> str:
    """Return the prefix of a member's inboxes, which the others may not read."""
    return f"{INBOX}.{member}"


def screen_of(subject: str) -> tuple[str | None, str]:
    """Return which machine a screen shows, and who it is; None for a name that nobody wrote."""
    of, _, by = subject.split(".")[-3:]
    return text_of(of), by


def _key(tokens: list[str]) -> Key | None:
    texts = [text_of(t) for t in tokens]
    if not texts or texts[0] is None or not MACHINE.fullmatch(texts[0]):
        return None
    if tokens[1:] == [BEAT]:
        return Key(texts[0])
    if len(texts) == 3 and texts[1] is not None and texts[2]:
        return Key(texts[0], texts[1], texts[2])
    return None
