"""The rig: each of its parts does once what all other tests take for granted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellboard.agents.claude.hooks import KINDS
from bellboard.system.processes import tty_of
from live.seen import hook_names
from rig import ROOT, reaper, warm
from rig.agents.agent import elicitation
from rig.agents.api import Api
from rig.agents.scenarios import SCENARIOS, Failure
from rig.fetched import cache, claude_code
from rig.fetched.cache import Missing
from rig.fixtures import Agents, Editors, Screens, dealt
from rig.home import Home
from rig.machines.apart import unable
from rig.machines.loopback import Watch
from rig.machines.ssh import Container, machines
from rig.reaper import lives
from rig.tmux import Server
from rig.waiting import PATIENCE, eventually, leniency


@pytest.mark.files
def test_a_wait_ends_with_the_first_true_value_or_a_reason() -> None:
    """A failing look-up or assertion of the predicate means not yet, and is named at the end."""
    answers: list[Any] = [AssertionError(), KeyError(), IndexError(), FileNotFoundError(), 0, "now"]

    def look() -> Any:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    assert eventually(look) == "now"
    answers.append(KeyError("the moon"))
    with pytest.raises(KeyError, match="the moon"):
        eventually(look, within=-1.0)
    with pytest.raises(AssertionError, match="the moon"):
        eventually(lambda: False, "the moon", within=0.0)


@pytest.mark.files
def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text("import os, time; open(str(os.getpid()), 'w'); time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run([str(script)], env={}, cwd=tmp_path, timeout=0.5 * leniency(1.0))
    assert [path for path in tmp_path.iterdir() if Path("/proc", path.name).exists()] == []


@pytest.mark.files
def test_a_home_holds_every_folder_that_its_environment_names(home: Home) -> None:
    """The paths are short enough for sockets, and programs in it ask no registry."""
    named = [value for key, value in home.env.items() if key.startswith("XDG_")]
    named += [home.env["TMPDIR"], home.env["CLAUDE_CONFIG_DIR"], home.env["HOME"]]
    assert all(Path(path).is_dir() and path.startswith(str(home.root)) for path in named)
    assert not home.bellboard.exists()  # the product creates it
    assert len(str(home.root)) < 40
    done = subprocess.run(["npm", "--version"], env=home.env, capture_output=True, check=False)
    assert (1, b"", b"") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.files
def test_a_kept_folder_is_filled_once_and_whole(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed fill leaves nothing and is not retried for a while."""
    monkeypatch.setenv("BELLBOARD_CACHE", str(home.root / "kept"))
    fills = []

    def fill(draft: Path, target: Path) -> None:
        fills.append(target)
        (draft / "half").touch()
        if len(fills) == 1:
            raise Missing("the first time")

    for _ in range(2):
        with pytest.raises(Missing, match="the first time"):
            cache.kept("thing", fill)
    assert len(fills) == 1
    assert list((home.root / "kept").glob("*thing*/*")) == []
    monkeypatch.setattr(cache, "remembered", 0.0)
    assert (cache.kept("thing", fill) / "half").exists()
    cache.kept("thing", fill)
    assert len(fills) == 2


