"""Text of programs in terminals of a real Neovim: own reports (OSC 7501), and junk.

Whatever came before, the next valid report is shown as it should be: the row, the statusline and
the board have it, with nothing that a terminal acts on.  Another terminal's report is not late.
"""

from __future__ import annotations

import base64
import itertools
import os
import re
import select
import time
import unicodedata
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final
from weakref import WeakKeyDictionary

import psutil

from bellboard.core.text import line
from faults import junk, target
from faults.fault import Fault, Kind
from faults.target import Fallen, Target
from rig.editor import Editor
from rig.fetched import neovim
from rig.screen import Picture
from rig.waiting import eventually, leniency

ST, BEL = b"\x1b\\", b"\x07"
CANCEL: Final = b"\x18" + ST  # whatever sequence is open
FLOOD: Final = 10_000  # reports in a second
SHOWN: Final = 3.0  # seconds until a report is shown, though a burst came before it
BESIDE: Final = 1.0  # and that of another terminal meanwhile
REDRAW: Final = 2.0  # ms of processor time: the median, as other programs fill the caches
GROWTH: Final = 16 << 20  # bytes, from one flood to the next
PASSED: Final = 30  # reports of a terminal that its background process gets in a second
#: Signs before numbers are visible, though Unicode has them among the others.
#: How an error of Neovim reads: a program may say "Error" itself.
COMPLAINT: Final = re.compile(r"\bE\d{1,4}: |Error (?:detected|executing|in) |stack traceback")
SIGNS: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u0890\u0891\u08e2\U000110bd")
SETUP: Final = """
vim.o.laststatus, vim.o.ruler, vim.o.shortmess = 3, false, vim.o.shortmess .. 'I'
vim.o.statusline = "%=%{%v:lua.require'bellboard'.statusline()%} "
"""
#: What Neovim draws for characters that it does not print.
DRAWN: Final = re.compile("<[0-9a-f]{2,6}>|\\^[@-_]")
#: Notes when the status of each process was first shown, how long each redraw took, and how many
#: reports were handed over.
NOTES: Final = """
local bellboard = require('bellboard')
local pushes = require('bellboard.process.receive')
local receive, known = pushes.receive, {}
local function clock(now)
  return (now.sec + now.usec / 1e6) * 1e3
end
_G.redraws, _G.shown, _G.passed = {}, {}, 0
local host = require('bellboard.process.talk')
local notify = host.notify
host.notify = function(method, message, ...)
  passed = passed + (method == 'program_status' and #message.said or 0)
  return notify(method, message, ...)
end
pushes.receive = function(...)
  receive(...)
  local before = vim.uv.getrusage()
  vim.cmd.redraw()
  local after = vim.uv.getrusage()
  local used = clock(after.utime) + clock(after.stime) - clock(before.utime) - clock(before.stime)
  table.insert(redraws, used)
  local second, micro = vim.uv.gettimeofday()
  for _, row in ipairs(bellboard.sessions()) do
    if row.pid and known[row.pid] ~= row.status then
      known[row.pid] = row.status
      table.insert(shown, { row.pid, row.status, second + micro / 1e6 })
    end
  end
end
vim.cmd('execute "ClaudeSessions board"')"""
OPEN: Final = """
vim.cmd.tabnew()
vim.cmd.terminal('stty raw -echo; exec sleep 100000')
local channel = vim.bo.channel
vim.cmd.tabprevious()
vim.cmd.tabonly()
return { vim.api.nvim_get_chan_info(channel).pty, vim.fn.jobpid(channel) }"""


