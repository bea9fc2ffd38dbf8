"""Several open questions and tools: evidence of one never ends another (M1, M2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from live.scene import NEWEST, REST, Scene
from live.stage import STANDS, Stage


def both_ask(scenario: str, *keys: str, stops: int = 1) -> Callable[[Stage], None]:
    """The main thread asks, then its agent; press keys (default: No), then Enter."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stands("waiting")
        stage.asks("by-sub")
        stage.stands("waiting")
        stage.press(*(keys or (str(stage.options()),)))
        stage.agent.shows("by-sub.txt[^?]*Do you want")
        stage.stands("waiting", 2 * STANDS)
        stage.agent.answer("Enter")
        stage.stops(stops)
        stage.stands("idle")

    return play


def asks_beside(scenario: str) -> Callable[[Stage], None]:
    """An agent asks while main works; answer the dialog, then interrupt main."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.asks("by-sub")
        stage.stands("waiting")
        stage.agent.answer("Enter")
        stage.stands("busy")
        stage.press("Escape")
        stage.stands("idle")

    return play


def two_agents_ask(stage: Stage) -> None:
    """The second agent's question stays open after the first one's was refused."""
    stage.start()
    stage.prompt("agentswords")
    stage.happens("PermissionRequest", 2)
    stage.stands("waiting")
    stage.press("Escape")
    stage.stands("waiting", 2 * STANDS)
    stage.agent.answer("Enter")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")


def beside_a_call(scenario: str, dialogs: int = 1) -> Callable[[Stage], None]:
    """The dialog stays open while the other call of the message ends."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        for _ in range(dialogs):
            stage.stands("waiting", 3)
            stage.press("Enter")
        stage.stops()
        stage.stands("idle")

    return play


def beside_a_call_esc(scenario: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt(scenario)
        stage.stands("waiting", 3)
        stage.press("Escape")
        stage.stands("idle")

    return play


def m1(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"agent asks too: {name}", play, final, NEWEST, "M1")


def m2(name: str, play: Callable[[Stage], None], final: str = "completed") -> Scene:
    return Scene(f"one message: {name}", play, final, NEWEST, "M2")


SCENES: Final = (
    m1("permission, Esc", both_ask("agentpermlate", "Escape"), REST),
    m1("permission, yes", both_ask("agentpermlate", "Enter")),
    m1("permission, no", both_ask("agentpermlate"), REST),
    m1("question, Esc", both_ask("agentasklate", "Escape"), REST),
    m1("question, answered", both_ask("agentasklate", "Enter")),
    m1("while main streams", asks_beside("agentwordslate"), REST),
    m1("while main's tool runs", asks_beside("agentpauselate"), REST),
    m1("two of them", two_agents_ask, REST),
    m2("question and Read", beside_a_call("askread")),
    m2("Read and question", beside_a_call("readask")),
    m2("two questions", beside_a_call("asks", 2)),
    m2("question and a pause", beside_a_call("askpause")),
    m2("question and no such tool", beside_a_call("askbad")),
    m2("question and permission", beside_a_call("askperm", 2)),
    m2("permission and Read", beside_a_call("permread")),
    m2("permission and a pause", beside_a_call("permpause")),
    m2("question and Read, Esc", beside_a_call_esc("askread"), "idle"),
)
