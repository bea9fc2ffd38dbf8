"""Run each way to install on each Neovim: seconds, keystrokes, and a picture of each step."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from live.firstrun.setting import WAYS, Lacking, Setting
from live.firstrun.steps import walk


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m live firstrun", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("/tmp/firstrun"), help="for the pictures")
    parser.add_argument("--lazy", type=Path, help="a checkout of folke/lazy.nvim")
    parser.add_argument("--uv", default=shutil.which("uv"), help="a uv (default: on PATH)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(WAYS)}")
    wanted = parser.parse_args(argv)
    wanted.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    print(f"{'way':16} {'ready':>6} {'shown':>6} {'keys':>5}   steps (seconds since the start)")
    for name in wanted.names or WAYS:
        try:
            with Setting(WAYS[name], wanted.lazy, wanted.uv) as setting:
                run = walk(setting, wanted.out / name)
        except Lacking as lacking:
            print(f"{name:16} left out: {lacking}", flush=True)
            continue
        except AssertionError as problem:
            failed += 1
            print(f"{name:16} FAILED: {problem}", flush=True)
            continue
        steps = ", ".join(f"{what} {at:.1f}" for what, at in run.steps)
        print(f"{name:16} {run.ready:6.1f} {run.shown:6.1f} {run.keys:5}   {steps}", flush=True)
    return 1 if failed else 0
