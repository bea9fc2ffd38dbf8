"""Several hosts: killed at random, of two versions, with and without Neovim."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellboard.storage import database
from bellboard.storage.event_file import MAGIC
from bellboard.storage.set_aside import FILES, SLACK
from bellboard.storage.spool import Spool
from files.chaos import EVENTS, Chaos
from rig import ROOT
from rig.editor import Editor
from rig.fixtures import VERSIONS, Editors
from rig.home import Home
from rig.host.hosting import (
    RecordedHost,
    agrees_with_its_log,
    from_files,
    made,
    opened,
    put,
    put_raw,
    statuses,
)
from rig.waiting import PATIENCE, at_best, eventually

pytestmark = pytest.mark.editor

JOB = "return vim.fn.jobpid(require('bellboard.process.talk').status().channel)"
SHOWN = "return require('bellboard').sessions({ hidden = true })"
NOTE = "return require('bellboard').health().notes.database"
PID = "return require('bellboard').health().pid"
CHAOS = int(os.environ.get("BELLBOARD_CHAOS", "1000"))  # events; 5000 in the full run


def shown(editor: Editor) -> dict[str, str]:
    return {s["session_id"]: s["status"] for s in editor.lua(SHOWN)}


def hosted(editor: Editor) -> int:
    """Wait for the host of an editor; return its process."""
    eventually(lambda: editor.lua(PID), "a host")
    return int(editor.lua(JOB))


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


# Killed at random


@pytest.mark.timeout(360 + CHAOS // 10)
def test_hosts_killed_at_random_lose_and_repeat_nothing(
    home: Home, nvim: Editors, record_property: Callable[[str, object], None]
) -> None:
    """Every event folded once, the log replays, every effect at most once."""
    config = {"max_restarts": 1000, "python": sys.executable}
    editors = [nvim(version, config, ui=False) for version in (*VERSIONS, *VERSIONS)[:2]]
    chaos = Chaos(home, editors, CHAOS // len(EVENTS), period=0.5 if CHAOS < 5000 else 1.0)
    began = time.monotonic()
    try:
        chaos.run()
        chaos.every_event_was_folded_once()
        chaos.the_log_replays()
        ran, lost = chaos.every_effect_ran_at_most_once()
        assert len(chaos.killed) >= 2
        figures = {"events": CHAOS, "kills": len(chaos.killed), "effects": ran, "died": lost}
        figures["seconds"] = round(time.monotonic() - began)
        record_property("chaos", figures)
        sys.stderr.write(f"{figures}\n")
    finally:
        chaos.close()


# In a Neovim


def test_quitting_takes_no_time_and_leaves_no_process(nvim: Editors, version: str) -> None:
    """:qa takes at most 0.15 s with the host running, as without."""

    def quits() -> float:
        editor = nvim(version, {"python": sys.executable}, ui=False)
        pid = hosted(editor)
        began = time.monotonic()
        editor.nvim.command("qall!", async_=True)
        editor.process.wait(PATIENCE)
        took = time.monotonic() - began
        eventually(lambda: is_gone(pid), "the end of the host")
        return took

    at_best(quits, 0.15)


def test_a_killed_neovim_leaves_no_process(nvim: Editors, version: str) -> None:
    """kill -9: the host sees the end of its input."""
    editor = nvim(version, {"python": sys.executable}, ui=False)
    pid = hosted(editor)
    editor.process.kill()
    editor.process.wait(PATIENCE)
    eventually(lambda: is_gone(pid), "the end of the host")


def test_a_host_without_a_home_says_what_to_do(nvim: Editors, home: Home) -> None:
    """In :checkhealth; Neovim continues."""
    (home.root / "file").write_text("in the way")
    env = {"BELLBOARD_HOME": str(home.root / "file" / "below")}
    editor = nvim(config={"max_restarts": 1, "python": sys.executable}, env=env, ui=False)
    eventually(lambda: "checkhealth" in editor.messages(), "a message")
    editor.command("checkhealth bellboard")
    report = editor.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert str(home.root / "file") in report
    assert "set BELLBOARD_HOME to an empty folder of yours" in report


def test_without_home_in_the_environment_it_says_so(nvim: Editors, home: Home) -> None:
    """A relative path is not used either."""
    env = {"BELLBOARD_HOME": "below"}
    editor = nvim(config={"max_restarts": 1, "python": sys.executable}, env=env, ui=False)
    eventually(lambda: "checkhealth" in editor.messages(), "a message")
    stderr = editor.lua("return require('bellboard.process.talk').status().stderr")
    assert "set BELLBOARD_HOME to an empty folder of yours" in "\n".join(stderr)


# Versions


def test_an_older_neovim_shows_its_last_state_as_stale(
    home: Home, nvim: Editors, version: str, start: Callable[..., RecordedHost]
) -> None:
    """The old Neovim asks for a restart and writes nothing; the newer host continues."""
    editor = nvim(version, {"python": sys.executable}, ui=False)
    hosted(editor)
    spool = Spool(home.bellboard)
    put(spool, "UserPromptSubmit")
    eventually(lambda: shown(editor) == {"s": "working"})
    newer = start("newer", schema=database.SCHEMA + 1)
    put(spool, "Stop")
    eventually(lambda: newer.shown == {"s": "completed"})
    eventually(lambda: editor.lua("return require('bellboard').stale()"), "stale")
    assert shown(editor) == {"s": "working"}
    eventually(lambda: "restart Neovim" in editor.messages(), "a message")
    assert "restart Neovim" in editor.lua(NOTE)
    editor.command("messages clear | ClaudeSessions triage")
    why = "board.db belongs to a newer bellboard: restart Neovim"
    eventually(lambda: editor.messages() == f"bellboard: cannot answer: {why}", "triage")
    late = nvim(version, {"python": sys.executable}, ui=False)
    eventually(lambda: late.lua("return require('bellboard').stale()"), "stale from the start")
    assert shown(late) == {"s": "completed"}


# Without a gap, and with one


def test_unwatched_events_are_caught_up_with_silently(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """A second host announces what the first does; after a gap, no host does."""
    one, two = start("one"), start("two")
    spool = Spool(home.bellboard)
    put(spool, "UserPromptSubmit")
    eventually(lambda: one.live == two.live == [("s", "working")])
    one.kill()
    put(spool, "Stop")
    eventually(lambda: two.live == [("s", "working"), ("s", "completed")])
    two.kill()
    put(spool, "UserPromptSubmit", prompt="another")
    three = start("three")
    eventually(lambda: three.shown.get("s") in ("working", "unknown"))
    put(spool, "Stop", stop_hook_active=True)
    eventually(lambda: three.live == [("s", "completed")], "what happens now")


def test_of_two_hosts_starting_at_once_one_is_first(home: Home) -> None:
    """The first host records the gap, under the lock."""
    spool = made(home.bellboard)
    hosts = [RecordedHost(home, f"host{n}") for n in range(4)]
    try:
        eventually(lambda: len(spool.hosts.alive()) == len(hosts), "all of them")
        eventually(lambda: not any(spool.new.iterdir()), "a log of what they wrote")
        with opened(home.bellboard) as shared:
            assert [r.event.kind for r in shared.store.log()] == ["restart"]
    finally:
        for host in hosts:
            host.kill()


def test_a_command_is_run_once_by_a_host_that_has_it(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """Two hosts with the same command share it; another host's other command runs as well."""
    told = home.root / "told"
    script = home.bin / "say"
    script.write_text(f'#!/bin/sh\necho "$*" >>{told}\n')
    script.chmod(0o755)
    for n, words in enumerate((["a"], ["a"], ["b"])):
        start(f"host{n}", on={"working": [str(script), *words]})
    start("without")
    put(Spool(home.bellboard), "UserPromptSubmit")
    eventually(lambda: told.exists() and len(told.read_text().splitlines()) >= 2)
    put(Spool(home.bellboard), "Stop")
    put(Spool(home.bellboard), "UserPromptSubmit", "other", cwd="/x/$(id) `id`;'\"")
    eventually(lambda: len(told.read_text().splitlines()) >= 4)
    lines = sorted(told.read_text().splitlines())
    assert lines[0] == "a none working other $(id) `id`;'\""
    assert [line.split()[0] for line in lines] == ["a", "a", "b", "b"]


