"""A simulated coding agent for its own terminal: it shows a dialogue, asks, and calls real hooks.

usage: agent.py HOOK SCENE, in the folder of the scene's project. It reports the same as the real
CLI: hook payloads through HOOK (hooks/emit) and a session file.
"""

# ruff: noqa: T201  what it prints is what it is for
from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
import tty
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo.dialog import ESCAPE, Choice, Dialog, Input, Interrupted, Permission, keys, width
from demo.scenes import SCENES

DIM, BOLD, AMBER, GREEN, RED, OFF = (f"\x1b[{n}m" for n in ("2", "1", "33", "32", "31", "0"))
SPINNER = "✢✳✶✻✽✻✶✳"


class Agent:
    """A session, with methods for what happens in a scene."""

    def __init__(self, hook: Path, name: str) -> None:
        self.hook = hook
        self.name = name
        self.session = str(uuid.uuid4())
        self.turn = ""
        config = Path(os.environ["CLAUDE_CONFIG_DIR"])
        (config / "sessions").mkdir(parents=True, exist_ok=True)
        self.file = config / "sessions" / f"{os.getpid()}.json"
        self.transcript = config / "projects" / name / f"{self.session}.jsonl"
        self.born = time.time()

    # What it reports.

    def emit(self, event: str, **fields: Any) -> None:
        self.run(event, subprocess.DEVNULL, **fields).wait()

    def run(self, event: str, printed: int, **fields: Any) -> subprocess.Popen[bytes]:
        """Start a hook. One that waits for an answer ends once nothing is asked.

        If nobody waits for it, it is reaped when the next one starts.
        """
        payload = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(Path.cwd()),
            **({"prompt_id": self.turn} if self.turn else {}),
            "permission_mode": "default",
            "hook_event_name": event,
            **fields,
        }
        text = json.dumps(payload) + "\n"
        attended = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        hook = subprocess.Popen(
            [self.hook, event, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=printed,
            env={**os.environ, **attended, "CLAUDE_PROJECT_DIR": str(Path.cwd())},
        )
        assert hook.stdin
        with suppress(BrokenPipeError), hook.stdin:  # a hook need not read
            hook.stdin.write(text.encode())
        return hook

    def register(self, status: str, waiting_for: str | None = None) -> None:
        now = int(time.time() * 1000)
        record = {
            "pid": os.getpid(),
            "sessionId": self.session,
            "cwd": str(Path.cwd()),
            "startedAt": int(self.born * 1000),
            "version": "2.1.328",
            "kind": "interactive",
            "entrypoint": "cli",
            "status": status,
            "updatedAt": now,
            "statusUpdatedAt": now,
        }
        stat = Path("/proc/self/stat")
        if stat.exists():
            record["procStart"] = stat.read_text().rpartition(")")[2].split()[19]
        if waiting_for:
            record["waitingFor"] = waiting_for
        self.file.write_text(json.dumps(record))

    # What its terminal shows.

    def say(self, text: str) -> None:
        print(f"\r\x1b[K{text}", flush=True)

    def work(self, seconds: float, doing: str = "Thinking") -> None:
        start = time.monotonic()
        while (gone := time.monotonic() - start) < seconds:
            shape = SPINNER[int(gone * 8) % len(SPINNER)]
            print(f"\r\x1b[K{AMBER}{shape} {doing}…{OFF} {DIM}{gone:.0f}s · esc{OFF}", end="")
            sys.stdout.flush()
            if ESCAPE in keys(0.12):
                raise Interrupted
        print("\r\x1b[K", end="", flush=True)

    def ask(self, dialog: Dialog, **call: Any) -> dict[str, Any]:
        """Show a dialog while the hook runs; return the answer of whichever gives one first."""
        hook = self.run("PermissionRequest", subprocess.PIPE, **call)
        sources: list[Any] = [sys.stdin, hook.stdout]
        try:
            while True:
                dialog.draw()
                ready, _, _ = select.select(sources, [], [])
                if sys.stdin in ready:
                    if any(map(dialog.press, keys(0))):
                        return dialog.decision
                    continue
                printed = ready[0].read()
                hook.wait()  # it ends now
                if printed:
                    said: dict[str, Any] = json.loads(printed)["hookSpecificOutput"]["decision"]
                    if said.get("interrupt"):
                        raise Interrupted
                    return said
                del sources[1:]  # it gave no answer
        except Interrupted:
            hook.terminate()
            hook.wait()
            raise
        finally:
            dialog.erase()

    # The steps of a scene.

    def start(self) -> None:
        self.emit("SessionStart", source="startup", model="simulated")
        self.register("idle")
        edge = "─" * (width() - 2)
        rows = [f"│ {row:<{width() - 4}} │" for row in ("✻ A simulated agent", f"  {self.name}")]
        self.say("\n".join([f"{AMBER}╭{edge}╮", *rows, f"╰{edge}╯{OFF}"]))

    def prompt(self, text: str) -> None:
        self.turn = str(uuid.uuid4())
        self.say(f"\n{BOLD}> {text}{OFF}\n")
        self.emit("UserPromptSubmit", prompt=text)
        self.register("busy")

    def tool(self, name: str, shown: str, seconds: float, **given: Any) -> None:
        call = {"tool_name": name, "tool_input": given, "tool_use_id": f"toolu_{uuid.uuid4().hex}"}
        self.emit("PreToolUse", **call)
        self.work(seconds, f"{name} {shown}")
        self.say(f"{GREEN}●{OFF} {BOLD}{name}{OFF}({shown})")
        self.emit("PostToolUse", **call, tool_response={"ok": True}, duration_ms=900)

    def plan(self, *subjects: str) -> None:
        for n, subject in enumerate(subjects):
            self.emit("TaskCreated", task_id=str(n), task_subject=subject)

    def done(self, task: int) -> None:
        self.emit("TaskCompleted", task_id=str(task), task_subject="")

    def delegate(self, agent_type: str) -> None:
        self.emit("SubagentStart", agent_id=uuid.uuid4().hex, agent_type=agent_type)

    def permission(self, command: str, why: str) -> bool:
        given = {"command": command, "description": why}
        call = {"tool_name": "Bash", "tool_input": given}
        use = {"tool_use_id": f"toolu_{uuid.uuid4().hex}"}
        self.emit("PreToolUse", **call, **use)
        self.register("waiting", "permission prompt")
        said = self.ask(Permission(command, why), **call)
        allowed = said["behavior"] == "allow"
        command = said.get("updatedInput", given)["command"]
        self.register("busy")
        self.say(f"{GREEN if allowed else RED}●{OFF} {BOLD}Bash{OFF}({command})")
        if allowed:
            self.work(1.0, "Running")
            self.emit("PostToolUse", **call, **use, tool_response={"stdout": "ok"})
        else:
            self.refused(said, {**call, **use})
        return allowed

    def refused(self, said: dict[str, Any], call: dict[str, Any]) -> None:
        self.say(f"  ⎿ {said['message']}")
        self.emit("PostToolBatch", tool_calls=[call])

    def question(self, question: str, header: str, *options: str) -> str:
        """Return the answer; "" if there is none."""
        labels = [{"label": option, "description": ""} for option in options]
        asked = {"question": question, "header": header, "options": labels, "multiSelect": False}
        call = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [asked]}}
        use = {"tool_use_id": f"toolu_{uuid.uuid4().hex}"}
        self.emit("PreToolUse", **call, **use)
        self.register("waiting", "input needed")
        said = self.ask(Choice(question, header, *options), **call)
        self.register("busy")
        if said["behavior"] != "allow":
            self.say(f"{RED}●{OFF} {question}")
            self.refused(said, {**call, **use})
            return ""
        answers = said["updatedInput"]["answers"]
        chosen = str(answers.get(question, ""))
        self.say(f"{GREEN}●{OFF} {chosen}")
        self.emit("PostToolUse", **call, **use, tool_response={"answers": answers})
        return chosen

    def stop(self, message: str, background: list[dict[str, Any]] | None = None) -> None:
        self.say(f"{GREEN}●{OFF} {message}")
        tasks = background or []
        self.emit(
            "Stop",
            stop_hook_active=False,
            last_assistant_message=message,
            background_tasks=tasks,
            session_crons=[],
        )
        self.register("shell" if tasks else "idle")

    def fail(self, error: str, message: str) -> None:
        self.say(f"{RED}● API Error: {message}{OFF}")
        self.emit("StopFailure", error=error, error_details=message)
        self.register("idle")

    def end(self, reason: str) -> None:
        self.emit("SessionEnd", reason=reason)
        self.file.unlink(missing_ok=True)


def follow_up(text: str) -> Callable[[Agent], None]:
    """Return how an agent takes a prompt of the user's own."""

    def play(agent: Agent) -> None:
        agent.prompt(text)
        agent.work(2.5)
        agent.stop("A real agent would have done that now; this one only plays.")

    return play


def main() -> None:
    hook, scene = Path(sys.argv[1]), sys.argv[2]
    name, play = SCENES[scene]
    spool = Path(os.environ["BELLBOARD_HOME"], "spool", "new")
    agent = Agent(hook, name)

    def hang_up(*_: object) -> None:
        agent.end("other")
        os._exit(0)

    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hang_up)
    modes = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        for _ in range(100):  # hooks write nothing before a host has made the spool
            if spool.is_dir():
                break
            time.sleep(0.1)
        agent.start()
        while True:
            try:
                play(agent)
            except Interrupted:
                agent.say(f"{RED}● Interrupted{OFF}")
                agent.register("idle")
            print()
            play = follow_up(text) if (text := Input().read()) else SCENES[scene][1]
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)


if __name__ == "__main__":
    main()
