"""The stage of a scene: a home, terminals in tmux or in a Neovim, and the program under test.

`claude.py` has what Claude Code needs there, `screens.py` what the other CLIs need.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from live.heard import Heard
from live.published import Published
from rig import tmux as tmuxes
from rig.editor import Editor
from rig.fetched import claude_code, neovim
from rig.home import Home
from rig.machines.loopback import Watch
from rig.terminal import Terminal
from rig.tmux import Pane
from rig.waiting import GLANCE, PATIENCE, eventually

STANDS: Final = 1.2  # seconds to let a status stand, so that it is compared
SOON: Final = 30.0  # seconds in which a busy machine must show a status
PRESS: Final = 0.3  # seconds between two keys in quick succession

OPEN: Final[list[Stage[Any]]] = []  # to close before the process exits
CLOSING: Final = threading.Event()  # nothing more may start


def close_all() -> None:
    """Stop everything and start nothing more: the process is about to exit."""
    CLOSING.set()
    while OPEN:
        OPEN[-1].close()


@dataclass(frozen=True)
class How:
    """A configuration in which scenes are played."""

    version: str = claude_code.VERSION
    editor: str = ""  # the Neovim that has the terminal; empty: a tmux pane
    hidden: bool = False  # the host does not know the session files
    hooked: bool = True  # our hook is installed
    late: float = 0.0  # seconds before our hook starts, as on a busy machine

    @property
    def tells(self) -> bool:
        """Return whether its session files have a status."""
        return claude_code.numbers(self.version) >= (2, 1, 119)

    @property
    def is_alone(self) -> bool:
        """Return whether the host knows nothing but what the terminal tells it."""
        return self.hidden and not self.hooked

    @property
    def is_seen(self) -> bool:
        """Return whether the host has all evidence, so that a wrong status has no excuse."""
        return self.tells and self.hooked and not self.hidden

    def fetch(self) -> None:
        """Fetch what is needed; fail before anything is started."""
        claude_code.executable(self.version)
        if self.editor:
            neovim.executable(self.editor)


class Cli(Protocol):
    """A CLI in its terminal."""

    pid: int

    @property
    def pane(self) -> Pane | Terminal: ...

    def text(self) -> str: ...

    def shows(self, pattern: str) -> object: ...


C = TypeVar("C", bound=Cli)


class Stage(Generic[C]):
    """Where a scene is played; the words of its steps (`words.py`) are methods of it."""

    columns, lines = 110, 45  # of a terminal

    def __init__(self, how: How, home: Home, watch: Watch, published: Published) -> None:
        self.how, self.home, self.watch, self.published = how, home, watch, published
        self.clis: list[C] = []  # the one in use is last
        self.started: list[C] = []  # in that order
        self.heard = Heard(home)
        self.editor: Editor | None = None
        self.server: tmuxes.Server | None = None
        self.step = ""  # of the scene, for whoever reads why it failed
        OPEN.append(self)

    def close(self) -> None:
        """End what was started."""
        if self in OPEN:
            OPEN.remove(self)
        if self.editor:
            self.editor.close()
        if self.server:
            self.server.close()

    def terminal(
        self,
        command: Sequence[str],
        cwd: Path,
        given: Mapping[str, str] | None = None,
        around: Mapping[str, str] | None = None,
    ) -> Pane | Terminal:
        """Run a command in a terminal; `around`: variables of the Neovim that has it."""
        size = {"columns": self.columns, "lines": self.lines}
        if not self.how.editor:
            self.server = self.server or tmuxes.Server(self.home)
            return self.server.open(command, env=given, cwd=cwd, **size)
        if self.editor is None:
            how: dict[str, Any] = {"config": {}, "lua": self.heard.lua(), "peers": (), "args": ()}
            how |= {**size, "ui": False, "env": around or {}}
            self.editor = Editor(self.how.editor, self.home, "nvim", **how)
        exports = [f"{key}={value}" for key, value in (given or {}).items()]
        argv = ["env", *exports, *command] if exports else command
        return Terminal(self.editor, argv, cwd)

    def add(self, cli: C) -> C:
        """Use a CLI that has just been started."""
        self.clis.append(cli)
        self.started.append(cli)
        return cli

    @property
    def cli(self) -> C:
        """Return the CLI in use: the last one started, or the one that was turned to."""
        return self.clis[-1]

    def numbered(self, number: str) -> C:
        """Return a CLI by its number, from 1 on; without a number, the one in use."""
        return self.started[int(number) - 1] if number else self.cli

    def turn_to(self, cli: C) -> None:
        """Use this CLI from now on."""
        self.clis.remove(cli)
        self.clis.append(cli)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self.cli.pane.press(*keys)

    def meant(self, word: str) -> Sequence[str]:
        """Return the keys or arguments that a word of a row stands for."""
        return (word,)

    def kill(self, number: int) -> None:
        """Send a signal to the CLI in use."""
        os.kill(self.cli.pid, number)

    def failed(self, error: Exception) -> str:
        """Return why a scene failed, and at which step."""
        return f"{type(error).__name__} at “{self.step}”: {error}"

    def has_ended(self, cli: C) -> bool:
        """Return whether the end of a CLI was noticed."""
        raise NotImplementedError

    def ends(self, cli: C, *keys: str, within: float = PATIENCE) -> None:
        """Press keys repeatedly until its process is gone."""
        pressed = [-PRESS]

        def gone() -> bool:
            if self.has_ended(cli):
                return True
            if keys and time.monotonic() > pressed[-1] + PRESS:
                cli.pane.press(*keys)
                pressed.append(time.monotonic())
            raise AssertionError(f"it goes on:\n{cli.text()}")

        eventually(gone, within=within, pause=GLANCE)

    def stays(
        self, look: Callable[[], str | None], wanted: str, seconds: float, within: float
    ) -> None:
        """Wait until a status has been what is wanted (a|b) for some seconds."""
        since: list[tuple[str | None, float]] = []

        def long_enough() -> bool:
            found = look()
            if found not in wanted.split("|") or (since and since[0][0] != found):
                since.clear()
            assert found in wanted.split("|"), f"{found}, not {wanted}:\n{self.cli.text()}"
            since.append((found, time.monotonic()))
            return since[-1][1] - since[0][1] > seconds

        eventually(long_enough, within=within, pause=GLANCE)
