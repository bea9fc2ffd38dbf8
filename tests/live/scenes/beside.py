"""Habits of many people: rewind, suspend, move a pane, queue commands, run `claude -p` beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from live.scene import REST, Scene, asked
from live.scenes.habits import QUIET, scene
from live.stage import STANDS, Stage
from rig.waiting import rest


def rewound(stage: Stage) -> None:
    """Esc in a tool, Esc twice for the list of prompts, and back to the first one."""
    stage.start()
    stage.prompt("text")
    stage.stops()
    stage.prompt("sleep")
    stage.happens("PreToolUse")
    stage.stands("busy")
    stage.press("Escape")
    stage.stands("idle")
    stage.command("/rewind")
    rest(QUIET)
    stage.press("Up")
    stage.press("Enter")
    rest(1)
    stage.press("Enter")
    rest(QUIET)
    stage.press("C-u")
    stage.prompt("bash")
    stage.happens("Stop", 2)
    stage.stands("idle", QUIET)


def rewound_in_the_turn(stage: Stage) -> None:
    stage.start()
    stage.prompt("text")
    stage.stops()
    stage.prompt("slow")
    stage.agent.shows("word3")
    stage.press("Escape")
    stage.press("Escape")
    stage.press("Escape")
    rest(QUIET)
    stage.press("Escape")
    stage.stands("idle", QUIET)


def suspended_in_a_tool(stage: Stage) -> None:
    """Ctrl-Z for longer than the tool takes."""
    stage.start(shell=True)
    stage.prompt("pause")
    stage.happens("PreToolUse")
    stage.stands("busy", 0.5)
    stage.press("C-z")
    stage.agent.shows("(?i)stopped|suspended")
    rest(6)
    stage.agent.pane.type("fg\n")
    stage.stops()
    stage.stands("idle", QUIET)


def headless_beside(says: str, scenario: str, *args: str) -> Callable[[Stage], None]:
    """`claude -p` runs in the same folder, perhaps on the same session."""

    def play(stage: Stage) -> None:
        stage.rests_after_a_turn()
        if scenario:
            stage.prompt(scenario)
        stage.stands(says)
        one = stage.agent
        two = stage.start(*args, "-p", "play:pause please", ready=False)
        stage.ends(two)
        stage.turn_to(one)
        stage.stands(says)
        if says == "waiting":
            stage.agent.answer("Enter")
        if scenario:
            stage.stops(2)
        stage.stands("idle", QUIET)

    return play


def forked_beside(stage: Stage) -> None:
    """Another process forks a session that is working."""
    stage.rests_after_a_turn()
    stage.prompt("sleep")
    stage.stands("busy")
    one, sid = stage.agent, stage.session
    two = stage.start("--resume", sid, "--fork-session")
    stage.stands("idle")
    stage.prompt("perm")
    stage.stands("waiting")
    stage.agent.answer("Escape")
    stage.stands("idle")
    stage.ends(two, "C-d")
    stage.turn_to(one)
    stage.stands("busy")
    stage.stops(2)


def in_a_dialog(what: str, *commands: tuple[str, ...]) -> Scene:
    """What tmux does to a pane does not answer its question."""

    def play(stage: Stage) -> None:
        asked(stage, "perm")
        assert stage.server
        stage.server.run("new-session", "-d", "-s", "other", "-x", "90", "-y", "30", "sleep 60")
        for command in commands:
            stage.server.run(*(stage.agent.pane.id if word == "PANE" else word for word in command))
            stage.stands("waiting", 2 * STANDS)
        stage.agent.answer("Enter")
        stage.stops()
        stage.stands("idle", QUIET)

    return replace(scene(f"{what} in a dialog", play), in_tmux=True)


def queued_command(command: str, *events: str) -> Callable[[Stage], None]:
    """A command waits for the end of the turn."""

    def play(stage: Stage) -> None:
        stage.rests_after_a_turn()
        stage.prompt("pause")
        stage.happens("PreToolUse")
        stage.command(command)
        stage.happens("Stop", 2)
        for event in events:
            stage.happens(event)
        rest(QUIET)
        stage.press("Escape")
        stage.stands("idle", 2 * QUIET)

    return play


def back_from_the_queue(stage: Stage) -> None:
    """A queued prompt is fetched back with Up, and dropped."""
    stage.start()
    stage.prompt("pause")
    stage.happens("PreToolUse")
    stage.agent.submit("and this")
    rest(0.5)
    stage.press("Up")
    rest(0.5)
    stage.press("C-u")
    stage.stops()
    stage.stands("idle", QUIET)


def menu_in_a_turn(command: str, scenario: str) -> Callable[[Stage], None]:
    """A menu is open while the turn ends."""

    def play(stage: Stage) -> None:
        stage.home.file("../other/y.txt", "y\n")
        stage.start()
        stage.prompt(scenario)
        stage.happens("PreToolUse")
        stage.command(command)
        stage.stops()
        rest(QUIET)
        stage.press("Escape")
        rest(1)
        stage.press("Escape")
        stage.stands("idle", QUIET)

    return play


def menu_in_words(command: str) -> Callable[[Stage], None]:
    """A menu is opened and closed while the model speaks; then Esc ends the turn."""

    def play(stage: Stage) -> None:
        stage.home.file("../other/y.txt", "y\n")
        stage.start()
        stage.prompt("slow")
        stage.agent.shows("word3")
        stage.stands("busy")
        stage.command(command)
        stage.agent.shows("Esc to")
        rest(2 * QUIET)
        stage.press("Escape")
        rest(QUIET)
        stage.press("Escape")
        stage.stands("idle", QUIET)

    return play


def menu_at_rest(command: str) -> Callable[[Stage], None]:
    """A menu is opened after a turn, and closed again."""

    def play(stage: Stage) -> None:
        stage.home.file("../other/y.txt", "y\n")
        stage.rests_after_a_turn()
        stage.command(command)
        rest(2 * QUIET)
        stage.press("Escape")
        rest(1)
        stage.press("Escape")
        stage.stands("idle", QUIET)

    return play


DIALOGS: Final = ("/model", "/tasks", "/help", "/add-dir ../other")
SCENES: Final = (
    scene("/rewind after Esc", rewound),
    scene("Esc three times", rewound_in_the_turn, "idle"),
    scene("Ctrl-Z in a tool", suspended_in_a_tool),
    scene("-p beside", headless_beside("idle", "")),
    scene("-p beside a question", headless_beside("waiting", "perm")),
    scene("-p on the same session", headless_beside("idle", "", "--continue"), REST),
    scene("-p on a session that asks", headless_beside("waiting", "perm", "--continue")),
    scene("-p on a session that works", headless_beside("busy", "sleep", "--continue")),
    scene("forked while working", forked_beside),
    in_a_dialog("resized", ("resize-window", "-t", "PANE", "-x", "60", "-y", "20")),
    in_a_dialog("moved", ("join-pane", "-s", "PANE", "-t", "other:"), ("break-pane", "-s", "PANE")),
    scene("/clear queued", queued_command("/clear", "SessionEnd"), REST),
    scene("/compact queued", queued_command("/compact", "PreCompact"), REST),
    scene("/model queued", queued_command("/model"), REST),
    scene("a prompt back from the queue", back_from_the_queue),
    scene("/status in a turn", menu_in_a_turn("/status", "pause")),
    scene("/config in a turn", menu_in_a_turn("/config", "pause")),
    *(scene(f"{dialog} at rest", menu_at_rest(dialog)) for dialog in DIALOGS),
    *(scene(f"{dialog} in a turn", menu_in_a_turn(dialog, "pause"), REST) for dialog in DIALOGS),
    *(scene(f"{dialog} in words", menu_in_words(dialog), REST) for dialog in DIALOGS),
)
