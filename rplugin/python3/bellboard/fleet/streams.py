"""What a team keeps on the server: three streams, each bounded by age and size.

The server repeats what it stores (`republish`), so what others see was said under a subject that
its member may use.  Nobody can have it deliver anything elsewhere: no member makes consumers.
"""

from __future__ import annotations

from typing import Any, Final

from .subjects import Subjects
from .wire import NO_STREAM, Denied, Down, Refused, Wire

TTL: Final = 900.0  # seconds that a row stays after its machine has stopped writing it
CLAIMED: Final = 2 * 86400.0  # seconds that a claim stays: longer than anything is escalated
PASSING: Final = 2.0  # seconds that stays what is only passed on
TWICE: Final = 600.0  # seconds in which the server recognizes a claim by its id
LARGEST: Final = 16 << 10  # bytes of a row
HEADERS: Final = 1 << 10  # bytes that come with it
MOST_ROWS: Final = 256 << 20  # bytes of all rows: 10,000 take 8 MB
MOST_CLAIMS: Final = 16 << 20
MOST_PASSING: Final = 16 << 20

NANO: Final = 1_000_000_000


def streams(s: Subjects) -> list[dict[str, Any]]:
    """Return the settings of a team's streams."""
    seen = {"republish": {"src": s.said, "dest": s.seen(s.said)}}
    latest = {"max_msgs_per_subject": 1, "discard": "new", "max_msg_size": LARGEST + HEADERS}
    passing = [
        *(s.moved_of(), s.ask("*", "*", "*"), s.reply("*", "*"), s.all_screens, s.tick("*")),
    ]
    window = {"duplicate_window": int(TWICE * NANO)}
    passed = {"discard": "old", "duplicate_window": int(PASSING * NANO)}
    return [
        _stream(s.rows, [s.rows_of()], TTL, MOST_ROWS, {**latest, **seen, "allow_direct": True}),
        _stream(s.claims, [s.claim("*", "*")], CLAIMED, MOST_CLAIMS, {**latest, **window}),
        _stream(s.relay, passing, PASSING, MOST_PASSING, {**passed, **seen}),
    ]


async def ensure(wire: Wire, s: Subjects) -> bool:
    """Create the streams that are missing; return whether there were any; raise `Down` if not."""
    missing = False
    for stream in streams(s):
        try:
            await wire.info(stream["name"])
        except Denied as e:
            if wire.is_walled:
                raise Down(
                    f"{wire.url} has no account for {wire.member} in team {s.team}, or was set up "
                    "by an older bellboard: whoever set up the fleet has to run "
                    "`bellboard fleet setup` again, and to restart the server"
                ) from e
        except Refused as e:
            if e.code != NO_STREAM:
                raise Down(f"the server refuses {stream['name']}: {e}") from None
            missing = True
            await _create(wire, stream, s.team)
    return missing


async def has_older(wire: Wire, s: Subjects) -> bool:
    """Return whether machines with an older bellboard publish here, which nobody of us sees."""
    if wire.is_walled:
        return False  # the server has nothing for them
    try:
        found = await wire.info(s.older)
    except (Denied, Refused):
        return False
    return bool(found["state"].get("messages"))


async def _create(wire: Wire, stream: dict[str, Any], team: str) -> None:
    try:
        if wire.is_walled:
            raise Denied(f"{wire.member} is not the admin")
        await wire.call(f"$JS.API.STREAM.CREATE.{stream['name']}", stream)
    except Denied:
        raise Down(
            f"team {team} has no streams on the server yet, and we may not create them: "
            "whoever set up the fleet has to run `bellboard fleet setup FOLDER --create URL`"
        ) from None
    except Refused as e:
        raise Down(f"the server does not create {stream['name']}: {e}") from None


def _stream(
    name: str, subjects: list[str], age: float, size: int, more: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": subjects,
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_age": int(age * NANO),
        "max_bytes": size,
        "deny_delete": True,
        "deny_purge": True,
        "allow_rollup_hdrs": False,  # a message with such a header would delete all others
        **more,
    }
