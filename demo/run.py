"""The demo: a Neovim with the plugin and simulated agents, in folders of its own.

usage: run.py [--nvim PROGRAM | --which]; `make try` and `:ClaudeSessions demo` run it in a terminal
"""

# ruff: noqa: T201  what it prints is what it is for
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = (sys.executable, "-E", ROOT / "rplugin/python3/bellboard/__main__.py")

OLDEST = (0, 10)
LAST = 30  # seconds for hosts to end; they take milliseconds, on a loaded machine more
PROJECTS = {
    "acme/api": "main",
    "acme/cache": "cache",
    "acme/web": "fix/login",
    "acme/infra": "main",
    "acme/docs": "main",
    "dotfiles": "main",
}
#: What leads to the editor and the terminal around it, whose statusline is not the demo's.
FOREIGN = ("NVIM", "NVIM_APPNAME", "NVIM_LISTEN_ADDRESS", "MYVIMRC", "TMUX", "TMUX_PANE")
FOREIGN += ("KITTY_WINDOW_ID", "KITTY_LISTEN_ON")
#: Not those of another Neovim.
RUNTIME = ("VIM", "VIMRUNTIME")


class Home(NamedTuple):
    """A folder for everything that the demo may touch."""

    folder: Path
    env: dict[str, str]
    held: int  #: a descriptor: once nobody has it open any more, the folder is removed


def neovim() -> str:
    """Return the user's Neovim if it is new enough, else one from the test rig."""
    if found := shutil.which("nvim"):
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"NVIM v(\d+)\.(\d+)", said.stdout)
        if version and (int(version[1]), int(version[2])) >= OLDEST:
            return found
    fetched = subprocess.run(
        [ROOT / "tests/rig/nvim", "0.12"], stdout=subprocess.PIPE, text=True, check=False
    )
    if fetched.returncode:
        sys.exit("demo: Neovim 0.10 or newer is missing; install it and try again")
    return fetched.stdout.strip()


@contextmanager
def home() -> Iterator[Home]:
    """Make a home; it goes with the last process that has it, however that ends."""
    folder = Path(tempfile.mkdtemp(prefix="bellboard-demo-", dir=_short())).resolve()
    read, held = os.pipe()
    sweeper = subprocess.Popen(
        [sys.executable, "-E", __file__, "--sweep", folder],
        stdin=read,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # it outlives a terminal that is closed
    )
    os.close(read)
    try:
        yield Home(folder, _prepare(folder), held)
    finally:
        os.close(held)
        sweeper.wait()


def _prepare(folder: Path) -> dict[str, str]:
    """Fill it; return the environment for it."""
    projects = folder / "demo"
    for name, branch in PROJECTS.items():
        git = projects / name / ".git"
        (git / "objects").mkdir(parents=True)
        (git / "refs").mkdir()
        (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        if "/" in name:
            url = f"https://example.org/{name.replace('cache', 'api')}.git"
            (git / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
    env = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    for key in ("CONFIG", "DATA", "STATE", "CACHE"):
        env[f"XDG_{key}_HOME"] = str(folder / key.lower())
    (folder / "run").mkdir(mode=0o700)
    env |= {
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "HOME": str(folder),
        "BELLBOARD_HOME": str(folder / "board"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "DEMO_ROOT": str(ROOT),
        "DEMO_HOME": str(projects),
        "DEMO_PYTHON": sys.executable,
    }
    # The simulated agents run the hook themselves; with hooks installed, nothing is offered.
    hooks = ("hooks", "install", "--agent", "claude", "--yes", "--cli", "2.1.328")
    subprocess.run([*PROGRAM, *hooks], env=env, stdout=subprocess.DEVNULL, check=False)
    return env


def sweep(folder: Path) -> None:
    """Remove the folder once all who hold it, and its hosts, have ended: they write until then."""
    sys.stdin.read()
    until = time.monotonic() + LAST
    while any(map(runs, (folder / "board/hosts").glob("[0-9]*"))) and time.monotonic() < until:
        time.sleep(0.05)
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.05)


def runs(record: Path) -> bool:
    try:
        os.kill(int(record.name), 0)
    except OSError:  # none, or that of another user, who has its number now
        return False
    return True


def _short() -> str | None:
    """Return a short temporary folder: macOS's own takes half of the 103 bytes of a socket path."""
    return "/tmp" if os.access("/tmp", os.W_OK) else None


def command(nvim: str) -> list[str]:
    return [nvim, "-n", "-i", "NONE", "-u", str(ROOT / "demo/init.lua")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo")
    parser.add_argument("--nvim", metavar="PROGRAM", help="default: the one on PATH")
    parser.add_argument("--which", action="store_true", help="print the Neovim that it would run")
    parser.add_argument("--sweep", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.sweep:
        sweep(wanted.sweep)
        return 0
    if not wanted.nvim:
        wanted.nvim = neovim()
        for key in RUNTIME:
            os.environ.pop(key, None)
    if wanted.which:
        print(wanted.nvim)
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.exit("demo: this is no terminal; make try HEADLESS=1 prints the demo's screen")
    with home() as (folder, env, held):
        argv = command(wanted.nvim)
        return subprocess.run(argv, env=env, cwd=folder, pass_fds=(held,), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
