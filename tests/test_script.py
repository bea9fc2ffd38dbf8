"""The script in the help runs as it stands, on the real CLI."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from live.answers.place import place
from rig import claude_code
from rig.scenarios import Tool, Turn, say, shell
from rig.waiting import PATIENCE

pytestmark = [pytest.mark.live, pytest.mark.tmux, pytest.mark.timeout(300)]

HELP = Path(__file__).resolve().parents[1] / "doc/bellboard-scripts.txt"
BELLBOARD = f'#!/bin/sh\nexec "{sys.executable}" -m bellboard "$@"\n'
COMMIT = 'git add -A && git commit -qm "tidied $(basename "$PWD")"'


def script() -> str:
    text = HELP.read_text().partition("    #!/bin/sh\n")[2].partition("\n<\n")[0]
    return textwrap.dedent(text) + "\n"


def test_three_agents_in_worktrees_are_waited_for_and_shown() -> None:
    assert len(script().splitlines()) <= 10
    with place() as made:
        allowed = {"permissions": {"allow": ["Bash"], "defaultMode": "acceptEdits"}}
        launch = made.prepare("repo", settings=allowed)
        made.api.scenarios["tidy"] = (
            Turn((Tool("Write", {"file_path": "$CWD/done.md", "content": "Done.\n"}),)),
            Turn((shell(COMMIT),)),
            say("It is tidy now."),
        )
        (made.home.bin / "claude").symlink_to(claude_code.executable())
        (made.home.bin / "bellboard").write_text(BELLBOARD)
        (made.home.bin / "bellboard").chmod(0o755)
        env = launch.env | {
            f"GIT_{x}_{y}": "x" for x in ("AUTHOR", "COMMITTER") for y in ("NAME", "EMAIL")
        }

        def run(*argv: str) -> str:
            done = subprocess.run(
                argv,
                env=env,
                cwd=launch.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        (launch.cwd / "CLAUDE.md").write_text("play:tidy\n")  # the model hears that as well
        for words in ("init -q", "add .", "commit -qm first"):
            run("git", *words.split())
        try:
            shown = run("timeout", str(2 * PATIENCE), "sh", "-c", script())
        finally:
            run("tmux", "kill-server")
        for part in ("api", "web", "docs"):
            assert re.search(rf"(?m)^\S+ completed repo tidy-{part}: It is tidy now\.$", shown)
            assert f"> Tidy up the {part}: see TODO.md." in shown
            assert re.search(rf"(?m)^[0-9a-f]+ tidied tidy-{part}$", shown)
        assert shown.count("done.md  new +1") == 3