class Terminal:
    """A hidden terminal, whose program never reads."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        device, self.pid = editor.lua(OPEN)
        self.device = os.open(device, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)

    def write(self, data: bytes) -> None:
        """Write, as fast as Neovim reads."""
        rest = memoryview(data)
        while rest:
            if not select.select([], [self.device], [], 20 * leniency(target.LEAST))[1]:
                raise Fallen("Neovim reads its terminal no more")
            rest = rest[os.write(self.device, rest) :]

    def row(self) -> dict[str, Any]:
        """Return what is shown of its program."""
        code = "return vim.tbl_filter(function(r) return r.pid == ... end, {})"
        code = code.replace("...", str(self.pid)).replace("{}", "require('bellboard').sessions()")
        return dict(next(iter(self.editor.lua(code)), {}))


class Attackable:
    """A Neovim with its background process, the board and two terminals."""

    def __init__(self, attacked: Target, version: str) -> None:
        options: dict[str, Any] = {"columns": 100, "lines": 30, "ui": True, "env": {}, "args": ()}
        options |= {"config": {}, "lua": SETUP, "peers": ()}
        self.editor = Editor(version, attacked.home, f"fuzzed-{version}", **options)
        attacked.undone.callback(self.editor.close)
        health = "return require('bellboard').health().version"
        eventually(lambda: self.editor.lua(health), "a background process")
        self.editor.lua(NOTES)
        self.attacked, self.other = Terminal(self.editor), Terminal(self.editor)
        attacked.undone.callback(lambda: [os.close(x.device) for x in (self.attacked, self.other)])
        host = self.editor.lua(
            "return vim.fn.jobpid(require('bellboard.process.talk').status().channel)"
        )
        self.processes = {"Neovim": psutil.Process(self.editor.pid), "host": psutil.Process(host)}
        self._turn = itertools.count()

    def memory(self) -> dict[str, int]:
        """Return the memory of Neovim and of its background process."""
        return {name: process.memory_info().rss for name, process in self.processes.items()}

    def reports_beside(self) -> Callable[[], None]:
        """Report from the other terminal; return a check that this was shown in time."""
        status = ("working", "blocked")[next(self._turn) % 2]
        before, pid = time.time(), self.other.pid
        self.other.write(report(f"state={status}:app=other"))

        def check() -> None:
            limit = BESIDE * leniency(target.LEAST)
            wanted = [[pid, status]]

            def at() -> float:
                shown = self.editor.lua("return shown")
                found = [t for *what, t in shown if [what] == wanted and t >= before]
                return found[0] if found else 0.0

            try:
                delay = eventually(at, within=5 * limit) - before
            except AssertionError:
                raise Fallen(f"another terminal's report was not shown: {status}") from None
            if delay > limit:
                raise Fallen(f"another terminal's report came after {delay:.1f} s")

        return check

    def check(self, words: str) -> None:
        """Write a valid report, and check all that is shown."""
        body = f"state=blocked:kind=question:app=attacked:msg={encoded(words)}"
        self.attacked.write(CANCEL + report("state=clear") + report(body))
        expected = ("blocked", "question", line(words))

        def shown() -> tuple[str, ...]:
            row = self.attacked.row()
            return row.get("status", ""), row.get("kind", ""), row.get("detail", "")

        try:
            eventually(lambda: shown() == expected, within=SHOWN * leniency(target.LEAST))
        except AssertionError:
            raise Fallen(f"expected {expected!r}, but shown is {shown()!r}") from None
        self.looks_well()

    def looks_well(self) -> None:
        """Check the screen, and what Neovim complains about."""
        self.editor.lua("vim.cmd.redraw()")
        if odd := odd_of(self.editor.screen):
            raise Fallen(f"on the screen is {odd!r}")
        said = self.editor.errors.read_text(errors="replace")
        if COMPLAINT.search(said) or COMPLAINT.search(said := self.editor.messages()):
            raise Fallen(f"Neovim has an error: {said}")
        redraws = sorted(self.editor.lua("return redraws"))
        middle = redraws[len(redraws) // 2] if redraws else 0.0
        if middle > REDRAW * leniency(target.LEAST):
            raise Fallen(f"a redraw takes {middle:.1f} ms")


def odd_of(picture: Picture) -> str:
    """Return the first text on a screen that no screen should have, or ""."""
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    if drawn := DRAWN.search(picture.text):
        return drawn[0]
    return next((x for x in picture.text if x != "\n" and _is(x, hidden)), "")


def _is(character: str, categories: set[str]) -> bool:
    return unicodedata.category(character) in categories and character not in SIGNS


def encoded(words: str) -> str:
    return base64.b64encode(words.encode()).decode()


def report(body: str, end: bytes = ST) -> bytes:
    return b"\x1b]7501;" + body.encode() + end


# What is written.

STATES = ("idle", "working", "done", "blocked", "error", "clear")
NAMES = ("a", "b/c", "a/b", "a/b/c/d/e/f/g/h", "x" * 32, "/".join(["y" * 31] * 4))
#: What hides, turns or piles up; no control characters.
DECEIT = (
    *("\u202e", "\u2066", "\u2069", "\u200b", "\u200d", "\ufeff", "\u2028", "\u00ad", "\u3164"),
    *("\U000e0041", "\U0001f600\u200d\U0001f4bb", "e" + "\u0301" * 40, "\ufe0f", "日本", "עברית"),
    *("%#Error#", "%{luaeval('x')}", "<CR>", "|", "~", "\\033[2J", "word", "a b", "'", '"'),
)
BREAKS = (
    *(b"\x1b", b"\x1b\x1b", b"\x07", b"\x18", b"\x1a", b"\x9c", b"\x9d7501;", b"\x9b2J", b"\0"),
    *(b"\x1b]", b"\x1bc", b"\x1b[2J", b"\x1bP", b"\x1b_", b"\x1b\\", b"\xff\xfe", b"\xc2", b"\n"),
    *(b";", b":", b"=", b"?", b"7501;", b"\x1b]7501;", b"\x1b]133;A\x07", b"\x1b]2;x\x07"),
)


def words(random: Random) -> str:
    """Return a text as programs must not send it: of what deceives."""
    return "".join(random.choices(DECEIT, k=random.randrange(1, 12)))[:40]


def valid(random: Random) -> bytes:
    """Return a report that counts."""
    pairs = [f"state={random.choice(STATES)}", f"id={random.choice(NAMES)}"][: random.randint(1, 2)]
    pairs += [
        f"{key}={encoded(words(random))}" for key in ("title", "msg") if random.random() < 0.5
    ]
    random.shuffle(pairs)
    return report(":".join(pairs), random.choice([ST, BEL]))


def broken(random: Random) -> bytes:
    """Return reports with something in them that ends, starts or spoils a sequence."""
    data = b"".join(valid(random) for _ in range(random.randrange(1, 4)))
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(data) + 1)
        data = data[:at] + random.choice(BREAKS) + data[at + random.randrange(3) :]
    return data


def limits(random: Random) -> bytes:
    """Return reports that are as long as they may be, or slightly longer."""
    key, longest = random.choice(
        [("msg", 2732), ("title", 256), ("app", 32), ("id", 128), ("x", 4080), ("k" * 16, 9)]
    )
    more = random.choice([-4, -1, 0, 1, 4, 4000])
    return report(f"state=working:{key}=" + "A" * (longest + more)) + report("state=idle:msg=!")


def foreign(random: Random) -> bytes:
    """Return what is not base64, not UTF-8, or no text."""
    sent = junk.text(random)[:2000].encode("utf-8", "surrogatepass")
    value = random.choice([sent, base64.b64encode(sent), base64.b64encode(sent)[1:], b"A=A="])
    body = b"state=done:msg=" + value.replace(b"\x1b", b"").replace(b"\x07", b"")
    return b"\x1b]7501;" + body + ST


def several(random: Random) -> bytes:
    """Return 300 records, some below others."""
    depth = random.randint(1, 8)
    ids = ["/".join(f"{n}.{level}" for level in range(depth)) for n in range(300)]
    states = random.choices(STATES[:5], k=len(ids))
    return b"".join(map(report, (f"state={s}:id={i}" for s, i in zip(states, ids, strict=True))))


def at_once(make: Callable[[Random], bytes]) -> Callable[[Attackable, Random], None]:
    """Write several of that, in random pieces."""

    def attack(desk: Attackable, random: Random) -> None:
        data = b"".join(make(random) for _ in range(random.randrange(1, 30)))
        while data:
            size = random.choice([1, 7, 100, 5000])
            desk.attacked.write(data[:size])
            data = data[size:]

    return attack


def in_pieces(desk: Attackable, random: Random) -> None:
    """Write a report so that Neovim reads it in pieces."""
    data = valid(random) + broken(random) + valid(random)
    process = desk.processes["Neovim"]
    for at in range(0, len(data), size := random.choice([1, 2, 5])):
        before = process.io_counters().read_chars
        desk.attacked.write(data[at : at + size])
        eventually(lambda b=before: process.io_counters().read_chars > b, pause=0.0005)


def flood(desk: Attackable, random: Random) -> None:
    """Write 10,000 reports in a second, twice, of many records or of one."""
    records, kept = random.choice([1, 5, 300]), dict[str, int]()
    passed, first = desk.editor.lua("return passed"), time.monotonic()
    for _ in range(2):
        begin = time.monotonic()
        for n in range(100):
            ids = [f"id=r{(n * 100 + k) % records}" for k in range(FLOOD // 100)]
            text = encoded(f"{n} {random.random()}")
            states = random.choices(STATES[:5], k=len(ids))
            bodies = (f"state={s}:{i}:msg={text}" for s, i in zip(states, ids, strict=True))
            desk.attacked.write(b"".join(map(report, bodies)))
            eventually(lambda: time.monotonic() >= begin + n / 100, pause=0.001)  # noqa: B023
            if n == 50:
                is_timely = desk.reports_beside()
        is_timely()
        before, kept = kept, desk.memory()
    passed = desk.editor.lua("return passed") - passed
    if passed > PASSED * (time.monotonic() - first + 1) + len((desk.attacked, desk.other)):
        raise Fallen(f"{passed} reports were handed over")
    for name, size in kept.items():
        if size > before[name] + GROWTH:
            raise Fallen(f"{name} has grown by {(size - before[name]) >> 20} MB")


ATTACKS: Final[dict[str, Callable[[Attackable, Random], None]]] = {
    "valid": at_once(valid),
    "broken": at_once(broken),
    "limits": at_once(limits),
    "foreign": at_once(foreign),
    "several": at_once(several),
    "pieces": in_pieces,
    "flood": flood,
}
_desks: WeakKeyDictionary[Target, dict[str, Attackable]] = WeakKeyDictionary()


def reported(random: Random, version: str, kind: str) -> Fault:
    """Attack a terminal, and check what is shown."""
    seed, final = random.random(), words(random)

    def do(attacked: Target) -> None:
        desks = _desks.setdefault(attacked, {})
        if version not in desks:
            desks[version] = Attackable(attacked, version)
        desk = desks[version]
        ATTACKS[kind](desk, Random(seed))
        desk.reports_beside()()
        desk.looks_well()
        desk.check(final)

    return Fault(f"{kind} in Neovim {version}, then {final!r}", do)


def lacking(versions: Sequence[str] = ()) -> str:
    """Return which Neovim is not available, or ""."""
    try:
        for version in versions or neovim.wanted():
            neovim.executable(version)
    except neovim.Missing as missing:
        return str(missing)
    return ""


KINDS = (
    Kind(
        "reported",
        make=reported,
        batch=2 * len(ATTACKS),
        lacks=lacking,
        each=tuple(itertools.product(neovim.wanted(), ATTACKS)),
    ),
)
