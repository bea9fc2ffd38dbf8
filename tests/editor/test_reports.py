"""Own reports of programs in terminals of a real Neovim (OSC 7501)."""

from __future__ import annotations

import os
import re
import time

from editor.test_live import STATUSLINE, hosted
from rig.editor import Editor
from rig.fixtures import Editors
from rig.host.sample import QUIET
from rig.waiting import PATIENCE, eventually

QUERY = b"\x1b]7501;?"
BEL, ST = b"\x07", b"\x1b\\"
NAME_ASKED = b"\x1b[c"
NAME = re.compile(rb"(.*)\x1b\[\?[0-9;]+c", re.DOTALL)
RUNS = "return require('bellboard.process.talk').status().running"
#: A program that prints what it is told, and keeps what its terminal types.
PROGRAM = """
import os, select, sys, tty
tty.setraw(0)
told = os.open(sys.argv[1], os.O_RDWR)
with open(sys.argv[2], "wb", buffering=0) as typed:
    while True:
        for ready in select.select([0, told], [], [])[0]:
            if data := os.read(ready, 1 << 16):
                while data:
                    data = data[os.write(1, data):] if ready == told else typed.write(data) and b""
            else:
                sys.exit()
"""
#: Notes what is sent about terminals, from the message after the call on.
LISTEN = """
_G.sent = {}
local host = require('bellboard.process.talk')
_G.notify = _G.notify or host.notify
host.notify = function(method, ...)
  local is_sent = _G.notify(method, ...)
  if method == 'program_status' and is_sent then
    table.insert(_G.sent, (...))
  end
  return is_sent
end"""
SENT = "return sent"
#: A host that hears all and says nothing.
SILENT = {**QUIET, "auto_start": True}
LOADED = """
return vim.tbl_filter(function(name)
  return name:find('^bellboard%.report') ~= nil
end, vim.tbl_keys(package.loaded))"""


def osc(text: str, end: bytes = BEL) -> bytes:
    return b"\x1b]" + text.encode() + end


def status(body: str, end: bytes = BEL) -> bytes:
    return osc("7501;" + body, end)


class Program:
    """A program in a hidden terminal."""

    def __init__(self, editor: Editor, name: str = "program") -> None:
        self.editor = editor
        root = editor.home.root
        self.told, self.typed = root / f"{name}.told-it", root / f"{name}.typed"
        os.mkfifo(self.told)
        script = root / "program.py"
        script.write_text(PROGRAM)
        command = f"exec python3 {script} {self.told} {self.typed}"
        self.buffer, self.pid, self.tty = editor.lua(
            """
            vim.cmd.file('here')
            vim.cmd.terminal((...))
            local buf = vim.api.nvim_get_current_buf()
            vim.cmd.buffer('here')
            local channel = vim.bo[buf].channel
            return { buf, vim.fn.jobpid(channel), vim.api.nvim_get_chan_info(channel).pty }""",
            command,
        )
        eventually(self.typed.exists, "the program")

    def say(self, *texts: bytes) -> None:
        """Print that, all at once."""
        with self.told.open("wb", buffering=0) as told:
            told.write(b"".join(texts))

    def asks(self, end: bytes = BEL) -> bytes:
        """Ask as agents do, and what the terminal is; return all input before the last reply."""
        before = len(self.typed.read_bytes())
        self.say(QUERY + end + NAME_ASKED)
        typed = eventually(lambda: NAME.fullmatch(self.typed.read_bytes()[before:]), "a name")
        return bytes(typed[1])


def texts(editor: Editor) -> list[str]:
    """Return all reports that were sent, in order."""
    return [text for message in editor.lua(SENT) for _, text in message["said"]]


def becomes(editor: Editor, *expected: str) -> None:
    """Wait until that was sent, and nothing else."""
    eventually(lambda: texts(editor)[-1:] == [expected[-1]], expected[-1])
    assert texts(editor) == [*expected]


