"""Real CLIs of other agents on a fake model: a question each; `make live AGENT=…` has more."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from bellboard.core.deadlines import LEADS
from live.answers.served import say
from live.published import Published
from live.report import Row, missed
from live.screens import STANDS, ScreenStage, judged_by_screens
from live.stage import How
from live.stands import CODEX, COPILOT, OPENCODE, PI, QWEN, SPEAKING, Settings, Stand
from rig import ROOT
from rig.agents import agent, codex, opencode
from rig.agents.api import Api
from rig.agents.model import Model
from rig.fetched import claude_code
from rig.fixtures import VERSIONS
from rig.home import Home
from rig.machines.loopback import Watch
from rig.tmux import Server
from rig.waiting import eventually, rest

PACKAGES = ROOT / "rplugin/python3"
FIRST, SECOND = "%0", "%1"
LONGER = LEADS + 1.0  # seconds after which what a terminal states would be believed


@pytest.fixture
def published(home: Home) -> Iterator[Published]:
    """Run a host that prints what is shown."""
    made = Published(home)
    yield made
    made.close()


@pytest.mark.timeout(300)
@pytest.mark.smoke
@pytest.mark.parametrize("stand", [CODEX, OPENCODE], ids=lambda stand: stand.key)
def test_what_is_shown_of_an_agent_is_what_its_screen_says(stand: Stand) -> None:
    """With hooks from our own installer: it works, asks, is answered, completes, and is gone.

    How late that is on a busy machine is not looked at here.
    """
    stand.fetch()
    with ScreenStage(stand) as stage:
        stage.start()
        stage.prompt(f"{stand.asking} true; say Done")
        stage.stands("blocked")
        stage.press(*stand.allow)
        stage.stands("completed")
        stage.leave()
        outside = stage.watch.spoke_out()
        shown = dict.fromkeys(change["to"] for change in stage.published.changes)
    assert tuple(shown) == ("idle", "working", "blocked", "completed", None)
    assert not outside


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stand", SPEAKING.values(), ids=lambda stand: stand.key)
def test_what_an_agent_reports_of_itself_is_all_that_is_needed(stand: Stand) -> None:
    """In a terminal of Neovim, without hooks, and with its own files out of sight."""
    stand.fetch()
    how = How(editor=VERSIONS[-1], hidden=True, hooked=False)
    with ScreenStage(stand, how=how) as stage:
        stage.start()
        stage.asks()
        stage.press(*stand.allow)
        stage.stands("completed")
        stage.leave()
        outside = stage.watch.spoke_out()
        changes = list(stage.published.changes)
    shown = dict.fromkeys(change["to"] for change in changes if change["to"] != "idle")
    assert tuple(shown) == ("working", "blocked", "completed", None)
    assert len({change["session_id"] for change in changes}) == 1
    assert not outside


@pytest.mark.timeout(300)
@pytest.mark.parametrize("editor", ["", VERSIONS[-1]], ids=["tmux", "Neovim"])
def test_a_thread_that_codexs_terminal_hides_asks_all_the_same(editor: str) -> None:
    """Its title and own report are about the thread that is shown, which completes its turn."""
    CODEX.fetch()
    with ScreenStage(CODEX, how=How(editor=editor)) as stage:
        stage.start()
        stage.prompt("say First")
        stage.stands("completed")
        pane = stage.cli.pane
        stage.prompt("wait 1; esc true; say Done")  # that takes 10 seconds at least
        pane.shows("Waiting for agents")
        show_threads(stage)
        eventually(lambda: rows_say(stage, "working"), "it works, though not in its title")
        stage.press("n")
        pane.shows("Ask Codex to do anything")
        rest(LONGER)
        rows_say(stage, "working")
        eventually(lambda: rows_say(stage, "blocked"), "it asks", 30.0)
        rest(LONGER)
        rows_say(stage, "blocked")
        stage.prompt("say Second")
        eventually(lambda: rows_say(stage, "blocked", "completed"), "the other one completes")
        rest(STANDS)
        rows_say(stage, "blocked", "completed")
        show_threads(stage)
        pane.shows("Needs input")
        stage.press("Down", "Enter")
        pane.shows("Would you like to run")
        stage.press("y")
        pane.shows("• Done")
        eventually(lambda: rows_say(stage, "completed", "completed"), "it is answered")
        stage.leave()
        assert not stage.published.rows()
        assert not stage.watch.spoke_out()


def show_threads(stage: ScreenStage) -> None:
    """Show the list of a Codex's threads."""
    stage.press("Left")
    stage.cli.pane.shows("Agent command center")


def rows_say(stage: ScreenStage, *statuses: str) -> bool:
    found = sorted(row["status"] for row in stage.published.rows())
    assert found == sorted(statuses), stage.cli.pane.text()
    return True


