"""Who we are in a fleet: the settings of `bellboard fleet join`, and the file with credentials."""

from __future__ import annotations

import base64
import ipaddress
import os
import re
import stat
import urllib.parse
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ..core.far import MACHINE
from ..core.untrusted import converted
from ..system.files import read
from .subjects import MEMBER, TEAM

LARGEST: Final = 64 << 10  # bytes of a file with credentials
SCHEMES: Final = ("nats", "tls")
_SEED: Final = re.compile(r"^(SU[A-Z2-7]{56})\s*$", re.MULTILINE)
_TOLD: Final = re.compile(r"^# (member|team|machine|may|only): (\S.*?)\s*$", re.MULTILINE)
_JWT: Final = re.compile(r"-----BEGIN NATS USER JWT-----\s+(\S+)\s+------END NATS USER JWT------")


class Unusable(Exception):
    """A setting that cannot be used; the text says which, and what to do."""


class Joined(Struct, frozen=True, omit_defaults=True):
    """The settings of `bellboard fleet join`."""

    url: str
    team: str
    machine: str
    creds: str = ""  # a path
    ca: str = ""  # a path
    follow: tuple[str, ...] = ()  # machines; empty: all
    agents: tuple[str, ...] = ()  # that are followed; empty: all
    repositories: tuple[str, ...] = ()
    publishes: bool = True
    reads: bool = True


class Credentials(Struct, frozen=True):
    """A member's name and secret, and what its file permits."""

    member: str
    seed: str = ""
    jwt: str = ""
    team: str = ""
    machine: str = ""
    may: tuple[str, ...] = ()  # its roles; empty: not stated
    only: tuple[str, ...] = ()  # machines that it may see; empty: all

    @property
    def is_walled(self) -> bool:
        """Return whether it has an account of its own: all have but the admin."""
        return bool(self.may) and "admin" not in self.may


def joined(value: object) -> Joined | None:
    """Return the settings in a shared option, or None if there are none that can be used."""
    if (found := converted(value, Joined)) is None:
        return None
    try:
        check(found)
    except Unusable:
        return None
    return found


def check(j: Joined, unencrypted: bool = True) -> None:
    """Raise `Unusable` for settings that cannot work, or would show secrets."""
    if not TEAM.fullmatch(j.team):
        raise Unusable(f"--team {j.team}: use letters, digits, - and _")
    for name in (j.machine, *j.follow):
        if not MACHINE.fullmatch(name):
            raise Unusable(f"{name} is not a valid machine name: use letters, digits, . - and _")
    try:
        url = urllib.parse.urlsplit(j.url)
        host, port = url.hostname, url.port
    except ValueError:
        host = port = None
    if host is None or url.scheme not in SCHEMES or not (port or url.port is None):
        raise Unusable(f"{j.url} is not a server address; use tls://HOST:4222")
    if url.username or url.password:
        raise Unusable(
            "the password in the URL would be stored and shown: put it in a file (--creds FILE)"
        )
    if url.scheme == "nats" and not unencrypted and not _is_here(host):
        raise Unusable(f"{j.url} is not encrypted: use tls://, or add --unencrypted")


def credentials(path: str) -> Credentials:
    """Read a file with credentials: what `bellboard fleet setup` wrote, or a .creds of NATS."""
    if not path:
        return Credentials("anybody")
    try:
        if Path(path).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Unusable(f"others may read {path}: chmod 600 {path}")
        text = read(Path(path), LARGEST, ours=True)[0].decode(errors="replace")
    except OSError as e:
        raise Unusable(f"{path} cannot be read: {e.strerror or e}") from None
    told: dict[str, str] = dict(_TOLD.findall(text))
    named = told.get("member", "")
    if signed := _JWT.search(text):
        seed = re.search(r"\bSU[A-Z2-7]{56}\b", text)
        member = _sub(signed[1])
        if seed is not None and member:
            return Credentials(named or member, seed[0], signed[1])
    elif (seed := _SEED.search(text)) is not None and MEMBER.fullmatch(named):
        may, only = (tuple(told[x].split(", ")) if x in told else () for x in ("may", "only"))
        team, machine = told.get("team", ""), told.get("machine", "")
        return Credentials(named, seed[1], team=team, machine=machine, may=may, only=only)
    raise Unusable(f"{path} has no credentials; use a file that `bellboard fleet setup` wrote")


def _sub(jwt: str) -> str:
    """Return the public key that a token was made for."""
    try:
        body = jwt.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        found = str(claims["sub"])
    except (IndexError, KeyError, TypeError, ValueError):
        return ""
    return found if MEMBER.fullmatch(found) else ""


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def machine_name(name: str = "") -> str:
    """Return a name for this machine from its host name."""
    short = (name or os.uname().nodename).split(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]", "-", short).lstrip("._-")[:63] or "machine"