def silent(nvim: Editors, version: str) -> Editor:
    """Start a Neovim whose background process says nothing."""
    editor = nvim(version, SILENT)
    eventually(lambda: editor.lua(RUNS), "a background process")
    editor.lua(LISTEN)
    return editor


def test_a_query_is_answered_before_the_terminal_says_what_it_is(
    nvim: Editors, version: str
) -> None:
    """With the end that it has; 0.10 does not say which one that was."""
    program = Program(nvim(version, SILENT))
    assert program.asks(ST) == QUERY + ST
    assert program.asks(BEL) == QUERY + (ST if version == "0.10" else BEL)


def test_no_reader_is_promised_where_none_is_wanted(nvim: Editors, version: str) -> None:
    """Programs get an answer only while the background process should run."""
    editor = nvim(version, {**SILENT, "auto_start": False})
    program = Program(editor)
    assert program.asks() == b""
    editor.command("ClaudeSessions process start")
    assert program.asks() != b""
    editor.command("ClaudeSessions process stop")
    assert program.asks() == b""
    assert editor.messages() == ""


def test_no_reader_is_promised_if_the_plugin_is_not_loaded(nvim: Editors, version: str) -> None:
    editor = nvim(version, SILENT, lua="vim.g.loaded_bellboard = true")
    assert Program(editor).asks() == b""


#: What is shown in a buffer, and what that types.
SHOW = """
_G.typed = ''
local buf = vim.api.nvim_create_buf(false, true)
local channel = vim.api.nvim_open_term(buf, { on_input = function(_, _, _, data)
  _G.typed = _G.typed .. data
end })
vim.api.nvim_chan_send(channel, ...)"""


def test_what_a_plugin_shows_in_a_buffer_is_no_program(nvim: Editors, version: str) -> None:
    """The text of such a buffer may come from anywhere."""
    editor = silent(nvim, version)
    editor.lua(SHOW, (QUERY + BEL + status("state=done") + NAME_ASKED).decode())
    typed = eventually(lambda: editor.lua("return typed"), "a name")
    assert NAME.fullmatch(typed.encode())[1] == b""
    assert editor.lua(SENT) == []


def test_a_report_of_a_hidden_terminal_is_sent_as_it_came(nvim: Editors, version: str) -> None:
    """At once, with the device and the process of its job, and the time of day."""
    editor = silent(nvim, version)
    program = Program(editor)
    body = "state=blocked:kind=permission:app=x:msg=YXBwcm92ZQ==:new=1"
    before = time.time()
    program.say(status(body, ST))
    becomes(editor, "7501;" + body)
    [message] = editor.lua(SENT)
    [[t, _]] = message.pop("said")
    assert before < t < time.time()
    assert message == {"tty": program.tty, "pid": program.pid, "dropped": 0}


def test_of_a_burst_the_last_of_each_record_is_sent(nvim: Editors, version: str) -> None:
    """2,000 reports of four records, which no read ends with: all of it, in few messages."""
    editor = silent(nvim, version)
    program = Program(editor)
    bodies = [f"state=working:app=a:progress={n // 20}:id=r{n % 4}" for n in range(2000)]
    began = time.monotonic()
    program.say(*map(status, bodies), status("state=done"))
    eventually(lambda: texts(editor)[-1:] == ["7501;state=done"], "the last one")
    took = time.monotonic() - began
    last = {text.rpartition(":")[2]: text for text in texts(editor)[:-1]}
    assert sorted(last.values()) == sorted(f"7501;{body}" for body in bodies[-4:])
    assert set(texts(editor)[:-1]) <= {f"7501;{body}" for body in bodies}
    assert len(editor.lua(SENT)) <= 2 + 30 * took


