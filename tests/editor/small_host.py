"""A minimal host for the tests of host.lua: it records messages and pushes one session.

It is started as the interpreter of the host: python = [sys.executable, small_host.py, HOW, NOTES].
HOW is `well`, `once` (each after the first waits for NOTES.go), `dies` or `lacks` (a module).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pynvim

from bellboard.core.words import worded
from rig.waiting import eventually


def main() -> None:
    how, notes = sys.argv[1], Path(sys.argv[2])
    with notes.open("a") as file:
        file.write(json.dumps(["born", os.getpid()]) + "\n")
    if how == "dies":
        raise SystemExit("the host's last words")
    if how == "lacks":
        raise ModuleNotFoundError("No module named 'msgspec'")
    if how == "once" and notes.read_text().count("born") > 1:
        eventually(notes.with_suffix(".go").exists)
    nvim = pynvim.attach("stdio")

    def hear(name: str, arguments: list[Any]) -> None:
        with notes.open("a") as file:
            file.write(json.dumps([name, *arguments]) + "\n")
        if name in ("start", "snapshot"):
            push = {"v": 2, "version": "0.1.0", "seq": 1, "full": True, "now": 0.0}
            one = {"session_id": "a", "status": "working", "since": 0.0}
            push["sessions"] = [worded({**one, "hidden": False, "markers": []})]
            nvim.exec_lua("require('bellboard')._push(...)", json.dumps(push), async_=True)
        elif name == "stop":
            os._exit(0)

    try:
        nvim.run_loop(None, hear)
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
