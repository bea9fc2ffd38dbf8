"""The user's own hooks before a question: they wait, refuse, or answer it (M5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import FOREGROUND, NEWEST, Scene
from live.stage import Stage
from rig.agent import elicitation

OUTPUT: Final = """echo '{"hookSpecificOutput": {"hookEventName": "%s", %s}}'"""
ALLOWS: Final = OUTPUT % ("PermissionRequest", '"decision": {"behavior": "allow"}')
DENIES: Final = OUTPUT % ("PermissionRequest", '"decision": {"behavior": "deny", "message": "no"}')
REFUSES: Final = OUTPUT % (
    "PreToolUse",
    '"permissionDecision": "deny", "permissionDecisionReason": "no"',
)
PERMITS: Final = OUTPUT % (
    "PreToolUse",
    '"permissionDecision": "allow", "permissionDecisionReason": "yes"',
)
FILLS: Final = OUTPUT % ("Elicitation", '"action": "accept", "content": {"name": "Ada"}')


def answered(
    event: str, command: str, scenario: str, *args: str, stops: int = 1, **env: str
) -> Callable[[Stage], None]:
    """The hook answers, and no key is pressed."""

    def play(stage: Stage) -> None:
        stage.user_hook(event, command)
        stage.start(*args, env=env)
        stage.prompt(scenario)
        stage.stops(stops)
        stage.stands("idle")

    return play


def asks_in_the_end(
    event: str, command: str, scenario: str, *args: str, stops: int = 1, **env: str
) -> Callable[[Stage], None]:
    """The hook waits, then the user is asked."""

    def play(stage: Stage) -> None:
        stage.user_hook(event, command)
        stage.start(*args, env=env)
        stage.prompt(scenario)
        stage.stands("waiting")
        stage.agent.answer("Enter")
        stage.stops(stops)
        stage.stands("idle")

    return play


def form(command: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.user_hook("Elicitation", command)
        stage.start(*elicitation(stage.home))
        stage.prompt("elicit")
        if command != f"sleep 3; {FILLS}":
            stage.stands("waiting")
            stage.agent.answer("Escape", dialog="What name")
        stage.stops()
        stage.stands("idle")

    return play


def esc_meanwhile(stage: Stage) -> None:
    stage.user_hook("PreToolUse", "sleep 20")
    stage.start()
    stage.prompt("ask")
    stage.happens("PreToolUse")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"hook {name}", play, final, NEWEST, "M5")


SLOW: Final = "sleep 3"
SCENES: Final = (
    scene("before a question waits", asks_in_the_end("PreToolUse", SLOW, "ask")),
    scene("before a permission waits", asks_in_the_end("PreToolUse", SLOW, "perm")),
    scene(
        "before a plan waits", asks_in_the_end("PreToolUse", SLOW, "plan", "--permission-mode=plan")
    ),
    scene("before a question refuses", answered("PreToolUse", f"{SLOW}; {REFUSES}", "ask")),
    scene("before a permission permits", answered("PreToolUse", f"{SLOW}; {PERMITS}", "perm")),
    scene("before a question, Esc", esc_meanwhile, "idle"),
    scene("allows after 3 s", answered("PermissionRequest", f"{SLOW}; {ALLOWS}", "perm")),
    scene("allows at once", answered("PermissionRequest", ALLOWS, "perm")),
    scene("denies after 3 s", answered("PermissionRequest", f"{SLOW}; {DENIES}", "perm")),
    scene("waits beside the dialog", asks_in_the_end("PermissionRequest", "sleep 6", "perm")),
    scene(
        "of a background agent allows",
        answered("PermissionRequest", f"{SLOW}; {ALLOWS}", "agentbgperm", stops=2),
    ),
    scene(
        "of a background agent waits",
        asks_in_the_end("PermissionRequest", SLOW, "agentbgperm", stops=2),
    ),
    scene(
        "of a subagent allows",
        answered("PermissionRequest", f"{SLOW}; {ALLOWS}", "agentperm", **FOREGROUND),
    ),
    scene("fills the form", form(f"{SLOW}; {FILLS}")),
    scene("before the form waits", form(SLOW)),
)
