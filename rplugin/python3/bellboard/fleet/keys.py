"""Make and keep the credentials of members, a file each: `bellboard fleet setup` writes them."""

from __future__ import annotations

import os
from pathlib import Path

from .member import Unusable, credentials


def key_of(folder: Path, member: str) -> str:
    """Return the public key of a member; its file is written unless it is there."""
    import nkeys

    path = folder / f"{member}.creds"
    if not path.exists():
        seed = _new_seed()
        text = f"# member: {member}\n# Whoever has this file is {member}. Keep it secret.\n{seed}\n"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
        except OSError as e:
            raise Unusable(f"{path} cannot be written: {e.strerror}") from None
    known = credentials(str(path))
    if known.member != member or known.jwt:
        raise Unusable(f"{path} belongs to {known.member}; move it away")
    return str(nkeys.from_seed(bytearray(known.seed.encode())).public_key.decode())


def _new_seed() -> str:
    import nkeys

    return bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)).decode()
