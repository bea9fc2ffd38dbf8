"""The real Codex CLI with its shared server, in a home of its own, on a fake model."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bellboard.agents.codex.agent import Codex as Reporting
from rig import ROOT
from rig.agents.model import Model
from rig.fetched import node, npm
from rig.fetched.cache import Missing
from rig.home import Home
from rig.tmux import Pane, Server
from rig.waiting import eventually

NAME: Final = "@openai/codex"
VERSION: Final = "0.171.0"
EMIT: Final = ROOT / "hooks/emit"
READY: Final = "Ask Codex|Hooks need review"


def executable() -> Path:
    """Return the program of this machine."""
    package = npm.package(NAME, VERSION)
    found = sorted(package.parent.glob("codex-*/vendor/*/bin/codex"))
    if not found:
        raise Missing(f"Codex {VERSION} has no program for this machine; remove {package}")
    node.node()
    return found[0]


class Codex:
    """A server and its terminal in a pane; hooks write into the home's spool."""

    def __init__(self, home: Home, tmux: Server, model: Model, args: Sequence[str] = ()) -> None:
        self.home, self._tmux = home, tmux
        folder = home.root / ".codex"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(config(home, model))
        command = f"BELLBOARD_HOME='{home.bellboard}' '{EMIT}'"
        hooks = Reporting().reporting(lambda event: f"{command} {event} $PPID codex")
        (folder / "hooks.json").write_text(hooks)
        self.env = {**home.env, "FAKE_KEY": "dummy", "NO_PROXY": "127.0.0.1,localhost"}
        self.socket = folder / "app-server-control/app-server-control.sock"
        start = [str(executable()), "--enable", "default_mode_request_user_input"]
        how = {"env": self.env, "cwd": home.project, "stdin": subprocess.DEVNULL}
        with (home.root / "codex-server.stderr").open("w") as errors:
            argv = [*start, "app-server", "--listen", "unix://"]
            self.server = subprocess.Popen(argv, **how, stdout=errors, stderr=errors)  # type: ignore
        eventually(self.socket.exists, "the server's socket")
        self.start, self._args = start, args
        self.pane = self.open()

    def open(self) -> Pane:
        """Open a terminal of the server."""
        argv = [
            self.start[0],
            "--remote",
            "unix://",
            "--dangerously-bypass-hook-trust",
            *self._args,
        ]
        given = {"FAKE_KEY": "dummy", "NO_PROXY": "127.0.0.1,localhost"}
        pane = self._tmux.open(argv, env=given, columns=120, lines=44)
        if "review" in pane.shows(READY):
            pane.press("2", "Enter")
            pane.shows("Ask Codex")
        return pane

    def close(self) -> None:
        """End the server."""
        self.server.kill()
        self.server.wait()


@contextmanager
def running(home: Home, tmux: Server, args: Sequence[str] = ()) -> Iterator[tuple[Codex, Model]]:
    """A Codex and its model, for the time of a test."""
    model = Model()
    codex = None
    try:
        codex = Codex(home, tmux, model, args)
        yield codex, model
    finally:
        if codex is not None:
            codex.close()
        model.close()


def config(home: Home, model: Model) -> str:
    """Return settings for a fake model, without a login."""
    return f"""\
model = "gpt-6-sol"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[model_providers.fake]
name = "Fake"
base_url = "{model.url}"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1
[analytics]
enabled = false
[projects."{home.project}"]
trust_level = "trusted"
"""
