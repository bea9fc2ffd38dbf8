"""kill -9 before every system call that can change a settings file: faulty_settings.py HOME AGENT.

A child installs or removes the hooks, and kills itself before its Nth system call; between two of
them nothing changes on disk.  For every N, the file is the old or the new one, and another attempt
succeeds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from bellboard.agents.installing import hook_record
from bellboard.agents.installing.installer import backups
from bellboard.agents.registry import agent_of
from bellboard.system import files, mounts

#: The functions of `os` and `fcntl` that only look.
LOOKS = {
    *("fspath", "fsencode", "fsdecode", "getpid", "getuid", "geteuid", "getcwd", "read", "access"),
    *("stat", "lstat", "fstat", "statvfs", "listdir", "scandir", "readlink", "listxattr", "umask"),
    *("getxattr", "lseek", "get_inheritable", "set_inheritable", "urandom", "cpu_count"),
    *("makedev", "_path_normpath"),
}
HOOKS = {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
TEXT = json.dumps({"model": "opus", "hooks": HOOKS}, indent="\t")


def die_at(step: int) -> None:
    """Count the system calls from now on, and die before the Nth."""
    count = 0

    def tell(frame: FrameType, event: str, called: Any) -> None:
        nonlocal count
        if event != "c_call" or called.__name__ in LOOKS:
            return
        if frame.f_code.co_filename == mounts.__file__:  # read again when another test mounts
            return
        if getattr(called, "__module__", None) in ("posix", "fcntl", "_io"):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(tell)


def attempt(home: Path, agent: str, verb: str, step: int) -> tuple[str, bool]:
    """Die at that step, then try again; return which content was there, and whether it died."""
    cli = agent_of(agent)
    assert cli.hooks is not None
    first = None if cli.hooks.own else TEXT.encode()
    path = home / "there/settings.json"
    shutil.rmtree(path.parent, ignore_errors=True)
    if first is not None:
        path.parent.mkdir()
        path.write_bytes(first)
    ours = cli.installer(home / "board", {"HOME": str(home)})
    if verb == "take_out":
        ours.apply(ours.put_in(path))
    old = files.content(path)
    change = ours.put_in(path) if verb == "put_in" else ours.take_out(path)
    child = os.fork()
    if child == 0:
        die_at(step)
        ours.apply(change)
        sys.setprofile(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found, where = files.content(path), f"{verb}, step {step}"
    assert found in (old, change.new), f"{where}: half a file"
    ours.apply(ours.put_in(path))
    assert ours.check(path).is_complete, f"{where}: no hooks after another install"
    ours.apply(ours.take_out(path))
    assert files.content(path) == first, f"{where}: not restored"
    copies = {copy.read_bytes() for copy in backups(path)}
    assert cli.hooks.own or found == old or old in copies, f"{where}: no backup"
    assert path.parent.exists() == (first is not None), f"{where}: a folder is left"
    assert not [*path.parent.glob(f"{files.PREFIX}*")], f"{where}: a file is left"
    assert not hook_record.hooked_files(home / "board"), f"{where}: still recorded"
    return "old" if found == old else "new", os.WIFSIGNALED(status)


def main() -> None:
    home, agent = Path(sys.argv[1]).resolve(), sys.argv[2]
    for verb in ("put_in", "take_out"):
        found, has_died = [], True
        while has_died:
            content, has_died = attempt(home, agent, verb, len(found) + 1)
            found.append(content)
        old, new = found.count("old"), found.count("new")
        assert found == ["old"] * old + ["new"] * new, f"{verb}: {found}"
        assert old > 20 and new > 10, f"{verb}: {old} steps before the new content, {new} with it"


if __name__ == "__main__":
    main()
