"""Write what is generated in the help and in the README: `python doc/tables.py [--check]`.

The text between two marker lines is generated: the rules from `machine.py`, from `agents` their
abilities and the files of their hooks, from `config/options.lua` the options, from `command.lua`
the commands and their mappings, into which it writes the names of the agents.  The types of the
options are written into `config/types.lua`.
With --check nothing is written; the exit status says whether all of it is up to date.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from bellboard.agents.agent import MOMENTS, ability_mark
from bellboard.agents.registry import STARTABLE, installable, measured
from bellboard.core.machine import RULES, TABLE
from bellboard.core.session import ABSENT, STATUSES

MANUAL = Path(__file__).parent / "bellboard.txt"
AGENTS = MANUAL.with_name("bellboard-agents.txt")
RULEBOOK = MANUAL.with_name("rules.md")
ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
TYPES = ROOT / "lua/bellboard/config/types.lua"
COMMANDS = ROOT / "lua/bellboard/command.lua"
RULES_BEGIN = "------ The rules, written by doc/tables.py ------"
AGENTS_BEGIN = "------ The agents, written by doc/tables.py ------"
FILES_BEGIN = "------ The files, written by doc/tables.py ------"
OPTIONS_BEGIN = "------ The options, written by doc/tables.py ------"
COMMANDS_BEGIN = "------ The commands, written by doc/tables.py ------"
MAPPINGS_BEGIN = "------ The mappings, written by doc/tables.py ------"
END = "------ Here ends what doc/tables.py writes ------"
SHORT = {"observed": "yes", "not known": "-"}
WIDTH = 78
INDENT = 18


def rules() -> list[str]:
    """Return what each rule means, and when it is used."""
    named = dict.fromkeys(
        cell for cells in TABLE.values() for cell in cells.values() if cell != "."
    )
    meanings = [(f"`{name}`", " ".join((RULES[name].__doc__ or "").split())) for name in named]
    decisions = [(f"`{kind}`", decided(cells)) for kind, cells in TABLE.items()]
    return [
        "",
        *table("rule", "what it means", meanings),
        "",
        "Which rule handles which kind of evidence, by the status of the session. In a status that",
        "is not listed, that evidence changes nothing:",
        "",
        *table("evidence", "rule: statuses", decisions),
        "",
    ]


def table(first: str, second: str, rows: list[tuple[str, str]]) -> list[str]:
    """Return a table in Markdown."""
    return [f"| {first} | {second} |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]


def paragraph(text: str) -> list[str]:
    """Return lines of an entry of the help; Neovim shows `code` as such only on one line."""
    whole = re.sub("`[^`]+`", lambda code: code[0].replace(" ", "\0"), text)
    wrapped = textwrap.wrap(whole, WIDTH - 8, break_on_hyphens=False)
    return [f"        {line}".replace("\0", " ") for line in wrapped]


def decided(cells: dict[str, str]) -> str:
    """Return a row of the table in words: each rule once, with its statuses."""
    rules = [rule for rule in dict.fromkeys(cells.values()) if rule != "."]
    words = []
    for rule in rules:
        statuses = [status for status, cell in cells.items() if cell == rule]
        words.append(f"{rule}: {named(statuses)}")
    return "; ".join(words) or "nothing"


def named(statuses: list[str]) -> str:
    if set(statuses) >= set(STATUSES):
        return "any" if ABSENT in statuses else "any that is listed"
    return ", ".join(statuses)


def agents() -> list[str]:
    """Return what each agent reports, for the help: a table, and the exceptions below it."""
    shown = measured()
    marks = {"observed": "yes", "inferred": "inf.", "not known": "-"}
    widths = [max(5, len(cli.key) + 1) for cli in shown]
    columns = [(cli.key, width) for cli, width in zip(shown, widths, strict=True)]
    first = max(map(len, MOMENTS.values())) + 1
    lines = ["", f"{'':{first}}{''.join(f'{key:{width}}' for key, width in columns)}".rstrip()]
    for moment, heading in MOMENTS.items():
        cells = [ability_mark(moment, cli.abilities[moment]) for cli in shown]
        row = zip(cells, widths, strict=True)
        line = "".join(f"{marks.get(cell, cell):{width}}" for cell, width in row)
        lines.append(f"{heading:{first}}{line}".rstrip())
    lines.append("")
    for cli in shown:
        exceptions = [
            f"{MOMENTS[moment]}: {ability.when}"
            for moment, ability in cli.abilities.items()
            if ability.when
        ]
        if exceptions:
            lines += [f"{cli.name} ~", *textwrap.wrap("; ".join(exceptions) + ".", WIDTH), ""]
    return lines


def hook_files() -> list[str]:
    """Return where the hooks of each agent go."""
    lines = [""]
    for cli in installable():
        assert cli.hooks is not None
        note = ", a file of ours" if cli.hooks.own else ""
        note += ", which may contain comments" if cli.hooks.comments else ""
        lines.append(f"    {cli.key:14}`{cli.hooks.path({'HOME': '~'})}`{note}")
    return [*lines, ""]


#: Prints each option as JSON, with its default as it is written in Lua.
LISTING = r"""
vim.opt.rtp:prepend(vim.uv.cwd())
for _, option in ipairs(require('bellboard.config.options').options) do
  local path, default, kind, text = unpack(option, 1, 4)
  local is_table = type(default) == 'table' and next(default) ~= nil
  local shown = default ~= nil and not is_table and vim.inspect(default) or nil
  local keys = option.are_keys and default or nil
  local row = { path = path, default = shown, type = kind, text = text, keys = keys }
  io.write(vim.json.encode(row), '\n')
