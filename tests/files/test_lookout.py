"""The watches of a host besides the spool: real watches, and the real CLI without hooks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellboard.agents.claude.witness import FOLDER
from bellboard.agents.trace_line import from_line
from bellboard.core.board import Board
from bellboard.core.evidence import Evidence
from bellboard.core.session import is_listed, status_of
from bellboard.system.processes import started_of
from bellboard.system.reach import Reach, Rounds, reach
from bellboard.system.watch import Watch
from bellboard.witnesses.observer import Observer
from rig import DATA
from rig.fixtures import Agents
from rig.home import Home
from rig.tmux import Server
from rig.waiting import PATIENCE, leniency

LATE = 10.0  # nothing polls here: evidence after that was not reported by a watch
SID = "0f8fad5b-d9cb-469f-a165-70867728950e"
CAPTURES = DATA / "captures"


class MinimalHost:
    """A minimal host: it folds findings at once and attends to sessions."""

    def __init__(self, home: Home) -> None:
        self.board = Board()
        self.found: list[tuple[float, Evidence]] = []
        self._waiting: list[Evidence] = []
        self.woken = 0
        self.reach = Reach().open()
        self.watch = Watch(self._changed)
        self.observer = Observer(self._told, time.time, home.env)
        self.observer.open(self.watch, "g1")

    def _changed(self, paths: set[str]) -> None:
        self.woken += 1
        self.observer.changed(paths)

    def _told(self, evidence: Evidence) -> None:
        self.found.append((time.monotonic(), evidence))
        self._waiting.append(evidence)

    def step(self) -> None:
        """Fold pending findings and due deadlines."""
        while True:
            told, self._waiting = self._waiting, []
            for line, _ in told:
                self.board.fold(from_line(line, time.time()))
            self.board.advance(time.time())
            changed, self.board.dirty = self.board.dirty, set()
            self.observer.attend(self.board.sessions, changed)
            if not self._waiting:
                return

    async def fold(self, **line: Any) -> None:
        """Fold evidence from outside, such as a hook event, and the findings that it causes."""
        self._waiting.append(Evidence({"t": time.time(), **line}, ""))
        await self.settle()

    async def rescan(self) -> None:
        """Check everything."""
        self.observer.rescan()
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing more is found."""
        self.step()
        rests = 0
        while rests < 5:  # what was reached is looked at, and more may be
            is_at_rest = self.reach.is_at_rest and self.observer.is_at_rest
            rests = rests + 1 if is_at_rest else 0
            await asyncio.sleep(0.001)
            self.step()

    async def until(self, predicate: Callable[[], Any], what: str = "") -> float:
        """Wait until a predicate is true, as `eventually` does; return how long that took."""
        begin = time.monotonic()
        while True:
            with contextlib.suppress(LookupError):  # it may look up what is not there yet
                if predicate():
                    return time.monotonic() - begin
            assert time.monotonic() < begin + PATIENCE, f"{what}: {self.statuses()} {self.kinds()}"
            await asyncio.sleep(0.01)
            self.step()

    def statuses(self) -> dict[str, str]:
        """Return the status of each listed session."""
        return {i: status_of(s) for i, s in self.board.sessions.items() if is_listed(s)}

    def status(self) -> str:
        """Return the status of the only session."""
        return next(iter(self.statuses().values()), "")

    def followed(self) -> dict[str, str]:
        """Return the log of each followed session, if its path is known."""
        logs = (need for want, need in self.observer.needs.items() if want.kind.endswith(" log"))
        paths = ((need.want.of[0], p) for need in logs for p in need.watched)
        return {sid: path for sid, path in paths if path.endswith(".jsonl")}

    def folders(self) -> int:
        """Return how many config directories are followed."""
        needs = self.observer.needs.items()
        return sum(want.kind == FOLDER and bool(need.watched) for want, need in needs)

    def notes(self) -> dict[str, str]:
        """Return the problems."""
        return {**self.observer.notes, **self.reach.notes}

    def kinds(self) -> list[str]:
        """Return the kinds of the findings so far."""
        return [from_line(f.line).kind for _, f in self.found]

    def last(self, kind: str) -> Any:
        """Return the newest evidence of a kind, decoded."""
        return [e for _, f in self.found if (e := from_line(f.line)).kind == kind][-1]


