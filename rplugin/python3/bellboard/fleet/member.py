"""Our membership in a fleet: the settings of `bellboard fleet join`, and files of credentials."""

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
from ..system.files import put, read
from .permits import Grant
from .subjects import MEMBER, TEAM

LARGEST_FILE: Final = 64 << 10  # bytes of a file with credentials
SCHEMES: Final = ("nats", "tls")
_SEED: Final = re.compile(r"^(SU[A-Z2-7]{56})\s*$", re.MULTILINE)
_TOLD: Final = re.compile(r"^# (member|team|machine|may|only): (\S.*?)\s*$", re.MULTILINE)
_JWT: Final = re.compile(r"-----BEGIN NATS USER JWT-----\s+(\S+)\s+------END NATS USER JWT------")


class UnusableSetting(Exception):
    """A setting that cannot be used; the text names it, and says what to do."""


class Joined(Struct, frozen=True, omit_defaults=True):
    """The settings of `bellboard fleet join`."""

    url: str
    team: str
    machine: str
    creds: str = ""  # a path
    ca: str = ""  # a path
    follow: tuple[str, ...] = ()  # machines; empty: all
    agents: tuple[str, ...] = ()  # agents to follow; empty: all
    repositories: tuple[str, ...] = ()
    publishes: bool = True
    reads: bool = True


class Credentials(Struct, frozen=True):
    """A member's name, secret, and permissions, as in its file."""

    member: str
    seed: str = ""
    jwt: str = ""
    team: str = ""
    machine: str = ""
    may: tuple[str, ...] = ()  # its roles; empty: not stated
    only: tuple[str, ...] = ()  # machines that it may see; empty: all

    @property
    def is_walled(self) -> bool:
        """Return whether the member has an account of its own, like all but the admin."""
        return bool(self.may) and "admin" not in self.may


def settings_in(value: object) -> Joined | None:
    """Return the settings in a shared option, or None if there are no usable settings."""
    if (found := converted(value, Joined)) is None:
        return None
    try:
        check_settings(found)
    except UnusableSetting:
        return None
    return found


def check_settings(j: Joined, unencrypted: bool = True) -> None:
    """Raise `UnusableSetting` for settings that cannot work, or would show secrets."""
    if not TEAM.fullmatch(j.team):
        raise UnusableSetting(f"--team {j.team}: use letters, digits, - and _")
    for name in (j.machine, *j.follow):
        if not MACHINE.fullmatch(name):
            raise UnusableSetting(
                f"{name} is not a valid machine name: use letters, digits, . - and _"
            )
    try:
        url = urllib.parse.urlsplit(j.url)
        host, port = url.hostname, url.port
    except ValueError:
        host = port = None
    if host is None or url.scheme not in SCHEMES or not (port or url.port is None):
        raise UnusableSetting(f"{j.url} is not a server address; use tls://HOST:4222")
    if url.username or url.password:
        raise UnusableSetting(
            "the password in the URL would be stored and shown: put it in a file (--creds FILE)"
        )
    if url.scheme == "nats" and not unencrypted and not _is_here(host):
        raise UnusableSetting(f"{j.url} is not encrypted: use tls://, or add --unencrypted")


def credentials(path: str) -> Credentials:
    """Read a file of credentials, written by `bellboard fleet setup`, or a .creds of NATS."""
    if not path:
        return Credentials("anybody")
    try:
        if Path(path).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UnusableSetting(f"others may read {path}: chmod 600 {path}")
        text = read(Path(path), LARGEST_FILE, ours=True)[0].decode(errors="replace")
    except OSError as e:
        raise UnusableSetting(f"{path} cannot be read: {e.strerror or e}") from None
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
    raise UnusableSetting(
        f"{path} has no credentials; use a file that `bellboard fleet setup` wrote"
    )


def _sub(jwt: str) -> str:
    """Return the public key of a token."""
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


# Make and keep the credentials of members, a file each: `bellboard fleet setup` writes them.


def key_of(folder: Path, grant: Grant, team: str) -> str:
    """Return the public key of a member, and write its file unless a right one is there.

    The file also has the member's permissions, so that `bellboard fleet join` needs no options.
    """
    import nkeys

    path = folder / f"{grant.member}.creds"
    try:
        known = credentials(str(path)) if path.exists() else Credentials(grant.member, _new_seed())
        if known.member != grant.member or known.jwt:
            raise UnusableSetting(f"{path} belongs to {known.member}; move it away")
        text = _file_text(grant, team, known.seed).encode()
        if not path.exists() or path.read_bytes() != text:
            put(path, text)
    except OSError as e:
        raise UnusableSetting(f"{path} cannot be written: {e.strerror}") from None
    return str(nkeys.from_seed(bytearray(known.seed.encode())).public_key.decode())


def _file_text(grant: Grant, team: str, seed: str) -> str:
    lines = [
        f"# member: {grant.member}",
        f"# team: {team}",
        *([f"# machine: {grant.machine}"] if grant.machine else []),
        f"# may: {', '.join(sorted(grant.roles))}",
        *([f"# only: {', '.join(grant.only)}"] if grant.only else []),
        f"# Whoever has this file is {grant.member}. Keep it secret.",
        seed,
    ]
    return "".join(f"{line}\n" for line in lines)


def _new_seed() -> str:
    import nkeys

    return bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)).decode()
