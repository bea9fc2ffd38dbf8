"""The user's own hooks that decide: they refuse, ask, stop the turn, or die (F9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from live.scene import NEWEST, REST, Scene
from live.stage import Stage
from rig.waiting import rest

QUIET: Final = 2.0  # seconds at rest, in which nothing may change any more


def says(**output: Any) -> str:
    """Return a hook that prints this."""
    return f"echo '{json.dumps(output)}'"


def decides(decision: str) -> str:
    """Return a PreToolUse hook that decides."""
    reason = {"permissionDecision": decision, "permissionDecisionReason": "because"}
    return says(hookSpecificOutput={"hookEventName": "PreToolUse", **reason})


STOPS: Final = says(**{"continue": False, "stopReason": "enough"})
REFUSES: Final = "echo no >&2; exit 2"
GIVES_UP: Final = says(
    hookSpecificOutput={
        "hookEventName": "PermissionRequest",
        "decision": {"behavior": "deny", "message": "no", "interrupt": True},
    }
)


def turn(
    *hooks: tuple[str, str], scenario: str = "bash", asks: bool = False, stops: int = 1
) -> Callable[[Stage], None]:
    """Play a prompt with these hooks; answer yes if it asks."""

    def play(stage: Stage) -> None:
        for event, command in hooks:
            stage.user_hook(event, command)
        stage.start()
        stage.prompt(scenario)
        if asks:
            stage.stands("waiting")
            stage.agent.answer("Enter")
        if stops:
            stage.stops(stops)
        else:
            stage.stands("busy", 0.2)
        stage.stands("idle", QUIET)

    return play


def refused(command: str, before: str = "") -> Callable[[Stage], None]:
    """The prompt is refused, as the first one or after a turn."""

    def play(stage: Stage) -> None:
        stage.user_hook("UserPromptSubmit", f'grep -q "play:bash" || exit 0; {command}')
        stage.start()
        if before:
            stage.prompt(before)
            stage.stops()
            stage.stands("idle")
        stage.prompt("bash")
        stage.happens("UserPromptSubmit", 2 if before else 1)
        stage.stands("idle", 2 * QUIET)

    return play


def refused_in_the_queue(stage: Stage) -> None:
    stage.user_hook("UserPromptSubmit", f'grep -q "play:text" || exit 0; {REFUSES}')
    stage.start()
    stage.prompt("pause")
    stage.happens("PreToolUse")
    stage.prompt("text")
    stage.stops()
    stage.stands("idle", QUIET)


def esc_before_the_prompt(stage: Stage) -> None:
    stage.user_hook("UserPromptSubmit", "sleep 15")
    stage.start()
    stage.prompt("text")
    stage.happens("UserPromptSubmit")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle", QUIET)


def beside(event: str, scenario: str) -> Callable[[Stage], None]:
    """A hook that the CLI does not wait for goes on after the turn."""

    def play(stage: Stage) -> None:
        hook = {"type": "command", "command": "sleep 4; echo '{}'", "async": True}
        stage.settings["hooks"] = {event: [{"matcher": "", "hooks": [hook]}]}
        stage.start()
        stage.prompt(scenario)
        stage.stops()
        stage.stands("idle", 3 * QUIET)

    return play


def slow_start(stage: Stage) -> None:
    """The prompt is typed before the hooks of the start have ended."""
    stage.user_hook("SessionStart", "sleep 5")
    stage.start()
    rest(QUIET)
    stage.prompt("text")
    stage.stops()
    stage.stands("idle")


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"hook {name}", play, final, NEWEST, "F9")


PRE: Final = "PreToolUse"
SCENES: Final = (
    scene("stops before the tool", turn((PRE, STOPS), stops=0)),
    scene("stops after the tool", turn(("PostToolUse", STOPS), stops=0)),
    scene("stops after the tool, slowly", turn(("PostToolUse", f"sleep 3; {STOPS}"), stops=0)),
    scene("stops after all tools", turn(("PostToolBatch", STOPS), stops=0)),
    scene(
        "of a permission stops",
        turn(("PermissionRequest", GIVES_UP), scenario="perm", stops=0),
        REST,
    ),
    scene("asks about an allowed tool", turn((PRE, f"sleep 2; {decides('ask')}"), asks=True)),
    scene(
        "allows, another asks",
        turn(
            (PRE, decides("allow")), (PRE, f"sleep 3; {decides('ask')}"), scenario="perm", asks=True
        ),
    ),
    scene(
        "allows, another refuses",
        turn((PRE, decides("allow")), (PRE, f"sleep 3; {REFUSES}"), scenario="perm"),
    ),
    scene("is killed", turn((PRE, "kill -9 $$"), ("Stop", "sleep 1; kill -9 $$"))),
    scene("refuses the prompt", refused(REFUSES), "idle"),
    scene("refuses the prompt, slowly", refused(f"sleep 3; {REFUSES}"), "idle"),
    scene("refuses the next prompt", refused(f"sleep 2; {REFUSES}", "text"), REST),
    scene("refuses a queued prompt", refused_in_the_queue, REST),
    scene("before the prompt, Esc", esc_before_the_prompt, "idle"),
    scene("runs beside the turn", beside("PostToolUse", "bash")),
    scene("runs beside the end", beside("Stop", "text")),
    scene("of the start takes 5 s", slow_start),
)