def test_what_the_whole_program_says_waits_for_no_part(nvim: Editors, version: str) -> None:
    """It waits only if an earlier report ends a record: it would count for later ones."""
    editor = silent(nvim, version)
    program = Program(editor)
    asks = "7501;state=blocked:app=make"
    program.say(
        *(status(f"state=idle:id=r{n}") for n in range(100)), osc(asks), osc("7501;state=idle:id=z")
    )
    eventually(lambda: "7501;state=idle:id=r99" in texts(editor), "all of them")
    first = next(m for m in editor.lua(SENT) if asks in [text for _, text in m["said"]])
    assert "7501;state=idle:id=r99" not in [text for _, text in first["said"]]
    assert texts(editor).index(asks) < 60


def test_many_records_are_sent_a_few_at_a_time(nvim: Editors, version: str) -> None:
    """No more than 30 in a second, however many there are; in order, and each of them."""
    editor = silent(nvim, version)
    program = Program(editor)
    said = [f"7501;state=idle:id=r{n}" for n in range(70)]
    began = time.monotonic()
    program.say(*(osc(text) for text in said))
    becomes(editor, *said)
    assert time.monotonic() - began > (70 - 30 - 1) / 30
    assert max(len(message["said"]) for message in editor.lua(SENT)) <= 30


def test_a_report_that_is_too_long_is_counted(nvim: Editors, version: str) -> None:
    """The sequence has more than 4,096 bytes; the next one is read."""
    editor = silent(nvim, version)
    program = Program(editor)
    empty = "state=idle:msg="
    fits = "A" * (4096 - len(status(empty, ST)))
    # Neovim 0.12 loses a sequence that a read ends right before the end of, so not at 4,096 bytes.
    shift = b"." * 100
    program.say(shift, status(f"{empty}{fits}AA", ST), status(f"{empty}{fits}", ST))
    becomes(editor, f"7501;{empty}{fits}")
    program.say(shift, status(f"{empty}{fits * 9}", ST), status("state=done"))
    becomes(editor, f"7501;{empty}{fits}", "7501;state=done")
    assert sum(message["dropped"] for message in editor.lua(SENT)) == 2


def test_what_was_said_before_the_background_process_runs_is_sent_then(
    nvim: Editors, version: str
) -> None:
    """The next process gets reports that are still true; a prompt ends a program's work."""
    editor = nvim(
        version,
        {
            "auto_start": False,
            "notices": {"error": {"notify": False}, "completed": {"notify": False}},
        },
    )
    editor.lua(LISTEN)
    program = Program(editor)
    program.say(status("state=working"), status("state=done:id=a"), status("state=idle:id=a/b"))
    program.say(status("state=clear:id=a"), status("state=error:id=c"), status("state=blocked"))
    last = "return (require('bellboard.report.records').of(...).reports[''] or {}).text"
    eventually(lambda: editor.lua(last, program.buffer) == "7501;state=blocked", "the last one")
    editor.command("ClaudeSessions process start")
    said = ["7501;state=clear:id=a", "7501;state=error:id=c", "7501;state=blocked"]
    becomes(editor, *said)
    hosted(editor)
    editor.lua(LISTEN)
    editor.command("ClaudeSessions process restart")
    becomes(editor, *said[1:])
    program.say(status("state=done"), osc("133;A;k=i"))
    becomes(editor, *said[1:], "7501;state=done", "133;A")
    editor.lua(LISTEN)
    editor.command("ClaudeSessions process restart")
    becomes(editor, said[1], "7501;state=done")
    assert editor.messages() == ""


def test_the_end_of_a_terminal_is_said(nvim: Editors, version: str) -> None:
    """An unlisted terminal has not ended."""
    editor = silent(nvim, version)
    program, quiet = Program(editor), Program(editor, "quiet")
    assert quiet.asks() != b""
    program.say(status("state=working"))
    becomes(editor, "7501;state=working")
    for gone in (quiet, program):
        editor.lua("vim.bo[...].buflisted = false", gone.buffer)
        editor.lua("vim.api.nvim_buf_delete(..., { force = true })", gone.buffer)
    becomes(editor, "7501;state=working", "")
    editor.nvim.command("qall!", async_=True)
    editor.process.wait(PATIENCE)
    assert editor.errors.read_text() == ""


