"""Ask the machine of a session whether we may send a notification: it grants each once in all.

Whatever goes wrong, the answer is no: while that machine cannot be asked, nobody follows it, and it
notifies by itself.
"""

from __future__ import annotations

from pathlib import Path

from ..core.notices import Notice
from ..core.session import Session
from .beside import Declined
from .elsewhere import Elsewhere


async def is_granted(home: Path, notice: Notice, s: Session) -> bool:
    """Return whether the machine of a session lets us send a notification about it."""
    about = {
        "status": notice.status,
        "effect": f"notice {notice.channel}",
        "transition": f"{s.row.get('session_id')} {notice.status} {s.since:.0f}",
    }
    try:
        return (await Elsewhere(home).do("claim", s, about)).get("granted") is True
    except Declined:
        return False