def run(home: Home, test: Callable[[MinimalHost], Awaitable[None]]) -> None:
    """Run in an event loop, and close everything afterwards."""

    async def main() -> None:
        desk = MinimalHost(home)
        try:
            await test(desk)
        finally:
            desk.observer.close()
            desk.watch.close()
            desk.reach.close()

    asyncio.run(main())


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that waits."""
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


def record(home: Home, pid: int, **fields: Any) -> Path:
    """Write a session file."""
    path = home.claude / "sessions" / f"{pid}.json"
    path.parent.mkdir(exist_ok=True)
    start = {"pid": pid, "sessionId": SID, "cwd": str(home.project), "procStart": started_of(pid)}
    path.write_text(json.dumps({**start, **fields}))
    return path


def hook(event: str, home: Home, process: int, **more: Any) -> dict[str, Any]:
    """Return a hook event as a trace line."""
    place = {"cwd": str(home.project), "transcript_path": str(home.root / "t.jsonl")}
    payload = {"session_id": SID, "hook_event_name": event, **place, **more}
    return {"hook": payload, "origin": {"pid": process, "tty": "/dev/pts/99"}}


def test_a_session_file_is_seen_and_its_process_watched(
    home: Home, process: subprocess.Popen[bytes]
) -> None:
    """The folder may be created later; the session ends with the process."""

    async def test(desk: MinimalHost) -> None:
        (home.claude / "sessions").mkdir()
        desk.watch.rearm()
        record(home, process.pid, status="busy", statusUpdatedAt=1)
        await desk.until(lambda: desk.status() == "working")
        record(
            home, process.pid, status="waiting", waitingFor="permission prompt", statusUpdatedAt=2
        )
        await desk.until(lambda: desk.status() == "blocked")
        assert {process.pid} == desk.observer.deaths.watched
        process.send_signal(signal.SIGKILL)
        assert await desk.until(lambda: not desk.statuses()) < LATE * leniency()
        assert set() == desk.observer.deaths.watched

    run(home, test)


def test_a_later_thread_with_the_id_of_its_process_does_not_keep_a_session(home: Home) -> None:
    """After a reboot of a container, a thread of the host may get that id."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()

    async def test(desk: MinimalHost) -> None:
        before = time.time() - 100
        told = (
            hook("UserPromptSubmit", home, thread.native_id or 0, prompt="go"),
            {"process": {"pid": thread.native_id, "alive": True, "started": "1"}},
        )
        desk._waiting += [Evidence({"t": before, **line}, "") for line in told]
        await desk.settle()
        await desk.until(lambda: not desk.statuses(), "its end")

    try:
        run(home, test)
    finally:
        over.set()
        thread.join()


def test_a_transcript_is_watched_while_its_session_is_at_work(
    home: Home, process: subprocess.Popen[bytes]
) -> None:
    """Afterwards it is neither opened nor a reason to wake."""
    path = home.root / "t.jsonl"
    path.write_text(json.dumps({"type": "ai-title", "aiTitle": "Its own"}) + "\n")

    async def test(desk: MinimalHost) -> None:
        await desk.fold(**hook("SessionStart", home, process.pid, source="startup"))
        desk.board.sessions[SID].since -= 60
        await desk.rescan()
        assert {} == desk.followed()
        await desk.fold(**hook("UserPromptSubmit", home, process.pid, prompt="go"))
        assert {SID: str(path)} == desk.followed()
        assert "Its own" == desk.board.sessions[SID].title
        with path.open("a") as file:
            file.write('{"type":"custom-title","customTitle":"Mine"}\n')
        await desk.until(lambda: desk.board.sessions[SID].title == "Mine")
        await desk.fold(**hook("Stop", home, process.pid))
        desk.board.sessions[SID].since -= 60
        await desk.rescan()
        assert {} == desk.followed()
        woken = desk.woken
        with path.open("a") as file:
            file.write("{}\n")
        await asyncio.sleep(0.2)
        assert woken == desk.woken

    run(home, test)


