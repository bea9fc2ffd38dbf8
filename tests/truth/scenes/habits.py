"""Habits of many people: hooks that rewrite, wake and delay, headless turns beside, moved panes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psutil

from rig.agent import elicitation
from rig.waiting import rest
from truth.scene import NEWEST, REST, Scene, asked
from truth.scenes.deciding_hooks import says
from truth.stage import STANDS, Stage

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
        stage.start()
        stage.prompt("text")
        stage.stops()
        stage.stands("idle")
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
        stage.start()
        stage.prompt("text")
        stage.stops()
        stage.stands("idle")
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
    stage.start()
    stage.prompt("text")
    stage.stops()
    stage.stands("idle")
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


def in_a_dialog(*commands: tuple[str, ...]) -> Callable[[Stage], None]:
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

    return play


def queued_command(command: str, *events: str) -> Callable[[Stage], None]:
    """A command waits for the end of the turn."""

    def play(stage: Stage) -> None:
        stage.start()
        stage.prompt("text")
        stage.stops()
        stage.stands("idle")
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
    scene("a plan with feedback", plan_with_feedback),
    scene("/rewind after Esc", rewound),
    scene("Esc three times", rewound_in_the_turn, "idle"),
    scene("Ctrl-Z in a tool", suspended_in_a_tool),
    scene("-p beside", headless_beside("idle", "")),
    scene("-p beside a question", headless_beside("waiting", "perm")),
    scene("-p on the same session", headless_beside("idle", "", "--continue"), REST),
    scene("-p on a session that asks", headless_beside("waiting", "perm", "--continue")),
    scene("-p on a session that works", headless_beside("busy", "sleep", "--continue")),
    scene("forked while working", forked_beside),
    scene(
        "resized in a dialog", in_a_dialog(("resize-window", "-t", "PANE", "-x", "60", "-y", "20"))
    ),
    scene(
        "moved in a dialog",
        in_a_dialog(("join-pane", "-s", "PANE", "-t", "other:"), ("break-pane", "-s", "PANE")),
    ),
    scene("/clear queued", queued_command("/clear", "SessionEnd"), REST),
    scene("/compact queued", queued_command("/compact", "PreCompact"), REST),
    scene("/model queued", queued_command("/model"), REST),
    scene("a prompt back from the queue", back_from_the_queue),
    scene("/status in a turn", menu_in_a_turn("/status", "pause")),
    scene("/config in a turn", menu_in_a_turn("/config", "pause")),
    scene("its server dies in a form", server_dies, REST),
    scene("two agents end later", turn(scenario="agentstwo", stops=3)),
    scene("two shells end later", turn(scenario="bgshells", stops=3)),
    scene("a monitor", monitored(3), REST),
    scene("cut off", turn(scenario="cut")),
    scene("the model refuses", failed("refuse"), "error"),
    scene("the model plans by itself", turn(scenario="enterplan")),
    scene("Esc at the Stop", esc_at_the_stop(0.02, "sleep 20"), REST),
    scene("Esc soon after the Stop", esc_at_the_stop(0.3, "sleep 20"), REST),
)
