"""Settings of many people: hooks that rewrite, wake and delay, servers, agents, monitors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psutil

from live.scene import NEWEST, REST, Scene, asked
from live.scenes.deciding_hooks import says
from live.stage import Stage
from rig.agent import elicitation
from rig.waiting import rest

QUIET: Final = 2.0  # seconds at rest, in which nothing may change any more
#: Refuses once, with text for the model.
ONCE: Final = '[ -e "$HOME/{0}" ] && exit 0; touch "$HOME/{0}"; {1}; echo "go on" >&2; exit 2'


def rewrites(decision: str, command: str) -> str:
    """Return a PreToolUse hook that replaces the command."""
    to = {"command": command, "description": "another"}
    output = {"permissionDecision": decision, "permissionDecisionReason": "x", "updatedInput": to}
    return says(hookSpecificOutput={"hookEventName": "PreToolUse", **output})


def turn(
    *hooks: tuple[str, str],
    scenario: str = "bash",
    answers: int = 0,
    stops: int = 1,
    args: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
) -> Callable[[Stage], None]:
    """Play a prompt with these hooks, answer yes so many times, and wait for its last end."""

    def play(stage: Stage) -> None:
        for event, command in hooks:
            stage.user_hook(event, command)
        stage.start(*args, env=env)
        stage.prompt(scenario)
        for _ in range(answers):
            stage.stands("waiting")
            stage.agent.answer("Enter")
        stage.stops(stops)
        stage.stands("idle", QUIET)

    return play


def failed(scenario: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.happens("StopFailure")
        stage.stands("idle", QUIET)

    return play


def wakes(stage: Stage) -> None:
    """A hook beside the end refuses it seconds later, which wakes the CLI."""
    hook = {"type": "command", "command": ONCE.format("woke", "sleep 5"), "asyncRewake": True}
    stage.settings["hooks"] = {"Stop": [{"matcher": "", "hooks": [hook]}]}
    stage.start()
    stage.prompt("forcedtool")
    stage.stops()
    stage.stands("idle")
    stage.stops(2)
    stage.stands("idle", QUIET)


def slow_prompt_then_another(stage: Stage) -> None:
    stage.user_hook("UserPromptSubmit", "sleep 4")
    stage.start()
    stage.prompt("bash")
    stage.happens("UserPromptSubmit")
    stage.prompt("pause")
    stage.stands("busy", 5)
    stage.stands("idle", 3 * QUIET)


def compact_with(event: str, command: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.user_hook(event, command)
        stage.rests_after_a_turn()
        stage.command("/compact")
        stage.happens("PreCompact")
        rest(2 * QUIET)
        stage.stands("idle", 2 * QUIET)

    return play


def form_after_permission(stage: Stage) -> None:
    asked(stage, "elicit", *elicitation(stage.home)[:3])
    stage.agent.answer("Enter")
    stage.agent.shows("What name")
    stage.stands("waiting")
    stage.agent.answer("Escape", dialog="What name")
    stage.stops()
    stage.stands("idle", QUIET)


def plan_with_feedback(stage: Stage) -> None:
    asked(stage, "plan", "--permission-mode", "plan")
    for _ in range(stage.options() - 1):
        stage.press("Down")
    rest(0.5)
    stage.press("Tab")
    rest(0.5)
    stage.agent.pane.type("shorter")
    stage.stands("waiting")
    stage.press("Enter")
    rest(1)
    stage.press("Escape")
    stage.stands("idle", QUIET)


def server_dies(stage: Stage) -> None:
    """The MCP server whose form is open is killed."""
    asked(stage, "elicit", *elicitation(stage.home))
    for child in psutil.Process(stage.agent.pid).children(recursive=True):
        if any("elicit" in word for word in child.cmdline()):
            child.kill()
    rest(3)
    stage.press("Escape")
    stage.stands("idle", 2 * QUIET)


def monitored(stops: int) -> Callable[[Stage], None]:
    """A tool that must be looked for first, and asks."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt("load")
        stage.stops()
        stage.prompt("monitor")
        stage.stands("waiting")
        stage.agent.answer("Enter")
        stage.stops(stops)
        stage.stands("idle", 2 * QUIET)

    return play