def test_a_transcript_is_read_by_the_witness_of_its_own_cli(
    home: Home, process: subprocess.Popen[bytes]
) -> None:
    """A CLI without transcripts is not read as if it were another."""

    async def test(desk: MinimalHost) -> None:
        prompt = hook("UserPromptSubmit", home, process.pid, prompt="go")
        prompt["origin"]["agent"] = "qwen"
        await desk.fold(**prompt)
        assert {SID: "working"} == {k: status_of(s) for k, s in desk.board.sessions.items()}
        assert {} == desk.followed()

    run(home, test)


def test_a_transcript_whose_folder_comes_later(
    home: Home, process: subprocess.Popen[bytes]
) -> None:
    """The first session in a directory, of a CLI without a status in its file."""
    record(home, process.pid)
    name = "".join(c if c.isalnum() else "-" for c in str(home.project))
    path = home.claude / "projects" / name / f"{SID}.jsonl"
    said = {"type": "user", "uuid": "1", "message": {"content": "go"}}

    async def test(desk: MinimalHost) -> None:
        await desk.until(lambda: desk.status() == "idle")
        desk.board.sessions[SID].since -= 60
        await desk.rescan()
        assert {SID: str(path)} == desk.followed()
        path.parent.mkdir(parents=True)
        await asyncio.sleep(0.05)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        path.write_text(json.dumps({**said, "timestamp": stamp}) + "\n")
        await desk.until(lambda: desk.status() == "working")
        assert str(home.claude / "projects") not in desk.observer.watched

    run(home, test)


