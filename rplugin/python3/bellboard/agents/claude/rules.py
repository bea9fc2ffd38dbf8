"""The rules that would spare a question, and Claude Code's suggestions of what to allow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from ...core.request import Choice
from ...core.text import line, marked, marked_line
from ...core.untrusted import Facts, converted, list_of

# The rule that would spare a question, as settings of Claude Code have it: `Bash(make test)`.
#
# It is the narrowest rule that works, and exists only where the CLI itself would offer a rule.


BASH: Final = "Bash"
SETTINGS: Final = ".claude/settings.local.json"  # in the project
#: A command whose text is a rule for it alone: without wildcards, and without a second command.
_PLAIN: Final = re.compile(r"""[\w./:=@%+,"' -]+(?<!:)""")
_TOOL: Final = re.compile(r"mcp__[\w-]+__[\w-]+")
_HOST: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#]|$)")
#: The first words of a command that a rule may cover: a program and its subcommand.
_PREFIX: Final = re.compile(r"[a-z][\w.-]* [a-z][\w:.-]*")
#: First words of commands that run another command: a rule for these would allow anything.
_RUNS_ANYTHING: Final = re.compile(
    r"(?:(?:ba|z|da|fi|k|c)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|lua|g?awk|find|xargs|env|npx"
    r"|uvx|sudo|doas|su|nice|nohup|time|timeout|watch|ssh|docker|podman|kubectl|eval|exec|source"
    r"|rm|dd) .*"
    r"|\S+ (?:exec|dlx|x|eval|shell)|(?!npm |pnpm |yarn )\S+ run"
)


#: Programs that without arguments run their input.
_READS_ANYTHING: Final = re.compile(
    r"(?:\S*/)?(?:(?:ba|z|da|fi|k|c)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|lua|xargs)"
    r"(?: -\S*)*"
)


class Rule(NamedTuple):
    """A rule of the list `permissions.allow`."""

    tool: str
    content: str = ""

    def __str__(self) -> str:
        return f"{self.tool}({self.content})" if self.content else self.tool


def rule_of(tool: str, given: Facts, suggestions: Any) -> Rule | None:
    """Return the rule that allows a tool's input from now on; None if no rule is sensible."""
    offered = {content for name, content in _suggested(suggestions) if name == tool}
    if not offered:
        return None
    if tool == BASH:
        return _command_rule(given.get("command"), offered)
    if tool == "WebFetch":
        url = given.get("url")
        host = _HOST.match(url) if isinstance(url, str) else None
        return Rule(tool, f"domain:{host[1].lower()}") if host else None
    return Rule(tool) if _TOOL.fullmatch(tool) else None


def runs_anything(start: str, is_exact: bool) -> bool:
    """Return whether a command with this start, or exactly this command, runs any other command."""
    if is_exact:
        return _READS_ANYTHING.fullmatch(start) is not None
    return _RUNS_ANYTHING.fullmatch(start) is not None or bool(_RUNS_ANYTHING.match(f"{start} "))


def rule_line(tool: str, given: Any, suggestions: Any) -> str:
    """Return the rule as one line to show; "" if there is no rule, or it is too long."""
    rule = rule_of(tool, given, suggestions) if isinstance(given, dict) else None
    text = str(rule or "")
    return text if line(text) == text else ""


def _suggested(suggestions: Any) -> list[tuple[str, str]]:
    """Return the tool and content of the rules that the CLI suggests to allow."""
    found = []
    for update in list_of(suggestions):
        if not isinstance(update, dict) or update.get("type") != "addRules":
            continue
        rules = update.get("rules")
        if update.get("behavior") == "allow" and isinstance(rules, list):
            found += [
                (rule["toolName"], str(rule.get("ruleContent") or ""))
                for rule in rules
                if isinstance(rule, dict) and isinstance(rule.get("toolName"), str)
            ]
    return found


def _command_rule(command: object, offered: set[str]) -> Rule | None:
    if not isinstance(command, str) or not _PLAIN.fullmatch(command):
        return None
    for content in sorted(offered, key=len, reverse=True):
        start = content.removesuffix(":*").removesuffix(" *")
        begins = content != start and f"{command} ".startswith(f"{start} ")
        if begins and _PREFIX.fullmatch(start) and not _RUNS_ANYTHING.fullmatch(start):
            return Rule(BASH, f"{start}:*")
    return Rule(BASH, command)