def test_options_of_one_host_apply_to_all(home: Home, start: Callable[..., RecordedHost]) -> None:
    """Setting the same options again changes nothing."""
    start("one", options={"hold": 0.1})
    start("two", options={"hold": 0.1})
    start("three")
    with opened(home.bellboard) as shared:
        eventually(lambda: shared.catch_up() is not None and shared.board.options.hold == 0.1)
        assert [r.event.kind for r in shared.store.log()].count("config") == 1
    start("four", options={})
    with opened(home.bellboard) as shared:
        eventually(lambda: shared.catch_up() is not None and shared.board.options.hold == 0.25)


@pytest.mark.parametrize("way", ["cd", "worktree", "branch"])
def test_a_session_that_comes_back_is_shown_where_it_is(
    home: Home, start: Callable[..., RecordedHost], way: str
) -> None:
    """At once, however often and by however many hosts; each change is folded once."""
    other = home.project / ("sub" if way == "cd" else ".claude/worktrees/side")
    for place in {home.project, other if way == "cd" else home.project}:
        git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@b"]
        place.mkdir(exist_ok=True)
        subprocess.run([*git, "init", "-q", "-b", place.name], check=True, env=home.env)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=home.env)
    if way == "worktree":
        argv = [*git, "worktree", "add", "-q", "-b", "side", str(other)]
        subprocess.run(argv, check=True, env=home.env)
    hosts = [start(f"host{n}") for n in range(3)]
    there = "sub" if way == "cd" else "side"
    branches = ["project", there] * 4
    for n, branch in enumerate(branches):
        cwd = home.project
        if way == "branch":
            argv = [*git, "symbolic-ref", "HEAD", f"refs/heads/{branch}"]
            subprocess.run(argv, check=True, env=home.env)
        elif branch == there:
            cwd = other
        put(Spool(home.bellboard), "UserPromptSubmit", "s", cwd=str(cwd), prompt=str(n))
        wanted = [branch] * len(hosts)
        eventually(lambda w=wanted: [h.sessions["s"].get("branch") for h in hosts] == w, branch)
    with opened(home.bellboard) as shared:
        told = [row for row in shared.store.log() if row.event.kind == "facts"]
    assert branches == [row.event.settings["branch"] for row in told if row.taken]


