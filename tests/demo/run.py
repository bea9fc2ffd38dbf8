"""`make try`: a Neovim with the plugin and simulated agents, in folders of its own.

usage: run.py [--headless | --picture FILE --film FILE | --which] [--patience SECONDS]
"""

# ruff: noqa: T201  what it prints is what it is for
from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

OLDEST = (0, 10)
LAST = 10  # seconds for hosts to end; they take milliseconds, on a loaded machine more
PROJECTS = {
    "acme/api": "main",
    "acme/cache": "cache",
    "acme/web": "fix/login",
    "acme/infra": "main",
    "acme/docs": "main",
    "dotfiles": "main",
}
FOREIGN = ("NVIM", "NVIM_APPNAME", "NVIM_LISTEN_ADDRESS", "VIM", "VIMRUNTIME", "MYVIMRC")


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
        sys.exit("make try: Neovim 0.10 or newer is missing; install it and try again")
    return fetched.stdout.strip()


@contextmanager
def home() -> Iterator[tuple[Path, dict[str, str]]]:
    """Make a folder for everything that the demo may touch, and its environment."""
    folder = Path(tempfile.mkdtemp(prefix="bellboard-try-", dir=_short())).resolve()
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
    subprocess.run(
        [sys.executable, "-m", "bellboard", *hooks],
        env=env,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    ended = (signal.SIGHUP, signal.SIGTERM)  # a closed terminal cleans up as well
    before = {number: signal.signal(number, lambda *_: sys.exit(1)) for number in ended}
    try:
        yield folder, env
    finally:
        wait_for_hosts(folder / "board/hosts")
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_hosts(folder: Path) -> None:
    """Wait until the hosts have ended, which may be after their Neovim: they write until then."""
    until = time.monotonic() + LAST
    while any(map(runs, folder.glob("[0-9]*"))) and time.monotonic() < until:
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


def command() -> list[str]:
    return [neovim(), "-n", "-i", "NONE", "-u", str(ROOT / "tests/demo/init.lua")]


def interactive() -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.exit("make try: this is no terminal; make try HEADLESS=1 prints the demo's screen")
    with home() as (folder, env):
        return subprocess.run(command(), env=env, cwd=folder, check=False).returncode


@contextmanager
def editor() -> Iterator[Path]:
    """Run the demo without a terminal of its own; yield the socket of its Neovim."""
    with home() as (folder, env):
        socket = folder / "run/nvim.sock"
        process = subprocess.Popen(
            [*command(), "--headless", "--listen", str(socket)],
            env={**env, "TERM": "xterm-256color"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield socket
        finally:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def headless(picture: Path | None, film: Path | None, patience: float) -> int:
    from demo import picture as canvas

    with editor() as socket:
        shown, problem = canvas.play(socket, picture, film, patience)
    print(shown)
    if problem:
        print(f"make try: {problem}", file=sys.stderr)
    return 1 if problem else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make try")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--film", type=Path)
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--which", action="store_true")
    wanted = parser.parse_args()
    if wanted.which:
        print(neovim())
        return 0
    if wanted.headless or wanted.picture or wanted.film:
        return headless(wanted.picture, wanted.film, wanted.patience)
    return interactive()


if __name__ == "__main__":
    sys.exit(main())
