"""What a team keeps on the server: three streams, each bounded by age and size."""

from __future__ import annotations

from typing import Any, Final

from .subjects import Subjects
from .wire import NO_STREAM, Denied, Down, Refused, Wire

TTL: Final = 900.0  # seconds that a row stays after its machine has stopped writing it
NEWS: Final = 86400.0  # seconds that a transition stays
TWICE: Final = 600.0  # seconds in which the server recognizes a message by its id
CLAIMED: Final = 2 * 86400.0  # seconds that a claim stays: longer than anything is escalated
LARGEST: Final = 16 << 10  # bytes of a row
MOST_ROWS: Final = 256 << 20  # bytes of all rows: 10,000 take 8 MB
MOST_NEWS: Final = 64 << 20  # bytes of all transitions: about 200,000
MOST_CLAIMS: Final = 16 << 20

NANO: Final = 1_000_000_000


def streams(s: Subjects) -> list[dict[str, Any]]:
    """Return the settings of a team's streams."""
    bucket = {
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_direct": True,
        "max_msg_size": LARGEST,
    }
    return [
        _stream(s.rows, s.rows_of(), TTL, MOST_ROWS, bucket),
        _stream(s.claims, s.all_claims, CLAIMED, MOST_CLAIMS, bucket),
        _stream(
            *(s.news, s.news_of(), NEWS, MOST_NEWS),
            {"discard": "old", "duplicate_window": int(TWICE * NANO), "max_msg_size": LARGEST},
        ),
    ]


async def ensure(wire: Wire, s: Subjects) -> None:
    """Create the streams that are missing; raise `Down` if we may not."""
    for stream in streams(s):
        try:
            await wire.call(f"$JS.API.STREAM.INFO.{stream['name']}")
        except Denied:
            continue  # a member that may not look has nothing to create either
        except Refused as e:
            if e.code != NO_STREAM:
                raise Down(f"the server refuses {stream['name']}: {e}") from None
            await _create(wire, stream, s.team)


async def _create(wire: Wire, stream: dict[str, Any], team: str) -> None:
    try:
        await wire.call(f"$JS.API.STREAM.CREATE.{stream['name']}", stream)
    except Denied:
        raise Down(
            f"team {team} has no streams on the server yet, and we may not create them: "
            "whoever set up the fleet has to run `bellboard fleet setup FOLDER --create URL`"
        ) from None
    except Refused as e:
        raise Down(f"the server does not create {stream['name']}: {e}") from None


def _stream(name: str, subject: str, age: float, size: int, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": [subject],
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_age": int(age * NANO),
        "max_bytes": size,
        **more,
    }
