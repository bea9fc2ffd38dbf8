"""Debian packages of any suite, unpacked into a private folder; the system is not touched.

apt does the work, with all its folders in a private one and an empty package database. So it
resolves all dependencies down to libc, and accepts only files whose hash is in an index signed by
Debian's keyring. Of the system's settings, only mirror, proxies and certificates are used.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from rig.fetched.cache import Missing, kept, run

KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
)
#: Not the user's PATH: apt and the programs that it starts (gpgv or sqv, tar) are the system's.
SEARCHED = os.pathsep.join(
    (os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/bin", "/sbin", "/bin")
)
SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))
STRICT = """
Acquire::Retries "3";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
"""


def mirror() -> str:
    """Return $BELLBOARD_MIRROR, or the system's mirror, or Debian's own address."""
    if chosen := os.environ.get("BELLBOARD_MIRROR"):
        return chosen
    listed = [SOURCES[0], *sorted(SOURCES[1].glob("*"))] if SOURCES[1].is_dir() else [SOURCES[0]]
    for path in listed:
        text = path.read_text(errors="replace") if path.is_file() else ""
        uris = re.findall(r"^(?:deb\s+(?:\[.*?\]\s+)?|URIs:\s*)(\S+)", text, re.MULTILINE)
        for uri in uris:
            if re.search(r"/debian/?$", uri):
                return uri
    return "http://deb.debian.org/debian"


def _settings(apt: Path, suite: str) -> dict[str, str]:
    """Return an environment in which apt only uses the folder `apt`."""
    keyring = next((path for path in KEYRINGS if path.exists()), None)
    if keyring is None:
        raise Missing("no Debian keyring here; install debian-archive-keyring")
    for part in ("lists/partial", "archives/partial"):
        (apt / part).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [signed-by={keyring}] {mirror()} {suite} main\n")
    moved = {
        "Dir::State": apt,
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "Dir::Cache::archives": apt / "archives",
        "Dir::Log": apt,
        "Dir::Etc::sourcelist": apt / "sources.list",
    }
    for unused in ("main", "parts", "sourceparts", "preferences", "preferencesparts", "netrc"):
        moved[f"Dir::Etc::{unused}"] = Path("/dev/null")
    lines = [f'{key} "{path}";' for key, path in moved.items()]
    lines += ['Acquire::Languages "none";', 'APT::Sandbox::User "root";']
    way = run("apt-config", "dump", "Acquire", env={**os.environ, "PATH": SEARCHED}).splitlines()
    lines += [
        line for line in way if not line.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
    ]
    (apt / "apt.conf").write_text("\n".join(lines) + STRICT)
    own = {"APT_CONFIG": str(apt / "apt.conf"), "LC_ALL": "C.UTF-8", "PATH": SEARCHED}
    return {**os.environ, **own}


def unpack(suite: str, packages: tuple[str, ...], into: Path) -> None:
    """Unpack the packages and their dependencies, verified, under `into`."""
    name = packages[0].partition("=")[0]
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool, path=SEARCHED) is None:
            raise Missing(f"there is no {tool} to fetch {name}; install it and put it on PATH")
    apt = into / ".apt"
    env = _settings(apt, suite)
    run("apt-get", "--quiet", "-o", "APT::Update::Error-Mode=any", "update", env=env)
    fetch = ("--yes", "--quiet", "--no-install-recommends", "--download-only")
    run("apt-get", *fetch, "install", *packages, env=env)
    for deb in sorted((apt / "archives").glob("*.deb")):
        run("dpkg-deb", "--extract", deb, into, env=env)
    shutil.rmtree(apt)
    # Documentation is a third of the size, and not needed.
    for unread in ("doc", "man", "locale", "info"):
        shutil.rmtree(into / "usr/share" / unread, ignore_errors=True)


def bind(root: Path, programs: tuple[str, ...], home: Path) -> None:
    """Make programs under `root` use their own loader and libraries once `root` is at `home`.

    They are patched, not wrapped, so that child processes inherit no variables, and the editor
    knows its true path, under which it starts itself again as a server.
    """
    loader = next((root / "usr/lib").glob("*/ld-linux*.so.*"))
    libraries = home / loader.parent.relative_to(root)
    patchelf = (loader, "--library-path", loader.parent, root / "usr/bin/patchelf")
    for program in programs:
        into = ("--set-interpreter", libraries / loader.name, "--force-rpath")
        run(*patchelf, *into, "--set-rpath", libraries, root / "usr/bin" / program)
    (root / ".bound").write_text(str(home))


def tree(
    name: str, suites: tuple[str, ...], packages: tuple[str, ...], programs: tuple[str, ...] = ()
) -> Path:
    """Return a cached folder with the packages, in which the named programs run.

    The packages come from the first suite that has them.
    """

    def fill(draft: Path, target: Path) -> None:
        wanted = (*packages, "patchelf") if programs else packages
        for suite in suites:
            try:
                unpack(suite, wanted, draft)
                break
            except Missing as missing:
                if suite == suites[-1] or "was not found" not in str(missing):
                    raise
                shutil.rmtree(draft / ".apt")
        if programs:
            bind(draft, programs, target)

    root = kept(name, fill)
    if programs and (root / ".bound").read_text() != str(root):
        bind(root, programs, root)
    return root
