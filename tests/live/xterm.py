"""A real terminal on a display of its own, and pictures of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from rig import reaper
from rig.editor import Editor
from rig.fetched import neovim
from rig.fetched.cache import Missing
from rig.waiting import eventually

PROGRAMS = {"Xvfb": "xvfb", "xterm": "xterm", "import": "imagemagick"}


class XServer:
    """An X server without a screen; `picture` writes what is on it to a PNG."""

    def __init__(self, size: str = "1700x900") -> None:
        for program, package in PROGRAMS.items():
            if shutil.which(program) is None:
                raise Missing(f"there is no {program}; install {package}")
        read, write = os.pipe()
        with os.fdopen(read) as number:
            self.process = subprocess.Popen(
                [
                    "Xvfb",
                    "-displayfd",
                    str(write),
                    "-screen",
                    "0",
                    f"{size}x24",
                    "-nolisten",
                    "tcp",
                ],
                pass_fds=[write],
                stderr=subprocess.DEVNULL,
            )
            os.close(write)
            self.name = f":{number.readline().strip()}"

    def picture(self, file: Path, *crop: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        command = ["import", "-display", self.name, "-window", "root", *crop, str(file)]
        subprocess.run(command, check=True)

    def close(self) -> None:
        reaper.end(reaper.family([self.process.pid]))
        self.process.wait()


class Xterm:
    """Shows an editor that runs headless; keys go to the editor."""

    def __init__(
        self, desk: XServer, editor: Editor, columns: int, lines: int, term: str, dark: bool
    ) -> None:
        env: dict[str, str] = {**editor.home.env, "DISPLAY": desk.name, "TERM": term}
        env.pop("COLORTERM", None)
        show = [str(neovim.executable(editor.version)), "--server", str(editor.socket)]
        look = ["-fa", "DejaVu Sans Mono", "-fs", "10", "-b", "0", "-bw", "0"]
        look += ["-fg", "gray90", "-bg", "black"] if dark else ["-fg", "black", "-bg", "white"]
        size = ["-geometry", f"{columns}x{lines}+0+0", "-tn", term]
        self.process = subprocess.Popen(
            ["xterm", *look, *size, "-e", *show, "--remote-ui"],
            env=env,
            stderr=subprocess.DEVNULL,
        )

        def attached() -> Any:
            return editor.lua("return vim.o.columns == ... and #vim.api.nvim_list_uis()", columns)

        eventually(attached, "the terminal's size")

    def close(self) -> None:
        reaper.end(reaper.family([self.process.pid]))
        self.process.wait()
