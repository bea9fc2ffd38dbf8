"""The first start after installing the plugin, and occasions on which it does not start."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from editor.test_reports import LISTEN, QUERY, Program, becomes, status
from rig import ROOT
from rig.editor import Editor
from rig.fetched import neovim
from rig.fixtures import Editors
from rig.home import Home
from rig.waiting import eventually

SHIPPED = (
    "lua",
    "plugin",
    "rplugin",
    "hooks",
    "build.lua",
    "build.sh",
    "pyproject.toml",
    "requirements.txt",
    "README.md",
)
#: A uv without a network: it makes an environment from packages that are already here.
UV = f"""#!/bin/sh
echo "$*" >>"$HOME/uv.log"
[ -e "$HOME/offline" ] && {{ echo "error: no network" >&2; exit 2; }}
mkdir -p .venv/bin
printf '#!/bin/sh\\nexec {sys.executable} "$@"\\n' >.venv/bin/python
touch .venv/bin/bellboard
chmod +x .venv/bin/python
"""
RUNS = "return require('bellboard.process.talk').status().running"


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def plugin(home: Home) -> Path:
    """Return the plugin as just installed: not built, and a Python without packages."""
    root = home.root / "bellboard.nvim"
    root.mkdir()
    for name in SHIPPED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, root / name)
    program(home.bin / "uv", UV)
    for name in ("python3", "python"):
        program(home.bin / name, f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    shutil.rmtree(home.root / "state/nvim/bellboard")
    return root


def started(nvim: Editors, root: Path, version: str = neovim.NEWEST, lua: str = "") -> Editor:
    """Start Neovim with the plugin as it is."""
    return nvim(version, lua=f"vim.opt.rtp:prepend('{root}')\n{lua}")


def asks(editor: Editor, question: str) -> None:
    """Wait for a question whose keys answer."""
    editor.shows(question)
    footer = "return vim.inspect(vim.api.nvim_win_get_config(0).footer)"
    eventually(lambda: "BellboardKey" in editor.lua(footer), "keys that answer")


def test_the_first_start_asks_to_build_and_then_for_hooks(
    nvim: Editors, home: Home, plugin: Path, version: str
) -> None:
    """Two keys start it and show the hooks; neither question is asked again.

    It waits for another Neovim that is installing them in the same folder.
    """
    editor = started(nvim, plugin, version)
    asks(editor, "Install bellboard's Python packages?")
    assert "uv puts them into the plugin's folder" in editor.screen.text
    other = os.open(plugin, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    editor.press("y")
    editor.shows("another one is installing")
    assert not (home.root / "uv.log").exists()
    os.close(other)
    editor.shows("packages installed with uv")
    asks(editor, "Install Claude Code hooks?")
    assert (home.root / "uv.log").read_text().startswith("venv .venv\npip install --python ")
    assert editor.lua(RUNS)
    editor.press("y")
    written = home.claude / "settings.json"
    editor.shows("Write this to")
    assert not written.exists()
    editor.press("y<CR>")
    eventually(written.exists, "the hooks")
    editor.shows("next: start an agent")
    editor.shows("[Process exited 0]")
    editor.press("<CR>")  # the terminal closes
    editor.hides("next: start an agent")
    editor.command("ClaudeSessions path")
    editor.shows("linked: ")
    editor.shows(".local/bin is not on your PATH; add to ~/.profile")
    editor.press("q")
    editor.hides("linked: ")
    editor.command("ClaudeSessions forget nobody")
    editor.shows("forget: no session")
    editor.shows("list` to see them all")
    assert "Press ENTER" not in editor.screen.text
    again = started(nvim, plugin, version)
    eventually(lambda: again.lua(RUNS), "the host")
    eventually(lambda: again.lua("return require('bellboard').health().version"), "a push")
    assert "?" not in again.screen.text


def test_the_statusline_counts_agents_that_nothing_reads_yet(
    nvim: Editors, home: Home, plugin: Path, version: str
) -> None:
    """Before the build, agents are told that somebody reads; their reports are read after it."""
    editor = started(nvim, plugin, version)
    asks(editor, "Install bellboard's Python packages?")
    editor.press("n")
    editor.hides("Install bellboard's Python packages?")
    one, other = Program(editor, "one"), Program(editor, "other")
    assert one.asks().startswith(QUERY)
    assert "agent" not in editor.screen.text
    one.say(status("state=working"))
    editor.shows("bellboard: 1 agent here; :ClaudeSessions build")
    other.say(status("state=idle:id=part"), status("state=done"))
    editor.shows("bellboard: 2 agents here; :ClaudeSessions build")
    other.say(status("state=clear"))
    editor.shows("bellboard: 1 agent here; :ClaudeSessions build")
    other.say(status("state=idle"))
    editor.shows("bellboard: 2 agents here; :ClaudeSessions build")
    editor.lua("vim.fn.jobstop(vim.bo[...].channel)", other.buffer)
    editor.shows("bellboard: 1 agent here; :ClaudeSessions build")
    editor.command(f"bwipeout {other.buffer}")
    editor.lua(LISTEN)
    editor.command("ClaudeSessions build")
    editor.shows("packages installed with uv")
    editor.hides("agent here")
    becomes(editor, "7501;state=working")


def test_a_failed_build_says_why_and_other_keys_keep_their_meaning(
    nvim: Editors, home: Home, plugin: Path
) -> None:
    """The question does not block typing, and is not asked again after a no."""
    (home.root / "offline").touch()
    editor = started(nvim, plugin)
    asks(editor, "Install bellboard's Python packages?")
    editor.press("ihello<Esc>")
    editor.hides("Install bellboard's Python packages?")
    eventually(lambda: editor.lua("return vim.fn.getline(1)") == "hello", "what was typed")
    for name in ("python3", *(f"python3.{minor}" for minor in range(10, 15))):
        program(home.bin / name, "#!/bin/sh\nexit 1\n")
    editor.command("ClaudeSessions build")
    asks(editor, "could not be installed")
    shown = " ".join(editor.screen.text.replace("│", " ").replace("~", "").split())
    assert "uv failed: no network" in shown and "Python 3.10 or newer is missing" in shown
    assert "bellboard: not installed; :ClaudeSessions build tries again" in shown
    assert f"{plugin}/.build.log" in shown.replace(" ", "")
    editor.press("l")
    editor.shows("error: no network")
    assert not editor.lua(RUNS)
    editor.command("ClaudeSessions build")
    asks(editor, "could not be installed")
    (home.root / "offline").unlink()
    editor.press("r")
    editor.shows("packages installed with uv")


#: vim.pack has updated the plugin.
UPDATED = """
local data = { kind = 'update', path = ... }
vim.api.nvim_exec_autocmds('PackChanged', { pattern = '*', data = data })
"""


def test_an_update_starts_nothing_that_the_user_does_not_run(
    nvim: Editors, home: Home, plugin: Path
) -> None:
    """The process is restarted, unless `auto_start` is off or the user stopped it."""
    editor = started(nvim, plugin, lua="vim.g.bellboard = { auto_start = false }")
    channel = "return require('bellboard.process.talk').status().channel"
    editor.lua(UPDATED, str(plugin))
    eventually(lambda: " s; restart Neovim" in editor.messages(), "the end of the build")
    assert not editor.lua(RUNS)
    editor.command("ClaudeSessions process start")
    before = editor.lua(channel)
    assert before
    editor.lua(UPDATED, str(plugin))
    eventually(lambda: editor.lua(channel) not in (before, None), "another one")
    (home.root / "link").symlink_to(plugin.parent)
    before = editor.lua(channel)
    editor.lua(UPDATED, str(home.root / "link" / plugin.name))
    eventually(lambda: editor.lua(channel) not in (before, None), "another one, by a link")
    editor.command("ClaudeSessions process stop | messages clear")
    eventually(lambda: not editor.lua(RUNS), "its end")
    editor.lua(UPDATED, str(plugin))
    eventually(lambda: "installed with uv" in editor.messages(), "the end of the build")
    assert not editor.lua(RUNS)


ASK = "require('bellboard.dialog').ask('Sure?', { 'of it' }, { { 'y', 'yes' } })"


@pytest.mark.parametrize(
    "key", ["<Down>", "<BS>", "ö", "<M-x>", "<C-^>", "<F5>", "gz", "<C-\\><C-n>"]
)
def test_any_key_closes_a_question_and_acts_on_the_window_below(
    nvim: Editors, version: str, key: str
) -> None:
    """A key may be mapped to anything: no file opens in the question."""
    editor = nvim(version, {"auto_start": False, "answer": {"key_delay": 0}})
    editor.lua("vim.cmd('edit! second') vim.cmd('edit! first') vim.cmd('normal! 2oline')")
    editor.command("set hidden | nmap <F5> <C-^>| nmap gz <C-^>")
    editor.lua(ASK)
    asks(editor, "Sure?")
    editor.press(key)
    editor.hides("Sure?")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    opens = key in ("<C-^>", "<F5>", "gz")
    name = "return vim.fn.expand('%:t')"
    eventually(lambda: editor.lua(name) == ("second" if opens else "first"), "its effect")
    assert editor.messages() == ""


#: What an older Python does with our program.
OLD = "#!/bin/sh\necho 'bellboard needs Python 3.10 or newer; python3 is 3.8' >&2\nexit 1\n"


@pytest.mark.parametrize("lua", ["", "vim.g.python3_host_prog = '/nowhere/python3'"])
def test_a_machine_without_a_fit_python_is_offered_a_build(
    nvim: Editors, home: Home, plugin: Path, lua: str
) -> None:
    """uv brings a Python of its own; :checkhealth says what is wrong, without a traceback."""
    program(home.bin / "python3", OLD)
    editor = started(nvim, plugin, lua=lua)
    asks(editor, "Install bellboard's Python packages?")
    editor.command("checkhealth bellboard")
    lines = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
    report = editor.lua(lines)
    assert ":ClaudeSessions build" in report
    assert "crashes" not in report and "stderr" not in report and "doctor" not in report
    editor.command("ClaudeSessions build")
    eventually(lambda: editor.lua(RUNS), "the host")


def test_without_a_background_process_nothing_is_said_about_sessions(
    nvim: Editors, plugin: Path, version: str
) -> None:
    """The board and each message say what is wrong and what to do; a command asks after a `n`."""
    missing = "vim.g.python3_host_prog = '/nowhere/python3'"
    editor = started(nvim, plugin, version, lua=missing)
    asks(editor, "Install bellboard's Python packages?")
    editor.press("n")
    editor.shows(":ClaudeSessions build installs them later")
    wrong = 'cannot start "/nowhere/python3" (g:python3_host_prog)'
    for verb in ("next", "goto x", "answer", "triage", "snooze"):
        editor.command(f"messages clear | ClaudeSessions {verb}")
        said = f"bellboard: {wrong}; :ClaudeSessions build"
        eventually(lambda said=said: editor.messages() == said, verb)
        asks(editor, "Install bellboard's Python packages?")
        assert all(word in editor.screen.text for word in wrong.rsplit(" ", 1))
        editor.press("<Esc>")
        editor.hides("Install bellboard's Python packages?")
    editor.command("ClaudeSessions board")
    asks(editor, "Install bellboard's Python packages?")
    editor.press("<Esc>")
    editor.shows(f"Not running: {wrong}.")
    assert ":ClaudeSessions build" in editor.screen.text and "1  Start" not in editor.screen.text
    editor.press("q")
    editor.command("ClaudeSessions build")
    eventually(lambda: editor.lua(RUNS), "the host")
    editor.command("ClaudeSessions board")
    editor.shows("1  Start an agent")


#: A Python that fits, whose pip has no network: its last lines say nothing.
PIP = """#!/bin/sh
case $3 in
venv) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
pip) cat <<'SAID'
  ERROR: Could not find a version that satisfies the requirement hatchling (from versions: none)
  ERROR: No matching distribution found for hatchling>=1.24
  [end of output]
