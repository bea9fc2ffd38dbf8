"""The options of the rules, each with its reason.

Hosts share these, because the fold must come out the same in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace


class Options(Struct, frozen=True):
    """Options of the rules, in seconds; shared by all hosts."""

    hold: float = 0.25  # a question is held back: auto-allowed ones resolve within milliseconds
    settle: float = 0.25  # a registry value must last; the CLI's own blips take up to 120 ms
    outweigh: float = 3.0  # a value that lasts this long outweighs hooks newer by up to that
    swap: float = 0.05  # hooks of one moment may be stamped in either order
    dwell: float = 1.0  # a look shorter than this is a passing glance
    grace: float = 15.0  # a turn that ends while you look stays unseen that long
    late: float = 45.0  # a permission notice may come this long after the answer (seen: 4 to 41 s)
    report: float = 2.0  # an agent's report follows its end by 80 to 250 ms, or never
    hooks: float = 60.0  # for Stop hooks to run, if only the transcript shows their end
    compaction: float = 60.0  # without news for this long, a compaction counts as over
    fresh: float = 30.0  # a younger record is trusted when a host starts again
    silence: float = 15.0  # a turn known only by its transcript ends after this long without news
    quiet: float = 600.0  # a working session without news for this long is marked
    team: float = 15.0  # how long to keep a team after its last member ended
    forget: float = 86400.0  # when to drop a session whose process is unknown
    prompts: int = 0  # prompts of a live session to keep; none by default: they are private
    approval: dict[str, float] = {}  # seconds by class of tool; empty: no approval timers


LARGEST_OPTION: Final = 1e9  # seconds: thirty years
_NUMBERS: Final = frozenset(Options.__struct_fields__) - {"approval"}

#: Approval timers for CLIs without PermissionRequest: off by default, these are their usual times.
APPROVAL_TIMES: Final = {"fast": 3.0, "question": 3.0, "web": 15.0, "slow": 8.0}
APPROVAL_CLASS: Final = {
    **dict.fromkeys(("Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Grep", "Glob"), "fast"),
    **dict.fromkeys(("AskUserQuestion", "EnterPlanMode", "ExitPlanMode"), "question"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
    **dict.fromkeys(("Bash", "Task", "Agent"), "slow"),
}


def options_of(settings: Mapping[str, Any], base: Options) -> Options:
    """Return options with a user's settings; ignore unknown ones and values of the wrong type."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat.update(value if key == "clear" and isinstance(value, dict) else {key: value})
    flat.setdefault("quiet", flat.get("stale"))  # as hosts of older versions call it
    changed: dict[str, Any] = {
        k: type(getattr(base, k))(v)
        for k, v in flat.items()
        if k in _NUMBERS
        and isinstance(v, int | float)
        and not isinstance(v, bool)
        and 0 <= v <= LARGEST_OPTION
    }
    approval = flat.get("approval")
    if approval is True:
        changed["approval"] = APPROVAL_TIMES
    elif isinstance(approval, dict):
        times = {
            k: float(v)
            for k, v in approval.items()
            if k in APPROVAL_TIMES and isinstance(v, int | float) and 0 < v <= LARGEST_OPTION
        }
        on = approval.get("enabled", True)
        changed["approval"] = (APPROVAL_TIMES | times) if on else {}
    elif approval is False:
        changed["approval"] = {}
    return replace(base, **changed)


def settings_of(options: Options) -> dict[str, Any]:
    """Return all options as settings, so that omitted ones go back to their defaults."""
    return {**to_builtins(options), "approval": options.approval or False}