def test_a_transcript_whose_folder_comes_before_it_can_be_watched(
    home: Home, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, time passes between the look at the folder and the watch on it."""
    monkeypatch.setattr("bellboard.system.reach.LONG", 0.5)  # one thread does it all
    path = home.claude / "projects" / "first" / f"{SID}.jsonl"
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    prompt = hook("UserPromptSubmit", home, process.pid, prompt="go")
    prompt["hook"]["transcript_path"] = str(path)

    async def test(desk: MinimalHost) -> None:
        gates, rounds = [threading.Event(), threading.Event()], Rounds()

        def block(n: int) -> None:
            rounds.run(f"gate {n}", partial(reach, gates[n].wait, within=PATIENCE))

        block(0)
        folded = asyncio.create_task(desk.fold(**prompt))
        await desk.until(lambda: SID in desk.followed())
        block(1)  # after the look at the folder, and before the watch on the one above
        await asyncio.sleep(0.01)
        gates[0].set()
        await desk.until(lambda: str(path.parent.parent) in desk.observer.watched)
        path.parent.mkdir()
        path.write_text(json.dumps({"type": "custom-title", "customTitle": "Mine"}) + "\n")
        gates[1].set()
        await desk.until(lambda: desk.board.sessions[SID].title == "Mine")
        await folded

    run(home, test)


def test_a_change_of_branch_is_noticed(home: Home, process: subprocess.Popen[bytes]) -> None:
    """From HEAD, and reported for each session that works there."""
    git = ["git", "-C", str(home.project)]
    how: dict[str, Any] = {"check": True, "env": home.env, "capture_output": True}
    subprocess.run([*git, "init", "-b", "main"], **how)

    async def test(desk: MinimalHost) -> None:
        await desk.fold(**hook("SessionStart", home, process.pid, source="startup"))
        facts = desk.board.sessions[SID].facts
        assert ("project", "main") == (facts["repository"], facts["branch"])
        subprocess.run([*git, "checkout", "-b", "topic"], **how)
        await desk.until(lambda: desk.board.sessions[SID].facts["branch"] == "topic")
        await desk.fold(**hook("SessionEnd", home, process.pid, reason="other"))
        starts = [str(home.claude / ".claude.json"), f"{home.claude}.json"]
        starts.append(str(home.claude / "daemon/attach-journal"))
        starts.append(str(home.root / ".codex/thread-writer-locks"))
        starts.append(str(home.root / ".copilot/open-sessions-state.json"))
        assert {str(home.claude / "sessions"), *starts} == {*desk.observer.watched}
        assert set() == desk.observer.deaths.watched
        await desk.fold(**hook("SessionStart", home, process.pid, source="resume"))
        assert {process.pid} == desk.observer.deaths.watched
        desk.observer.attend({}, [SID])  # a board drops sessions if it has too many
        assert set() == desk.observer.deaths.watched

    run(home, test)


def held(thing: object, seen: set[int], name: str = "desk") -> dict[str, int]:
    """Return the size of every container in our objects, by its path."""
    if id(thing) in seen or isinstance(thing, Board | Evidence):
        return {}
    seen.add(id(thing))
    if isinstance(thing, dict | set | list | deque):
        inner = thing.values() if isinstance(thing, dict) else ()
        counts = [held(value, seen, f"{name}[]") for value in inner]
        return {name: len(thing), **{k: n for count in counts for k, n in count.items()}}
    if not type(thing).__module__.startswith(("bellboard", "test_lookout")):
        return {}
    found: dict[str, int] = {}
    for key, value in getattr(thing, "__dict__", {}).items():
        found |= held(value, seen, f"{name}.{key}")
    return found


def watches() -> int:
    """Return the inotify watches of this process."""
    told = 0
    for info in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor of this listing
            told += info.read_text().count("inotify wd:")
    return told


def descriptors() -> int:
    """Return how many descriptors this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


def test_sessions_that_come_and_go_leave_nothing(
    home: Home, process: subprocess.Popen[bytes]
) -> None:
    """Their worktrees may be removed before they end."""

    async def come_and_go(desk: MinimalHost, name: str, removed_first: bool) -> None:
        place = home.root / "worktrees" / name
        (place / ".git").mkdir(parents=True)
        (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        line = hook("UserPromptSubmit", home, process.pid, prompt="go")
        line["origin"] |= {"env": {"CLAUDE_CONFIG_DIR": str(place / "claude")}}
        where = {"session_id": name, "cwd": str(place), "transcript_path": f"{place}/t/t.jsonl"}
        line["hook"] |= where
        await desk.fold(**line)
        assert "main" == desk.board.sessions[name].facts["branch"]
        if removed_first:
            shutil.rmtree(place)
            await desk.rescan()
        line["hook"] |= {"hook_event_name": "SessionEnd", "reason": "other"}
        await desk.fold(**line)
        shutil.rmtree(place, ignore_errors=True)

    async def test(desk: MinimalHost) -> None:
        (home.root / "worktrees").mkdir()
        for n in range(3):
            await come_and_go(desk, f"warm {n}", bool(n % 2))
        desk.found.clear()
        before = held(desk, set()) | {"watches": watches(), "descriptors": descriptors()}
        for n in range(30):
            await come_and_go(desk, f"s{n}", bool(n % 2))
            desk.found.clear()
        await asyncio.sleep(0.1)  # for late events of the last one
        await desk.rescan()
        desk.found.clear()
        after = held(desk, set()) | {"watches": watches(), "descriptors": descriptors()}
        # The last events of removed watches may be kept, up to a limit; others may mount, and an
        # agent of another test may have started, for which there are at most three timers.
        kept = ("_strays", "mounts", "_timers")
        grown = {k: n for k, n in after.items() if n > before.get(k, 0)}
        grown = {k: n for k, n in grown.items() if not any(name in k for name in kept)}
        assert {} == grown

    run(home, test)


def test_the_number_of_config_directories_is_limited(
    home: Home, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence can name thousands; those that no session needs make room."""
    monkeypatch.setattr("bellboard.agents.claude.witness.MOST_FOLDERS", 7)

    async def test(desk: MinimalHost) -> None:
        line = hook("SessionStart", home, process.pid, source="startup")
        for n in range(20):
            line["hook"] |= {"session_id": f"s{n}"}
            line["origin"] = {"env": {"CLAUDE_CONFIG_DIR": f"{home.root}/config/{n}"}}
            await desk.fold(**line)
        assert desk.folders() == 7
        assert "is ignored" in desk.notes()["config directories"]
        for n in range(20):
            end = {"hook_event_name": "SessionEnd", "session_id": f"s{n}", "reason": "other"}
            line["hook"] |= end
            await desk.fold(**line)
        assert 1 == desk.folders()
        assert "config directories" not in desk.notes()

    run(home, test)


@pytest.mark.tmux
def test_the_pane_of_a_session_is_watched(home: Home, tmux: Server) -> None:
    """With the tty that makes it the session's own; its end is noticed."""
    pane = tmux.open(["sleep", "60"])
    line = hook("SessionStart", home, pane.pid, source="startup")
    line["origin"] |= {"tmux": str(tmux.socket), "pane": pane.id}

    async def test(desk: MinimalHost) -> None:
        await desk.fold(**line)
        await desk.rescan()
        assert pane.tty == desk.board.sessions[SID].pane_tty
        tmux.run("kill-pane", "-t", pane.id)
        await desk.until(lambda: not desk.statuses())

    run(home, test)


@pytest.mark.live
def test_the_real_cli_without_any_hook(claude: Agents, home: Home) -> None:
    """Found at once though it started before us: work, question, answer, kill -9."""
    agent = claude()

    async def test(desk: MinimalHost) -> None:
        assert await desk.until(lambda: desk.status() == "idle") < LATE * leniency()
        [sid] = desk.statuses()
        agent.submit("play:perm please")
        await desk.until(lambda: desk.status() == "blocked", "it asks")
        assert agent.registry()["status"] == "waiting"
        assert {sid: str(next((home.claude / "projects").rglob("*.jsonl")))} == (desk.followed())
        # The dialog ignores keys for a moment.
        await asyncio.get_running_loop().run_in_executor(None, agent.answer, "Enter")
        await desk.until(lambda: desk.status() == "completed", "it is done")
        await desk.until(lambda: "said last" in desk.kinds(), "its last words")
        s = desk.board.sessions[sid]
        assert ("play:perm please", "Touched.") == (s.prompt, s.message)
        assert s.context and s.model
        assert agent.pane.tty == s.tty
        agent.submit("play:slow please")
        await desk.until(lambda: desk.status() == "working", "it works")
        os.kill(agent.pid, signal.SIGKILL)
        assert await desk.until(lambda: not desk.statuses(), "it is dead") < LATE * leniency()

    run(home, test)
    with contextlib.suppress(ProcessLookupError):
        os.kill(agent.pid, signal.SIGKILL)


@pytest.mark.live
def test_an_old_cli_without_a_status_in_its_file(claude: Agents, home: Home) -> None:
    """2.1.76: its file shows that it exists, its transcript what it does."""
    agent = claude(version="2.1.76")

    async def test(desk: MinimalHost) -> None:
        assert await desk.until(lambda: desk.status() in ("idle", "unknown")) < LATE * leniency()
        agent.submit("play:text please")
        await desk.until(lambda: "said last" in desk.kinds(), "its last words")
        await desk.until(lambda: desk.status() == "completed", "it is done")
        [s] = [s for s in desk.board.sessions.values() if is_listed(s)]
        assert ("play:text please", "Hello from the fake model.") == (s.prompt, s.message)

    run(home, test)


SHOWS_TITLES = r"""
for title in '⠋ proj' '⠙ proj' '[ ! ] Action Required | proj' '[ . ] Action Required | proj'; do
  printf '\033]2;%s\007' "$title"; sleep 0.2
done
read -r key
for title in '⠋ proj' '⠙ proj' '⠹ proj'; do printf '\033]2;%s\007' "$title"; sleep 0.2; done
read -r key
printf '\033]2;proj\007'
read -r key
"""


@pytest.mark.tmux
def test_the_title_of_a_terminal_says_what_its_cli_does(home: Home, tmux: Server) -> None:
    """A title is read when the terminal changes, and counts at once; a spinner is evidence once."""
    pane = tmux.open(["sh", "-c", SHOWS_TITLES])

    async def test(desk: MinimalHost) -> None:
        line = hook("UserPromptSubmit", home, pane.pid)
        place = {"tmux": str(tmux.socket), "pane": pane.id, "tty": pane.tty}
        await desk.fold(**line | {"origin": {"agent": "codex", "pid": pane.pid, **place}})
        await desk.rescan()
        await desk.until(lambda: desk.status() == "blocked", "the question shows")
        pane.press("Enter")
        await desk.until(lambda: desk.status() == "working", "it is answered")
        pane.press("Enter")

        def said() -> list[str]:
            return [f.line["title"]["says"] for _, f in desk.found if "title" in f.line]  # type: ignore

        await desk.until(lambda: said()[-3:] == ["waiting", "busy", "idle"], "it rests")
        assert len(said()) <= 4
        assert desk.status() == "working"  # it may show another of its threads
        line = hook("Stop", home, pane.pid)
        await desk.fold(**line | {"origin": {"agent": "codex", "pid": pane.pid, **place}})
        assert desk.status() == "completed"

    run(home, test)


@pytest.mark.tmux
def test_the_title_of_a_pane_in_which_neovim_runs_says_nothing(
    home: Home, tmux: Server, process: subprocess.Popen[bytes]
) -> None:
    """The title is Neovim's own; the terminal inside has another."""
    alone, around = (tmux.open(["sh", "-c", SHOWS_TITLES]) for _ in range(2))
    socket = str(tmux.socket)
    places = {
        SID: {"pid": alone.pid, "tmux": socket, "pane": alone.id, "tty": alone.tty},
        "inside": {
            "pid": process.pid,
            "tmux": socket,
            "pane": around.id,
            "tty": "/dev/pts/99",
            "nvim": "/run/nvim.sock",
        },
    }

    async def test(desk: MinimalHost) -> None:
        for sid, place in places.items():
            line = hook("UserPromptSubmit", home, 0, session_id=sid)
            await desk.fold(**line | {"origin": {"agent": "codex", **place}})
        await desk.rescan()
        await desk.until(lambda: desk.status() == "blocked", "the title of the other")
        said = [f.line["title"] for _, f in desk.found if "title" in f.line]
        assert {SID} == {given["session_id"] for given in said}  # type: ignore[index]

    run(home, test)


def test_a_terminal_is_read_even_if_its_neovim_knew_the_session_first(
    home: Home, process: subprocess.Popen[bytes]
) -> None:
    """The dialog may never change again."""
    rows = (DATA / "captures/2.1.330/trust.txt").read_text().splitlines()

    async def test(desk: MinimalHost) -> None:
        desk.observer.hand_in(SID, process.pid, rows)
        await desk.fold(**hook("SessionStart", home, process.pid, source="startup"))
        assert "screen waiting" in desk.kinds()

    run(home, test)


@pytest.mark.parametrize(("app", "read"), [("claude-code", True), ("make", False)])
def test_the_screen_of_an_unknown_program_means_nothing(home: Home, app: str, read: bool) -> None:
    """Such a program's screen may look like the screen of a CLI."""
    rows = (CAPTURES / "2.1.330/retrying.txt").read_text().splitlines()

    async def test(desk: MinimalHost) -> None:
        pid, started = os.getpid(), started_of(os.getpid())
        said = {"pid": pid, "started": started, "body": f"state=working:app={app}"}
        await desk.fold(osc7501={**said, "tty": "/dev/pts/9"})
        (sid,) = desk.statuses()
        desk.observer.hand_in(sid, pid, rows)
        await desk.settle()
        assert read == ("screen busy" in desk.kinds())

    run(home, test)
