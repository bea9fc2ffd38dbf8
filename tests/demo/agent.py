"""A simulated coding agent for its own terminal: it shows a dialogue, asks, and calls real hooks.

usage: agent.py HOOK SCENE, in the folder of the scene's project. It reports the same as the real
CLI: hook payloads through HOOK (hooks/emit) and a session file.
"""

# ruff: noqa: T201  what it prints is what it is for
from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
import tty
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

DIM, BOLD, AMBER, GREEN, RED, OFF = (f"\x1b[{n}m" for n in ("2", "1", "33", "32", "31", "0"))
SPINNER = "✢✳✶✻✽✻✶✳"
YES, NO, ESCAPE = "y1\r\n", "n2", "\x1b"


class Interrupted(Exception):
    """The user pressed Esc, which no hook reports."""


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
        subprocess.run(
            [self.hook, event, str(os.getpid())],
            input=text.encode(),
            env={**os.environ, **attended, "CLAUDE_PROJECT_DIR": str(Path.cwd())},
            check=False,
        )

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

    def box(self, *lines: str, colour: str = AMBER) -> None:
        width = min(shutil.get_terminal_size().columns - 2, 76)
        self.say(f"{colour}╭{'─' * (width - 2)}╮{OFF}")
        for line in lines:
            self.say(f"{colour}│{OFF} {line[: width - 4]:<{width - 4}} {colour}│{OFF}")
        self.say(f"{colour}╰{'─' * (width - 2)}╯{OFF}")

    def key(self, seconds: float) -> str:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return os.read(sys.stdin.fileno(), 64).decode(errors="replace")[:1] if ready else ""

    def work(self, seconds: float, doing: str = "Thinking") -> None:
        start = time.monotonic()
        while (gone := time.monotonic() - start) < seconds:
            shape = SPINNER[int(gone * 8) % len(SPINNER)]
            print(f"\r\x1b[K{AMBER}{shape} {doing}…{OFF} {DIM}{gone:.0f}s · esc{OFF}", end="")
            sys.stdout.flush()
            if self.key(0.12) == ESCAPE:
                raise Interrupted
        print("\r\x1b[K", end="", flush=True)

    def ask(self, allowed: str) -> str:
        while True:
            key = self.key(60)
            if key == ESCAPE:
                raise Interrupted
            if key and key in allowed:
                return key

    # The steps of a scene.

    def start(self) -> None:
        self.emit("SessionStart", source="startup", model="simulated")
        self.register("idle")
        self.box("✻ A simulated agent", f"  {self.name}")

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
        self.emit("PermissionRequest", **call)
        self.box(
            "Bash command",
            "",
            f"  {command}",
            f"  {why}",
            "",
            "Do you want to proceed?",
            "❯ 1. Yes",
            "  2. No",
        )
        allowed = self.ask(YES + NO) in YES
        self.register("busy")
        self.say(f"{GREEN if allowed else RED}●{OFF} {BOLD}Bash{OFF}({command})")
        if allowed:
            self.work(1.0, "Running")
            self.emit("PostToolUse", **call, **use, tool_response={"stdout": "ok"})
        else:
            self.say("  ⎿ no")
            self.emit("PostToolBatch", tool_calls=[{**call, **use}])
        return allowed

    def question(self, question: str, *options: str) -> str:
        asked = {"question": question, "options": [{"label": option} for option in options]}
        call = {
            "tool_name": "AskUserQuestion",
            "tool_input": {"questions": [asked]},
        }
        use = {"tool_use_id": f"toolu_{uuid.uuid4().hex}"}
        self.emit("PreToolUse", **call, **use)
        self.register("waiting", "input needed")
        self.emit("PermissionRequest", **call)
        choices = [f"  {n}  {option}" for n, option in enumerate(options, 1)]
        self.box(question, "", *choices, "", "Press a number.")
        chosen = options[int(self.ask("123456789"[: len(options)])) - 1]
        self.register("busy")
        self.say(f"{GREEN}●{OFF} {chosen}")
        self.emit("PostToolUse", **call, **use, tool_response={"answers": {question: chosen}})
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


def api(agent: Agent) -> None:
    agent.prompt("add rate limits to the public endpoints")
    agent.work(0.8)
    agent.tool("Read", "src/limiter.py", 0.8, file_path="src/limiter.py")
    agent.tool("Edit", "src/limiter.py", 0.8, file_path="src/limiter.py")
    if agent.permission("rm -rf build && make all", "Build from scratch"):
        agent.tool("Bash", "make test", 3, command="make test", description="Run the tests")
        agent.stop("Rate limits are in: 60 requests a minute, tests pass.")
    else:
        agent.work(1.5)
        agent.stop("Then I leave the build alone. The limiter itself is done.")


def web(agent: Agent) -> None:
    agent.prompt("fix the login redirect and test it")
    agent.work(1.5)
    agent.tool("Grep", '"redirect_to"', 1.0, pattern="redirect_to")
    agent.tool("Read", "src/login.ts", 0.8, file_path="src/login.ts")
    chosen = agent.question(
        "Which database should the tests use?", "PostgreSQL in a container", "SQLite in memory"
    )
    agent.tool("Write", "tests/login.test.ts", 3, file_path="tests/login.test.ts")
    agent.stop(f"The redirect keeps its query now; the tests use {chosen}.")


def dotfiles(agent: Agent) -> None:
    agent.prompt("tidy the zsh prompt")
    agent.work(1.2)
    agent.tool("Edit", ".zshrc", 2.2, file_path=".zshrc")
    agent.stop("The prompt is one line now and starts twice as fast.")


def infra(agent: Agent) -> None:
    agent.prompt("plan the new region")
    agent.tool("Bash", "terraform plan", 2.6, command="terraform plan", description="Plan")
    agent.fail("overloaded", "the service is overloaded, try again later")


def docs(agent: Agent) -> None:
    agent.prompt("serve the manual while I write")
    agent.tool("Bash", "mkdocs serve", 1.2, command="mkdocs serve", run_in_background=True)
    shell = {"id": "b1", "type": "shell", "status": "running", "command": "mkdocs serve"}
    agent.stop("The manual is served on port 8000.", [{**shell, "description": "mkdocs serve"}])


def cache(agent: Agent) -> None:
    agent.prompt("put a cache in front of the database, with tests")
    files = ("src/cache.py", "src/store.py", "src/expiry.py", "tests/test_cache.py")
    agent.plan(*files)
    agent.delegate("Explore")
    for turn in range(60):
        file = files[turn % len(files)]
        if 0 < turn <= len(files):
            agent.done(turn - 1)
        agent.work(2.5)
        agent.tool("Edit", file, 3.5, file_path=file)
    agent.stop("The cache is in, hit rate 93 %.")


SCENES: dict[str, tuple[str, Callable[[Agent], None]]] = {
    "api": ("acme/api on main", api),
    "cache": ("acme/api on cache", cache),
    "web": ("acme/web on fix/login", web),
    "dotfiles": ("dotfiles on main", dotfiles),
    "infra": ("acme/infra on main", infra),
    "docs": ("acme/docs on main", docs),
}


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
            agent.say(f"\n{DIM}> Enter: the same again{OFF}")
            agent.ask("\r\n")
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)


if __name__ == "__main__":
    main()
