"""Programs that hang, or print without end."""

from __future__ import annotations

import subprocess
import time

import pytest

from bellboard.system.programs import LIMIT, run


def test_it_returns_what_a_program_prints() -> None:
    done = run(["/bin/sh", "-c", "echo said; echo wrong >&2; exit 3"], 10)
    assert (3, b"said\n", b"wrong\n") == done


@pytest.mark.parametrize("to", ["", ">&2"])
def test_a_program_that_prints_without_end_is_killed(to: str) -> None:
    """At the limit, not at the end of its time."""
    done = run(["/bin/sh", "-c", f"while :; do printf %065536d 0; done {to}"], 60)
    assert done.code < 0
    assert LIMIT < len(done.output) + len(done.errors) <= LIMIT + (1 << 17)


@pytest.mark.parametrize("how", ["sleep 60", "exec >&- 2>&-; sleep 60", "trap '' TERM; sleep 60"])
def test_a_program_that_hangs_is_killed(how: str) -> None:
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run(["/bin/sh", "-c", f"exec 3>&-; {how}"], 0.2)
    assert time.monotonic() < began + 30


def test_a_program_that_is_missing_raises() -> None:
    with pytest.raises(FileNotFoundError):
        run(["/nonexistent"], 1)
