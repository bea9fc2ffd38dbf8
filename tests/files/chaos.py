"""Four hosts, fifty emitters, and something that kills a host every second.

Two Neovims and two `bellboard serve` share a home.  Each emitter is a shell that runs the real hook
for one agent, turn after turn, each in a session of its own.  The checks at the end only read the
database, and the file that the effect appends to.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bellboard.storage.spool import Spool
from rig import ROOT
from rig.editor import Editor
from rig.home import Home
from rig.host.hosting import agrees_with_its_log, from_files, opened, statuses
from rig.waiting import eventually

EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
EMITTERS = 50
SLACK = 10.0  # a host may be this far behind while two cores run fifty shells

EMITTER = r"""
# emitter EMIT NUMBER SESSIONS DONE
n=0
while [ "$n" -lt "$3" ]; do
  for event in SessionStart UserPromptSubmit PreToolUse PostToolUse Stop; do
    printf '{"session_id":"e%s-%s","hook_event_name":"%s","cwd":"/srv/p","tool_name":"Bash"%s}' \
      "$2" "$n" "$event" ',"source":"startup","tool_use_id":"t"' | "$1" "$event" $$
  done
  n=$((n + 1))
done
echo >"$4"
read -r _ # the agent lives on, so that nobody finds it dead
"""

EFFECT = """#!/bin/sh
mkdir "$0.told/$1.$2.$3.$$" # not a line: not every file system appends as a whole
"""


class Serve:
    """`bellboard serve` with the effect, started again after each death."""

    def __init__(self, home: Home, effect: Path) -> None:
        self.home, self.effect = home, effect
        self.lives: set[int] = set()  # the process of each
        self.restart()

    def restart(self) -> None:
        run = [sys.executable, "-m", "bellboard", "serve", "--on", f"completed={self.effect}"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(run, env=self.home.env, stdin=quiet)
        self.lives.add(self.process.pid)

    def note_death(self) -> None:
        """Start another process if this one was killed."""
        if self.process.poll() is not None:
            self.restart()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class Chaos:
    """Runs the hosts, the emitters and the kills in one home."""

    def __init__(self, home: Home, editors: list[Editor], sessions: int, period: float) -> None:
        self.home, self.editors, self.sessions = home, editors, sessions
        self.period = period  # between two kills
        self.spool = Spool(home.bellboard)
        self.effect = home.bin / "effect"
        self.effect.write_text(EFFECT)
        self.effect.chmod(0o755)
        Path(f"{self.effect}.told").mkdir()
        self.serves = [Serve(home, self.effect) for _ in range(2)]
        self.emitters: list[subprocess.Popen[bytes]] = []
        self.done: list[Path] = []
        self.came: dict[int, float] = {}  # process → when it was seen to be a host
        self.killed: dict[int, float] = {}
        self.chance = random.Random(4)

    def up(self) -> list[int]:
        """Return the running hosts, as announced."""
        with contextlib.suppress(OSError):
            names = [path.name for path in (self.home.bellboard / "hosts").iterdir()]
            return [int(name) for name in names if self._is_host(name)]
        return []

    def _is_host(self, pid: str) -> bool:
        """Return whether a process is a host: the pids of dead ones are reused within minutes."""
        with contextlib.suppress(OSError):
            called = Path(f"/proc/{pid}/cmdline").read_bytes()
            where = f"BELLBOARD_HOME={self.home.bellboard}\0".encode()
            return b"bellboard" in called and where in Path(f"/proc/{pid}/environ").read_bytes()
        return False

    def run(self) -> None:
        """Run until everything is emitted and folded."""
        eventually(self._are_all_up, "four hosts")
        self._emit()
        due = time.monotonic() + self.period
        while not all(path.exists() for path in self.done):
            self._restart_killed()
            up = self.up()
            for pid in up:
                self.came.setdefault(pid, time.time())
            if time.monotonic() >= due and len(up) > 1:  # so that one host sees each event
                due = time.monotonic() + self.period
                pid = self.chance.choice(up)
                os.kill(pid, signal.SIGKILL)
                self.killed[pid] = time.time()  # after whatever it claimed
            time.sleep(0.02)
        eventually(self._are_all_up, "four hosts again")  # Lua pauses
        eventually(lambda: self.spool.counts()["pending"] == 0, "an empty spool")

    def _are_all_up(self) -> bool:
        self._restart_killed()  # the last one may still have been dying
        return len(self.up()) == 4

    def _restart_killed(self) -> None:
        for serve in self.serves:
            serve.note_death()

    def _emit(self) -> None:
        for n in range(EMITTERS):
            count = self.sessions // EMITTERS + (n < self.sessions % EMITTERS)
            self.done.append(self.home.tmp / f"done{n}")
            arguments = [str(ROOT / "hooks/emit"), str(n), str(count), str(self.done[-1])]
            run = ["sh", "-c", EMITTER, "emitter", *arguments]
            self.emitters.append(subprocess.Popen(run, env=self.home.env, stdin=subprocess.PIPE))

    def close(self) -> None:
        for serve in self.serves:
            serve.close()
        for emitter in self.emitters:
            emitter.communicate()

    # What must hold

    def told(self) -> Counter[str]:
        """Return the sessions for which the effect ran."""
        return Counter(path.name.split(".")[2] for path in Path(f"{self.effect}.told").iterdir())

    def claims(self) -> list[tuple[str, int, float]]:
        """Return the claims: session, host, time."""
        with opened(self.home.bellboard) as shared:
            return shared.store.database.all(
                "SELECT session_id, pid, claims.t FROM claims JOIN transitions"
                " ON transitions.id = transition_id"
            )

    def every_event_was_folded_once(self) -> None:
        """The log has each file once, and each emitted event once."""
        with opened(self.home.bellboard) as shared:
            rows = [r for r in from_files(shared.store.log()) if r.event.from_hook]
            twice = [f for f, times in Counter(r.file for r in rows).items() if times > 1]
            assert not twice, [r for r in rows if r.file in twice]
            found = Counter((r.event.session_id, r.event.name) for r in rows)
            counts = [self.sessions // EMITTERS + (n < self.sessions % EMITTERS) for n in range(50)]
            expected = Counter(
                (f"e{n}-{i}", name) for n in range(50) for i in range(counts[n]) for name in EVENTS
            )
            lost, doubled = expected - found, found - expected
            assert not lost and not doubled

    def the_log_replays(self) -> None:
        """The replay has the same changes and the same end, which every Neovim shows."""
        with opened(self.home.bellboard) as shared:
            agrees_with_its_log(shared)
            expected = statuses(shared.board)
        code = "return require('bellboard').sessions({ hidden = true })"
        for editor in self.editors:

            def shows(editor: Editor = editor) -> bool:
                assert {s["session_id"]: s["status"] for s in editor.lua(code)} == expected
                return True

            eventually(shows)

    def every_effect_ran_at_most_once(self) -> tuple[int, int]:
        """Return how many ran, and how many were lost because their host was killed."""
        eventually(lambda: not (self._left_out() or self._undone()), "effects that run")
        told, claims = self.told(), self.claims()
        assert [sid for sid, times in told.items() if times > 1] == []
        return len(told), len(claims) - len(told)

    def _undone(self) -> list[tuple[str, int, float]]:
        """Return claims that a surviving host did not carry out."""
        claims = self.claims()
        told = self.told()
        left = [(sid, pid, t) for sid, pid, t in claims if sid not in told]
        undone = [x for x in left if not 0 <= self.killed.get(x[1], float("inf")) - x[2] < SLACK]
        assert not undone, f"{undone}, killed: {self.killed}"
        return undone

    def _left_out(self) -> list[tuple[str, list[int]]]:
        """Return ends that nobody claimed although a host with that effect kept running."""
        query = "SELECT t, session_id FROM transitions WHERE after = 'completed' AND live"
        with opened(self.home.bellboard) as shared:
            rows = shared.store.database.all(query)
        claimed = {sid for sid, _, _ in self.claims()}
        hosts = {pid for serve in self.serves for pid in serve.lives} & self.came.keys()
        left = [(sid, [p for p in hosts if self._was_there(p, t)]) for t, sid in rows]
        left_out = [(sid, there) for sid, there in left if there and sid not in claimed]
        assert not left_out
        return left_out

    def _was_there(self, pid: int, t: float) -> bool:
        return self.came[pid] < t and t + SLACK < self.killed.get(pid, float("inf"))
