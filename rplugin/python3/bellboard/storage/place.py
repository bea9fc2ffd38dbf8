"""Where the state folder is: the same rule as in `hooks/emit`, which ignores relative paths."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes as long to load as a third of Python itself
if TYPE_CHECKING:
    from collections.abc import Mapping


def place_of(environ: Mapping[str, str]) -> str:
    """Return the path of the state folder, which may not be absolute."""
    home = environ.get("BELLBOARD_HOME")
    if not home:
        state = environ.get("XDG_STATE_HOME") or (environ.get("HOME") or ".") + "/.local/state"
        home = state + "/bellboard"
    return home
