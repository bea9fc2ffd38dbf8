"""Turns: text, tools, API errors, and interrupts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import FOREGROUND, LOGIN, NEWEST, WITH_STATUS, Scene
from live.stage import Stage


def text_turn(stage: Stage) -> None:
    stage.start()
    stage.stands("idle")
    stage.prompt("text")
    stage.stops()


def parallel_tools(stage: Stage) -> None:
    stage.start()
    stage.prompt("parallel")
    stage.stops()


def unknown_tool(stage: Stage) -> None:
    stage.start()
    stage.prompt("badtool")
    stage.stops()


def queue_while_busy(stage: Stage) -> None:
    stage.start()
    stage.prompt("pause")
    stage.happens("PreToolUse")
    stage.prompt("text")
    stage.happens("UserPromptSubmit", 2)
    stage.stands("idle")


def queue_then_esc(stage: Stage) -> None:
    stage.start()
    stage.prompt("sleep")
    stage.happens("PreToolUse")
    stage.prompt("text")
    stage.happens("UserPromptSubmit", 2)
    stage.stands("busy")
    stage.press("Escape")
    stage.stops()


def shell_mode(stage: Stage) -> None:
    stage.rests_after_a_turn()
    stage.agent.pane.type("!")
    stage.agent.shows("for (shell|bash) mode")
    stage.command("echo from the shell")
    stage.agent.shows(r"⎿\s+from the shell")
    stage.stops(2)


def api_error(name: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.start(env={"CLAUDE_CODE_MAX_RETRIES": "1"})
        stage.prompt(name)
        stage.happens("StopFailure")

    return play


def api_error_recovers(stage: Stage) -> None:
    stage.start(env={"CLAUDE_CODE_MAX_RETRIES": "2"})
    stage.prompt("e529once")
    stage.stops()


def esc_before_output(stage: Stage) -> None:
    stage.start()
    stage.prompt("hang")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def esc_while_streaming(stage: Stage) -> None:
    stage.start()
    stage.prompt("slow")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.stands("idle")


def esc_in_a_tool(stage: Stage) -> None:
    stage.start()
    stage.prompt("sleep")
    stage.happens("PreToolUse")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def esc_in_a_subagent(stage: Stage) -> None:
    stage.start(env=FOREGROUND)
    stage.prompt("agentslow")
    stage.happens("SubagentStart")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def esc_beside_an_agent(stage: Stage) -> None:
    stage.start()
    stage.prompt("agentaside")
    stage.happens("SubagentStart")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.agent.shows("Interrupted")
    stage.stands("busy")
    stage.stops()


SCENES: Final = (
    Scene("text turn", text_turn, "completed"),
    Scene("parallel tools", parallel_tools, "completed"),
    Scene("unknown tool", unknown_tool, "completed"),
    Scene("queue while busy", queue_while_busy, "completed", NEWEST),
    Scene("queue while busy, then Esc", queue_then_esc, "completed", NEWEST),
    Scene("shell mode (!)", shell_mode, "completed", NEWEST),
    Scene("API error 400", api_error("e400"), "error", (2, 1, 78)),
    Scene("API error 401", api_error("e401"), LOGIN, (2, 1, 78)),
    Scene("API error 500, retried", api_error("e500"), "error", (2, 1, 78)),
    Scene("API overloaded, then not", api_error_recovers, "completed"),
    Scene("Esc before output", esc_before_output, "idle"),
    Scene("Esc while streaming", esc_while_streaming, "idle", WITH_STATUS),
    Scene("Esc in a tool", esc_in_a_tool, "idle"),
    Scene("Esc in a subagent", esc_in_a_subagent, "idle"),
    Scene("Esc beside an agent", esc_beside_an_agent, "completed", NEWEST),
)