def paused(scenario: str, *keys: str) -> Callable[[Stage], None]:
    """An answer is flagged, and the session is paused until the user chooses."""

    def play(stage: Stage) -> None:
        stage.settings["switchModelsOnFlag"] = False
        stage.start()
        stage.prompt(scenario)
        stage.agent.shows("Session paused")
        stage.happens("Notification")  # seconds later
        stage.stands("waiting", QUIET)
        for key in keys:
            stage.press(key)
            rest(0.3)
        stage.stands("idle", 2 * QUIET)

    return play


def called_in_the_background(stage: Stage) -> None:
    """A call of an MCP server takes long, so the CLI ends the turn without it."""
    stage.start(*elicitation(stage.home), env={"CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS": "3000"})
    stage.prompt("mcpslow")
    stage.stops()
    stage.stops(2)
    stage.stands("idle", QUIET)


def esc_at_the_stop(pause: float, command: str) -> Callable[[Stage], None]:
    """Esc just after the Stop, while its hooks run."""

    def play(stage: Stage) -> None:
        stage.user_hook("Stop", command)
        stage.start()
        stage.prompt("text")
        stage.stops()
        rest(pause)
        stage.press("Escape")
        stage.stands("idle", 2 * QUIET)

    return play


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"habit: {name}", play, final, NEWEST)


PRE: Final = "PreToolUse"
SCENES: Final = (
    scene("a hook rewrites and allows", turn((PRE, rewrites("allow", "echo x")), scenario="perm")),
    scene(
        "a hook rewrites and asks",
        turn((PRE, rewrites("ask", "touch other.txt")), scenario="perm", answers=1),
    ),
    scene(
        "a hook rewrites two",
        turn((PRE, rewrites("ask", "touch other.txt")), scenario="perms", answers=2),
    ),
    scene(
        "a hook criticises the result", turn(("PostToolUse", f"sleep 2; {ONCE.format('p', ':')}"))
    ),
    scene(
        "an agent's end is refused",
        turn(("SubagentStop", ONCE.format("s", "sleep 2")), scenario="agentbg", stops=2),
    ),
    scene(
        "an agent's end is refused, in the turn",
        turn(
            ("SubagentStop", ONCE.format("s", ":")),
            scenario="agentperm",
            answers=1,
            env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"},
        ),
    ),
    scene("a hook wakes it", wakes),
    scene("a slow hook before two prompts", slow_prompt_then_another),
    scene(
        "a slow hook of a notification",
        turn(("Notification", "sleep 8"), scenario="perm", answers=1),
    ),
    scene("/compact with a slow hook", compact_with("PreCompact", "sleep 4"), REST),
    scene("/compact is refused", compact_with("PreCompact", "echo no >&2; exit 2"), REST),
    scene("/compact, then a slow start", compact_with("SessionStart", "sleep 3"), REST),
    scene(
        "auto-compact with a slow hook",
        turn(
            ("PreCompact", "sleep 3"),
            scenario="big",
            env={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"},
        ),
    ),
    scene("a permission, then a form", form_after_permission),
    scene("a plan with feedback", plan_with_feedback, REST),
    scene("its server dies in a form", server_dies, REST),
    scene("two agents end later", turn(scenario="agentstwo", stops=3)),
    scene("two shells end later", turn(scenario="bgshells", stops=3)),
    scene("a monitor", monitored(3), REST),
    scene("cut off", turn(scenario="cut")),
    scene("the model refuses", failed("refuse"), "error"),
    scene("session paused, switched", paused("flaggedtwice", "Enter")),
    scene("session paused, edited", paused("flagged", "Down", "Enter"), REST),
    scene("session paused, Esc", paused("flagged", "Escape"), "error"),
    scene("a slow server", called_in_the_background),
    scene("a shell ends 20 s later", turn(scenario="bgshellafter", stops=2)),
    scene("the model plans by itself", turn(scenario="enterplan")),
    scene("Esc at the Stop", esc_at_the_stop(0.02, "sleep 20"), REST),
    scene("Esc soon after the Stop", esc_at_the_stop(0.3, "sleep 20"), REST),
)