SANDBOXES = {
    "its own /proc": ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"],
    "our /proc": ["bwrap", "--dev-bind", "/", "/", "--unshare-pid"],
    "unshare": ["unshare", "--pid", "--fork", "--mount-proc"],
}
IN_IT = """\
said() { printf '{"session_id": "%s", "hook_event_name": "%s"}' "$1" "$2"; }
for event in SessionStart UserPromptSubmit; do
  said "$1" $event | sh -c '. "$0"' %s $event
done
sleep 60
"""


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_agents_in_sandboxes_are_known_by_the_pids_that_they_have_here(
    home: Home, start: Callable[..., RecordedHost], sandbox: str
) -> None:
    """All have the same pid in theirs; each is one session, until its process is gone."""
    argv = SANDBOXES[sandbox]
    if not shutil.which(argv[0]) or subprocess.run([*argv, "true"], check=False).returncode:
        pytest.skip(f"{argv[0]} makes no sandbox here")
    host = start()
    script = home.root / "agent.sh"
    emit = """'set -- "$1" "$PPID"; . "$0"' """ + str(ROOT / "hooks" / "emit")
    script.write_text(IN_IT.replace("""'. "$0"' %s""", emit))
    bash = ["bash", "-c", f'exec -a claude bash {script} "$0"']
    agents, pids = [], []
    try:
        for name in ("s1", "s2"):
            how: dict[str, Any] = {"env": home.env, "start_new_session": True}
            agents.append(subprocess.Popen([*argv, *bash, name], **how))
            eventually(lambda name=name: host.shown.get(name) == "working")
            pids.append(host.sessions[name]["pid"])
            command = Path(f"/proc/{pids[-1]}/cmdline").read_text()
            assert f"claude\0{script}\0{name}\0" == command
        os.kill(pids[0], signal.SIGKILL)
        eventually(lambda: {"s2": "working"} == host.shown)
    finally:
        for agent in agents:
            os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()


# The clock


def set_clock(ahead: Path, seconds: int) -> None:
    """Set the clock of a host, which reads this file each time that it asks for the time."""
    draft = ahead.with_name("draft")
    draft.write_text(f"{seconds}")
    draft.replace(ahead)


