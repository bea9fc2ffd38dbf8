"""The stage of Claude Code: its hooks, its fake API, and what its session files say."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from bellboard.core.session import nameless
from live.published import Published
from live.seen import SCREEN
from live.stage import SOON, STANDS, How, Stage
from live.witness import Witness
from rig import ROOT
from rig.agents import agent
from rig.agents.agent import Agent, Launch, spoken
from rig.agents.api import Api
from rig.home import Home
from rig.machines.loopback import Watch
from rig.terminal import Terminal
from rig.tmux import Pane
from rig.waiting import GLANCE, PATIENCE, eventually

HOOKS: Final = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "UserPromptSubmit"),
    *("SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact"),
    "PermissionRequest",
)
LAST: Final = "LAST"  # in place of a key: the number of the last choice
SESSION: Final = "SESSION"  # in place of an argument: the id of the first session


class ClaudeStage(Stage[Agent]):
    """`board`: the state folder of the host, which may have a home of its own."""

    def __init__(
        self,
        how: How,
        home: Home,
        api: Api,
        watch: Watch,
        published: Published,
        witness: Witness,
        board: Path,
    ) -> None:
        super().__init__(how, home, watch, published)
        self.api, self.witness, self.board = api, witness, board
        self.heard = witness.heard
        self.settings: dict[str, Any] = {}

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
        plugin = ("--plugin-dir", str(ROOT)) if is_plugin else ()
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
        self.add(started)
        screen = None if self.how.tells else lambda: spoken(started.text())
        self.witness.follow(started.pid, screen, **origin(started.pane))
        if trusted and ready:
            started.ready()
        return started

    def user_hook(self, event: str, command: str, *options: str) -> None:
        """Add a user's hook for the CLIs that are started from now on."""
        hook = {"type": "command", "command": command, **dict.fromkeys(options, True)}
        entry = {"matcher": "", "hooks": [hook]}
        self.settings.setdefault("hooks", {}).setdefault(event, []).append(entry)

    def _open(self, launch: Launch, shell: bool) -> Pane | Terminal:
        around = {"BELLBOARD_HOME": str(self.board)}
        if self.how.is_alone:  # its host looks for session files, too
            around["CLAUDE_CONFIG_DIR"] = str(self.home.root / "elsewhere")
        command = ["sh", "-i"] if shell else launch.command
        return self.terminal(command, launch.cwd, around=around)

    def _run_in_shell(self, started: Agent) -> None:
        """Start the CLI as a job of the shell, and find its process."""
        script = self.home.root / "agent.sh"
        script.write_text(f"exec {shlex.join(started.launch.command)}\n")
        shell = psutil.Process(started.pane.pid)
        before = shell.children()
        started.pane.type(f"sh {script}\n")
        (job,) = eventually(lambda: [c for c in shell.children() if c not in before], "the job")
        started.pid = job.pid

    def leave(self) -> None:
        """Exit all CLIs: clear a prompt that an early Esc has restored, then press Ctrl-D twice."""
        for each in self.clis:
            if not self.has_ended(each):
                each.press("C-u")
                try:
                    self.ends(each, "C-d", within=10)
                except AssertionError:  # 2.1.76 ignores it after Esc in a dialog
                    os.kill(each.pid, signal.SIGTERM)

    def has_ended(self, cli: Agent) -> bool:
        return cli.pid in self.witness.ended

    # ------------------------------------------------------------ input

    def prompt(self, scenario: str) -> None:
        """Enter a prompt that plays a scenario."""
        self.cli.submit(f"play:{scenario} please")

    def type(self, text: str) -> None:
        """Type a text."""
        self.cli.pane.type(text)

    def enter(self, text: str) -> None:
        """Type a text or a slash command, and press Enter once."""
        self.cli.submit(text)

    def stops(self, times: int = 1, **fields: Any) -> None:
        """Wait for the end of a turn."""
        self.cli.happens("Stop", times, PATIENCE, **fields)

    def happens(self, name: str, times: int = 1, within: float = PATIENCE, **fields: Any) -> Any:
        """Wait for a hook."""
        return self.cli.happens(name, times, within, **fields)

    def types_until(self, event: str, text: str) -> None:
        """Keep typing until that hook event, because the CLI holds dialogs back meanwhile."""
        for letter in text:
            self.cli.pane.type(letter)

        def came() -> bool:
            if self.cli.events(event):
                return True
            self.cli.pane.type("x")
            self.press("BSpace")
            return False

        eventually(came, f"{event}:\n{self.cli.text()}", pause=GLANCE)

    def options(self) -> int:
        """Return how many choices the dialog has."""
        return len(re.findall(r"(?m)^[\s│❯]*\d\. ", self.cli.text()))

    def meant(self, word: str) -> Sequence[str]:
        if word == LAST:
            return (str(self.options()),)
        return (self.first_session,) if word == SESSION else (word,)

    # ------------------------------------------------------------ waiting

    def says(self) -> str:
        """Return the CLI's own status, from its file or its screen."""
        if self.how.tells:
            return str(self.cli.registry().get("status", ""))
        return spoken(self.cli.text())

    def rests_after_a_turn(self) -> None:
        """Start a CLI, and wait until its first turn is over."""
        self.start()
        self.prompt("text")
        self.stops()
        self.stands("idle")

    def stands(self, status: str, seconds: float = STANDS) -> None:
        """Wait until the CLI has reported that for a while."""
        self.stays(self.says, status, seconds, PATIENCE)
        if status == "waiting":
            why = self.cli.registry().get("waitingFor", "")
            self.witness.note(f"{SCREEN}{why}\n{self.cli.text()}")

    def lasts(self, status: str, within: float = SOON) -> None:
        """Wait until the CLI's session has been published with that status (a|b) for a while."""
        self.stays(self.shown, status, STANDS, within)

    @property
    def session(self) -> str:
        """Return the session of the CLI in use, from its newest hook event if that is known."""
        if self.how.is_alone:
            mine = (sid for sid, pid in self.unnamed.items() if pid == self.cli.pid)
            return next(mine, "")
        return str(self.cli.events()[-1]["session_id"])

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
            for agent in self.clis
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
            return any(what in str(e["tool_input"]) for e in self.cli.events("PermissionRequest"))

        eventually(asked, f"a question about {what}:\n{self.cli.text()}", pause=GLANCE)

    def is_found(self, status: str, within: float) -> None:
        """Wait until the process of the CLI in use has that status, under any session id."""

        def found() -> bool:
            mine = {
                c["session_id"]: c["to"]
                for c in list(self.published.changes)
                if c["session_id"].startswith(nameless(self.cli.pid, ""))
            }
            assert status in mine.values(), f"{mine or 'nothing'} is shown, not {status}"
            return True

        eventually(found, within=within, pause=GLANCE)


def origin(terminal: Pane | Terminal) -> dict[str, str]:
    """Return a terminal in the form of an origin."""
    if isinstance(terminal, Terminal):
        return {"nvim": str(terminal.editor.socket)}
    return {"tmux": str(terminal.server.socket), "pane": terminal.id, "tty": terminal.tty}


def _hooks_after(*commands: str) -> dict[str, Any]:
    """Return the real hook, which runs after these commands of the shell."""
    emit = shlex.quote(str(ROOT / "hooks" / "emit"))
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
