"""Run tasks that may fail, each on its own: a failed task is reported in health, and retried
after a pause until it succeeds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from ..system.failures import described

FIRST: Final = 0.25  # seconds until the second try; doubles with each failure
LONGEST_PAUSE: Final = 5.0  # seconds, so that a problem that is gone is noticed soon
SHARE: Final = 20.0  # pause after a slow failure, as a multiple of the time it took
RARELY: Final = 60.0  # seconds; no pause is longer
MOST: Final = 1000  # failing tasks to remember
NAMED: Final = 3  # failing tasks of one job to name in health


class Failure(NamedTuple):
    """The last failure of a task."""

    times: int  # failures in a row
    until: float  # do not retry before this
    why: str


class Attempts:
    """Runs tasks, identified by a job and what they are about."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], Failure] = {}

    def __call__(self, job: str, about: str, work: Callable[[], float]) -> float:
        """Run a task unless it has just failed; return the seconds until it is due again."""
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
        """Run a task once, without retrying; a failure is reported until it succeeds."""
        try:
            work()
        except Exception as e:
            self.failed(job, about, e)
        else:
            self.forget(job, about)

    def failed(self, job: str, about: str, error: Exception, took: float = 0.0) -> float:
        """Note a failure; return the seconds until the next try."""
        failure = self._failures.pop((job, about), None)
        times = failure.times + 1 if failure is not None else 1
        wait = pause(times, took)
        self._failures[job, about] = Failure(times, time.monotonic() + wait, described(error))
        if len(self._failures) > MOST:
            del self._failures[next(iter(self._failures))]
        return wait

    def forget(self, job: str, about: str) -> None:
        """Drop a task: it succeeded, or is no longer needed."""
        self._failures.pop((job, about), None)

    @property
    def notes(self) -> dict[str, str]:
        """Return each failing job, what it fails at, and why, for health."""
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
        return {job: f"{'; '.join(some)} (retrying)" for job, some in found.items()}


def pause(times: int, took: float, longest: float = LONGEST_PAUSE) -> float:
    """Return the seconds to wait after `times` failures in a row, the last of which took `took`.

    No more than `longest`, unless the failures themselves are slow.
    """
    doubled = FIRST * 2.0 ** min(times - 1, 10)  # any more would overflow one day
    return min(max(min(doubled, longest), SHARE * took), RARELY)