def test_other_sequences_load_nothing(nvim: Editors, version: str) -> None:
    """Nor does a prompt of a shell in which nothing has reported."""
    editor = nvim(version, {"auto_start": False})
    program = Program(editor)
    program.say(osc("7;file:///tmp"), osc("133;A"), osc("75010;x"), osc("52;c;eA=="), NAME_ASKED)
    eventually(lambda: NAME.fullmatch(program.typed.read_bytes()), "all of them")
    assert editor.lua(LOADED) == []


FAILING = """
for _ = 1, 2 do
  vim.api.nvim_create_autocmd('TermRequest', { callback = function() error('theirs') end })
  vim.cmd.runtime('plugin/bellboard.lua')
end"""


EXECUTE = "vim.api.nvim_exec_autocmds('TermRequest', ...)"


def test_a_handler_that_fails_stands_in_no_way(nvim: Editors, version: str) -> None:
    """Neither another plugin's before or behind ours, nor ours."""
    editor = nvim(version, SILENT, lua=FAILING, ui=False)
    assert Program(editor).asks(ST) == QUERY + ST
    eventually(lambda: "theirs" in editor.messages(), "its error")
    editor = nvim(version, SILENT, lua="package.preload['bellboard.report.terminals'] = error")
    assert Program(editor, "other").asks() == b""
    for data in (None, 1, {}, "\x1b]7501;?"):  # as another plugin might execute it
        editor.lua(EXECUTE, {"group": "bellboard.plugin", "data": data})
    assert editor.messages() == ""


#: Takes reports one after the other; returns what is to be sent then.
TAKE = """
local records = require('bellboard.report.records')
local buf = ...
local reporter = records.of(buf)
for nth, text in ipairs(select(2, ...)) do
  records.take(reporter, nth, text:find('^133') and text or '7501;' .. text)
end
local unsent, last = records.unsent(reporter, 1000)
local said = vim.tbl_map(function(one)
  return (one[2]:gsub('^7501;', ''))
end, unsent)
records.was_sent(reporter, last)
reporter.sent = 0
local kept = #records.unsent(reporter, 1000)
records.forget(buf)
return { said, kept }"""
DEEP = "/".join("abcdefgh")
#: What is said → the numbers of what is sent of it, and how much a new host gets of it.
KEPT: list[tuple[list[str], list[int], int]] = [
    (["state=idle", "state=working"], [1], 1),
    (["state=idle", "state=idle:id=a", "state=done"], [1, 2], 2),
    (["app=x:state=idle:id=a", "id=a:state=done"], [1], 1),
    (["state=idle:id=a:id=b", "state=idle:id=b"], [1], 1),
    (["state=idle:id=a", "state= idle:id = a"], [1], 1),
    (["state=idle:id=a:id=", "state=idle:id=a"], [0, 1], 1),
    (["state=idle", "state=idle:id=a//b", "state=idle:id=?"], [0, 2], 1),
    (["state=idle", f"state=idle:id={DEEP}", f"state=idle:id={DEEP}/i"], [0, 1, 2], 2),
    (["state=idle", f"state=idle:id={'a' * 32}", f"state=idle:id={'a' * 33}"], [0, 1, 2], 2),
    (["state=blocked", "state=paused", "hello", "msg=eA=="], [0, 3], 1),
    (["state=blocked", "state=clear", "state=idle"], [1, 2], 1),
    (["state=clear", "state=idle", "state=clear"], [2], 0),
    (["state=idle", "state=idle:id=a/b", "state=clear:id=a", "state=idle:id=ab"], [0, 2, 3], 2),
    (["state=clear:id=a/b", "state=idle:id=a/b", "state=clear:id=a"], [2], 0),
    (["state=clear:id=a/b", "state=clear:id=a/b/c", "state=idle:id=a/b"], [0, 1, 2], 1),
    (["state=idle", "state=done:id=a", "state=error:id=b", "133;A"], [3], 0),
    (["state=idle:id=c", "state=done:id=a", "state=done", "133;A"], [1, 2, 3], 2),
    (["state=clear:id=a", "133;A", "133;A", "state=working"], [0, 2, 3], 1),
    (["133;A", "state=clear"], [0, 1], 0),
    ([f"state=idle:id=r{n}" for n in range(300)], [*range(44, 300)], 256),
    ([*(f"state=idle:id=r{n % 256}" for n in range(257)), "state=done"], [*range(2, 258)], 256),
]


