"""The scenes: what a user does to the CLI, one function each, and what is shown in the end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rig.agent import elicitation
from truth.stage import Stage

ALWAYS: Final = (0,)
FOREGROUND: Final = {
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"
}  # else 2.1.328 runs no subagent so


@dataclass(frozen=True)
class Scene:
    """`play` it, and `final` is shown; None: its session is gone by then."""

    name: str
    play: Callable[[Stage], None]
    final: str | None
    since: tuple[int, ...] = ALWAYS  # the CLI that brought it
    group: str = "turns"


# ---------------------------------------------------------------- turns


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
    stage.start()
    stage.prompt("text")
    stage.stops()
    stage.stands("idle")
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


# ---------------------------------------------------------------- questions


def asked(stage: Stage, scenario: str, *args: str) -> None:
    stage.start(*args)
    stage.prompt(scenario)
    stage.stands("waiting")


def permission_yes(stage: Stage) -> None:
    asked(stage, "perm")
    stage.agent.answer("Enter")
    stage.stops()


def permission_no(stage: Stage) -> None:
    asked(stage, "perm")
    stage.agent.answer(str(stage.options()))


def permission_esc(stage: Stage) -> None:
    asked(stage, "perm")
    stage.agent.answer("Escape")


def permission_amended(stage: Stage) -> None:
    asked(stage, "perm")
    for _ in range(stage.options() - 1):
        stage.press("Down")
    stage.agent.shows(r"❯ \d\. No")
    stage.press("Tab")
    stage.agent.shows("tell Claude|differently|feedback|No,")
    stage.agent.submit("use another name")
    stage.stops()


def two_permissions(stage: Stage) -> None:
    asked(stage, "perms")
    stage.agent.answer("Enter", dialog="touch a1.txt[^?]*Do you want")
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops()


def question(stage: Stage) -> None:
    asked(stage, "ask")
    stage.agent.answer("Enter")
    stage.stops()


def question_esc(stage: Stage) -> None:
    asked(stage, "ask")
    stage.agent.answer("Escape")


def plan(stage: Stage) -> None:
    asked(stage, "plan", "--permission-mode", "plan")
    stage.agent.answer("Enter")
    stage.stops()


def form(stage: Stage) -> None:
    asked(stage, "elicit", *elicitation(stage.home))
    stage.agent.answer("Escape", dialog="What name")
    stage.stops()


# ---------------------------------------------------------------- interrupts


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


# ---------------------------------------------------------------- agents and shells


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


# ---------------------------------------------------------------- sessions


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
    """A session that ended is taken up by another process; SESSION in args is its id."""

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


# ---------------------------------------------------------------- ends


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


WITH_STATUS: Final = (2, 1, 119)  # and the first seen here to show an answer as it comes
NEWEST: Final = (2, 1, 197)  # where in doubt: what older ones do differently was not looked into

SCENES: Final = (
    Scene("cron", cron, "completed", NEWEST, "agents"),
    Scene("text turn", text_turn, "completed"),
    Scene("parallel tools", parallel_tools, "completed"),
    Scene("unknown tool", unknown_tool, "completed"),
    Scene("queue while busy", queue_while_busy, "completed", NEWEST),
    Scene("queue while busy, then Esc", queue_then_esc, "completed", NEWEST),
    Scene("shell mode (!)", shell_mode, "completed", NEWEST),
    Scene("API error 400", api_error("e400"), "error", (2, 1, 78)),
    Scene("API error 401", api_error("e401"), "error", (2, 1, 78)),
    Scene("API error 500, retried", api_error("e500"), "error", (2, 1, 78)),
    Scene("API overloaded, then not", api_error_recovers, "completed"),
    Scene("permission: yes", permission_yes, "completed", group="questions"),
    Scene("permission: no", permission_no, "idle", group="questions"),
    Scene("permission: Esc", permission_esc, "idle", group="questions"),
    Scene("permission: amended", permission_amended, "completed", NEWEST, "questions"),
    Scene("two permissions", two_permissions, "completed", group="questions"),
    Scene("question", question, "completed", group="questions"),
    Scene("question: Esc", question_esc, "idle", group="questions"),
    Scene("plan", plan, "completed", group="questions"),
    # The file of 2.1.119 says busy while its form asks: no witness.
    Scene("MCP form", form, "completed", (2, 1, 197), "questions"),
    Scene("Esc before output", esc_before_output, "idle", group="interrupts"),
    Scene("Esc while streaming", esc_while_streaming, "idle", WITH_STATUS, "interrupts"),
    Scene("Esc in a tool", esc_in_a_tool, "idle", group="interrupts"),
    Scene("Esc in a subagent", esc_in_a_subagent, "idle", group="interrupts"),
    Scene("Esc beside an agent", esc_beside_an_agent, "completed", NEWEST, "interrupts"),
    Scene("subagent", subagent, "completed", group="agents"),
    Scene("subagent asks", subagent_asks, "completed", group="agents"),
    Scene("background agent", background_agent, "completed", NEWEST, "agents"),
    Scene("background agent asks", background_agent_asks, "completed", NEWEST, "agents"),
    Scene("background shell", background_shell, "completed", NEWEST, "agents"),
    Scene("/compact", compact, "completed", group="sessions"),
    Scene("auto-compact", auto_compact, "completed", NEWEST, group="sessions"),
    Scene("/clear", clear, "idle", group="sessions"),
    Scene("--continue", again("--continue"), "completed", group="sessions"),
    Scene("--resume", again("--resume", "SESSION"), "completed", group="sessions"),
    Scene(
        "--fork-session",
        again("--resume", "SESSION", "--fork-session"),
        "completed",
        group="sessions",
    ),
    Scene("/branch", branch, "idle", NEWEST, group="sessions"),
    Scene("two processes", two_processes, "completed", group="sessions"),
    Scene("kill -9", killed(signal.SIGKILL), None, group="ends"),
    Scene("SIGTERM", killed(signal.SIGTERM), None, group="ends"),
    Scene("closed pane", closed_pane, None, group="ends"),
    Scene("Ctrl-C twice", ctrl_c_twice, None, group="ends"),
    Scene("/exit while busy", exit_while_busy, None, group="ends"),
    Scene("Ctrl-Z and fg", ctrl_z, "idle", group="ends"),
)
