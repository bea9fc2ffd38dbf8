"""Jump to a window of a real kitty, on a screen of its own: python -m live.kitty

It needs kitty, Xvfb and a Linux, and says so if it lacks one of them.  `files/test_kitty.py` checks
the same against a server that speaks kitty's protocol.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rig import ROOT
from rig.waiting import eventually

OPTIONS = ("allow_remote_control=socket-only", "enabled_layouts=stack", "update_check_interval=0")


def main() -> int:
    lacks = [name for name in ("kitty", "Xvfb") if not shutil.which(name)]
    if lacks or sys.platform != "linux":
        print(f"not checked: this machine has no {' and no '.join(lacks) or 'Linux'}")
        return 0
    with tempfile.TemporaryDirectory(prefix="bellboard-kitty-", dir="/tmp") as folder:
        return check(Path(folder))


def check(home: Path) -> int:
    """Start two sessions in two windows of one kitty, and go to the hidden one."""
    read, write = os.pipe()
    screen = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    display = os.read(read, 20).decode().strip()
    env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE", "NVIM")} | {
        "DISPLAY": f":{display}",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "BELLBOARD_HOME": str(home / "board"),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
    }
    socket = home / "kitty.sock"
    options = [word for option in OPTIONS for word in ("-o", option)]
    listen = ("--listen-on", f"unix:{socket}", "--config", "NONE")
    kitty = subprocess.Popen(["kitty", *listen, *options, "sh"], env=env, stderr=subprocess.DEVNULL)
    try:
        eventually(socket.exists, "kitty's socket")
        at = ("kitty", "@", "--to", f"unix:{socket}")

        def windows() -> dict[int, tuple[int, bool]]:
            """Return each window's process, and whether it has the focus."""
            listed = subprocess.run([*at, "ls"], env=env, capture_output=True, check=True).stdout
            return {
                window["id"]: (window["pid"], window["is_focused"])
                for outer in json.loads(listed)
                for tab in outer["tabs"]
                for window in tab["windows"]
            }

        subprocess.run([*at, "launch", "--type=window", "sh"], env=env, check=True)
        (first, (pid, _)), _second = eventually(
            lambda: len(found := windows()) == 2 and found
        ).items()
        assert not windows()[first][1], "the first window has the focus already"
        hook = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/"}
        emit = ROOT / "hooks/emit"
        bellboard = (sys.executable, "-m", "bellboard")
        host = subprocess.Popen([*bellboard, "serve"], env=env)
        try:
            eventually((home / "board/spool/new").is_dir, "the spool")
            told = json.dumps(hook).encode()
            subprocess.run([emit, "UserPromptSubmit", str(pid)], input=told, env=env, check=True)

            def known() -> bool:
                """Whether the host knows the window's kitty."""
                shown = subprocess.run(
                    [*bellboard, "list", "--json"], env=env, capture_output=True, check=True
                ).stdout
                return any(p.get("kitty") == str(socket) for p in json.loads(shown)["sessions"])

            eventually(known, "the socket of kitty")
            subprocess.run([*bellboard, "goto", "s"], env=env, check=True)
        finally:
            host.terminate()
            host.wait()
        eventually(lambda: windows()[first][1], "the focus")
    finally:
        for process in (kitty, screen):
            process.terminate()
            process.wait()
    print("bellboard goto focused the hidden window of a real kitty")
    return 0


if __name__ == "__main__":
    sys.exit(main())
