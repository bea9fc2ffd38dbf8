"""Rules of this repository that no other test checks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from bellboard.agents.registry import KEYS, all_agents
from bellboard.cli import parser
from bellboard.storage.state_folder import STATE
from rig import ROOT
from rig.fetched import neovim, tools
from rig.fixtures import Editors
from rig.host.sample import QUIET

PACKAGE = ROOT / "rplugin/python3/bellboard"
README = (ROOT / "README.md").read_text()
#: Lines of help, all in all: what a user reads in an evening, and 250 for who writes scripts.
MOST_HELP = 1470 + 250
PAGES = {path: path.read_text() for path in sorted((ROOT / "doc").glob("*.txt"))}
MANUAL = "".join(PAGES.values())
TAGS = set(re.findall(r"(?<!\S)\*(\S+)\*(?!\S)", MANUAL))


def tracked(*suffixes: str) -> list[Path]:
    """Return the files of the repository, and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = [ROOT / name for name in listed.splitlines()]
    return [path for path in paths if path.is_file() and (not suffixes or path.suffix in suffixes)]


# Imports. Floors look down, and pure files touch nothing outside.

#: From the lowest; each may import what is on a lower one. `bellboard` is what starts the rest.
FLOORS = (
    *("core", "system", "storage", "agents", "witnesses", "fleet", "hosting", "diagnosis"),
    *("screen", "cli", "bellboard"),
)
#: What a floor may know of `core` that knows no session: text.
SYSTEM_MAY_KNOW = {"core.connection", "core.text", "core.untrusted"}
#: Files of `agents` itself that are no agent, and look outside.
LOOK_OUTSIDE = ("anonymous", "need", "server_terminals", "tailing")
PURE = (
    *sorted((PACKAGE / "core").rglob("*.py")),
    *sorted(path for path in (PACKAGE / "agents").glob("*.py") if path.stem not in LOOK_OUTSIDE),
    *sorted((PACKAGE / "agents").glob("*/agent.py")),
    *(
        PACKAGE / f"agents/{name}.py"
        for name in (
            *("installing/settings_file", "claude/dialog", "claude/hooks", "claude/reply"),
            *("claude/request", "claude/rules", "claude/screen", "claude/transcript"),
            *("codex/dialect", "codex/request", "opencode/dialect"),
        )
    ),
)
#: What of an agent may look at files, run programs and connect: it imports that when it runs.
DOORS: Final = frozenset(
    (
        *("observing", "installer", "reporting", "version", "session_of", "went_on", "asking"),
        *("conversation", "last_turn", "winner", "find", "answer", "say", "interrupt", "piece"),
        *("unshown", "_obstacles", "_remarks"),
    )
)
#: What an agent says of its hooks; a path there is only named.
HOOKS: Final = "agents.installing.hookline"
NO_IO = {
    *("__future__", "abc", "binascii", "bisect", "collections", "contextlib", "copy"),
    *("dataclasses", "datetime", "enum", "functools", "hashlib", "heapq", "ipaddress"),
    *("itertools", "json", "math", "msgspec", "posixpath"),
    *("operator", "re", "shlex", "string", "textwrap", "types", "typing", "typing_extensions"),
    *("unicodedata", "zlib"),
}
CLOCKS = re.compile(r"\b(datetime\.(now|utcnow|today)|date\.today|time\.time)\b")
#: Pure parts of modules that do I/O, and what loads pure modules.
PURE_PARTS = re.compile(r"pathlib\.Pure|urllib\.parse\b|importlib\b")
Node = TypeVar("Node", str, Path)


def name_of(path: Path) -> str:
    """`core.rules` of core/rules/__init__.py; `bellboard` of the package's own."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "bellboard"


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the syntax tree of a file, flat; the first node is the module."""
    return list(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> Iterator[str]:
    """Return the absolute names that a file imports, also within functions."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from named_by(node, path)


def named_by(node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[str]:
    """Return the absolute names that a statement in a file imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    package = ["bellboard", *path.relative_to(PACKAGE).parent.parts]
    below = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*below, *([node.module] if node.module else [])])
    yield from (f"{base}.{alias.name}" for alias in node.names)


