"""`claude agents --json` replaces a session file that cannot be parsed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bellboard.agents.claude.discovery import listed_by, own_command
from rig.fixtures import Agents
from rig.home import Home
from rig.host.hosting import RecordedHost
from rig.tmux import Server
from rig.waiting import eventually

#: A future CLI: its session file has a new format, its listing is as documented.
FUTURE = """
const fs = require('fs')
const config = process.env.CLAUDE_CONFIG_DIR
if (process.argv[2] === 'agents') {
  const pid = parseInt(fs.readFileSync(config + '/pid'))
  const said = fs.readFileSync(config + '/status', 'utf8').trim()
  const row = { pid, cwd: '/srv', kind: 'interactive', sessionId: 's', status: said }
  console.log(JSON.stringify([row]))
} else {
  fs.mkdirSync(config + '/sessions', { recursive: true })
  fs.writeFileSync(config + '/pid', String(process.pid))
  const file = config + '/sessions/' + process.pid + '.json'
  let last = ''
  setInterval(() => {
    const said = fs.readFileSync(config + '/status', 'utf8')
    if (said !== last) fs.writeFileSync(file, JSON.stringify({ format: 2, state: [last = said] }))
  }, 100)
}
"""


def test_a_session_file_in_an_unknown_format_is_replaced_by_the_listing(
    home: Home, tmux: Server
) -> None:
    """`claude agents --json` is asked instead, again when it changes; health reports it."""
    node = shutil.which("node", path=home.env["PATH"])
    assert node is not None
    script = home.root / "node_modules/@anthropic-ai/claude-code/cli.js"
    script.parent.mkdir(parents=True)
    script.write_text(FUTURE)
    status = home.claude / "status"
    status.write_text("busy")
    env = {"CLAUDE_CONFIG_DIR": str(home.claude)}
    pane = tmux.open([node, script], env={**home.env, **env})
    host = RecordedHost(home)
    try:
        eventually(lambda: "working" == host.shown.get("s"), "work, from the listing", within=60)
        status.write_text("waiting")
        eventually(
            lambda: "blocked" == host.shown.get("s"),
            "a question, from the listing",
            within=60,
        )
        note = host.notes[str(home.claude / "sessions" / f"{pane.pid}.json")]
        assert "cannot be parsed; using `claude agents --json` instead" == note
    finally:
        host.kill()


def test_the_real_cli_lists_what_its_file_says(claude: Agents, home: Home) -> None:
    """The same process, session and status."""
    cli = claude()
    cli.submit("play:perm please")
    said = cli.becomes("waiting")
    expected = {key: said[key] for key in ("pid", "sessionId", "status", "waitingFor")}

    def agrees() -> bool:  # on a busy machine the CLI may answer too late
        listed = listed_by(cli.pid, str(home.claude), cli.launch.env)
        assert expected.items() <= listed.get(cli.pid, {}).items(), json.dumps(listed)
        return True

    eventually(agrees)


def test_only_the_cli_is_ever_run(tmp_path: Path) -> None:
    """Never another program, even if a file claims to be its session file."""
    assert [] == own_command(1)
    assert {} == listed_by(1, str(tmp_path), {})
