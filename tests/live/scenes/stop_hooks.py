"""The user's own Stop hooks: slow, failing, or continuing the session (F1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene
from live.stage import Stage

#: Refuses the first Stop of a home with text for the model; later ones pass.
FORCES: Final = '[ -e "$HOME/forced" ] && exit 0; touch "$HOME/forced"; echo "go on" >&2; exit 2'
FORCES_BY_JSON: Final = (
    '[ -e "$HOME/forced" ] && exit 0; touch "$HOME/forced"; '
    """echo '{"decision": "block", "reason": "go on"}'"""
)
FORCES_TWICE: Final = (
    'n=$(ls -d "$HOME"/forced.* 2>/dev/null | wc -l); [ "$n" -ge 2 ] && exit 0; '
    'touch "$HOME/forced.$n"; echo "go on" >&2; exit 2'
)


def turn(*commands: str, scenario: str = "text", event: str = "Stop") -> Callable[[Stage], None]:
    """Play a prompt with these Stop hooks, until the CLI is at rest."""

    def play(stage: Stage) -> None:
        for command in commands:
            stage.user_hook(event, command)
        stage.start()
        stage.prompt(scenario)
        stage.stops()
        stage.stands("idle")

    return play


def forced_then_esc(scenario: str, shown: str) -> Callable[[Stage], None]:
    """Press Esc in the turn that a hook continued."""

    def play(stage: Stage) -> None:
        stage.user_hook("Stop", FORCES)
        stage.start()
        stage.prompt(scenario)
        stage.agent.shows(shown)
        stage.stands("busy")
        stage.press("Escape")
        stage.stands("idle")

    return play


def forced_to_ask(stage: Stage) -> None:
    stage.user_hook("Stop", FORCES)
    stage.start()
    stage.prompt("forcedperm")
    stage.stands("waiting")
    stage.agent.answer("Enter")
    stage.stops(2)


def esc_in_the_hook(stage: Stage) -> None:
    stage.user_hook("Stop", "sleep 20")
    stage.start()
    stage.prompt("text")
    stage.stops()
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def prompt_in_the_hook(stage: Stage) -> None:
    stage.user_hook("Stop", '[ -e "$HOME/slept" ] || { touch "$HOME/slept"; sleep 5; }')
    stage.start()
    stage.prompt("text")
    stage.stops()
    stage.stands("busy")
    stage.prompt("pause")
    stage.stops(2)
    stage.stands("idle")


def beside_a_background_agent(stage: Stage) -> None:
    stage.user_hook("Stop", "sleep 3")
    stage.start()
    stage.prompt("agentbg")
    stage.stops(2)
    stage.stands("idle")


def scene(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"Stop hook {name}", play, final, NEWEST, "F1")


SCENES: Final = (
    scene("takes 2 s", turn("sleep 2")),
    scene("takes 10 s", turn("sleep 10")),
    scene("of two takes 4 s", turn("true", "sleep 4")),
    scene("fails after 3 s", turn("sleep 3; exit 1")),
    scene("forces words", turn(FORCES, scenario="forced")),
    scene("forces words by JSON", turn(FORCES_BY_JSON, scenario="forced")),
    scene("forces a tool", turn(FORCES, scenario="forcedtool")),
    scene("forces twice", turn(FORCES_TWICE, scenario="forced")),
    scene("is slow, then forces", turn(f"sleep 3; {FORCES}", scenario="forced")),
    scene("forces, another is slow", turn(FORCES, "sleep 3", scenario="forcedtool")),
    scene("forces a question", forced_to_ask),
    scene("forces words, then Esc", forced_then_esc("forced", "word3"), "idle"),
    scene("forces a tool, then Esc", forced_then_esc("forcedtool", "time.sleep"), "idle"),
    scene("takes long, Esc", esc_in_the_hook, REST),
    scene("takes long, a prompt", prompt_in_the_hook),
    scene("beside an agent", beside_a_background_agent),
    scene("of a subagent takes 3 s", turn("sleep 3", scenario="agent", event="SubagentStop")),
)