# Claude Code's suggestions of what to allow from now on: each suggestion of a request is a choice.
#
# A choice is sent back exactly as it came, so its words say all that it allows, for how long,
# and in which file it is written. A suggestion beyond such words is not offered, and the request
# says so. The dialog in the terminal has other choices: for one exact command, it offers `make *`
# (2.1.332).


LONGEST: Final = 200  # characters of a rule or a folder in a choice
MOST: Final = 7  # suggestions that can be chosen: with once and all together, each has a digit
#: Destination → its file; the user's file is in a folder of its own.
FILES: Final = {
    "localSettings": SETTINGS,
    "projectSettings": ".claude/settings.json",
    "userSettings": "settings.json",
}
SESSION: Final = "session"
ENDS: Final = "this session only"
WORDS: Final = {
    "always": "Yes, and do not ask again for ",
    "replace": "Yes, and REPLACE ALL RULES that allow something by ",
    "folder": "Yes, and also work in ",
    "edits": "Yes, and accept ALL EDITS of ",
}
#: Destination of a mode → the sessions of the mode.
WHOSE: Final = {
    SESSION: "this session",
    "localSettings": "this session and of all new ones here",
    "projectSettings": "this session and of all new ones here",
    "userSettings": "this session and of all new ones",
}
NO_LONGER: Final = "no longer asks for edits and common file commands"
NOTES: Final = {"folder": "still asks for commands and edits", "edits": NO_LONGER}
BESIDE: Final = "the same file; it may still ask"  # the note of a rule that needs others

_PLAIN_TOOL: Final = re.compile(r"[\w-]{1,100}", re.ASCII)
_DOMAIN: Final = re.compile(r"domain:([A-Za-z0-9.-]+)")
_BELOW: Final = re.compile(r"/(/[^*?\[\]{}!]+)/\*\*")  # all that is in a folder


class SuggestedRule(Struct, forbid_unknown_fields=True):
    toolName: str
    ruleContent: str | None = None


class SuggestedRules(Struct, forbid_unknown_fields=True):
    type: str
    rules: list[SuggestedRule]
    behavior: str
    destination: str


class SuggestedFolders(Struct, forbid_unknown_fields=True):
    type: str
    directories: list[str]
    destination: str


class SuggestedMode(Struct, forbid_unknown_fields=True):
    type: str
    mode: str
    destination: str


#: Type → the kind of its choice, and its form.
SUGGESTS: Final[
    Mapping[object, tuple[str, type[SuggestedRules] | type[SuggestedFolders] | type[SuggestedMode]]]
] = {
    "addRules": ("always", SuggestedRules),
    "replaceRules": ("replace", SuggestedRules),
    "addDirectories": ("folder", SuggestedFolders),
    "setMode": ("edits", SuggestedMode),
}


class Suggestion(NamedTuple):
    """A choice, and the update that is sent for it, unchanged."""

    choice: Choice
    updates: tuple[Any, ...]


class _Known(NamedTuple):
    """A suggestion that can be offered: its permission, and the file where that is written."""

    kind: str
    what: str
    where: str
    update: Any

    def named(self, name: str, note: str = "") -> Suggestion:
        """Return the suggestion as a choice of this name."""
        where = "" if self.kind == "edits" and self.where == ENDS else self.where
        note = note or "; ".join(filter(None, (NOTES.get(self.kind), where)))
        return Suggestion(Choice(name, WORDS[self.kind] + self.what, note=note), (self.update,))


def suggestions_of(
    suggested: Any, command: object, cwd: str, env: Mapping[str, str]
) -> tuple[list[Suggestion], tuple[str, ...]]:
    """Return the choices of a permission, and in words the suggestions that are not offered.

    `env` has the folders of the project and of the user's settings.
    """
    given = list_of(suggested)
    found = [(each, _known(each, command, env)) for each in given]
    known = [each for _, each in found if each is not None][:MOST]
    sent = [each.update for each in known]
    others = [each for each in given if each not in sent]
    named = [*dict.fromkeys(_named(each) for each in others)]
    more = (f"Not offered here: {', '.join(named[:MOST])}",) if named else ()
    together = _together(known, cwd) if not others else None
    made = [together] if together else []
    counts: dict[str, int] = {}
    for each in known:
        counts[each.kind] = number = counts.get(each.kind, 0) + 1
        is_only = sum(other.kind == each.kind for other in known) == 1
        name = each.kind if is_only else f"{each.kind}-{number}"
        is_part = together is not None and each.kind == "always" and each.where != ENDS
        made.append(each.named(name, BESIDE if is_part else ""))
    return made, more


