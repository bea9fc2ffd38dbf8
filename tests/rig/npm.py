"""npm packages of an exact version in a private folder; npm checks them against the registry."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rig.cache import Missing, kept, run

SYSTEM_TRUST = "/etc/ssl/certs/ca-certificates.crt"


def environment() -> dict[str, str]:
    """Our own, and node trusts what the system trusts (behind a company's proxy it must)."""
    trust = {"NODE_EXTRA_CA_CERTS": SYSTEM_TRUST} if Path(SYSTEM_TRUST).exists() else {}
    return {**trust, **os.environ}


def package(name: str, version: str) -> Path:
    """The folder node_modules/`name` of that very version; no script of it ran on the way."""
    kept_as = f"{name.rpartition('/')[2]}-{version}"

    def fill(draft: Path, _: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise Missing(f"npm is missing; install node and npm for {name}")
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
        brief = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000")
        own = ("--prefix", draft, "--cache", draft / ".npm")
        run(npm, "install", *quiet, *brief, *own, f"{name}@{version}", env=environment())
        shutil.rmtree(draft / ".npm", ignore_errors=True)

    return kept(kept_as, fill) / "node_modules" / name
