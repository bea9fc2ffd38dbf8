"""Parse git's configuration for remotes, and the addresses of remotes.

This file does no I/O.  `[include]` is not followed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

LONGEST_URL: Final = 2000  # characters
ROWS: Final = 20_000  # lines of a configuration to read
ROW: Final = 4000  # characters of a line to read
NAME: Final = 500  # characters of the name of a remote
MOST: Final = 50  # remotes, and insteadOf rules

# All run in linear time, even on a mismatch: the file may come from anyone.
_SECTION: Final = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s*"((?:[^"\\]|\\.)*)")?\s*\]')
_ENTRY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_WITH_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)
_LIKE_SCP: Final = re.compile(r"(?:[^@/\s]+@)?(\[[^\]]+\]|[^:/@\s]{2,}):(?!:)(.*)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": ""}


class Config(NamedTuple):
    """The remotes in a configuration."""

    remotes: dict[str, str]  # name → its first address
    upstreams: dict[str, str]  # branch → the name of its remote


class Remote(NamedTuple):
    """A parsed remote address."""

    owner: str  # with subgroups: group/subgroup
    name: str
    address: str  # for display, without credentials


def config_in(text: str) -> Config:
    """Parse a configuration; skip invalid lines."""
    remotes: dict[str, str] = {}
    upstreams: dict[str, str] = {}
    shorter: list[tuple[str, str]] = []  # insteadOf → its full form
    section = subsection = ""
    for row in re.sub(r"\\\r?\n", "", text).split("\n", ROWS)[:ROWS]:
        row = row[:ROW].strip()
        head = _SECTION.match(row)
        if head is not None:
            section, _, dotted = head[1].partition(".")
            section = section.lower()
            quoted = head[2]
            subsection = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else dotted.lower()
            row = row[head.end() :].strip()
        entry = _ENTRY.match(row)
        if entry is None or section not in ("remote", "branch", "url"):
            continue
        what, raw = (section, entry[1].lower()), entry[2] or ""
        if what == ("remote", "url") and len(remotes) < MOST:
            if (url := _value(raw)) and subsection not in remotes:
                remotes[subsection] = url
        elif what == ("branch", "remote"):
            upstreams[subsection] = _value(raw[:NAME])
        elif what == ("url", "insteadof") and len(shorter) < MOST:
            shorter += [(short, subsection)] if (short := _value(raw)) else []
    for name, url in remotes.items():
        fitting = [(len(short), full, short) for short, full in shorter if url.startswith(short)]
        if fitting:
            _, full, short = max(fitting)
            remotes[name] = full + url.removeprefix(short)
    return Config(remotes, upstreams)


def _value(raw: str) -> str:
    """Unquote a value and drop its comment."""
    out: list[str] = []
    kept = 0  # trailing blanks up to here are part of the value
    quoted = False
    letters = iter(raw)
    for letter in letters:
        if letter == "\\":
            following = next(letters, "")
            out.append(_ESCAPES.get(following, following))
            kept = len(out)
        elif letter == '"':
            quoted = not quoted
            kept = len(out)
        elif letter in "#;" and not quoted:
            break
        else:
            out.append(letter)
            kept = len(out) if quoted or not letter.isspace() else kept
    return "".join(out[:kept])


def remote_in(url: str) -> Remote | None:
    """Parse an address in one of git's forms: a URL, host:path, or a path."""
    url = url.strip()[:LONGEST_URL]
    scheme, host, path = "", "", url
    if (match := _WITH_SCHEME.fullmatch(url)) is not None:
        scheme, authority, path = match[1].lower(), match[2], match[3] or ""
        host = authority.rpartition("@")[2]
        path = unquote(re.split(r"[?#]", path, maxsplit=1)[0])
    elif (match := _LIKE_SCP.fullmatch(url)) is not None:
        scheme, host, path = "ssh", match[1], match[2]
    is_local = scheme in ("", "file")
    # An address with a slash missing is taken for a path, and may still contain a password.
    parts = [_without_password(part) for part in path.split("/")]
    path, parts = "/".join(parts), [part for part in parts if part not in ("", ".", "~")]
    if parts and parts[-1] == ".git":
        parts.pop()
    if not parts:
        return None
    name = parts[-1].removesuffix(".git")
    if is_local or not host:
        return Remote("", name, "/".join(("", *parts)) if path.startswith("/") else path)
    port = host.rpartition(":")[2] if ":" in host else ""
    port = port if port.isascii() and port.isdigit() else ""
    bare = (host.removesuffix(f":{port}") if port else host).lower()
    bare, groups = _by_host(bare, parts[:-1])
    web = f"{bare}:{port}" if port and scheme in ("http", "https") else bare
    whole = "/".join((*parts[:-1], name))
    if scheme == "ssh" and not set(".:") & set(bare):  # an alias in the ssh configuration
        return Remote("/".join(groups), name, f"{bare}:{whole}")
    kind = scheme if scheme == "http" else "https"
    return Remote("/".join(groups), name, f"{kind}://{web}/{whole}")


def _without_password(part: str) -> str:
    """Remove a leading `name:password@`."""
    before, at, after = part.partition("@")
    return after if at and ":" in before else part


def _by_host(host: str, groups: list[str]) -> tuple[str, list[str]]:
    """Remove the parts that some services put in the host or before the owner."""
    if host in ("ssh.github.com", "www.github.com"):
        return "github.com", groups
    if host == "altssh.bitbucket.org":
        return "bitbucket.org", groups
    if host == "altssh.gitlab.com":
        return "gitlab.com", groups
    if host == "ssh.dev.azure.com" and groups[:1] == ["v3"]:
        return "dev.azure.com", groups[1:]
    if groups[:1] == ["scm"]:  # self-hosted Bitbucket
        return host, groups[1:]
    if groups[-1:] == ["_git"]:  # Azure DevOps
        return host, groups[:-1]
    return host, groups
