"""A state folder whose sessions went down a minute ago, and a CLI that notes how it is started."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from bellboard.storage.spool import Spool
from rig import warm
from rig.home import Home
from rig.tmux import Server

GONE: Final = "999999999 1"  # a process that never was


class Ruins:
    """A state folder whose sessions went down a minute ago."""

    def __init__(self, home: Home) -> None:
        self.home, self.server = home, Server(home)
        self.spool = Spool(home.bellboard)
        self.spool.prepare()
        program = home.bin / "claude"
        program.write_text(
            "#!/bin/sh\n"
            '[ "$1" != --version ] || { echo "2.1.328 (Claude Code)"; exit; }\n'
            f'echo "$PWD: $1 $2" >>{home.root}/told\nexec sleep 60\n'
        )
        program.chmod(0o755)
        self.t = time.time() - 60.0

    def session(
        self, sid: str, *place: Any, holder: str = GONE, agent: str = "claude", **known: Any
    ) -> None:
        """Report a session that was in a tmux window, or in a Neovim, and was hung up."""
        transcript = self.home.file(f"{sid}.jsonl", "{}\n")
        origin: dict[str, Any] = {"tmux": str(self.server.socket), "pane": "%9"}
        if not place:
            origin = {"nvim": "/run/nvim.9.0"}
        hook = {
            "session_id": sid,
            "cwd": str(self.home.project),
            "transcript_path": str(transcript),
        }
        facts = {"session_id": sid, "holder": holder, "window": [origin.get("tmux", ""), *place]}
        events = ("SessionStart", {}), ("UserPromptSubmit", {"prompt": f"do {sid}"})
        for name, more in (*events, ("SessionEnd", {"reason": known.pop("reason", "other")})):
            line = {"hook": {**hook, "hook_event_name": name, **more, **known}}
            self.spool.write({"t": self.t, **line, "origin": {**origin, "agent": agent}})
            self.spool.write({"t": self.t, "facts": facts})
            self.t += 0.01

    def run(self, *args: str, code: int = 0, **env: str) -> str:
        done = warm.run(["-m", "bellboard", "restore", *args], env=self.home.env | env, merged=True)
        assert (done.returncode, "Traceback" in done.stdout) == (code, False), done.stdout
        return done.stdout

    def ids(self) -> list[str]:
        return [x["session_id"] for x in json.loads(self.run("--json"))["sessions"]]

    def told(self) -> list[str]:
        """Return what was started, in which folder."""
        path = self.home.root / "told"
        return path.read_text().splitlines() if path.exists() else []

    def windows(self) -> list[str]:
        form = "#{session_name}:#{window_index}.#{pane_index} #{?automatic-rename,,#{window_name}}"
        return self.server.run("list-panes", "-a", "-F", form).splitlines()
