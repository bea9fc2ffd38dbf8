"""The rig's small parts: waiting, the clock, the home, the fake API, skipped layers."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from rig import cache, warm
from rig.api import Api
from rig.cache import CHECKOUT, Missing
from rig.clock import Clock
from rig.fixtures import dealt
from rig.home import Home
from rig.loopback import Watch
from rig.scenarios import SCENARIOS, Failure, Tool, Turn
from rig.waiting import PATIENCE, leniency

pytestmark = pytest.mark.files


def test_eventually_returns_the_first_true_value(eventually: Any) -> None:
    """The wait names its subject when time is up."""
    values = iter([0, "", "now"])
    assert eventually(lambda: next(values)) == "now"
    with pytest.raises(AssertionError, match="the moon"):
        eventually(lambda: False, "the moon", within=0.0)


@pytest.mark.parametrize("error", [AssertionError, KeyError, IndexError, FileNotFoundError])
def test_eventually_waits_for_what_is_not_there_yet(eventually: Any, error: Any) -> None:
    """A failing assertion or look-up of the predicate means not yet, and is named at the end."""
    missing = [error("the moon")] * 3

    def look() -> bool:
        if missing:
            raise missing.pop()
        return True

    assert eventually(look)
    missing.append(error("the moon"))
    with pytest.raises(error, match="the moon"):
        eventually(look, within=-1.0)


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """A program that `subprocess.run` gives up on does not outlive its test."""
    script = tmp_path / "late.py"
    script.write_text("import os, time; open(str(os.getpid()), 'w'); time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run([str(script)], env={}, cwd=tmp_path, timeout=0.5 * leniency(1.0))
    assert [path for path in tmp_path.iterdir() if Path("/proc", path.name).exists()] == []


def test_time_passes_only_when_told(clock: Clock) -> None:
    """The clock depends on nothing but `advance`."""
    before = clock()
    assert before == clock()
    assert before + 1.5 == clock.advance(1.5) == clock()
    assert clock.ns == int((before + 1.5) * 1_000_000_000)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_a_home_is_short_whole_and_alone(home: Home) -> None:
    """A home holds every folder that its environment names, with paths short enough for sockets."""
    named = [value for key, value in home.env.items() if key.startswith("XDG_")]
    named += [home.env["TMPDIR"], home.env["CLAUDE_CONFIG_DIR"], home.env["HOME"]]
    assert all(Path(path).is_dir() and path.startswith(str(home.root)) for path in named)
    assert not home.bellboard.exists()  # the product creates it
    assert len(str(home.root)) < 40


def test_programs_in_a_home_ask_no_registry(home: Home) -> None:
    """Claude Code 2.1.76 runs npm at each start, which takes a second of CPU as well."""
    done = subprocess.run(["npm", "--version"], env=home.env, capture_output=True, check=False)
    assert (1, b"", b"") == (done.returncode, done.stdout, done.stderr)


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


def ask(api: Api, prompt: str, *more: dict[str, Any], **extra: Any) -> Any:
    """Send a request as the CLI does."""
    first = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    asked = {"model": "m", "messages": [first, *more], "tools": [{"name": "Bash"}], **extra}
    request = urllib.request.Request(f"{api.url}/v1/messages?beta=true", json.dumps(asked).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as answer:
        body = answer.read().decode()
    return body if extra.get("stream") else json.loads(body)


def test_a_scenario_follows_the_conversation(api: Api) -> None:
    """The marker picks the scenario, the number of answers picks the turn."""
    first = ask(api, "play:bash")
    assert (
        first["stop_reason"],
        first["content"][1]["input"]["command"],
    ) == ("tool_use", "echo hi")
    said = {"role": "assistant", "content": first["content"]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}
    second = ask(api, "play:bash", said, result)
    assert (second["stop_reason"], second["content"][0]["text"]) == ("end_turn", "Done.")
    assert [request.step for request in api.played("bash")] == [0, 1]


def test_a_stream_arrives_word_by_word(api: Api) -> None:
    """Paced words add up to the whole; pace 0 removes the waits."""
    api.pace = 0
    body = ask(api, "play:slow", stream=True)
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    words = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(words) == 400
    assert SCENARIOS["slow"][0].blocks[0].text == "".join(words)  # type: ignore[union-attr]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]


@pytest.mark.parametrize("name", ["e400", "e401", "e429", "e500", "e529"])
def test_errors_look_like_the_apis(api: Api, name: str) -> None:
    """Same status and type."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(api, f"play:{name}")
    with caught.value as answer:
        assert int(name[1:]) == answer.code
        assert SCENARIOS[name][0].type == json.load(answer)["error"]["type"]  # type: ignore


def test_stopping_does_not_wait_for_an_answer() -> None:
    """A server that is holding an answer closes at once."""
    with Api() as api:
        api.hold()
        with pytest.raises((OSError, urllib.error.URLError)):
            request = urllib.request.Request(f"{api.url}/v1/messages", b'{"tools":[{"name":"x"}]}')
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=0.2)