def ask(api: Api, prompt: str, *more: dict[str, Any], **extra: Any) -> str:
    """Send a request as the CLI does."""
    first = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    asked = {"model": "m", "messages": [first, *more], "tools": [{"name": "Bash"}], **extra}
    request = urllib.request.Request(f"{api.url}/v1/messages?beta=true", json.dumps(asked).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


@pytest.mark.files
def test_the_model_plays_a_scenario_streams_it_and_fails(api: Api) -> None:
    """The marker picks the scenario, the number of answers the turn; pace 0 removes the waits."""
    first = json.loads(ask(api, "play:bash"))
    assert first["stop_reason"] == "tool_use"
    turn = {"role": "assistant", "content": first["content"]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}
    assert json.loads(ask(api, "play:bash", turn, result))["content"][0]["text"] == "Done."
    api.pace = 0
    rows = ask(api, "play:slow", stream=True).splitlines()
    events = [json.loads(row[6:]) for row in rows if row.startswith("data: ")]
    words = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert SCENARIOS["slow"][0].blocks[0].text == "".join(words)  # type: ignore[union-attr]
    for name, (failure, *_) in SCENARIOS.items():
        if isinstance(failure, Failure) and name[1:].isdecimal():
            with pytest.raises(urllib.error.HTTPError) as caught:
                ask(api, f"play:{name}")
            with caught.value as answer:
                error = json.load(answer)["error"]["type"]
                assert (int(name[1:]), failure.type) == (answer.code, error)


# Connecting a datagram socket sends nothing, and 198.51.100.0/24 is not in use.
CONNECT = "import socket; s = socket.socket(type=2); print(s.connect_ex(('{}', 9))); input()"


@pytest.mark.files
@pytest.mark.parametrize(("host", "beyond"), [("127.0.0.1", False), ("198.51.100.1", True)])
def test_the_watch_sees_outside_connections(host: str, beyond: bool) -> None:
    """A socket that only points outside counts, and so does a client of the proxy."""
    pipe = subprocess.PIPE
    code = ["-uc", CONNECT.format(host)]
    with Watch() as watch, subprocess.Popen([sys.executable, *code], stdin=pipe, stdout=pipe) as it:
        watch.follow(it.pid)
        assert it.stdout is not None
        refused = int(it.stdout.readline())
        eventually(lambda: watch.sockets, "a socket")
        if beyond and not refused:  # without any network there is nothing to see
            eventually(lambda: watch.outside, "the address")
        it.kill()
        assert (beyond and not refused) == any(host in address for address in watch.outside)
        proxies = urllib.request.ProxyHandler({"https": watch.env["HTTPS_PROXY"]})
        with pytest.raises(OSError):
            urllib.request.build_opener(proxies).open("https://example.invalid/", timeout=PATIENCE)
    assert any("example.invalid:443" in line for line in watch.spoke_out())


LENGTH = st.integers(0, 8)


@pytest.mark.files
@given(LENGTH, LENGTH, LENGTH, st.integers(1, 4))
def test_slow_tests_are_dealt_first_and_none_is_lost(
    slow: int, usual: int, brief: int, workers: int
) -> None:
    order = dealt("ABCD", "abcdefgh", "123", 3)
    assert ["ADab1", "Bcde2", "Cfgh3"] == ["".join(order[n : n + 5]) for n in (0, 5, 10)]
    decks = [
        [f"{kind}{n}" for n in range(count)] for kind, count in enumerate((slow, usual, brief))
    ]
    assert sorted(chain(*decks)) == sorted(dealt(decks[0], decks[1], decks[2], workers))


def pytest_run(*args: str, env: dict[str, str]) -> tuple[int, str]:
    """Run pytest in this checkout, as from a shell."""
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *args]
    done = subprocess.run(run, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


ZSH = "zsh is not here, and there is no apt-get to fetch zsh; install it"


@pytest.mark.files
@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"BELLBOARD_SKIP": "files"}, 0, "skipped layers: files"),
        ({"BELLBOARD_SKIP": "fils"}, 4, "names no layer: fils"),
        ({}, 0, f"left out: 12 tests in test_emit.py: {ZSH}"),
        ({"BELLBOARD_WHOLE": "1"}, 1, f"cannot be had: {ZSH}"),
    ],
)
def test_what_does_not_run_is_named(home: Home, given: Any, code: int, said: str) -> None:
    """A layer is left out on request, a test for want of a tool; where all must run, it fails."""
    kept = home.root / "kept"
    kept.mkdir()
    (kept / ".zsh.missing").write_text("there is no apt-get to fetch zsh; install it")
    env = {**home.env, "PATH": str(home.bin), "BELLBOARD_CACHE": str(kept), **given}
    ended, shown = pytest_run("-k", "odd_arguments and zsh", "tests/files/test_emit.py", env=env)
    assert code == ended, shown
    assert said in shown


BAD = {
    "test_starts.py": ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen"),
    "test_fetches.py": (
        "from rig.fetched import cache\ncache.kept('zsh', lambda *_: None)",
        "zsh is fetched while tests are collected",
    ),
    "test_nameless.py": ("def test_it(): pass", "test_it names none of the layers core"),
}


@pytest.mark.files
def test_collecting_starts_and_fetches_nothing(home: Home) -> None:
    """A start or a fetch would end any run; so does a test that names no layer."""
    for name, (text, _) in BAD.items():
        home.file(name, text)
    plugins = ("-p", "rig.fixtures", "-p", "rig.collecting", "-c", str(ROOT / "pyproject.toml"))
    env = {**home.env, "PYTHONPATH": f"{ROOT}/tests", "BELLBOARD_CACHE": f"{home.root}/kept"}
    ended, shown = pytest_run(*plugins, str(home.project), env=env)
    assert ended != pytest.ExitCode.OK
    assert [] == [why for _, why in BAD.values() if why not in shown], shown
    assert not (home.root / "kept").exists()


