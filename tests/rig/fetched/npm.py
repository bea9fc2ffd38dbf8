"""npm packages of an exact version in a private folder, verified against the registry."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from rig.fetched import node
from rig.fetched.cache import kept, run

SYSTEM_TRUST = "/etc/ssl/certs/ca-certificates.crt"


def environment() -> dict[str, str]:
    """Return our environment, in which node trusts the system's certificates (for proxies)."""
    trust = {"NODE_EXTRA_CA_CERTS": SYSTEM_TRUST} if Path(SYSTEM_TRUST).exists() else {}
    return {**trust, **os.environ}


def latest(name: str) -> str:
    """Return the version that the registry calls latest."""
    return run(*node.npm(), "view", name, "dist-tags.latest", env=environment()).strip()


def package(name: str, version: str, verify: Callable[[Path], None] | None = None) -> Path:
    """Return the folder node_modules/`name` of that exact version; its scripts are not run.

    `verify` may refuse what was fetched, before it is kept.
    """
    kept_as = f"{name.rpartition('/')[2]}-{version}"

    def fill(draft: Path, _: Path) -> None:
        npm = node.npm()
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
        brief = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000")
        own = ("--prefix", draft, "--cache", draft / ".npm")
        run(*npm, "install", *quiet, *brief, *own, f"{name}@{version}", env=environment())
        if verify:
            verify(draft)
        shutil.rmtree(draft / ".npm", ignore_errors=True)

    return kept(kept_as, fill) / "node_modules" / name
