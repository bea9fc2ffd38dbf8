"""`bellboard new`: worktrees, tmux windows and prompts, with an agent that runs the real hook."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellboard.agents.registry import STARTABLE, agent_of
from rig import schema
from rig.home import Home
from rig.shell import EMIT, ROOT, Shell
from rig.tmux import Server
from rig.waiting import eventually

#: Reports itself by the real hook, as Claude Code does, and keeps what it was started with.
AGENT = f"""#!{sys.executable}
import json, os, subprocess, sys, time
argv = sys.argv[1:]
if argv == ["--version"]:
    sys.exit(print("2.1.332 (Claude Code)"))
if "--fail" in argv:
    sys.exit(1)
sid = f"s{{os.getpid()}}"
told = {{"argv": argv, "cwd": os.getcwd(), "env": dict(os.environ)}}
with open(f"TOLD/{{sid}}", "w") as file:
    json.dump(told, file)
for event in ("SessionStart", "UserPromptSubmit", "Stop"):
    payload = {{"session_id": sid, "hook_event_name": event, "cwd": os.getcwd()}}
    subprocess.run(["sh", "{EMIT}", event, str(os.getpid())], input=json.dumps(payload), text=True)
print("an agent", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def started(home: Home, shell: Shell) -> Iterator[Shell]:
    """A shell in a repository with one commit; the servers that commands start end with it."""
    (home.bin / "claude").write_text(AGENT.replace("TOLD", str(home.root / "told")))
    (home.bin / "claude").chmod(0o755)
    (home.root / "told").mkdir()
    home.file("a.txt", "a\n")
    git(home, "init", "-q", "-b", "main")
    git(home, "add", ".")
    git(home, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    yield shell
    subprocess.run(["tmux", "-L", "default", "kill-server"], env=home.env, capture_output=True)


def git(home: Home, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=home.project, env=home.env, capture_output=True, text=True, check=True
    )
    return done.stdout


def new(shell: Shell, *words: str, code: int = 0, **env: str) -> tuple[str, str]:
    """Run the command in the project without a terminal; return its output and its errors."""
    done = subprocess.run(
        [*shell.argv, "new", *words],
        cwd=shell.home.project,
        env=shell.env | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    schema.check(["new", *words], done.stdout)
    return done.stdout.strip(), done.stderr.strip()


def told(home: Home, sid: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((home.root / "told" / sid).read_text())
    return found


def trees(home: Home) -> dict[str, str]:
    """Return the worktrees of the project, but its main one: folder → branch."""
    rows = git(home, "worktree", "list", "--porcelain").split("\n\n")[1:]
    blocks = [dict(row.partition(" ")[::2] for row in block.splitlines()) for block in rows]
    return {block["worktree"]: block["branch"] for block in blocks if block}


def test_a_script_finds_its_session_by_the_name_of_its_worktree(home: Home, started: Shell) -> None:
    """Without tmux, terminal or host: it works, at once, under its repository, and ends cleanly."""
    first, said = new(started, "--worktree", "api", "do", "it")
    folder = str(home.root / "project.worktrees/api")
    assert said == ""
    assert trees(home) == {folder: "refs/heads/api"}
    argv = told(home, first)["argv"]
    assert isinstance(argv, list)
    assert argv[0] == "--settings"
    assert argv[-2:] == ["--", "do it"]
    assert told(home, first)["cwd"] == folder
    assert started.bellboard("wait", "api", "--timeout", "20").stdout.startswith(
        f"{first} completed"
    )
    p = started.sessions()[first]
    shown = {key: p["words"][key] for key in ("repository", "branch")}
    assert shown == {"repository": "project", "branch": "api"}
    assert not p["hidden"]
    window = ["tmux", "-L", "default", "list-windows", "-a", "-F", "#{session_name}:#{window_name}"]
    listed = subprocess.run(window, env=home.env, capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["bellboard:api"]
    second, _ = new(started, "--worktree", "docs/all", "--json", "more")
    facts = json.loads(second)
    named = [facts[key] for key in ("agent", "branch", "worktree")]
    assert named == ["claude", "docs/all", "docs-all"]
    assert facts["session_id"] in started.sessions()
    for name in ("api", "docs-all"):
        started.bellboard("stop", name)
    eventually(lambda: not started.sessions(), "their ends")
    for path in trees(home):
        git(home, "worktree", "remove", path)
    assert trees(home) == {}


def test_a_worktree_or_branch_that_exists_is_used_again(home: Home, started: Shell) -> None:
    """Wherever it is; that is said, and nothing is made twice."""
    git(home, "branch", "old")
    git(home, "worktree", "add", "-q", "-b", "mine", str(home.root / "there"))
    for name, folder, remark in (
        ("old", "project.worktrees/old", "the branch old exists: it is checked out in"),
        ("old", "project.worktrees/old", "exists, on branch old: the session starts there"),
        ("there", "there", "exists, on branch mine: the session starts there"),
    ):
        sid, said = new(started, "--worktree", name)
        assert remark in said
        assert told(home, sid)["cwd"] == str(home.root / folder)
    assert len(trees(home)) == 2


def test_in_tmux_a_window_opens_beside_the_command(
    home: Home, started: Shell, tmux: Server
) -> None:
    """It is shown, and with --detach not; our variables are those of the command."""
    command = shlex.join([*started.argv, "new", "--worktree"])
    pane = tmux.open(["sh"], session="work", env={"PYTHONPATH": str(ROOT / "rplugin/python3")})
    tmux.run("set-environment", "-g", "BELLBOARD_HOME", "/nowhere")
    pane.type(f"cd {home.project}; {command} seen 'do it'; echo \"code $?\"\n")
    pane.shows("code 0")
    pane.type(f"clear; {command} unseen --detach 'do it'; echo \"code again $?\"\n")
    pane.shows("code again 0")
    windows = tmux.run("list-windows", "-t", "work", "-F", "#{window_name}#{window_active}")
    assert windows.split()[1:] == ["seen1", "unseen0"]
    panes = {p["pane"]: p["worktree"] for p in started.sessions().values()}
    assert panes == {"%1": "seen", "%2": "unseen"}


def test_in_another_terminal_the_agent_takes_that(home: Home, started: Shell, tmux: Server) -> None:
    """As in a :terminal of a Neovim that is in tmux, where the variables of tmux are inherited."""
    inner = shlex.join([*started.argv, "new", "--worktree", "here"])
    outer = f"cd {home.project}; script -qc {shlex.quote(inner)} /dev/null; echo code"
    pane = tmux.open(["sh"], session="work", env={"PYTHONPATH": str(ROOT / "rplugin/python3")})
    pane.type(f"{outer}\n")
    pane.shows("an agent")
    assert len(tmux.run("list-windows", "-a").splitlines()) == 1
    assert list(trees(home)) == [str(home.root / "project.worktrees/here")]


WRONG = (
    (["--worktree", "a b"], '"a b" cannot be the name of a branch'),
    (["--worktree", "main"], "git: 'main' is already"),
    (["--worktree", "taken"], "git: '{root}/project.worktrees/taken' already exists"),
    (["--agent", "gpt"], 'unknown agent "gpt"; choose one of claude, codex'),
    (["--agent", "goose"], '"goose" is not on PATH'),
    (["--agent", "crush", "do it"], "Crush takes no prompt when it starts; leave that out"),
    (["do", "it", "--model", "x"], "--model comes before the prompt"),
    (["--fail"], "Claude Code ended at once; see why with: cd {root}/project && {root}/bin/claude"),
)


@pytest.mark.parametrize(("words", "why"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_what_cannot_be_started_says_why(
    home: Home, started: Shell, words: list[str], why: str
) -> None:
    """And leaves nothing behind."""
    home.file("../project.worktrees/taken/file", "x")
    printed, said = new(started, *words, code=1)
    assert printed == ""
    assert why.format(root=home.root) in said
    assert trees(home) == {}


def test_a_worktree_needs_a_repository(home: Home, started: Shell) -> None:
    """Without one, and without git, the session starts all the same where it is."""
    (home.project / ".git").rename(home.root / "away")
    _, said = new(started, "--worktree", "api", code=1)
    assert f"{home.project} is in no git repository; go to one" in said
    sid, _ = new(started, "--", "--do it")
    argv = told(home, sid)["argv"]
    assert isinstance(argv, list)
    assert argv[-1] == "--do it"


@pytest.mark.parametrize("key", STARTABLE)
def test_each_agent_has_its_own_way_to_take_a_prompt(started: Shell, home: Home, key: str) -> None:
    """A prompt stays one argument, and is never taken for an option."""
    agent = agent_of(key)
    if agent.program != "claude":
        (home.bin / agent.program).symlink_to(home.bin / "claude")
    words = ("--agent", key, "--print", "--json", "--model", "x", "--", "--fix it")
    if not agent.prompting:
        assert "takes no prompt" in new(started, *words, code=1)[1]
        return
    command = json.loads(new(started, *words)[0])["command"]
    assert command[0] == str(home.bin / agent.program)
    assert command[-1].endswith("--fix it")
    assert command[-1] != "--fix it" or command[-2] == "--"
    assert command[command.index("--model") + 1] == "x"


def test_the_command_is_printed_for_other_terminals(home: Home, started: Shell) -> None:
    """It goes to the worktree, which it has made; nothing is run."""
    printed, _ = new(started, "--worktree", "api", "--print")
    folder = Path(home.root / "project.worktrees/api")
    assert printed.startswith(f"cd {folder} && {home.bin}/claude --settings ")
    assert folder.is_dir()
    assert started.sessions() == {}
