"""The rules of this repository that no other test would notice."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rig.fixtures import Editors
from sample import QUIET

pytestmark = pytest.mark.house

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rplugin/python3/bellboard"
README = (ROOT / "README.md").read_text()
MANUAL = (ROOT / "doc/bellboard.txt").read_text()
TAGS = set(re.findall(r"(?<!\S)\*(\S+)\*(?!\S)", MANUAL))


def tracked(*suffixes: str) -> list[Path]:
    """Files of the repository, and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = [ROOT / name for name in listed.splitlines()]
    return [path for path in paths if path.is_file() and (not suffixes or path.suffix in suffixes)]


# Imports. The pure modules know no clock, no path and no process; each knows only those below it.

PURE = (
    *sorted(str(path.relative_to(PACKAGE)) for path in (PACKAGE / "core").rglob("*.py")),
    *(
        f"agents/claude_code/installer/{name}.py"
        for name in ("jsontext", "settings_text", "hookline")
    ),
    *(f"agents/{name}.py" for name in ("evidence", "trace")),
    *sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.glob("agents/*/dialect/*.py")),
)
NO_IO = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "msgspec",
    "operator",
    "re",
    "string",
    "textwrap",
    "types",
    "typing",
    "typing_extensions",
    "unicodedata",
    "zlib",
}
CLOCKS = re.compile(r"\b(datetime\.(now|utcnow|today)|date\.today|time\.time)\b")


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports; siblings begin with a dot."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if all(alias.name.startswith("Pure") for alias in node.names):
                continue  # a PurePath touches no disk
            base = "." * node.level + (node.module or "")
            names |= {base} if node.module else {base + alias.name for alias in node.names}
    own = {"." + name.removeprefix("bellboard.") for name in names if name.startswith("bellboard.")}
    return own | {n.split(".")[0] if n[0] != "." else n for n in names if "bellboard" not in n}


def siblings(path: Path) -> set[Path]:
    """The files of the package that a file imports."""
    found = set()
    for name in imported(path):
        if name.startswith("."):
            level = len(name) - len(name.lstrip("."))
            base = [path.parent, *path.parent.parents][level - 1]
            target = base.joinpath(*name.lstrip(".").split("."))
            for candidate in (target.with_suffix(".py"), target / "__init__.py"):
                found |= {candidate} if candidate.is_file() else set()
    return found


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_do_no_io(name: str) -> None:
    """Neither they nor their imports touch the outside; `now` is an argument."""
    seen: set[Path] = set()
    waiting = [PACKAGE / name]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        outside = {n for n in imported(path) if not n.startswith(".")} - NO_IO
        assert not outside, f"{path.relative_to(ROOT)} imports {', '.join(sorted(outside))}"
        clock = CLOCKS.search(path.read_text())
        assert not clock, f"{path.relative_to(ROOT)} reads a clock: {clock}"
        waiting += siblings(path) - seen


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("core/events", "core/machine"),
        ("core/machine", "core/board"),
        ("core/board", "agents/trace"),
        ("core/board", "hosting/host"),
    ],
)
def test_imports_go_one_way(lower: str, upper: str) -> None:
    """events ← machine ← board ← trace, host: never the other way, not even indirectly."""
    below, above = PACKAGE / f"{lower}.py", PACKAGE / f"{upper}.py"
    assert above.exists()
    seen: set[Path] = set()
    waiting = [below]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        waiting += siblings(path) - seen
    assert above not in seen, f"{lower} must not know {upper}"


#: What connects to a socket that a path or an address names, in either language.
CONNECTS = re.compile(
    r"AF_UNIX|create_connection|open_unix_connection|new_pipe|fn\.sockconnect"
    r"""|['"]tmux['"], ['"]-"""
)


def test_all_connections_pass_the_gate() -> None:
    """Nothing else connects to a tmux or to another Neovim."""
    found = {
        str(path.relative_to(ROOT))
        for folder in (PACKAGE, ROOT / "lua", ROOT / "plugin")
        for path in folder.rglob("*.*")
        if path.suffix in (".py", ".lua") and CONNECTS.search(path.read_text())
    }
    assert found == {"rplugin/python3/bellboard/system/gate.py", "lua/bellboard/gate.lua"}


def test_importing_the_plugin_is_cheap() -> None:
    """`import bellboard` runs inside other people's hosts: no third package but pynvim."""
    heavy = ("watchfiles", "psutil", "rich", "msgspec", "asyncinotify", "sqlite3")
    code = f"import bellboard, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# The manual.