note: This error originates from a subprocess, and is likely not a problem with pip.
SAID
exit 1 ;;
esac
"""


def test_a_build_without_a_network_names_what_is_not_found(
    nvim: Editors, home: Home, plugin: Path
) -> None:
    """Not pip's note about itself."""
    (home.bin / "uv").unlink()
    program(home.bin / "python3", PIP)
    editor = started(nvim, plugin, lua="vim.g.python3_host_prog = '/nowhere/python3'")
    asks(editor, "Install bellboard's Python packages?")
    editor.press("y")
    editor.shows("could not be installed")
    shown = " ".join(editor.screen.text.replace("│", " ").replace("~", "").split())
    assert "pip failed: No matching distribution found for hatchling" in shown
    assert "Is there a network?" in shown


OCCASIONS = """
local file, auto_start = ...
vim.cmd.args(vim.fn.fnameescape(file))
return require('bellboard.process.autostart').wanted(auto_start)
"""


def test_it_does_not_start_without_a_user(nvim: Editors, home: Home, plugin: Path) -> None:
    """For a commit message, in VSCode, without a user interface, on an old Neovim, on Windows."""
    editor = nvim(config={"auto_start": False}, ui=False)
    files = {
        **dict.fromkeys((".git/COMMIT_EDITMSG", ".git/rebase-merge/git-rebase-todo"), False),
        **dict.fromkeys((".git/TAG_EDITMSG", ".git/addp-hunk-edit.diff"), False),
        **dict.fromkeys(("main.py", "fix.diff"), True),
    }
    assert files == {name: editor.lua(OCCASIONS, name, True) for name in files}
    assert not editor.lua(OCCASIONS, "main.py", False)
    assert editor.lua(
        "return require('bellboard.process.autostart').wanted(function() return true end)"
    )
    editor.command("let g:vscode = 1")  # which draws none of its windows
    assert editor.lua(OCCASIONS, "main.py", True) is False
    for how in ("-es", "-l"):
        loads = f"set rtp^={ROOT} | runtime plugin/bellboard.lua"
        status = "require('bellboard.process.talk').status()"
        code = f"vim.wait(300) io.stdout:write(tostring({status}.running))"
        script = home.file("script.lua", f"vim.cmd('{loads}') {code}")
        words = [how, str(script)] if how == "-l" else [how, f"+luafile {script}", "+qa!"]
        argv = [str(neovim.executable(neovim.NEWEST)), "--clean", *words]
        done = subprocess.run(argv, env=home.env, capture_output=True, text=True, check=True)
        assert done.stdout == "false"
    for lacks, said in (("nvim-0.10", "needs Neovim 0.10"), ("win32", "does not run on Windows")):
        fakes = f"""
            local has = vim.fn.has
            vim.fn.has = function(what)
              if what == '{lacks}' then return has(what) == 1 and 0 or 1 end
              return has(what)
            end
        """
        old = started(nvim, plugin, lua=fakes)
        eventually(lambda old=old, said=said: said in old.messages(), said)
        assert old.lua("return vim.fn.exists(':ClaudeSessions')") == 0
        assert old.messages().count("bellboard") == 1


@pytest.mark.parametrize("agents", [["codex"], ["codex", "gemini"]])
def test_the_question_about_hooks_says_what_is_missing_without_them(
    nvim: Editors, home: Home, agents: list[str]
) -> None:
    """Some agents are listed without hooks, others are not."""
    for agent in agents:
        program(home.bin / agent, "#!/bin/sh\n")
    shutil.rmtree(home.root / "state/nvim/bellboard")
    editor = nvim(config={})
    asks(editor, "Install Claude Code, Codex")
    editor.shows("those of " if "gemini" in agents else "listed all the same")
