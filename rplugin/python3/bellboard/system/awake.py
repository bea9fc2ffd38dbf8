"""A clock that also runs while this machine sleeps, as `time.monotonic` does not on Linux.

Connections may be dead after that, which nobody reports.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Final

clock: Final = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
