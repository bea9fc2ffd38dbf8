"""The reply of another machine, in the form that the asker uses.

A machine may be older, newer or hostile: its reply has the fields that are known here, of the types
that are used here, or it cannot be used.

This file does no I/O, knows no clock, and tolerates any input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from .lenient import converted
from .request import Line, Request

MOST_ROWS: Final = 200  # of a preview
WIDEST: Final = 1000  # characters of a row
CHECK: Final = "; check whether it was done"  # where no reply came
NOTHING: Final = "nothing"  # followed an answer, as far as is known


def refusal(why: str) -> dict[str, Any]:
    """Return the reply to a request that is not carried out."""
    return {"ok": False, "why": why}


class Way(Struct, frozen=True):
    """A way in which a request can be answered."""

    name: str
    words: str


class Asked(Request, frozen=True, omit_defaults=True, gc=False):
    """A request, with the ways in which it can be answered, best first, and what that one takes."""

    ways: tuple[Way, ...] = ()
    way: str = ""
    takes: Line = ""


class Shown(Struct, frozen=True):
    """The reply to `request`."""

    request: Asked


class Answered(Struct, frozen=True):
    """The reply to `answer`: `outcome` is "taken" if the agent went on."""

    way: str = ""
    outcome: str = NOTHING
    text: str = "it does not say what followed; look there"


class Stopped(Struct, frozen=True):
    """The reply to `stop`."""

    text: str = "it does not say what followed; look there"


class Previewed(Struct, frozen=True):
    """The reply to `preview`."""

    rows: tuple[str, ...]


#: What was asked → the reply that is understood.  Other replies have no field that is used, or one
#: that the asker checks.
KNOWN: Final[Mapping[str, type[Struct]]] = {
    "request": Shown,
    "answer": Answered,
    "stop": Stopped,
    "preview": Previewed,
}


def understood(do: str, reply: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a reply with only the fields known here; None if it lacks a needed one."""
    kind = KNOWN.get(do)
    if kind is None:
        return dict(reply)
    made = converted(reply, kind)
    if made is None:
        return None
    if isinstance(made, Previewed):
        made = Previewed(tuple(row[:WIDEST].replace("\n", " ") for row in made.rows[:MOST_ROWS]))
    fields: dict[str, Any] = msgspec.to_builtins(made)
    return {**fields, "ok": reply.get("ok") is True}