def test_every_option_command_event_and_function_is_in_the_manual(nvim: Editors) -> None:
    """Everything a user can type has a help tag."""
    editor = nvim(config=QUIET, ui=False)
    keys = editor.lua("return require('bellboard.config').keys()")
    verbs = editor.lua("return vim.fn.getcompletion('ClaudeSessions ', 'cmdline')")
    groups = editor.lua("return vim.tbl_keys(require('bellboard.ui').highlights)")
    functions = editor.lua(
        "return vim.tbl_filter(function(n) return type(require('bellboard')[n]) == 'function' "
        "and n:sub(1, 1) ~= '_' end, vim.tbl_keys(require('bellboard')))"
    )
    lua = "".join(path.read_text() for path in tracked(".lua") if path.is_relative_to(ROOT / "lua"))
    wanted = {f"g:bellboard.{key}" for key in keys}
    wanted |= {f":ClaudeSessions-{verb}" for verb in verbs}
    wanted |= {f"hl-{group}" for group in groups}
    wanted |= {f"bellboard.{name}()" for name in functions}
    wanted |= set(re.findall(r"pattern = '(Bellboard\w+)'", lua))
    wanted |= set(re.findall(r"\b([gb]:bellboard_\w+)", MANUAL))
    assert wanted - TAGS == set()


def test_every_tag_and_link_of_the_manual_is_good(nvim: Editors) -> None:
    """No duplicate tags, and every |link| into this manual has its *tag*."""
    listed = re.findall(r"(?<!\S)\*(\S+)\*(?!\S)", MANUAL)
    assert len(listed) == len(TAGS)
    links = set(re.findall(r"\|((?:bellboard|g:bellboard|:Claude|Bellboard)[^|\s]*)\|", MANUAL))
    assert links - TAGS == set()
    assert [line for line in MANUAL.splitlines() if len(line) > 79] == []


def test_the_defaults_in_the_manual_are_the_defaults(nvim: Editors) -> None:
    """The block of options changes nothing and warns of nothing when it is run."""
    editor = nvim(ui=False)
    editor.lua("vim.opt.rtp:prepend(...)", str(ROOT))
    before = editor.lua("return require('bellboard.config').get()")
    block = MANUAL[MANUAL.index("*bellboard-options*") :]
    editor.lua(block[block.index(">lua") + 4 : block.index("\n<\n")])
    editor.lua("require('bellboard').setup()")
    assert editor.lua("return require('bellboard.config').get()") == before
    assert editor.lua("return require('bellboard.config').problems()") == []


# The README.


def blocks(language: str) -> list[str]:
    """The README's code blocks in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def test_the_commands_of_the_readme_exist() -> None:
    """Each `make` of the README is a target that `make help` lists."""
    named = {word for block in blocks("sh") for word in re.findall(r"^make (\w+)", block, re.M)}
    named |= set(re.findall(r"`make (\w+)", README))
    assert {"try", "test"} <= named
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name for name in named if f"make {name}" not in listed.stdout} - {"help"} == set()


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
        "lua/bellboard/init.lua": r"^M\.version = '(.+)'",
        ".claude-plugin/plugin.json": r'"version": "(.+?)"',
    }
    versions = {
        name: match[1]
        for name, pattern in found.items()
        if (path := ROOT / name).exists() and (match := re.search(pattern, path.read_text(), re.M))
    }
    assert set(found) - {".claude-plugin/plugin.json"} <= set(versions)
    assert len(set(versions.values())) == 1, versions


def test_every_test_names_its_layer() -> None:
    """Every test has a marker, so that a layer can be run or left out."""
    layers = re.findall(r'^  "(\w+): ', (ROOT / "pyproject.toml").read_text(), re.M)
    assert len(layers) >= 7
    none = "not (" + " or ".join(layers) + ")"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "-m", none],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stdout  # nothing to collect


LONG = 600  # lines; about 300 can be taken in at one sitting, and tests are read one by one


def test_no_file_is_too_long_to_read() -> None:
    """A file that is longer than one sitting is divided."""
    sources = [path for path in tracked(".py", ".lua", ".sh") if path.is_relative_to(ROOT)]
    lengths = {path: len(path.read_text().splitlines()) for path in sources}
    assert {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > LONG} == {}


def test_no_file_knows_this_machine() -> None:
    """Nothing published holds a path of the machine it was written on."""
    places = {str(ROOT), str(Path.home())} - {"/root"}
    here = re.compile("|".join(rf"{re.escape(place)}(?=[/\"'\s])" for place in places))
    texts = {path: path.read_bytes().decode(errors="replace") for path in tracked()}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if here.search(text)] == []


def test_the_table_of_rules_in_the_manual_is_up_to_date() -> None:
    """`python doc/tables.py` writes it."""
    done = subprocess.run(
        [sys.executable, "doc/tables.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