@pytest.mark.timeout(300)
@pytest.mark.smoke
def test_pi_works_between_its_retries_and_fails_once() -> None:
    """The API is overloaded twice; then it stays so; at last Esc stops it between two tries."""
    PI.fetch()
    with ScreenStage(PI) as stage:
        stage.start()
        stage.prompt("err 529 2")
        stage.stands("completed")
        stage.prompt("err 529")
        stage.stands("error")
        stage.prompt("err 529")
        eventually(lambda: "retrying" in stage.published.rows()[0]["markers"], "it says so")
        stage.press("Escape")  # an error by Pi's own report as well
        stage.stands("error")
        stage.leave()
        outside = stage.watch.spoke_out()
        shown = [change["to"] for change in stage.published.changes]
    turns = [["working", then] for then in ("completed", "error", "error")]
    assert shown == ["idle", *(word for turn in turns for word in turn), None]
    assert not outside


def test_a_terminal_of_codexs_shared_server_is_shown_like_any_other(
    home: Home, tmux: Server, published: Published
) -> None:
    """Hooks run in the server, and do not report a permission that was granted, or a quit."""
    codex.executable()
    with codex.running(home, tmux) as (cli, _):
        say(cli.pane, "DO: esc perl -e 'sleep 4'; say Done")
        cli.pane.shows("Would you like to run")
        eventually(lambda: tos(published)[-1:] == ["blocked"], "it asks")
        rest(STANDS)  # the board knows sooner than its terminal, which ignores keys until then
        cli.pane.press("y")
        eventually(lambda: tos(published)[-1:] == ["completed"], "it is done")
        took = [c["t"] for c in published.changes][-2:]
        say(cli.pane, "DO: slow 20")
        eventually(lambda: tos(published)[-1:] == ["working"], "it works")
        rest(STANDS)
        cli.pane.press("Escape")
        eventually(lambda: tos(published)[-1:] == ["idle"], "it is interrupted")
        say(cli.pane, "DO: err 400")
        eventually(lambda: tos(published)[-1:] == ["error"], "it fails")
        assert [row.get("pane") for row in published.rows()] == [cli.pane.id]
        say(cli.pane, "/quit")
        eventually(lambda: tos(published)[-1:] == [None], "it has quit")
        assert cli.server.poll() is None
    first = ["working", "blocked", "working", "completed"]
    assert [x for x in tos(published) if x != "idle"][:4] == first
    assert took[1] - took[0] > 3.0, "the tool ran for 4 s after the grant"


