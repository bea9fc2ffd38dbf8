"""Make and keep the credentials of members, a file each: `bellboard fleet setup` writes them."""

from __future__ import annotations

import os
from pathlib import Path

from ..system.files import put
from .member import Credentials, Unusable, credentials
from .permits import Grant


def key_of(folder: Path, grant: Grant, team: str) -> str:
    """Return the public key of a member; its file is written unless it is there and still right.

    The file also says what its member may do, so `bellboard fleet join` needs no options for it.
    """
    import nkeys

    path = folder / f"{grant.member}.creds"
    try:
        known = credentials(str(path)) if path.exists() else Credentials(grant.member, _new_seed())
        if known.member != grant.member or known.jwt:
            raise Unusable(f"{path} belongs to {known.member}; move it away")
        text = _text(grant, team, known.seed).encode()
        if not path.exists() or path.read_bytes() != text:
            put(path, text)
    except OSError as e:
        raise Unusable(f"{path} cannot be written: {e.strerror}") from None
    return str(nkeys.from_seed(bytearray(known.seed.encode())).public_key.decode())


def _text(grant: Grant, team: str, seed: str) -> str:
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
