"""The number of Hypothesis's examples: `BELLBOARD_EXAMPLES=1` as in CI, `=50` for a long run."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

#: A multiple of the number in CI; less is enough while somebody works and waits.
MANY: Final = float(os.environ.get("BELLBOARD_EXAMPLES", "0.2"))


def load() -> None:
    """Set what holds for all tests."""
    settings.register_profile(
        "bellboard",
        deadline=None,
        derandomize=MANY <= 1,  # the usual run is repeatable, a long one tries new examples
        max_examples=most(100),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("bellboard")


def examples(usually: int) -> settings:
    """Return the settings of a test that tries more than others, or fewer, in any run."""
    return settings(max_examples=most(usually))


def most(usually: int) -> int:
    """Return how many examples are tried, of a number in CI."""
    return max(1, round(usually * MANY))
