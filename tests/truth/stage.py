"""Where a scene is played: a real CLI in a terminal, and what may be done to it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from rig import agent, claude_code
from rig import tmux as tmuxes
from rig.agent import Agent, Launch, spoken
from rig.api import Api
from rig.cache import CHECKOUT
from rig.editor import Editor
from rig.home import Home
from rig.loopback import Watch
from rig.terminal import Terminal
from rig.tmux import Pane
from rig.waiting import GLANCE, PATIENCE, eventually
from truth.listening import Published, Witness

STANDS: Final = 1.2  # so long a status is let stand, to be compared
PRESS: Final = 0.3  # between two keys that must be pressed within a moment of each other

HOOKS: Final = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "UserPromptSubmit"),
    *("SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact"),
    "PermissionRequest",
)
STATUS: Final = {"idle": "idle", "busy": "working", "waiting": "blocked", "shell": "background"}


@dataclass(frozen=True)
class How:
    """One of the ways in which the scenes are played."""

    version: str = claude_code.VERSION
    editor: str = ""  # the Neovim whose terminal it is; empty: a tmux pane
    hidden: bool = False  # the host is not told where the session files are

    @property
    def tells(self) -> bool:
        """Its session files have a status."""
        return claude_code.numbers(self.version) >= (2, 1, 119)

    @property
    def is_seen(self) -> bool:
        """The host has all evidence there is: nothing excuses a wrong status."""
        return self.tells and not self.hidden


@dataclass
class Stage:
    """A home, a terminal, and the CLIs that are started there."""

    how: How
    home: Home
    api: Api
    watch: Watch
    published: Published
    witness: Witness
    board: Path
    agents: list[Agent] = field(default_factory=list)
    editor: Editor | None = None
    server: tmuxes.Server | None = None

    # ------------------------------------------------------------ coming and going

    def start(self, *args: str, env: dict[str, str] | None = None, shell: bool = False) -> Agent:
        """A CLI with our hook, ready for a prompt; `shell`: as a job of an interactive shell."""
        settings = {"hooks": _hooks_without_config()} if self.how.hidden else {}
        plugin = () if self.how.hidden else ("--plugin-dir", str(CHECKOUT))
        self.watch.old = True  # proxies are trapped; who says what is another test's affair
        launch = agent.prepare(
            self.home,
            self.api,
            self.watch,
            version=self.how.version,
            args=(*plugin, *args),
            settings=settings,
            env={"BELLBOARD_HOME": str(self.board), **(env or {})},
        )
        started = Agent(launch, self._open(launch, shell))
        if shell:
            self._run_in_shell(started)
        self.agents.append(started)
        self.witness.follow(started.pid, None if self.how.tells else lambda: spoken(started.text()))
        started.ready()
        return started

    def _open(self, launch: Launch, shell: bool) -> Pane | Terminal:
        command = ["sh", "-i"] if shell else launch.command
        if not self.how.editor:
            self.server = self.server or tmuxes.Server(self.home)
            return self.server.open(command, cwd=launch.cwd, columns=110, lines=45)
        if self.editor is None:
            env = {"BELLBOARD_HOME": str(self.board)}
            how: dict[str, Any] = {"config": {}, "lua": "", "peers": (), "args": ()}
            how |= {"columns": 110, "lines": 50, "ui": False, "env": env}
            self.editor = Editor(self.how.editor, self.home, "nvim", **how)
        return Terminal(self.editor, command, launch.cwd)

    def _run_in_shell(self, started: Agent) -> None:
        """Start the CLI as the shell's job, and know it by its own process."""
        script = self.home.root / "agent.sh"
        script.write_text(f"exec {shlex.join(started.launch.command)}\n")
        shell = psutil.Process(started.pane.pid)
        started.pane.type(f"sh {script}\n")
        started.pid = eventually(lambda: [c.pid for c in shell.children()], "the job")[0]

    @property
    def agent(self) -> Agent:
        """The one started last."""
        return self.agents[-1]

    def leave(self) -> None:
        """End all that still run: what an early Esc gave back is taken away, then Ctrl-D twice."""
        for each in self.agents:
            if each.pid not in self.witness.ended:
                each.press("C-u")
                try:
                    self.ends(each, "C-d", within=10)
                except AssertionError:  # 2.1.76 does not take it after Esc in a dialog
                    os.kill(each.pid, signal.SIGTERM)

    def ends(self, agent: Agent, *keys: str, within: float = PATIENCE) -> None:
        """Wait until its process is gone; keys are pressed again and again until it is."""
        pressed = [-PRESS]

        def gone() -> bool:
            if agent.pid in self.witness.ended:
                return True
            if keys and time.monotonic() > pressed[-1] + PRESS:
                agent.press(*keys)
                pressed.append(time.monotonic())
            raise AssertionError(f"it goes on:\n{agent.text()}")

        eventually(gone, within=within, pause=GLANCE)

    def close(self) -> None:
        """Take away what was built."""
        if self.editor:
            self.editor.close()
        if self.server:
            self.server.close()

    # ------------------------------------------------------------ what a user does

    def prompt(self, scenario: str) -> None:
        """Type a prompt that plays this scenario."""
        self.agent.submit(f"play:{scenario} please")

    def command(self, text: str) -> None:
        """Type a slash command; its menu takes the first Enter away from no known one."""
        self.agent.submit(text)

    def stops(self, times: int = 1, **fields: Any) -> None:
        """Wait for the end of a turn."""
        self.agent.happens("Stop", times, PATIENCE, **fields)

    def happens(self, name: str, times: int = 1, **fields: Any) -> Any:
        """Wait for a hook."""
        return self.agent.happens(name, times, PATIENCE, **fields)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names."""
        self.agent.press(*keys)

    def options(self) -> int:
        """How many choices the dialog offers."""
        return len(re.findall(r"(?m)^[\s│❯]*\d\. ", self.agent.text()))

    # ------------------------------------------------------------ what is waited for

    def says(self) -> str:
        """The CLI's own status, by its file, else by its screen."""
        if self.how.tells:
            return str(self.agent.registry().get("status", ""))
        return spoken(self.agent.text())

    def stands(self, status: str, seconds: float = STANDS) -> None:
        """Wait until the CLI has said that for a while."""
        since: list[float] = []

        def long_enough() -> bool:
            said = self.says()
            if said != status:
                since.clear()
            assert said == status, f"it says {said}, not {status}:\n{self.agent.text()}"
            since.append(time.monotonic())
            return since[-1] - since[0] > seconds

        eventually(long_enough, within=PATIENCE, pause=GLANCE)

    def lasts(self, status: str | None, within: float = PATIENCE) -> None:
        """Wait until the session of the last CLI has been published so for a while."""
        since: list[float] = []

        def long_enough() -> bool:
            found = self.shown()
            if found != status:
                since.clear()
            assert found == status, f"{found} is shown, not {status}:\n{self.agent.text()}"
            since.append(time.monotonic())
            return since[-1] - since[0] > STANDS

        eventually(long_enough, within=within, pause=GLANCE)

    @property
    def session(self) -> str:
        """That of the last CLI, by its newest hook."""
        return str(self.agent.events()[-1]["session_id"])

    def shown(self) -> str | None:
        """What is published of it."""
        return self.published.listed.get(self.session)

    def kill(self, number: int) -> None:
        """Send the last CLI a signal."""
        os.kill(self.agent.pid, number)


def _hooks_without_config() -> dict[str, Any]:
    """The real hook, which is not told where the CLI keeps its files."""
    emit = shlex.quote(str(CHECKOUT / "hooks" / "emit"))
    return {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": f'unset CLAUDE_CONFIG_DIR; {emit} {event} "$PPID"',
                    }
                ]
            }
        ]
        for event in HOOKS
    }
