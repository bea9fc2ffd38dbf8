"""The stage of a scene: a real CLI in a terminal, and methods to use it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from bellboard.core.session import nameless
from live import heard
from live.listening import Published, Witness
from live.seen import SCREEN
from rig import agent, claude_code, neovim
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

STANDS: Final = 1.2  # seconds to let a status stand, so that it is compared
SOON: Final = 30.0  # seconds in which a busy machine must show a status
PRESS: Final = 0.3  # seconds between two keys in quick succession

HOOKS: Final = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "UserPromptSubmit"),
    *("SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact"),
    "PermissionRequest",
)

OPEN: Final[list[Stage]] = []  # to close before the process exits
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
    heard: bool = False  # what its Neovim hears and shows is in the traces, too

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


@dataclass(eq=False)
class Stage:
    """A home, a terminal, and the CLIs started there."""

    how: How
    home: Home
    api: Api
    watch: Watch
    published: Published
    witness: Witness
    board: Path
    agents: list[Agent] = field(default_factory=list)  # the one in use is last
    started: list[Agent] = field(default_factory=list)  # in that order
    settings: dict[str, Any] = field(default_factory=dict)
    editor: Editor | None = None
    server: tmuxes.Server | None = None
    step: str = ""  # of the scene, for whoever reads why it failed

    # ------------------------------------------------------------ start and stop

    def start(
        self,
        *args: str,
        env: dict[str, str] | None = None,
        shell: bool = False,
        beside: Agent | None = None,
        trusted: bool = True,
        ready: bool = True,
    ) -> Agent:
        """Start a CLI with our hook; wait for its prompt, or whether to trust the folder.

        `shell`: as a job of an interactive shell; `beside`: of the one that has this CLI as a job.
        """
        before = ["unset CLAUDE_CONFIG_DIR"] if self.how.hidden and self.how.hooked else []
        before += [f"sleep {self.how.late}"] if self.how.late else []
        settings = self.settings
        if before:
            hooks = settings.get("hooks", {})
            ours = _hooks_after(*before)
            both = {e: [*ours.get(e, ()), *hooks.get(e, ())] for e in ours | hooks}
            settings = {**settings, "hooks": both}
        self.home.file("sub/x.txt", "x\n")
        is_plugin = self.how.hooked and not before
        plugin = ("--plugin-dir", str(CHECKOUT)) if is_plugin else ()
        # No host reads the session file of a CLI that belongs to another board.
        board = self.home.bellboard if self.how.is_alone else self.board
        self.watch.old = True  # another test checks for outside connections
        launch = agent.prepare(
            self.home,
            self.api,
            self.watch,
            version=self.how.version,
            args=(*plugin, *args),
            settings=settings,
            env={"BELLBOARD_HOME": str(board), **(env or {})},
            trusted=trusted,
        )
        started = Agent(launch, beside.pane if beside else self._open(launch, shell))
        if shell or beside:
            self._run_in_shell(started)
        self.agents.append(started)
        self.started.append(started)
        screen = None if self.how.tells else lambda: spoken(started.text())
        self.witness.follow(started.pid, screen, **place(started.pane))
        if trusted and ready:
            started.ready()
        return started

    def user_hook(self, event: str, command: str, *options: str) -> None:
        """Add a user's hook for the CLIs that are started from now on."""
        hook = {"type": "command", "command": command, **dict.fromkeys(options, True)}
        entry = {"matcher": "", "hooks": [hook]}
        self.settings.setdefault("hooks", {}).setdefault(event, []).append(entry)

    def turn_to(self, agent: Agent) -> None:
        """Use this CLI from now on."""
        self.agents.remove(agent)
        self.agents.append(agent)

    def _open(self, launch: Launch, shell: bool) -> Pane | Terminal:
        command = ["sh", "-i"] if shell else launch.command
        if not self.how.editor:
            self.server = self.server or tmuxes.Server(self.home)
            return self.server.open(command, cwd=launch.cwd, columns=110, lines=45)
        if self.editor is None:
            env = {"BELLBOARD_HOME": str(self.board)}
            if self.how.is_alone:  # its host looks for session files, too
                env["CLAUDE_CONFIG_DIR"] = str(self.home.root / "elsewhere")
            noting = heard.lua(self.home) if self.how.heard else ""
            how: dict[str, Any] = {"config": {}, "lua": noting, "peers": (), "args": ()}
            how |= {"columns": 110, "lines": 50, "ui": False, "env": env}
            self.editor = Editor(self.how.editor, self.home, "nvim", **how)
        return Terminal(self.editor, command, launch.cwd)

    def _run_in_shell(self, started: Agent) -> None:
        """Start the CLI as a job of the shell, and find its process."""
        script = self.home.root / "agent.sh"
        script.write_text(f"exec {shlex.join(started.launch.command)}\n")
        shell = psutil.Process(started.pane.pid)
        before = shell.children()
        started.pane.type(f"sh {script}\n")
        (job,) = eventually(lambda: [c for c in shell.children() if c not in before], "the job")
        started.pid = job.pid

    @property
    def agent(self) -> Agent:
        """Return the CLI in use: the last one started, or the one chosen with `turn_to`."""
        return self.agents[-1]

    def numbered(self, number: str) -> Agent:
        """Return a CLI by its number, from 1 on; without a number, the one in use."""
        return self.started[int(number) - 1] if number else self.agent

    def leave(self) -> None:
        """Exit all CLIs: clear a prompt that an early Esc has restored, then press Ctrl-D twice."""
        for each in self.agents:
            if each.pid not in self.witness.ended:
                each.press("C-u")
                try:
                    self.ends(each, "C-d", within=10)
                except AssertionError:  # 2.1.76 ignores it after Esc in a dialog
                    os.kill(each.pid, signal.SIGTERM)

    def ends(self, agent: Agent, *keys: str, within: float = PATIENCE) -> None:
        """Press keys repeatedly until its process is gone."""
        pressed = [-PRESS]

        def gone() -> bool:
            if agent.pid in self.witness.ended:
                return True
            if keys and time.monotonic() > pressed[-1] + PRESS:
                agent.press(*keys)
                pressed.append(time.monotonic())
            raise AssertionError(f"it goes on:\n{agent.text()}")

        eventually(gone, within=within, pause=GLANCE)

    def __post_init__(self) -> None:
        OPEN.append(self)

    def close(self) -> None:
        """Remove everything."""
        if self in OPEN:
            OPEN.remove(self)
        if self.editor:
            self.editor.close()
        if self.server:
            self.server.close()

    # ------------------------------------------------------------ input

    def prompt(self, scenario: str) -> None:
        """Enter a prompt that plays a scenario."""
        self.agent.submit(f"play:{scenario} please")

    def enter(self, text: str) -> None:
        """Type a text or a slash command, and press Enter once."""
        self.agent.submit(text)

    def stops(self, times: int = 1, **fields: Any) -> None:
        """Wait for the end of a turn."""
        self.agent.happens("Stop", times, PATIENCE, **fields)

    def happens(self, name: str, times: int = 1, within: float = PATIENCE, **fields: Any) -> Any:
        """Wait for a hook."""
        return self.agent.happens(name, times, within, **fields)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self.agent.press(*keys)

    def types_until(self, event: str, text: str) -> None:
        """Keep typing until that hook event, because the CLI holds dialogs back meanwhile."""
        for letter in text:
            self.agent.pane.type(letter)

        def came() -> bool:
            if self.agent.events(event):
                return True
            self.agent.pane.type("x")
            self.press("BSpace")
            return False

        eventually(came, f"{event}:\n{self.agent.text()}", pause=GLANCE)

    def options(self) -> int:
        """Return how many choices the dialog has."""
        return len(re.findall(r"(?m)^[\s│❯]*\d\. ", self.agent.text()))

    # ------------------------------------------------------------ waiting

    def says(self) -> str:
        """Return the CLI's own status, from its file or its screen."""
        if self.how.tells:
            return str(self.agent.registry().get("status", ""))
        return spoken(self.agent.text())

    def rests_after_a_turn(self) -> None:
        """Start a CLI, and wait until its first turn is over."""
        self.start()
        self.prompt("text")
        self.stops()
        self.stands("idle")

    def stands(self, status: str, seconds: float = STANDS) -> None:
        """Wait until the CLI has reported that for a while."""
        since: list[float] = []

        def long_enough() -> bool:
            said = self.says()
            if said != status:
                since.clear()
            assert said == status, f"it says {said}, not {status}:\n{self.agent.text()}"
            since.append(time.monotonic())
            return since[-1] - since[0] > seconds

        eventually(long_enough, within=PATIENCE, pause=GLANCE)
        if status == "waiting":
            why = self.agent.registry().get("waitingFor", "")
            self.witness.note(f"{SCREEN}{why}\n{self.agent.text()}")

    def lasts(self, status: str, within: float = SOON) -> None:
        """Wait until the CLI's session has been published with that status (a|b) for a while."""
        since: list[float] = []

        def long_enough() -> bool:
            found = self.shown()
            is_it = found in status.split("|")
            if not is_it:
                since.clear()
            assert is_it, f"{found} is shown, not {status}:\n{self.agent.text()}"
            since.append(time.monotonic())
            return since[-1] - since[0] > STANDS

        eventually(long_enough, within=within, pause=GLANCE)

    @property
    def session(self) -> str:
        """Return the session of the CLI in use, from its newest hook event if that is known."""
        if self.how.is_alone:
            mine = (sid for sid, pid in self.unnamed.items() if pid == self.agent.pid)
            return next(mine, "")
        return str(self.agent.events()[-1]["session_id"])

    @property
    def first_session(self) -> str:
        """Return the session that the first CLI began with."""
        return str(self.started[0].events()[0]["session_id"])

    def shown(self) -> str | None:
        """Return its published status."""
        return self.published.listed.get(self.session)

    @property
    def unnamed(self) -> dict[str, int]:
        """Return the sessions that are known only by the process of one of our CLIs, with that."""
        return {
            change["session_id"]: agent.pid
            for change in list(self.published.changes)
            for agent in self.agents
            if change["session_id"].startswith(nameless(agent.pid, ""))
        }

    def marks(self, marker: str, detail: str) -> None:
        """Wait until its session has been published with a marker, and a detail with this.

        No program reports what the markers tell.
        """
        if self.how.is_alone:
            return

        def marked() -> bool:
            row = next(r for r in self.published.rows() if r["session_id"] == self.session)
            assert marker in row["markers"], row
            assert detail in row.get("detail", ""), row
            return True

        eventually(marked, within=SOON, pause=GLANCE)

    def is_placed(self, agent: Agent) -> None:
        """Wait until the session's process and terminal are those of this CLI."""

        def placed() -> bool:
            rows = self.published.rows()
            row = next(r for r in rows if r["session_id"] == self.session)
            found = {key: row.get(key) for key in ("pid", "pane", "tty")}
            if isinstance(agent.pane, Pane):
                wanted = {"pid": agent.pid, "pane": agent.pane.id, "tty": agent.pane.tty}
            else:
                wanted = {**found, "pid": agent.pid}
            assert found == wanted, f"it is placed at {found}, not at {wanted}"
            return True

        eventually(placed, within=SOON, pause=GLANCE)

    def asks(self, what: str) -> None:
        """Wait for a permission request whose input contains this."""

        def asked() -> bool:
            return any(what in str(e["tool_input"]) for e in self.agent.events("PermissionRequest"))

        eventually(asked, f"a question about {what}:\n{self.agent.text()}", pause=GLANCE)

    def is_found(self, status: str, within: float) -> None:
        """Wait until the process of the CLI in use has that status, under any session id."""

        def found() -> bool:
            mine = {
                c["session_id"]: c["to"]
                for c in list(self.published.changes)
                if c["session_id"].startswith(nameless(self.agent.pid, ""))
            }
            assert status in mine.values(), f"{mine or 'nothing'} is shown, not {status}"
            return True

        eventually(found, within=within, pause=GLANCE)

    def kill(self, number: int) -> None:
        """Send a signal to the CLI in use."""
        os.kill(self.agent.pid, number)


def place(terminal: Pane | Terminal) -> dict[str, str]:
    """Return a terminal in the form of an origin."""
    if isinstance(terminal, Terminal):
        return {"nvim": str(terminal.editor.socket)}
    return {"tmux": str(terminal.server.socket), "pane": terminal.id, "tty": terminal.tty}


def _hooks_after(*commands: str) -> dict[str, Any]:
    """Return the real hook, which runs after these commands of the shell."""
    emit = shlex.quote(str(CHECKOUT / "hooks" / "emit"))
    return {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": f'{"; ".join(commands)}; {emit} {event} "$PPID"',
                    }
                ]
            }
        ]
        for event in HOOKS
    }