def own(name: str) -> str | None:
    """Return the module of the package that an import names."""
    if name.split(".")[0] != "bellboard":
        return None
    inner = name.partition(".")[2]
    return next((m for m in (inner, inner.rpartition(".")[0]) if m in MODULES), "bellboard")


def is_agent(path: Path) -> bool:
    """Return whether a file has agents in it, with their doors."""
    return path.parent == PACKAGE / "agents" or path.name == "agent.py"


def purely(path: Path) -> Iterator[str]:
    """Return the imports of a file besides types, and besides the doors of an agent."""
    nodes = [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.FunctionDef) and is_agent(path) and node.name in DOORS:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from named_by(node, path)
        nodes += ast.iter_child_nodes(node)


@cache
def graph() -> dict[str, set[str]]:
    """Return the imports of each module; made on first use, as every worker collects this file."""
    return {
        name: {target for each in imported(path) if (target := own(each))} - {name}
        for name, path in MODULES.items()
    }


def outside_of(names: Iterable[str]) -> set[str]:
    """Return the imports among these that may do I/O."""
    names = {n.split(".")[0] for n in names if not PURE_PARTS.match(n)}
    return names - NO_IO - {"bellboard"}


def clocks_of(path: Path) -> set[str]:
    """Return the clocks that a file reads."""
    return {found[0] for found in CLOCKS.finditer(path.read_text())}


def floor_of(name: str) -> str:
    return name.split(".")[0] if name.split(".")[0] in FLOORS else "bellboard"


def circle(graph: dict[Node, set[Node]]) -> list[Node]:
    """Return the nodes of a cycle, by removing nodes without imports until none is left."""
    left = {name: set(targets) for name, targets in graph.items()}
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    while unused := [n for n in left if not any(n in targets for targets in left.values())]:
        for name in unused:
            del left[name]
    return sorted(left)


def test_each_file_imports_only_what_is_below() -> None:
    """No arrow leads up, and none leads back; imports within functions count as well."""
    up = [
        f"{name} imports {target}"
        for name, targets in graph().items()
        for target in sorted(targets)
        if FLOORS.index(floor_of(target)) > FLOORS.index(floor_of(name))
    ]
    assert up == []
    assert circle(graph()) == []


def test_folders_import_no_circle() -> None:
    """Nor do the folders within a floor; one within another is a part of it."""
    folders: dict[Path, set[Path]] = {path.parent: set() for path in MODULES.values()}
    for name, targets in graph().items():
        here = MODULES[name].parent
        for there in {MODULES[target].parent for target in targets}:
            if not here.is_relative_to(there) and not there.is_relative_to(here):
                folders[here].add(there)
    assert circle(folders) == []


def test_the_system_knows_no_session() -> None:
    """The lower layers could serve another program as they are."""
    known = {t for name, targets in graph().items() if floor_of(name) == "system" for t in targets}
    assert {t for t in known if floor_of(t) == "core"} == SYSTEM_MAY_KNOW


#: Files of fewer lines than these with one importer, and why each is a file of its own.
SHORT = 120
OF_THEIR_OWN: Final = {
    "agents.codex.trust": "only `hooks install` needs it: what Codex wants before it runs a hook",
    "core.spared": "pure, and only `bellboard rules` needs it",
    "hosting.decode": "loaded late: a command rarely finds a file to decode",
    "hosting.health": "what is asked first when something is wrong",
    "hosting.outward": "the board in another terminal, at a pace of its own",
    "hosting.outbox": "what happens to evidence that cannot be written",
    "witnesses.pull_requests": "off by default: it runs another program",
}


def test_a_short_file_with_one_importer_has_a_reason() -> None:
    """Otherwise it is a part of its importer, and a room more on the way of whoever reads that."""
    importers: dict[str, set[str]] = {name: set() for name in graph()}
    for name, targets in graph().items():
        for target in targets:
            importers[target].add(name)
    short = {
        name
        for name, found in importers.items()
        if len(found) == 1 and len(MODULES[name].read_text().splitlines()) < SHORT
    }
    assert short == OF_THEIR_OWN.keys()