def test_a_running_host_survives_clock_changes(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """Back by an hour, then forward by two."""
    ahead = home.root / "ahead"
    set_clock(ahead, 3600)
    host = start(clock=str(ahead))
    spool = Spool(home.bellboard)
    put(spool, "UserPromptSubmit", t=time.time() + 3600)
    eventually(lambda: host.shown == {"s": "working"})
    set_clock(ahead, 0)
    put(spool, "PermissionRequest", tool_name="Bash", tool_use_id="t")
    eventually(lambda: host.shown == {"s": "blocked"})
    set_clock(ahead, 7200)
    put(spool, "Stop", t=time.time() + 7200)
    eventually(lambda: host.shown == {"s": "completed"})
    expected = ["working", "blocked", "completed"]
    eventually(lambda: [to for _, to in host.live] == expected, "announced after it is shown")
    with opened(home.bellboard) as shared:
        agrees_with_its_log(shared)


# Junk


def test_junk_among_events_is_set_aside(home: Home, start: Callable[..., RecordedHost]) -> None:
    """Every good event counts; the junk is set aside, bounded, and reported in health."""
    spool = made(home.bellboard)
    names = []
    for n in range(1000):
        names.append(put(spool, "UserPromptSubmit" if n < 500 else "Stop", f"s{n % 500}"))
        junk = (b"\xff" * 50, b"", b"{" * 9000, b'{"t": 1}', b"bellboard 1\0no end")[n % 5]
        put_raw(spool, junk)
    host = start()
    eventually(lambda: not list(spool.new.iterdir()), "an empty spool")
    with opened(home.bellboard) as shared:
        rows = [r.file for r in from_files(shared.store.log()) if r.event.from_hook]
        assert sorted(rows) == sorted(names)
        assert len(statuses(shared.board)) == 500
    bad = [p for p in (home.bellboard / "spool/bad").iterdir() if p.name != "refused.json"]
    assert 100 <= len(bad) <= FILES + 2 * SLACK  # each with its reason, and trimmed by twenties
    put(spool, "UserPromptSubmit")
    eventually(lambda: sum(host.health["spool"]["refused"].values()) >= 800, "junk in health")


# Little is said


def test_a_single_change_is_published_at_once_and_many_at_most_30_times_a_second(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """Only changes are sent; health only if it has changed."""
    host = start()
    spool = Spool(home.bellboard)
    put(spool, "UserPromptSubmit", "quiet")
    eventually(lambda: host.shown == {"quiet": "working"})
    first = len(host.messages)
    began = time.time()
    n = 0
    while n < 50 or time.time() < began + 2:
        put(spool, EVENTS[1 + 3 * (n // 50 % 2)], f"s{n % 50}", n=n)
        n += 1
        eventually(lambda due=began + n * 0.01: time.time() >= due)
    eventually(lambda: len(host.shown) == 51)
    messages = host.messages
    told = messages[first:]
    took = max(told[-1]["now"] - began, 1.0)
    assert len(told) <= 31 * took
    assert not any(message["full"] for message in told)
    assert sum("health" in message for message in told) <= 50 + 2
    assert all(s["session_id"] != "quiet" for message in told for s in message["sessions"])
    assert [m["seq"] for m in messages] == list(range(1, len(messages) + 1))


# Session files


def test_a_session_file_is_read_between_two_sessions_of_its_process(
    home: Home, start: Callable[..., RecordedHost]
) -> None:
    """No other session may need the folder: /clear runs the user's hooks in between."""
    config = home.root / "config of its own"
    (config / "sessions").mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as agent:
        try:
            host, spool = start(), Spool(home.bellboard)

            def hook(event: str, **fields: str) -> None:
                head = (
                    f"agent=claude\0event={event}\0pid={agent.pid}\0CLAUDE_CONFIG_DIR={config}\0\0"
                )
                payload = {"session_id": "s", "hook_event_name": event, "cwd": "/srv", **fields}
                put_raw(spool, MAGIC + head.encode() + json.dumps(payload).encode())

            hook("SessionStart", source="startup")
            eventually(lambda: host.shown == {"s": "idle"}, "the session")
            hook("SessionEnd", reason="clear")
            eventually(lambda: not host.shown, "its end")
            now = int(time.time() * 1000)
            record = {"pid": agent.pid, "sessionId": "s", "status": "busy", "statusUpdatedAt": now}
            (config / "sessions" / f"{agent.pid}.json").write_text(json.dumps(record))
            eventually(lambda: host.shown == {"s": "working"}, "the work of its hooks")
        finally:
            agent.kill()


@pytest.mark.timeout(360)
def test_wherever_a_host_dies_every_event_is_folded_once(tmp_path: Path) -> None:
    """The log replays, junk is set aside once, names are forgotten, the end is the same."""
    script = Path(__file__).with_name("faulty.py")
    run = [sys.executable, str(script), str(tmp_path / "home")]
    out = subprocess.run(run, stdout=subprocess.PIPE, check=True, text=True).stdout
    attempts = [json.loads(line) for line in out.splitlines()]
    steps = {attempt["at"] for attempt in attempts[:-1]}
    for step in ("claim_slots", "scan", "read", "set_aside", "BEGIN", "INSERT INTO applied"):
        assert any(step in at for at in steps), step
    assert {"before COMMIT", "after COMMIT", "after unlink"} <= steps
    assert "before DELETE FROM applied WH" in steps
    assert attempts[-1]["at"] == ""
    for attempt in attempts:
        assert attempt | {"at": "", "applied": []} == attempts[-1] | {"applied": []}, attempt["at"]
        assert len(attempt["applied"]) <= 1
    expected = {"twice": [], "missing": [], "views": 1, "bad": 2, "waiting": 0}
    assert {key: attempts[-1][key] for key in expected} == expected
    assert attempts[-1]["statuses"] == {"s0": "idle", "s1": "blocked", "s2": "working"}
