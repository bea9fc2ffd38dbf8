"""Agents, shells, and sessions that start, end and change their id."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

from live.scene import FOREGROUND, NEWEST, Scene, asked
from live.scenes.turns import text_turn
from live.stage import Stage


def subagent(stage: Stage) -> None:
    stage.start(env=FOREGROUND)
    stage.prompt("agent")
    stage.stops()


def subagent_asks(stage: Stage) -> None:
    stage.start(env=FOREGROUND)
    stage.prompt("agentperm")
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops()


def background_agent(stage: Stage) -> None:
    stage.start()
    stage.prompt("agentbg")
    stage.stops(2)


def background_agent_asks(stage: Stage) -> None:
    asked(stage, "agentbgperm")
    stage.agent.answer("Enter")
    stage.stops(2)


def background_shell(stage: Stage) -> None:
    stage.start()
    stage.prompt("bgshell")
    stage.stops(2)


def cron(stage: Stage) -> None:
    stage.start()
    stage.prompt("load")
    stage.stops()
    stage.prompt("cron")
    stage.stops(2)
    stage.agent.happens("Stop", 3, within=150)


def compact(stage: Stage) -> None:
    text_turn(stage)
    stage.stands("idle")
    stage.command("/compact")
    stage.happens("PreCompact")
    stage.happens("SessionStart", source="compact")
    stage.stands("idle")


def auto_compact(stage: Stage) -> None:
    stage.start(env={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"})
    stage.prompt("big")
    stage.stops()
    stage.stands("idle")
    stage.prompt("text")
    stage.happens("PreCompact", trigger="auto")
    stage.stops(2)


def clear(stage: Stage) -> None:
    text_turn(stage)
    stage.stands("idle")
    stage.command("/clear")
    stage.happens("SessionStart", source="clear")


def again(*args: str) -> Callable[[Stage], None]:
    """Resume an ended session in another process; SESSION in args is its id."""

    def play(stage: Stage) -> None:
        text_turn(stage)
        stage.stands("idle")
        sid = stage.session
        stage.leave()
        stage.start(*(arg.replace("SESSION", sid) for arg in args))
        stage.stands("idle")
        stage.prompt("text")
        stage.stops()

    return play


def branch(stage: Stage) -> None:
    text_turn(stage)
    stage.stands("idle")
    stage.command("/branch")
    stage.happens("SessionStart", source="fork")


def two_processes(stage: Stage) -> None:
    text_turn(stage)
    stage.stands("idle")
    first, sid = stage.agent, stage.session
    stage.start("--resume", sid)
    stage.prompt("pause")
    stage.stops()
    stage.stands("idle")
    stage.ends(first, "C-d")


def busy(stage: Stage, **how: bool) -> None:
    stage.start(**how)
    stage.prompt("slow")
    stage.stands("busy")


def killed(number: int) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        busy(stage)
        stage.kill(number)

    return play


def closed_pane(stage: Stage) -> None:
    busy(stage)
    stage.agent.pane.close()


def ctrl_c_twice(stage: Stage) -> None:
    busy(stage)
    stage.press("C-c")
    stage.stands("idle")
    stage.press("C-c")
    stage.press("C-c")


def exit_while_busy(stage: Stage) -> None:
    busy(stage)
    stage.command("/exit")


def ctrl_z(stage: Stage) -> None:
    busy(stage, shell=True)
    stage.press("C-z")
    stage.agent.shows("(?i)stopped|suspended")
    stage.stands("busy")
    stage.agent.pane.type("fg\n")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


SCENES: Final = (
    Scene("cron", cron, "completed", NEWEST),
    Scene("subagent", subagent, "completed"),
    Scene("subagent asks", subagent_asks, "completed"),
    Scene("background agent", background_agent, "completed", NEWEST),
    Scene("background agent asks", background_agent_asks, "completed", NEWEST),
    Scene("background shell", background_shell, "completed", NEWEST),
    Scene("/compact", compact, "completed"),
    Scene("auto-compact", auto_compact, "completed", NEWEST),
    Scene("/clear", clear, "idle"),
    Scene("--continue", again("--continue"), "completed"),
    Scene("--resume", again("--resume", "SESSION"), "completed"),
    Scene(
        "--fork-session",
        again("--resume", "SESSION", "--fork-session"),
        "completed",
    ),
    Scene("/branch", branch, "idle", NEWEST),
    Scene("two processes", two_processes, "completed"),
    Scene("kill -9", killed(signal.SIGKILL), None),
    Scene("SIGTERM", killed(signal.SIGTERM), None),
    Scene("closed pane", closed_pane, None),
    Scene("Ctrl-C twice", ctrl_c_twice, None),
    Scene("/exit while busy", exit_while_busy, None),
    Scene("Ctrl-Z and fg", ctrl_z, "idle"),
)