def test_every_scenario_is_well_formed() -> None:
    """Tools have JSON inputs, subagents play scenarios that exist."""
    for name, turns in SCENARIOS.items():
        for turn in turns:
            assert isinstance(turn, Turn | Failure), name
            for block in turn.blocks if isinstance(turn, Turn) else ():
                if isinstance(block, Tool):
                    prompt = str(json.loads(json.dumps(block.input)).get("prompt", "play:text"))
                    assert prompt.removeprefix("play:") in SCENARIOS, name


# Connecting a datagram socket sends nothing, and 198.51.100.0/24 is not in use.
CONNECT = "import socket; s = socket.socket(type=2); print(s.connect_ex(('{}', 9))); input()"


@pytest.mark.parametrize(("host", "beyond"), [("127.0.0.1", False), ("198.51.100.1", True)])
def test_the_watch_sees_outside_connections(host: str, beyond: bool, eventually: Any) -> None:
    """A socket only pointing outside counts; one to loopback does not."""
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


def test_the_trap_catches_clients_of_the_proxy() -> None:
    """A client that honors proxy settings is caught and named."""
    with Watch() as watch:
        proxies = urllib.request.ProxyHandler({"https": watch.env["HTTPS_PROXY"]})
        with pytest.raises(OSError):
            urllib.request.build_opener(proxies).open("https://example.invalid/", timeout=PATIENCE)
    assert ["example.invalid:443" in line for line in watch.spoke_out()] == [True]


def pytest_run(*args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run pytest in this checkout, as from a shell."""
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *args]
    return subprocess.run(run, env=env, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def test_slow_tests_are_begun_first() -> None:
    """And brief ones last; each worker gets its share of both, and nothing is lost."""
    order = dealt("ABCD", "abcdefgh", "123", 3)
    assert ["ADab1", "Bcde2", "Cfgh3"] == ["".join(order[n : n + 5]) for n in (0, 5, 10)]
    for lengths in itertools.product(range(9), range(9), range(9), range(1, 5)):
        slow, usual, brief = ([f"{kind}{n}" for n in range(lengths[kind])] for kind in range(3))
        assert sorted(slow + usual + brief) == sorted(dealt(slow, usual, brief, lengths[3]))


def test_a_layer_left_out_is_named_last(home: Home) -> None:
    """BELLBOARD_SKIP skips by layer and reports it; an unknown layer is an error."""
    for layer, code in (("files", 0), ("fils", 4)):
        env = {**home.env, "BELLBOARD_SKIP": layer}
        done = pytest_run("-k", "kept_folder", __file__, env=env)
        assert code == done.returncode, done.stdout
        said = "skipped layers: files" if layer == "files" else "names no layer: fils"
        assert said in done.stdout + done.stderr


@pytest.mark.parametrize(("whole", "code"), [("", 0), ("1", 1)])
def test_what_is_not_available_is_left_out_by_name(home: Home, whole: str, code: int) -> None:
    """The last lines say which tests, why, and how to get it; where all must run, it is a fault."""
    kept = home.root / "kept"
    kept.mkdir()
    (kept / ".zsh.missing").write_text("there is no apt-get to fetch zsh; install it")
    env = {**home.env, "PATH": str(home.bin), "BELLBOARD_CACHE": str(kept)}
    if whole:
        env["BELLBOARD_WHOLE"] = whole
    done = pytest_run("-k", "odd_arguments and zsh", "tests/test_emit.py", env=env)
    assert code == done.returncode, done.stdout
    said = "zsh is not here, and there is no apt-get to fetch zsh; install it"
    if whole:
        assert f"cannot be had: {said}" in done.stdout
    else:
        assert f"left out: 12 tests in test_emit.py: {said}" in done.stdout.splitlines()[-2:]


BAD = {
    "test_starts.py": ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen"),
    "test_fetches.py": (
        "from rig import cache\ncache.kept('zsh', lambda *_: None)",
        "zsh is fetched while tests are collected",
    ),
    "test_nameless.py": ("def test_it(): pass", "test_it names none of the layers pure"),
}


def test_collecting_starts_and_fetches_nothing(home: Home) -> None:
    """A start or a fetch would end any run; so does a test that names no layer."""
    for name, (text, _) in BAD.items():
        home.file(name, text)
    plugins = ("-p", "rig.fixtures", "-p", "rig.collecting", "-c", str(CHECKOUT / "pyproject.toml"))
    env = {**home.env, "PYTHONPATH": f"{CHECKOUT}/tests", "BELLBOARD_CACHE": f"{home.root}/kept"}
    done = pytest_run(*plugins, str(home.project), env=env)
    assert pytest.ExitCode.OK != done.returncode
    said = done.stdout + done.stderr
    assert [] == [why for _, why in BAD.values() if why not in said], said
    assert not (home.root / "kept").exists()
