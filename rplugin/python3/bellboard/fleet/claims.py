"""Claim a notification for this machine: the team grants each once.

A claim names the status of a session as its machine shows it, with the time by that machine's
clock, so everybody who claims it names the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from ..core.row import Row
from .subjects import Key, Subjects
from .wire import WRONG_LAST, Denied, Down, Refused, Wire

PATIENCE: Final = 3.0  # seconds for the server to grant it: the notification waits for that


async def claim(
    wire: Wire, s: Subjects, machine: str, rows: Mapping[Key, Row], fields: Mapping[str, Any]
) -> bool:
    """Return whether a notification is granted to us; raise `Down` if nobody can say.

    With the same `token` it is granted again: the first reply may have been lost.
    """
    sid = str(fields.get("session_id"))
    key = next((k for k in rows if k.session == sid), None)
    if key is None or rows[key].status != fields.get("status"):
        return False  # it has changed since
    row = rows[key]
    what = key.agent, sid, row.status, repr(row.since), str(fields.get("effect"))
    digest = hashlib.sha256("\0".join(what).encode("utf-8", "replace")).hexdigest()[:40]
    headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
    if token := fields.get("token"):
        headers["Nats-Msg-Id"] = f"{digest} {token}"
    try:
        await wire.put(s.claim(machine, digest), b"", headers, PATIENCE)
    except Refused as e:
        if e.code == WRONG_LAST:
            return False
        raise Down(f"the server refuses a claim: {e}") from None
    except Denied as e:
        raise Down(str(e)) from None
    return True