def public_classes() -> dict[str, list[str]]:
    """Return the modules that define a class of each public name."""
    found: dict[str, list[str]] = {}
    for name, path in sorted(MODULES.items()):
        (module, *_) = nodes_of(path)
        for node in ast.iter_child_nodes(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    return found


def test_each_class_has_a_name_of_its_own() -> None:
    """Who reads `Asked` need not know which one is meant."""
    assert {n: where for n, where in public_classes().items() if len(where) > 1} == {}


#: Where an object makes another and hands itself over: what they are is one thing.
_OF_A_CLI: Final = "which CLI it is for: a description, and no parent"
ONE_THING: Final = {
    "agents.agent: Installer(home, environ, self)": _OF_A_CLI,
    "agents.claude.agent: ClaudeSessions(self, environ, brief)": _OF_A_CLI,
    "agents.claude.agent: Settings(home, environ, self)": _OF_A_CLI,
    "agents.copilot.agent: OpenSessions(self, environ, brief)": _OF_A_CLI,
    "agents.gemini: Logs(self, brief)": _OF_A_CLI,
    "storage.database: WriteLock(self)": "a connection and its lock",
    "storage.store: Transaction(self)": "the tables, and what is true of them until COMMIT",
}


def test_no_part_gets_its_parent() -> None:
    """A part that knows its parent can be understood only with it."""
    classes = public_classes()
    found = {
        f"{name}: {ast.unparse(node)}"
        for name, path in MODULES.items()
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in classes
        and any(isinstance(arg, ast.Name) and arg.id == "self" for arg in node.args)
    }
    assert found == ONE_THING.keys()


#: Where code outside agents/claude/ still names that CLI, and why.  This list should shrink.
NAMES_THE_CLI = {
    "agents/anonymous.py": "a part of paths that tells nothing about anybody",
    "cli/hooks.py": "its help and errors: the hooks are put into that CLI's settings",
    "core/events.py": "the agent of evidence and of records that name none",
    "core/session.py": "where that CLI makes the worktrees of its own agents",
    "diagnosis/__init__.py": "a heading of doctor, for users",
    "diagnosis/claude_code.py": "doctor's advice, and the places that it looks at",
    "storage/event_file.py": "the header that hooks/emit writes",
    "witnesses/repository.py": "where that CLI makes the worktrees of its own agents",
}
LISTS_OF_CLIS = {"agents/registry.py", "agents/documented.py"}
#: Where code imports that CLI by name, besides the lists of all.  This should shrink as well.
PLUGS_IT_IN = {"diagnosis/claude_code.py", "diagnosis/__init__.py"}
THE_CLI = re.compile("claude|anthropic", re.I)
#: Names of other CLIs that mean something else in our code, so nobody can tell; add yours if so.
ENGLISH = {"cursor", "amp"}
#: Where code outside its own file names another CLI, and why.
NAMES_ANOTHER = {
    ("cli/hooks.py", "codex"): "an example in its help",
    ("storage/event_file.py", "copilot"): "the header that hooks/emit writes",
}
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")


@cache
def words_of(path: Path) -> list[str]:
    """Return the names and strings in a file's code, without docstrings, comments and imports."""
    words: list[str] = []
    nodes = nodes_of(path)
    bodies = [n.body for n in nodes if isinstance(getattr(n, "body", None), list)]
    said = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            words.append("" if id(node) in said else str(node.value))
        elif isinstance(node, ast.Name | ast.Attribute | ast.FunctionDef | ast.ClassDef | ast.arg):
            names = (getattr(node, field, "") for field in ("id", "attr", "name", "arg"))
            words += map(str, names)
    return words


def test_nothing_outside_its_folder_names_the_cli() -> None:
    """Another CLI is another folder; both lists above are exact."""
    names, imports = set(), set()
    for path in MODULES.values():
        where = path.relative_to(PACKAGE).as_posix()
        if where.startswith("agents/claude/") or where in LISTS_OF_CLIS:
            continue
        if any(map(THE_CLI.search, words_of(path))):
            names.add(where)
        if any(map(THE_CLI.search, imported(path))):
            imports.add(where)
    assert NAMES_THE_CLI.keys() == names
    assert imports == PLUGS_IT_IN


def test_nothing_outside_its_folder_names_another_cli() -> None:
    """The same for the others, as whole words: the list is exact."""
    named = {
        (path.relative_to(PACKAGE).as_posix(), word.lower()): text
        for path in MODULES.values()
        for text in words_of(path)
        for word in _WORD.findall(text)
    }
    outside = {
        (where, word): text
        for (where, word), text in named.items()
        if word in {*KEYS} - {"claude"} - ENGLISH
        and where not in LISTS_OF_CLIS
        and not re.match(f"agents/{word}(/|[.]py)", where)
    }
    assert outside.keys() == NAMES_ANOTHER.keys(), (
        f"a name of a CLI as a word: {outside}; see ENGLISH and NAMES_ANOTHER"
    )


def test_pure_modules_do_no_io() -> None:
    """They touch nothing outside, and `now` is an argument; what they import is as pure.

    An agent is pure but for its doors; the path of its hooks is a value, and below no file but
    those of `system` looks at one.
    """
    pure = {name_of(path): path for path in PURE}
    broken = {}
    for name, path in pure.items():
        names = [*purely(path)]
        ours = {target for each in names if (target := own(each))} - {name, HOOKS}
        outside = outside_of(names) - ({"pathlib"} if is_agent(path) else set())
        if found := outside | clocks_of(path) | (ours - pure.keys()):
            broken[name] = found
    assert broken == {}


def test_files_that_promise_no_io_keep_that_promise() -> None:
    """The head of a file is true: it imports nothing that reads or writes."""
    promise = re.compile(r"no I/O")
    broken = {
        name: outside
        for name, path in MODULES.items()
        if promise.search(ast.get_docstring(nodes_of(path)[0]) or "")
        and (outside := outside_of(imported(path)) | clocks_of(path))
    }
    assert broken == {}


LUA = ROOT / "lua/bellboard"
LUA_REQUIRE = re.compile(r"require\('bellboard(?:\.([\w.]+))?'\)")
#: A string that Neovim evaluates later, or another Neovim.
EVALUATED = re.compile('"[^"]*"')
#: From the lowest; each may require what is on a lower one, and features may require each other.
#: What is not named here serves several of them.
LUA_FLOORS: Final = (
    *({"sessions"}, {"process"}, {"report"}, {"line"}),
    {"answer", "board", "float", "jump", "notify", "picker", "send", "statusline"},
    *({"start"}, {"command"}, {"init"}),
)


def lua_name_of(path: Path) -> str:
    """`board.page` of board/page.lua, `board` of board/init.lua, `init` of the topmost."""
    parts = path.relative_to(LUA).with_suffix("").parts
    return ".".join(parts if len(parts) == 1 else [part for part in parts if part != "init"])


@cache
def lua_graph() -> dict[str, set[str]]:
    """Return the modules that each Lua module requires, also within functions."""
    return {
        lua_name_of(path): {
            name or "init"
            for name in LUA_REQUIRE.findall(EVALUATED.sub("", path.read_text()))
            if name != lua_name_of(path)
        }
        for path in sorted(LUA.rglob("*.lua"))
    }


def lua_floor_of(name: str) -> int | None:
    return next((n for n, floor in enumerate(LUA_FLOORS) if name.split(".")[0] in floor), None)


def test_lua_modules_require_only_what_is_below() -> None:
    """No arrow leads up, none leads back, and folders form no circle; functions count as well."""
    graph = lua_graph()
    up = [
        f"{name} requires {target}"
        for name, targets in graph.items()
        for target in sorted(targets)
        if (here := lua_floor_of(name)) is not None
        and (there := lua_floor_of(target)) is not None
        and there > here
    ]
    assert up == []
    assert circle(graph) == []
    folders: dict[str, set[str]] = {name.split(".")[0]: set() for name in graph}
    for name, targets in graph.items():
        folder = name.split(".")[0]
        folders[folder] |= {target.split(".")[0] for target in targets} - {folder}
    assert circle(folders) == []


#: Short Lua modules that only one other requires, and why each is a file of its own.
LUA_OF_THEIR_OWN: Final = {
    "answer.diff": "a tab page of Neovim's own, and the files that it reads",
}
#: These begin a feature that they only start, run or publish.
BEGIN: Final = {"start", "command", "init"}


def test_a_short_lua_module_with_one_user_has_a_reason() -> None:
    """Otherwise it is a part of its user."""
    graph = lua_graph()
    users: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            users[target].add(name)
    for path in tracked(".lua"):
        if not path.is_relative_to(LUA):
            for name in re.findall(r"'bellboard\.?([\w.]*)'", path.read_text()):
                users.get(name or "init", set()).add(path.name)
    short = {
        name
        for name, found in users.items()
        if len(found) == 1 and not found & BEGIN and lua_lines(name) < SHORT
    }
    assert short - LUA_OF_THEIR_OWN.keys() == set()


def lua_lines(name: str) -> int:
    """Return the lines of a Lua module."""
    path = LUA / f"{name.replace('.', '/')}.lua"
    path = path if path.exists() else LUA / name.replace(".", "/") / "init.lua"
    return len(path.read_text().splitlines())


def test_each_type_of_lua_is_declared_once() -> None:
    """A language server would merge two of one name. Each that an annotation names exists."""
    annotations = [
        line.split("---", 1)[1]
        for path in sorted((ROOT / "lua").rglob("*.lua"))
        for line in path.read_text().splitlines()
        if "---" in line
    ]
    declares = re.compile(r"@(?:class|alias) (?:\(exact\) )?(bellboard\.[\w.]+)")
    declared = [name for line in annotations for name in declares.findall(line)]
    assert sorted(set(declared)) == sorted(declared)
    named = re.findall(r"\bbellboard(?:\.[A-Z]\w*)+", "\n".join(annotations))
    assert set(named) - {*declared} == set()


#: What connects to a socket that a path or an address names.
CONNECTS = re.compile(r"""AF_UNIX|create_connection|open_unix_connection|['"]tmux['"], ['"]-""")
#: What makes pipes and sockets in Lua, or runs tmux.
EDITOR_CONNECTS = re.compile(
    r"""new_(pipe|tcp|udp)|sockconnect|:connect\(|(tcp|pipe)_connect|rpcrequest|\{ *['"]tmux"""
)


#: What bash 3.2, the /bin/sh of macOS, or another shell does otherwise → what happens.
NOT_IN_BASH_3: Final = {
    r"\bcommand\b([ \t]|-p|\\\n)+exec\b": "in a sourced file, `exit` then never ends the shell",
    r"\$\([^()'\n]*\bcase\b": "the first `)` of a pattern ends the substitution",
    r"&>|\|&|;;?&|<<<|\$\{[a-zA-Z_]+(,|\^|@)|\bread +-[a-qs-zA-Z]": "unknown there, or in dash",
    r"(?m)^ *(local|declare|typeset|function|source|coproc|mapfile)\b": "not in each sh",
    r"<<-?": "a temporary file, which a full disk refuses",
}


def test_the_hook_has_nothing_that_an_old_shell_reads_otherwise() -> None:
    code = re.sub(r"(?m)(^| )#.*", "", (ROOT / "hooks/emit").read_text())
    assert {why for pattern, why in NOT_IN_BASH_3.items() if re.search(pattern, code)} == set()


def test_all_connections_pass_the_gate() -> None:
    """No other code connects to a tmux or to another Neovim."""
    found = [path for path in PACKAGE.rglob("*.py") if CONNECTS.search(path.read_text())]
    assert found == [PACKAGE / "system/gate.py"]


def test_the_editor_touches_no_socket() -> None:
    """Nor does it run tmux: the background process does, through the gate."""
    files = [*(ROOT / "lua").rglob("*.lua"), *(ROOT / "plugin").rglob("*.lua")]
    assert [path for path in files if EDITOR_CONNECTS.search(path.read_text())] == []


def test_ci_runs_on_the_neovim_of_its_matrix_and_names_actions_by_commit() -> None:
    """All jobs would run on one Neovim otherwise, and the owner of a tag can move it."""
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    assert 'BELLBOARD_NVIMS: "${{ matrix.neovim }}"' in text
    [names] = re.findall(r"neovim: \[(.*)\]", text)
    for name in names.replace('"', "").split(", "):
        assert name in (*neovim.LINES, "stable", "nightly")
    loose = re.findall(r"uses: (\S+)@(?![0-9a-f]{40} # v[0-9.]+$)", text, re.MULTILINE)
    assert loose == ["stevearc/nvim-typecheck-action"]  # see there


#: What looks at a path, except through `system/files.py`.
LOOKS: Final = frozenset(
    (
        *("stat", "lstat", "exists", "lexists", "is_file", "is_dir", "is_symlink", "isfile"),
        *("isdir", "islink", "realpath", "resolve", "readlink", "listdir", "scandir", "iterdir"),
        *("open", "read_text", "read_bytes", "glob", "rglob", "walk", "access", "which"),
    )
)
#: What only commands run, and what looks only at /proc, or follows nothing.
COMMANDS: Final = re.compile(r"agents/(installing/|\w+/installer\b|codex/trust)")
OF_PROC: Final = {"discovery.py: entry.stat", "discovery.py: os.scandir"} | {
    "discovery.py: Path(f'{PROC}/{pid}/exe').readlink"
}


def test_the_witnesses_look_at_files_only_where_their_thread_may() -> None:
    """A thread that waits for a FUSE mount keeps its host alive: only `system/files.py` is safe."""
    found = set()
    for path in (*PACKAGE.glob("witnesses/*.py"), *PACKAGE.rglob("agents/**/*.py")):
        if COMMANDS.search(str(path.relative_to(PACKAGE))):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                owner, _, last = name.rpartition(".")
                if last in LOOKS and (owner or last == "open") and owner != "self":
                    found.add(f"{path.name}: {name}")
    assert found == OF_PROC


#: What asks which system this is, directly or through psutil.
ASKS_THE_SYSTEM: Final = re.compile(r"sys\.platform|import psutil|os_uname")


def test_each_branch_on_the_platform_is_listed() -> None:
    """A reader on another system finds the differences in doc/architecture.md."""
    page = (ROOT / "doc/architecture.md").read_text()
    table = page[page.index("## What depends on the platform") : page.index("## What follows")]
    listed = set(re.findall(r"^\| `(\S+)` \|", table, re.MULTILINE))
    found = {
        str(path.relative_to(ROOT)).removeprefix("rplugin/python3/bellboard/")
        for path in tracked(".py", ".lua")
        if path.is_relative_to(PACKAGE) or path.is_relative_to(ROOT / "lua")
        if ASKS_THE_SYSTEM.search(path.read_text())
    }
    assert listed == found


def test_importing_the_plugin_is_cheap() -> None:
    """`import bellboard` runs inside other people's hosts: no third package but pynvim."""
    heavy = ("watchfiles", "psutil", "msgspec", "asyncinotify", "sqlite3")
    code = f"import bellboard, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# The manual.


def test_every_command_event_and_function_is_in_the_manual(nvim: Editors) -> None:
    """Everything a user can type has a help tag."""
    editor = nvim(config=QUIET, ui=False)
    verbs = editor.lua("return vim.fn.getcompletion('ClaudeSessions ', 'cmdline')")
    groups = editor.lua("return vim.tbl_keys(require('bellboard.highlight').highlights)")
    functions = editor.lua(
        "return vim.tbl_filter(function(n) return type(require('bellboard')[n]) == 'function' "
        "and n:sub(1, 1) ~= '_' end, vim.tbl_keys(require('bellboard')))"
    )
    lua = "".join(path.read_text() for path in tracked(".lua") if path.is_relative_to(ROOT / "lua"))
    wanted = {f":ClaudeSessions-{verb}" for verb in verbs}
    wanted |= {f"hl-{group}" for group in groups}
    wanted |= {f"bellboard.{name}()" for name in functions}
    wanted |= set(re.findall(r"pattern = '(Bellboard\w+)'", lua))
    wanted |= set(re.findall(r"\b([gb]:bellboard_\w+)", MANUAL))
    assert wanted - TAGS == set()
    written = {tag for tag in TAGS if re.fullmatch(r"bellboard\.\w+\(\)", tag)}
    assert written - wanted == set()


def test_every_tag_and_link_of_the_manual_is_good(nvim: Editors) -> None:
    """No duplicate tags, and every |link| into this manual has its *tag*. No `code` is broken
    over two lines: Neovim would show its backticks.
    """
    listed = re.findall(r"(?<!\S)\*(\S+)\*(?!\S)", MANUAL)
    assert len(listed) == len(TAGS)
    links = set(re.findall(r"\|((?:bellboard|g:bellboard|:Claude|Bellboard)[^|\s]*)\|", MANUAL))
    assert links - TAGS == set()
    assert [line for line in MANUAL.splitlines() if len(line) > 79 or line.count("`") % 2] == []
    assert len(MANUAL.splitlines()) <= MOST_HELP


def test_the_glossary_is_in_alphabetical_order() -> None:
    listed = (ROOT / "doc/internals.md").read_text().partition("## Glossary")[2]
    words = re.findall(r"^\* \*\*(.*?)\*\*", listed, re.MULTILINE)
    assert 15 < len(words) < 30  # the source explains itself
    assert words == sorted(words)


def test_everything_in_the_state_folder_is_in_the_manual() -> None:
    """The files that `uninstall --purge` deletes are those that doc/internals.md lists."""
    listed = (ROOT / "doc/internals.md").read_text()
    names = {*STATE, *(cli.keeps for cli in all_agents() if cli.keeps)}
    assert {x for x in names if f"\n{x.strip('-*')}" not in listed} == set()


def test_every_default_is_one_that_the_option_accepts(nvim: Editors) -> None:
    """The table of options is of one piece; its list in the manual is generated."""
    editor = nvim(ui=False)
    editor.lua("vim.opt.rtp:prepend(...)", str(ROOT))
    get = "return require('bellboard.config').get()"
    before = editor.lua(get)
    editor.lua("vim.g.bellboard = ...", before)
    editor.lua("require('bellboard.config').read()")
    assert editor.lua(get) == before
    assert editor.lua("return require('bellboard.config').problems()") == []


# The README.


def blocks(language: str) -> list[str]:
    """Return the README's code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def test_the_commands_of_the_readme_exist() -> None:
    """Each `make` of the README is a target that `make help` lists."""
    named = {word for block in blocks("sh") for word in re.findall(r"^make (\w+)", block, re.M)}
    named |= set(re.findall(r"`make (\w+)", README))
    assert {"try", "test"} <= named
    tools.executable("sed")
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name for name in named if f"make {name}" not in listed.stdout} - {"help"} == set()


def test_the_commands_in_the_tables_of_the_architecture_exist() -> None:
    """Each `bellboard …` in a table of doc/architecture.md is one that the parser accepts."""
    page = (ROOT / "doc/architecture.md").read_text()
    tables = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    named = re.findall(r"`bellboard ([^`]+)`", tables)
    assert {"doctor", "explain SESSION"} <= set(named)
    for line in named:
        parser().parse_args(line.split())


def test_the_configuration_of_the_readme_loads(nvim: Editors, version: str) -> None:
    """Every Lua block parses; the one with options runs without a warning."""
    editor = nvim(version, ui=False)
    editor.lua("vim.opt.rtp:prepend(...)", str(ROOT))
    for block in blocks("lua"):
        code = f"return {block}" if block.startswith("{") else block
        assert editor.lua("return type(loadstring(...))", code) == "function"
    (options,) = [block for block in blocks("lua") if "vim.g.bellboard = " in block]
    editor.lua(options)
    assert editor.lua("return require('bellboard.config').problems()") == []
    assert editor.nvim.api.eval_statusline(editor.lua("return vim.o.statusline"), {})["str"]
    assert editor.messages() == ""


def test_the_figures_of_the_readme_are_those_of_the_truth_page() -> None:
    """The newest version there has that number of scenes, and no change took longer."""
    page = (ROOT / "doc/truth.md").read_text()
    found = re.findall(r"^\* [\d.]+: (\d+) scenes, .* the slowest after ([\d.]+) s", page, re.M)
    claim = re.search(r"\[(\d+) scenes\]\(doc/truth.md\).*? within ([\d.]+) s", README, re.S)
    assert claim is not None
    assert found[0][0] == claim[1]
    assert max(float(slowest) for _, slowest in found) <= float(claim[2])


def test_links_in_the_readme_exist() -> None:
    """No dead link into this repository."""
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


# The tree.


def test_versions_agree() -> None:
    """pyproject, Python, Lua and the Claude Code plugin have the same version."""
    found = {
        "pyproject.toml": r'^version = "(.+)"',
        "rplugin/python3/bellboard/core/version.py": r'^VERSION: Final = "(.+)"',
        "lua/bellboard/process/program.lua": r"^M\.version = '(.+)'",
        ".claude-plugin/plugin.json": r'"version": "(.+?)"',
    }
    versions = {
        name: match[1]
        for name, pattern in found.items()
        if (path := ROOT / name).exists() and (match := re.search(pattern, path.read_text(), re.M))
    }
    assert set(found) - {".claude-plugin/plugin.json"} <= set(versions)
    assert len(set(versions.values())) == 1, versions


def test_the_map_has_every_folder_of_tests() -> None:
    """In CONTRIBUTING; the first of a row is named from the root, the others from `tests`."""
    rows = re.findall(r"^\| (`tests/.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    named = {name.removeprefix("tests/") for row in rows for name in re.findall("`(.+?)`", row)}
    tests = ROOT / "tests"
    inside = {path.relative_to(tests).parts for path in tracked() if tests in path.parents}
    assert {parts[0] for parts in inside if len(parts) > 1} == named


#: A source file in backticks, alone or in a command: `storage/spool.py`, `python doc/tables.py`.
SOURCE_NAMED: Final = re.compile(r"`(?:[^`\n]* )?([\w./-]*\w\.(?:py|lua))(?: [^`\n]*)?`")
#: What people read in a file: its docstrings and comments; all of a document.
PROSE: Final = {
    ".py": re.compile(r'""".*?"""|(?<!\S)#[^\n]*', re.S),
    ".lua": re.compile("--[^\n]*"),
    "": re.compile("#[^\n]*"),
    **dict.fromkeys((".md", ".txt"), re.compile(".+", re.S)),
}


def test_each_source_file_that_is_named_exists() -> None:
    """Who reads `spool.py` in a comment or document finds it, by the end of its path."""
    there = [f"/{path.relative_to(ROOT)}" for path in tracked(".py", ".lua")]
    missing = {
        (str(path.relative_to(ROOT)), name)
        for path in (*tracked(*filter(None, PROSE)), ROOT / "hooks/emit")
        for text in PROSE[path.suffix].findall(path.read_text())
        for name in SOURCE_NAMED.findall(text)
        if not any(each.endswith(f"/{name}") for each in there)
    }
    assert missing == set()


#: Cells for a message in a screen of 80 columns, beside 'showcmd' and the prefix `bellboard: `.
ROOM = 80 - len("bellboard: ") - 12
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'")


def test_every_message_fits_on_one_line() -> None:
    """Otherwise its middle, perhaps the important part, is cut out."""
    found = []
    for path in tracked(".lua"):
        text = path.read_text()
        for call in re.finditer(r"\b(?:message\.(?:info|warn|error)|host\.instead|say)\(", text):
            depth, at = 1, call.end()
            while depth:
                if literal := LITERAL.match(text, at):
                    said = literal[1].replace(":%s", ":ClaudeSessions")
                    found.append(said.replace("%s", "nobody").replace("%d", "10"))
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at = literal.end() if literal else at + 1
    assert len(found) > 50
    assert [said for said in found if len(said) > ROOM] == []


def test_no_file_knows_this_machine() -> None:
    """No published file has a path of the machine on which it was written."""
    places = {str(ROOT), str(Path.home())} - {"/root"}
    here = re.compile("|".join(rf"{re.escape(place)}(?=[/\"'\s])" for place in places))
    texts = {path: path.read_bytes().decode(errors="replace") for path in tracked()}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if here.search(text)] == []


def test_what_is_generated_in_the_help_and_the_readme_is_up_to_date() -> None:
    """`python doc/tables.py` writes it."""
    done = subprocess.run(
        [sys.executable, "doc/tables.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `python doc/tables.py`\n{done.stdout}{done.stderr}"