@pytest.mark.editor
def test_a_neovim_is_signed_by_debian_and_of_a_known_version(home: Home) -> None:
    """Nothing else is fetched, and the refusal is one line."""
    run: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    refused = subprocess.run([ROOT / "tests/rig/nvim", "0.9"], **run)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert "0.10, 0.12" in refused.stderr
    if shutil.which("apt-get", path=home.env["PATH"]) is None:
        return  # nothing is fetched on this machine
    dist = home.root / "mirror/dists/sid"
    dist.mkdir(parents=True)
    (dist / "Release").write_text("Suite: sid\nCodename: sid\nComponents: main\n")
    kept, mirror = home.root / "kept", f"file://{home.root}/mirror"
    env = {**home.env, "BELLBOARD_CACHE": str(kept), "BELLBOARD_MIRROR": mirror}
    done = subprocess.run([ROOT / "tests/rig/nvim", "0.12"], env=env, **run)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not signed" in done.stderr
    assert list(kept.glob("[!.]*")) == []


FLOAT = """
vim.o.laststatus, vim.o.ruler, vim.o.statusline = 2, false, ' a statusline %#WarningMsg# warned '
vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'hello 世界', 'second line' })
vim.fn.matchadd('ErrorMsg', '世')
local buf = vim.api.nvim_create_buf(false, true)
vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'afloat' })
vim.api.nvim_open_win(buf, false, {
  relative = 'editor', row = 1, col = 20, width = 10, height = 2,
  style = 'minimal', border = 'rounded',
})
"""


