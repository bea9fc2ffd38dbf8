"""The work of `nsc`, by hand: an operator, accounts, and users who log in with a JWT."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import nkeys

HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
NO_LIMIT = {"subs": -1, "data": -1, "payload": -1}
OF_ACCOUNT = {
    **NO_LIMIT,
    "imports": -1,
    "exports": -1,
    "wildcards": True,
    "conn": -1,
    "leaf": -1,
    "mem_storage": -1,
    "disk_storage": -1,
    "streams": -1,
    "consumer": -1,
}


class Signer:
    """An operator, an account or a user."""

    def __init__(self, prefix: int) -> None:
        self.seed = bytes(nkeys.encode_seed(os.urandom(32), prefix))
        self._pair = nkeys.from_seed(bytearray(self.seed))
        self.name = str(self._pair.public_key.decode())

    def sign(self, of: str, what: dict[str, Any]) -> str:
        """Return a token about somebody."""
        claims = {"jti": "x", "iat": int(time.time()), "iss": self.name, "sub": of, "name": of}
        claims["nats"] = {**what, "version": 2}
        said = ".".join(_plain(json.dumps(part).encode()) for part in (HEADER, claims))
        return f"{said}.{_plain(self._pair.sign(said.encode()))}"


class Operator:
    """Signs the account of a team, and the users in it; `settings` are for a server."""

    def __init__(self) -> None:
        signer = Signer(nkeys.PREFIX_BYTE_OPERATOR)
        self._team, system = (Signer(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(2))
        limits = {"type": "account", "limits": OF_ACCOUNT}
        told = {"type": "account", "limits": {**OF_ACCOUNT, "mem_storage": 0, "disk_storage": 0}}
        own = signer.sign(signer.name, {"type": "operator"})
        self.settings = f"""operator: {own}
system_account: {system.name}
resolver: MEMORY
resolver_preload: {{
  {self._team.name}: {signer.sign(self._team.name, limits)}
  {system.name}: {signer.sign(system.name, told)}
}}
"""

    def user(self, path: Path, to: list[str], of: list[str]) -> Path:
        """Write the credentials of a user, who may publish and subscribe to these."""
        user = Signer(nkeys.PREFIX_BYTE_USER)
        may = {"pub": {"allow": to}, "sub": {"allow": [*of, f"_INBOX.{user.name}.>"]}}
        token = self._team.sign(user.name, {"type": "user", **may, **NO_LIMIT})
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            "-----BEGIN USER NKEY SEED-----\n"
            f"{user.seed.decode()}\n------END USER NKEY SEED------\n"
        )
        path.chmod(0o600)
        return path


def _plain(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
