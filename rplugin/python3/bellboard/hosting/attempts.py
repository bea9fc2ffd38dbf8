"""Work that may fail, each piece guarded by itself: it is named, left alone for a while, and tried
again, until it succeeds and nobody mentions it any more."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from ..core.words import cut, plain

FIRST: Final = 0.25  # seconds until the second try; each failure doubles it
LONGEST: Final = 5.0  # what heals by itself is noticed so soon
SHARE: Final = 20.0  # a try that fails after a long time is repeated after so many times that
RARELY: Final = 60.0  # and at least so often
MOST: Final = 1000  # failing pieces remembered
NAMED: Final = 3  # of one job in health
ROOM: Final = 300  # cells of a reason


class Failure(NamedTuple):
    """What a piece of work came to, the last time."""

    times: int  # in a row
    until: float  # not to be tried before
    why: str


class Attempts:
    """Runs pieces of work by the names of their job and of what they are about."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], Failure] = {}

    def __call__(self, job: str, about: str, work: Callable[[], float]) -> float:
        """Do it, unless it has just failed; in how many seconds it wants to be called again."""
        failure = self._failures.get((job, about))
        begun = time.monotonic()
        if failure is not None and begun < failure.until:
            return failure.until - begun
        try:
            wait = work()
        except Exception as e:
            return self.failed(job, about, e, time.monotonic() - begun)
        if failure is not None:
            self.forget(job, about)
        return wait

    def once(self, job: str, about: str, work: Callable[[], object]) -> None:
        """Do it now or never; what fails is named until it succeeds."""
        try:
            work()
        except Exception as e:
            self.failed(job, about, e)
        else:
            self.forget(job, about)

    def failed(self, job: str, about: str, error: Exception, took: float = 0.0) -> float:
        """Note that it failed; in how many seconds to try it again."""
        failure = self._failures.pop((job, about), None)
        times = failure.times + 1 if failure is not None else 1
        wait = pause(times, took)
        self._failures[job, about] = Failure(times, time.monotonic() + wait, told(error))
        if len(self._failures) > MOST:
            del self._failures[next(iter(self._failures))]
        return wait

    def forget(self, job: str, about: str) -> None:
        """It need not be done any more."""
        self._failures.pop((job, about), None)

    @property
    def notes(self) -> dict[str, str]:
        """For health: each job that fails, at what, and why."""
        if not self._failures:
            return {}
        found: dict[str, list[str]] = {}
        count: Counter[str] = Counter()
        for (job, about), failure in self._failures.items():
            count[job] += 1
            if count[job] <= NAMED:
                what = f"{about}: {failure.why}" if about else failure.why
                found.setdefault(job, []).append(what)
        for job, some in found.items():
            if (more := count[job] - len(some)) > 0:
                some.append(f"{more} more")
        return {job: f"{'; '.join(some)} (trying again)" for job, some in found.items()}


def pause(times: int, took: float) -> float:
    """Seconds to wait after so many failures in a row, the last of which took so long."""
    return min(max(min(FIRST * 2.0 ** (times - 1), LONGEST), SHARE * took), RARELY)


def told(error: BaseException) -> str:
    """An error in one line; of one that is ours, also where it was raised."""
    if isinstance(error, OSError) and error.strerror:
        name = error.filename
        text = error.strerror if name is None else f"{error.strerror}: {_path(name)}"
        return cut(plain(text), ROOM)
    where, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f" ({Path(code.co_filename).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return cut(plain(f"{type(error).__name__}: {error}"), ROOM) + where


def _path(name: object) -> str:
    if isinstance(name, bytes):
        return name.decode(sys.getfilesystemencoding(), "replace")
    return str(name)