@pytest.mark.screen
def test_an_editor_is_alone_is_seen_and_ends_with_its_children(
    nvim: Editors,
    screen: Screens,
    version: str,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text, wide characters, a float and scrolled lines are where they are drawn, in color.

    A prompt that blocks every request is visible as well; a wrong screen is seen to be wrong.
    """
    monkeypatch.setenv("BELLBOARD_CANARY", "of the test run")
    editor = nvim(version, columns=40, lines=8)
    ours = {"VIM", "VIMRUNTIME", "NVIM", "MYVIMRC", "NVIM_LOG_FILE"}
    assert set(editor.lua("return vim.fn.environ()")) - ours == set(home.env)
    with pytest.raises(AssertionError, match=r"rig\.txt differs"):
        Screens(rewrite=False).matches(editor, "rig", within=0.1)
    editor.lua(FLOAT)
    picture = editor.shows("afloat")
    groups = {text: picture.groups_of(text) for text in ("afloat", "世", "warned")}
    assert groups == {"afloat": ["NormalFloat"], "世": ["ErrorMsg"], "warned": ["WarningMsg"]}
    screen.matches(editor, "rig")
    editor.lua(
        "for n = 1, 99 do vim.api.nvim_buf_set_lines(0, n - 1, -1, false, { tostring(n) }) end"
    )
    editor.command("fclose!")
    editor.hides("afloat")
    editor.press("15<C-e>")
    editor.shows("16\n17\n18")
    editor.press("2<C-e>")
    editor.shows("18\n19\n20\n21\n22\n23")
    editor.press("2<C-y>")
    editor.shows("16\n17\n18\n19\n20\n21")
    editor.nvim.command('echo "one\\ntwo\\nthree"', async_=True)
    editor.shows("Press ENTER")
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="waits for a key"):
        patch.setattr("rig.editor.PROMPT", 0.5)
        editor.command("quit")
    editor.press("<CR>")
    assert editor.lua("return vim.fn.mode()") == "n"
    pid = editor.lua("vim.cmd.terminal('sleep 600') return vim.fn.jobpid(vim.bo.channel)")
    job = psutil.Process(pid)
    editor.close()
    eventually(lambda: not lives(job), "the end of the job")


@pytest.mark.tmux
def test_a_pane_inherits_nothing_and_ends_with_its_server(
    tmux: Server, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed text arrives, the screen is read; what ignores a hang-up is ended all the same."""
    monkeypatch.setenv("BELLBOARD_CANARY", "of the test run")
    pane = tmux.open(["sh", "-c", "env; trap '' HUP TERM; read x; echo $((6 * x)); sleep 600"])
    pane.shows("TMUX_PANE=")
    names = {line.partition("=")[0] for line in pane.text().splitlines() if "=" in line}
    added = {"TMUX", "TMUX_PANE", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "PWD", "OLDPWD"}
    assert names - added - {"SHLVL", "_"} <= set(home.env)
    pane.type("7")
    pane.press("Enter")
    pane.shows(r"(?m)^42$")
    process = psutil.Process(pane.pid)
    assert (pane.tty, "sh") == (tty_of(pane.pid), process.name())
    monkeypatch.setattr(reaper, "GRACE", 0.2)  # it ignores that, however long
    tmux.close()
    assert not lives(process)
    tmux.close()


@pytest.fixture
def namespaces() -> None:
    """Skip the test where no namespaces can be made."""
    if why := unable():
        pytest.skip(why)


@pytest.fixture(params=["here", "apart"])
def apart(request: pytest.FixtureRequest) -> Iterator[bool]:
    if request.param == "apart":
        request.getfixturevalue("namespaces")
    yield request.param == "apart"


@pytest.mark.files
def test_a_machine_crashes_boots_and_is_cut_off(apart: bool) -> None:
    """A login finds a home of its own; a crash ends what is left of a login, a cut nothing."""
    with machines("dev", apart=apart) as (machine,):

        def sleeping() -> set[str]:
            of = psutil.process_iter(["cmdline", "environ"])
            ours = [p.info for p in of if (p.info["environ"] or {}).get("HOME") == str(home.root)]
            return {i["cmdline"][1] for i in ours if (i["cmdline"] or [""])[0] == "sleep"}

        def reached() -> bool:
            argv = [*machine.ssh[:-1], "-o", "ConnectTimeout=1", machine.ssh[-1], "true"]
            return subprocess.run(argv, capture_output=True).returncode == 0

        home = machine.home
        said = machine.reach("echo $HOME $BELLBOARD_HOME; ~/.local/bin/bellboard --version").split()
        assert said[:3] == [str(home.root), str(home.bellboard), "bellboard"], said
        machine.tmux.open(["sleep", "611"])
        machine.reach("setsid sleep 612 >/dev/null 2>&1 &")
        eventually(lambda: sleeping() == {"611", "612"}, "two sleepers")
        machine.crash()
        assert sleeping() == set()
        assert "refused" in machine.reach("echo here")
        machine.boot()
        assert machine.reach("echo here") == "here\n"
        machine.cut()
        assert not reached()
        machine.mend()
        eventually(reached, "an answer")


@pytest.mark.files
@pytest.mark.usefixtures("namespaces")
def test_a_container_has_its_own_processes_and_terminals() -> None:
    container = Container()
    process = psutil.Process(container.place.first)
    try:
        first, own = container.run(
            "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; echo; echo $$"
        ).split("\n")[:2]
        assert "init" in first and int(own) < 20  # counted from one in there
        assert container.tmux.open(["sh"]).tty == "/dev/pts/0"
        (container.home.project / "here").touch()
        assert "here" in container.run("ls", container.home.project)
    finally:
        container.close()
    assert not lives(process)


@pytest.mark.live
@pytest.mark.parametrize("version", claude_code.VERSIONS)
def test_each_claude_is_the_one_that_was_pinned(version: str, home: Home) -> None:
    """A different checksum would be noticed."""
    parents = claude_code.executable(version).parents
    folder = next(path for path in parents if path.name == "node_modules").parent
    assert claude_code.PINNED[version] == claude_code.digest(folder)
    lock = (folder / "package-lock.json").read_text()
    (home.project / "package-lock.json").write_text(lock.replace("sha512-", "sha512-A"))
    assert claude_code.PINNED[version] != claude_code.digest(home.project)


@pytest.mark.live
def test_every_hook_that_the_newest_claude_names_has_a_kind() -> None:
    """A new event is found when its version is pinned, and not as an unknown hook of a user."""
    named = hook_names(claude_code.VERSION)
    assert len(named) > 30
    assert set(named) - KINDS.keys() == set()


@pytest.mark.live
def test_a_claude_is_alone_answers_asks_and_is_held(
    claude: Agents, api: Api, watch: Watch, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dialogs are on the screen, in the hooks and in the session file; Enter says yes."""
    monkeypatch.setenv("BELLBOARD_CANARY", "of the test run")
    agent = claude(*elicitation(home))
    environ = psutil.Process(agent.pid).environ()
    assert set(environ) <= {*agent.launch.env, "TMUX", "TMUX_PANE", "PWD", "SHLVL", "_"}
    api.hold()
    agent.submit("play:text please")
    eventually(lambda: watch.sockets, "the connection to the API, as proof that the watch sees")
    agent.becomes("busy")  # as long as a test needs
    api.release()
    agent.happens("Stop")
    agent.becomes("idle")
    agent.submit("play:perm please")
    assert agent.happens("PermissionRequest")["tool_input"]["command"] == "touch made.txt"
    assert agent.becomes("waiting")["waitingFor"] == "permission prompt"
    agent.answer("Enter")
    agent.happens("Stop", 2)
    assert (home.project / "made.txt").exists()
    agent.becomes("idle")
    agent.submit("play:elicit please")
    agent.happens("Elicitation")
    agent.shows("What name")
    agent.press("Escape")
    agent.happens("Stop", 3)
    agent.becomes("idle")
    agent.exit()
    assert agent.happens("SessionEnd")["reason"] == "prompt_input_exit"
    assert [request.path for request in api.requests if request.kind == "unknown"] == []