end
vim.cmd.quitall()
"""


#: Prints each subcommand as JSON.
SUBCOMMANDS = r"""
vim.opt.rtp:prepend(vim.uv.cwd())
for _, each in ipairs(require('bellboard.command').subcommands) do
  io.write(vim.json.encode({ name = each[1], arguments = each[2], text = each.desc }), '\n')
end
vim.cmd.quitall()
"""


def printed(lua: str) -> list[dict[str, Any]]:
    """Return the lines of JSON that Lua code prints."""
    argv = [ROOT / "tests/rig/nvim", "stable", "--clean", "--headless", "--cmd", f"lua {lua}"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def option_entries(listed: list[dict[str, Any]]) -> list[str]:
    """Return what each option is for, with its tag, type and default."""
    lines, groups = [""], set()
    for option in listed:
        path = option["path"]
        group = path.partition(".")[0]
        if "text" not in option:
            continue
        tag = f"*g:bellboard.{path}*"
        if group not in groups and group != path:
            tag = f"*g:bellboard.{group}* {tag}"
        groups.add(group)
        default = f", default {option['default']}" if "default" in option else ""
        if len(path) + len(tag) >= WIDTH:
            lines.append(f"{tag:>{WIDTH}}")
            tag = ""
        lines.append(f"{path}{tag:>{WIDTH - len(path)}}".rstrip())
        text = f"({option['type'].replace('|', ' | ')}{default}) {option['text']}"
        if keys := option.get("keys"):
            named = sorted((name, key) for key, name in keys.items())
            text += f" By default: {', '.join(f'{name} `{key}`' for name, key in named)}."
        lines += paragraph(text)
    return [*lines, ""]


def option_types(listed: list[dict[str, Any]]) -> str:
    """Return the classes of the options, for language servers."""
    classes: dict[str, list[str]] = {"": []}
    for option in listed:
        path = option["path"]
        if "*" in path:
            continue
        group, _, name = path.rpartition(".")
        if group and group not in classes:
            classes[group] = []
            classes[""].append(f"---@field {group} bellboard.Config.{group.capitalize()}")
        wrapped = textwrap.wrap(option.get("text", ""), 96)
        classes[group] += [f"--- {line}" for line in wrapped]
        optional = "" if "default" in option or option["type"].startswith("table<") else "?"
        classes[group].append(f"---@field {name}{optional} {option['type']}")
    parts = ["---@meta bellboard.config.types", "-- The options; written by doc/tables.py."]
    for group, fields in classes.items():
        name = f"bellboard.Config{'.' if group else ''}{group.capitalize()}"
        parts += ["", f"---@class (exact) {name}", *fields]
    base = "---@class bellboard.UserConfig: bellboard.Config, {}  every field is optional"
    return "\n".join([*parts, "", base, ""])


def commands(listed: list[dict[str, Any]]) -> list[str]:
    """Return each subcommand with its tag, for the help."""
    lines = [""]
    for each in listed:
        head, tag = f":ClaudeSessions {each['name']} {each['arguments']}".rstrip(), ""
        tag = f"*:ClaudeSessions-{each['name']}*"
        fits = len(head) + len(tag) < WIDTH
        lines += [f"{head}{tag:>{WIDTH - len(head)}}"] if fits else [f"{tag:>{WIDTH}}", head]
        lines += paragraph(each["text"])
    return [*lines, ""]


def mappings(listed: list[dict[str, Any]]) -> list[str]:
    """Return the tags of the mappings: each subcommand that needs no argument has one."""
    named = [each["name"] for each in listed if not each["arguments"].startswith("{")]
    tags = " ".join(f"*<Plug>(bellboard-{name})*" for name in named)
    return [f"{line:>{WIDTH}}" for line in textwrap.wrap(tags, WIDTH, break_on_hyphens=False)]


def abilities() -> list[str]:
    """Return the same as a table for the README."""
    names = " | ".join(cli.name for cli in measured())
    lines = ["", f"| A session … | {names} |", f"|---|{'---|' * len(measured())}"]
    for moment, heading in MOMENTS.items():
        marks = (ability_mark(moment, cli.abilities[moment]) for cli in measured())
        lines.append(f"| {heading} | {' | '.join(SHORT.get(text, text) for text in marks)} |")
    return [*lines, ""]


def with_section(text: str, begin: str, end: str, lines: list[str]) -> str:
    """Return a text with a section replaced; exit if a marker is missing."""
    whole = text.split("\n")
    if begin not in whole:
        raise SystemExit(f"no line {begin}")
    first = whole.index(begin) + 1
    return "\n".join([*whole[:first], *lines, *whole[whole.index(end, first) :]])


def comment(line: str) -> str:
    """Return a marker as Markdown has it."""
    return f"<!-- {line.strip('- ')} -->"


def written() -> dict[Path, str]:
    """Return the files with their generated sections as they should be."""
    listed, subcommands = printed(LISTING), printed(SUBCOMMANDS)
    sections = [
        (MANUAL, OPTIONS_BEGIN, END, option_entries(listed)),
        (MANUAL, COMMANDS_BEGIN, END, commands(subcommands)),
        (MANUAL, MAPPINGS_BEGIN, END, mappings(subcommands)),
        (AGENTS, AGENTS_BEGIN, END, agents()),
        (AGENTS, FILES_BEGIN, END, hook_files()),
        (RULEBOOK, comment(RULES_BEGIN), comment(END), rules()),
        (README, comment(AGENTS_BEGIN), comment(END), abilities()),
        (COMMANDS, f"  {AGENTS_BEGIN}", f"  {END}", [f"  '{key}'," for key in STARTABLE]),
    ]
    made = {TYPES: option_types(listed)}
    for path, begin, end, lines in sections:
        text = made[path] if path in made else path.read_text(encoding="utf-8")
        made[path] = with_section(text, begin, end, lines)
    return made


def main() -> int:
    made = written()
    if "--check" in sys.argv:
        return int(any(not x.exists() or x.read_text("utf-8") != made[x] for x in made))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