def test_a_report_replaces_only_what_it_is_about(nvim: Editors, version: str) -> None:
    """A clear ends what it is about and below, a prompt what is neither done nor failed.

    A part that is done says nothing of the whole, which had not.
    """
    editor = silent(nvim, version)
    program = Program(editor)
    for said, sent, kept in KEPT:
        expected = [said[n] for n in sent]
        assert editor.lua(TAKE, program.buffer, said) == [expected, kept], said


#: Hands over pieces as Neovim 0.10 does, and a prompt; returns what was taken of them.
PIECES = """
local records = require('bellboard.report.records')
local take, taken = records.take, {}
records.take = function(_, _, text)
  taken[#taken + 1] = text:match('^7501;(.*)')
end
local buf, cases = ...
local all = {}
for nth, pieces in ipairs(cases) do
  taken = {}
  for _, piece in ipairs(pieces) do
    require('bellboard.report.terminals').heard(buf, '\\27]7501;' .. piece)
  end
  require('bellboard.report.terminals').heard(buf, '\\27]133;A')
  all[nth] = taken
end
records.take = take
return all"""
STREAM = ["state=working:app=x:msg=c3RhdGU=", "state=done:app=y:id=s/st", "state=clear"]


def cut(bodies: list[str], *places: int) -> list[str]:
    """Return the pieces of a stream that is read up to each of these places."""
    pieces, begin = [], 0
    for body in bodies:
        ends = [p - begin for p in sorted(places) if begin <= p <= begin + len(body)]
        pieces += [body[a:b] for a, b in zip([0, *ends], [*ends, len(body)], strict=True)]
        begin += len(body) + 1
    return pieces


def test_a_report_in_pieces_is_put_together(nvim: Editors, version: str) -> None:
    """Wherever Neovim 0.10 cuts it, once or twice, or into its bytes; its state comes first."""
    editor = silent(nvim, version)
    program = Program(editor)
    ends = range(len(":".join(STREAM)) + 1)
    cases = [cut(STREAM, *{a, b}) for a in ends for b in ends if a <= b]
    cases.append(cut(STREAM, *ends))
    taken = editor.lua(PIECES, program.buffer, cases)
    assert editor.lua(PIECES, program.buffer, [["=x:y", *STREAM]]) == [["=x:y", *STREAM]]
    assert [c for c, t in zip(cases, taken, strict=True) if t != STREAM] == []


def test_the_statusline_says_what_to_do_where_nothing_reads(nvim: Editors, version: str) -> None:
    """The advice stays as long as no session is known otherwise."""
    crashes = {"python": ["sh", "-c", "exit 1"], "max_restarts": 1}
    editor = nvim(version, crashes, lua=STATUSLINE)
    program = Program(editor)
    program.say(status("state=idle"))
    editor.shows("bellboard: 1 agent here; :ClaudeSessions process restart")
    editor = nvim(version, {"python": "/nowhere"}, lua=STATUSLINE)
    other = Program(editor, "other")
    other.say(status("state=idle"))
    editor.shows("bellboard: 1 agent here; fix or unset the option python")
    editor.lua("vim.api.nvim_buf_delete(..., { force = true })", other.buffer)
    editor.hides("agent here")
