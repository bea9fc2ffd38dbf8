"""Benchmarks still run; whether they pass is for an idle machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rig import ROOT
from rig.waiting import PATIENCE

BENCH = ROOT / "bench"


def test_make_bench_runs_each_that_has_limits() -> None:
    """The other files are programs and modules of these."""
    (line,) = [
        text
        for text in (BENCH.parent / "Makefile").read_text().splitlines()
        if "BENCHES :=" in text
    ]
    measuring = {path.stem for path in BENCH.glob("*.py") if "def main()" in path.read_text()}
    assert set(line.split()[2:]) == measuring


@pytest.mark.editor
def test_the_bench_of_the_editor_measures_everything() -> None:
    """The bench calls modules by name, which it can miss when a module moves."""
    done = subprocess.run(
        [sys.executable, str(BENCH / "editor.py"), "--runs", "1", "--nvim", "0.12"],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert ("", 8) == (done.stderr, len(done.stdout.splitlines()))