def _together(known: Sequence[_Known], cwd: str) -> Suggestion | None:
    """Return all suggestions as one choice if only together they spare the question (2.1.332).

    So it is with the rules of a line with several commands, and with a file in another folder.
    """
    by_kind = {each.kind: each for each in known}
    if len(known) < 2 or len({each.where for each in known}) > 1:
        return None
    updates = tuple(each.update for each in known)
    if by_kind.keys() == {"always"}:
        what = " and ".join(each.what for each in known)
        return Suggestion(known[0]._replace(what=what).named("always").choice, updates)
    if len(known) > 2 or by_kind.keys() != {"edits", "folder"}:
        return None
    edits, folder = by_kind["edits"], by_kind["folder"]
    if any(f"{path}/".startswith(f"{cwd}/") for path in folder.update["directories"]):
        return None
    what = f"{edits.what}, also in {folder.what}"
    return Suggestion(edits._replace(what=what).named("both").choice, updates)


def _known(given: Any, command: object, env: Mapping[str, str]) -> _Known | None:
    """Read a suggestion; return None if words cannot say all its effects."""
    kind, form = SUGGESTS.get(_text(given, "type"), ("", None))
    made = converted(given, form) if form else None
    if made is None:
        return None
    if isinstance(made, SuggestedMode):
        what = [WHOSE.get(made.destination, "")] if made.mode == "acceptEdits" else []
    elif isinstance(made, SuggestedFolders):
        what = [*_folders(made.directories)]
    else:
        rules = made.rules if made.behavior == "allow" else []
        what = [_rule(rule, command) for rule in rules]
    where = _where(made.destination, env)
    if not (what and where) or "" in what:
        return None
    return _Known(kind, " and ".join(what), where, given)


def _where(destination: str, env: Mapping[str, str]) -> str:
    """Return the time that a suggestion counts for, and its file; "" if not known.

    From 2.1.328 on, local settings belong to the main working tree (2.1.200: to the folder).
    """
    if destination == SESSION:
        return ENDS
    name, project = FILES.get(destination), marked_line(env.get("project_dir", ""))
    main = marked_line(env.get("main_dir", "")) or project
    if name is None:
        return ""
    if destination == "userSettings":
        folder = marked_line(env.get("config_dir") or "~/.claude")
        return f"in all projects; written to {folder}/{name}"
    if destination == "projectSettings":
        return f"written to {_in(project, name)}, which others may share"
    before = f" (up to 2.1.200: {_in(project, name)})" if main != project else ""
    return f"written to {_in(main, name)}{before}"


def _in(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _folders(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        yield _quoted(path) if path else ""


def _rule(rule: SuggestedRule, command: object) -> str:
    """Return the permission of a rule; "" if it cannot be shown whole, or allows any command."""
    tool, content = rule.toolName, rule.ruleContent or ""
    if not _PLAIN_TOOL.fullmatch(tool):
        return ""
    if tool == BASH:
        return _commands(content, command)
    if not content:
        server = tool.removeprefix("mcp__")
        is_server = server != tool and "__" not in server
        return f"all tools of {server}" if is_server else f"all that the tool {tool} does"
    if not _quoted(content):
        return ""
    if tool == "WebFetch" and (host := _DOMAIN.fullmatch(content)):
        return f"pages of {host[1]}"
    if tool == "Read" and (folder := _BELOW.fullmatch(content)):
        return f"reading what is in {folder[1]}"
    return _quoted(f"{tool}({content})")


def _commands(content: str, command: object) -> str:
    """Return the commands that a rule allows."""
    start = content.removesuffix("*").removesuffix(":").rstrip()
    is_exact = "*" not in content
    if is_exact and content == command and marked(content) == content:
        return "this command"
    if not _quoted(content) or not re.search(r"\w", start):
        return ""
    anything = " (runs anything)" if runs_anything(start, is_exact) else ""
    return f"{'' if is_exact else 'commands like '}{_quoted(content)}{anything}"


def _quoted(text: str) -> str:
    """Return a text to put in a line of others; "" if it cannot be shown there unchanged."""
    if len(text) > LONGEST or "`" in text or "\t" in text or marked_line(text) != text:
        return ""
    return f"`{text}`"


def _named(given: Any) -> str:
    """Return the kind of a suggestion."""
    fields = ("type", "mode", "behavior", "destination")
    words = [marked_line(_text(given, name)[:40]) for name in fields]
    return " ".join(filter(None, words)) or "something unknown"


def _text(given: Any, name: str) -> str:
    text = given.get(name) if isinstance(given, dict) else None
    return text if isinstance(text, str) else ""