#: What a prompt may hold: tabs, Unicode, quotes, backslashes, 50 KB; of CRLF, a line break is left.
TOLD = (
    "DO: say Heard\r\n\ttab 'single' \"double\" \\\\n é 你 🙂\r\n" + "0123456789\n" * 4600 + "end"
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cli", [codex, opencode], ids=["codex", "opencode"])
def test_a_prompt_reaches_the_model_by_the_server_of_its_cli(
    home: Home, tmux: Server, published: Published, cli: ModuleType
) -> None:
    """Whole and once, while its terminal holds another; then one is queued, and it is stopped."""
    cli.executable()
    with cli.running(home, tmux) as (running, model):
        pane = running if cli is opencode else running.pane
        say(pane, "DO: say First")
        eventually(lambda: tos(published)[-1:] == ["completed"], "its first turn")
        (session,) = (row["session_id"] for row in published.rows())
        pane.type("half typed")
        before = len(model.requests)
        assert "taken" == sent(home, "send", session, "-", "--submit", text=TOLD)
        eventually(lambda: len(tos(published)) > 4 and tos(published)[-1] == "completed")
        heard = [said for body in model.requests[before:] for said in prompts(body)]
        assert 1 == heard.count(TOLD.replace("\r\n", "\n"))
        assert "taken" == sent(home, "send", session, "--submit", "DO: slow 30")
        pane.shows("word1")
        eventually(lambda: tos(published)[-1] == "working", "it works")
        assert "queued" == sent(home, "send", session, "DO: say Queued", "--submit")
        assert "taken" == sent(home, "interrupt", session)
        eventually(lambda: tos(published)[-1] != "working", "it is stopped")
        pane.shows("(?s)[Ii]nterrupted.*half typed")


def sent(home: Home, *command: str, text: str = "") -> str:
    """Return the outcome of a command that sends something to a session."""
    argv = [sys.executable, "-m", "bellboard", *command, "--json"]
    done = subprocess.run(argv, env=home.env, input=text.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return str(json.loads(done.stdout)["outcome"])


def prompts(body: dict[str, Any]) -> list[str]:
    """Return what users said in a request to a model, the last of it only once."""
    said = [x for x in body.get("input") or body.get("messages") or () if x.get("role") == "user"]
    texts = [x["content"] for x in said[-1:]]
    return [t if isinstance(t, str) else "".join(x.get("text", "") for x in t) for t in texts]


def tos(published: Published) -> list[str | None]:
    return [change["to"] for change in published.changes]


@pytest.mark.core
def test_a_prompt_that_is_put_back_is_at_rest() -> None:
    """Copilot does so with one that was interrupted before the first word."""
    rule = "─" * 40
    composer = f" ~/project\n{rule}\n❯ DO: err 429\n{rule}\n Interactive · @ files"
    assert "idle" == COPILOT.status(composer)
    assert "working" == COPILOT.status(f"❯ DO: err 429\n{composer} · esc esc interrupt")
    assert "completed" == COPILOT.status(f"❯ DO: say Hi\n● Hi\n{composer}")


@pytest.mark.core
def test_a_session_that_is_resumed_in_another_terminal_was_gone_from_the_first() -> None:
    """And one that is listed for longer than its terminal was not."""
    marks = {
        FIRST: [(0.0, "idle"), (10.0, "ended")],
        SECOND: [(12.0, "idle"), (20.0, "ended")],
    }
    times = [(0.0, "idle"), (10.5, None), (12.0, "idle"), (20.25, None)]
    changes = [{"t": t, "session_id": "s", "to": to} for t, to in times]
    places = {"s": [FIRST, SECOND]}
    assert judged_by_screens("resume", marks, changes, places, 1.0).left == 0.5
    assert judged_by_screens("resume", marks, changes[:3], places, 1.0).left == float("inf")


@pytest.mark.core
def test_a_bar_is_missed_by_a_wrong_time_a_slow_change_or_a_scene_that_was_not_played() -> None:
    """Each CLI has bars of its own, as its evidence differs."""
    rows = [Row("text", compared=99.0, delays=(0.3,)), Row("deny", compared=1.0, wrong=(0.5,))]
    assert missed(rows, CODEX.agrees) == []
    rows.append(Row("kill -9", compared=1.0, wrong=(1.0,), delays=(0.1, 0.7), left=3.0))
    slow = ["kill -9: a change took 0.70 s", "kill -9: left for 3.0 s"]
    assert missed(rows, CODEX.agrees) == [*slow, "agrees 98.51% of the time, not 99%"]
    assert missed(rows, QWEN.agrees) == slow
    failed = Row("text", "AssertionError: it was late\n...")
    assert missed([failed], CODEX.agrees) == ["text: AssertionError: it was late"]


@pytest.mark.timeout(300)
@pytest.mark.live
def test_the_script_of_the_help_runs_as_it_stands(home: Home, api: Api, watch: Watch) -> None:
    """Claude Code twice and Codex once, each in a worktree; without a terminal, tmux or host."""
    page = (ROOT / "doc/bellboard-scripts.txt").read_text()
    found = re.search(r"Three agents at once[^>]*>\n\n(.*?)<\n", page, re.DOTALL)
    assert found is not None
    script = home.root / "three.sh"
    script.write_text(textwrap.dedent(found[1]))
    model = Model()
    watch.old = True  # Codex asks for news; what the trap caught has reached nobody
    env = agent.prepare(home, api, watch).env
    env |= {**CODEX.settings(Settings(home, model, True)), "PYTHONPATH": str(PACKAGES)}
    trusting = ["--dangerously-bypass-hook-trust", "--no-daemon"]  # who runs it has trusted them
    for name, argv in {
        "claude": [str(claude_code.executable())],
        "codex": [*CODEX.fetch(), *trusting],
        "bellboard": [sys.executable, "-m", "bellboard"],
    }.items():
        (home.bin / name).write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
        (home.bin / name).chmod(0o755)
    home.file("x.txt", "x\n")

    def run(*argv: str) -> str:
        how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run(argv, cwd=home.project, env=env, check=False, **how)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    names = ("parser", "docs", "tests")
    try:
        run("git", "init", "-q", "-b", "main")
        run("git", "add", ".")
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
        run("bellboard", "hooks", "install", "--yes", "--agent", "codex")
        printed = run("sh", "-e", str(script))
        ids, rest = printed[: printed.index("== parser")].splitlines(), printed.split("== ")[1:]
        assert [line.split()[1] for line in ids[3:]] == ["completed"] * 3
        assert {line.split()[0] for line in ids[3:]} == set(ids[:3])
        assert [part.split()[0] for part in rest] == [*names]
        for part, prompt in zip(
            rest, ("Report the line", "Bring the docs", "Find slow"), strict=True
        ):
            assert f"> {prompt}" in part
        for name in names:
            run("bellboard", "stop", name)
        eventually(lambda: json.loads(run("bellboard", "list", "--json"))["sessions"] == [])
        for name in names:
            run("git", "worktree", "remove", f"../project.worktrees/{name}")
        assert len(run("git", "worktree", "list").splitlines()) == 1
    finally:
        subprocess.run(["tmux", "kill-server"], env=env, capture_output=True, check=False)
        model.close()
