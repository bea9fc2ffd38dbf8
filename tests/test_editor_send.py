"""What the user writes to a session: its window, what can be added, and what came of it."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from rig.editor import Editor
from rig.fixtures import Editors, Screens
from rig.waiting import eventually
from sample import QUIET, TERMINAL, Host, blocked, session

pytestmark = pytest.mark.editor

CALM = {**QUIET, "float": {"enabled": False}, "answer": {"key_delay": 0}}
#: Plays the background process: keeps what it is asked, and replies when `replies` says what.
PLAYED = """
_G.asked, _G.said, _G.pending = {}, {}, {}
_G.reply = { ok = true, outcome = 'taken', text = 'it took your prompt' }
require('bellboard.process.talk').ask = function(what, request, done)
  if what == 'names' then return end
  table.insert(asked, { what, request })
  if reply then
    vim.schedule(function() done(reply) end)
  else
    table.insert(pending, done)
  end
end
vim.notify = function(text) table.insert(said, text) end
"""
TIDY: dict[str, Any] = {"project": "dotfiles", "title": "tidy the zsh prompt", "branch": "main"}
NO_NAME: dict[str, Any] = {"what": "send"}


def resting(sid: str = "dotfiles", ago: float = 300, **more: Any) -> dict[str, Any]:
    return session("completed", sid, ago=ago, **{**TIDY, **more})


def played(editor: Editor, *sessions: dict[str, Any]) -> Host:
    host = Host(editor)
    editor.lua(PLAYED)
    host.push(*(sessions or [resting(cwd=str(editor.home.project))]))
    return host


def mode(editor: Editor, wanted: str) -> None:
    eventually(lambda: editor.lua("return vim.fn.mode()") == wanted, f"mode {wanted}")


def opened(editor: Editor, command: str = "send dotfiles", rows: str = "") -> None:
    editor.command(f"{rows}ClaudeSessions {command}")
    editor.shows(" to dotfiles")
    mode(editor, "i")


def asked(editor: Editor, count: int = 1) -> list[Any]:
    eventually(lambda: len(editor.lua("return asked")) == count, f"{count} requests")
    found: list[Any] = editor.lua("return asked")
    return found


def lines(editor: Editor) -> list[str]:
    found: list[str] = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    return found


def said(editor: Editor, text: str) -> None:
    eventually(lambda: text in str(editor.lua("return said")), text)


def test_a_text_is_written_and_sent(nvim: Editors, version: str) -> None:
    """<CR> is a newline in Insert mode and sends in Normal mode; the user is back as before."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(editor)
    editor.press("iabc")
    mode(editor, "i")
    opened(editor)
    editor.shows("to dotfiles · tidy the zsh prompt")
    editor.shows("<C-s> send")
    editor.press("good; now<CR>  bash<Esc>")
    editor.shows("<CR> send")
    editor.press("<CR>")
    text = "good; now\n  bash"
    assert asked(editor) == [["send", {"session_id": "dotfiles", "text": text, "submit": True}]]
    editor.hides(" to dotfiles")
    said(editor, "dotfiles: it took your prompt")
    mode(editor, "i")
    editor.press("d")
    editor.shows("abcd")
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1

    # Not submitted; from Insert mode.
    editor.press("<Esc>")
    opened(editor)
    assert lines(editor) == [""]
    editor.press("more<Esc>gp")
    assert asked(editor, 2)[1] == [
        "send",
        {"session_id": "dotfiles", "text": "more", "submit": False},
    ]
    editor.hides(" to dotfiles")
    opened(editor)
    editor.press("again<C-s>")
    assert asked(editor, 3)[2][1]["text"] == "again"
    editor.hides(" to dotfiles")
    mode(editor, "n")
    assert editor.messages().strip() == ""


def test_what_is_refused_is_kept(nvim: Editors, version: str) -> None:
    """With the reason; also when its window is closed, or the session asks or has ended."""
    editor = nvim(version, CALM, columns=80, lines=24)
    host = played(editor)
    editor.lua("_G.reply = { ok = false, why = 'its prompt holds what somebody typed' }")
    opened(editor)
    editor.press("one<Esc>otwo<C-s>")
    editor.shows("Not sent: its prompt holds what somebody typed  go terminal")
    assert lines(editor) == ["one", "two"]
    editor.press("x")
    editor.shows("<CR> send")
    editor.press("q")
    editor.hides(" to dotfiles")
    said(editor, "dotfiles: your text is kept, for the next time")

    host.push(blocked("dotfiles", id="dotfiles"))
    opened(editor)
    editor.shows("! Bash")
    editor.press("<Esc>")
    assert lines(editor) == ["one", "tw"]
    editor.press("u")
    eventually(lambda: lines(editor) == ["one", "two"], "undone")
    host.push(resting("other"))
    editor.shows("The session has ended.")

    # The answer comes when its window is closed: the text is there again.
    host.push(resting())
    editor.lua("_G.reply = nil")
    editor.press("<CR>")
    editor.shows("Sending…")
    editor.press("q")
    editor.hides(" to dotfiles")
    editor.command("ClaudeSessions send dotfiles")
    editor.shows("Sending…")
    assert len(asked(editor, 2)) == 2
    editor.press("<CR>q")
    editor.hides(" to dotfiles")
    editor.lua("pending[1]({ ok = false, why = 'it asks something' })")
    said(editor, "dotfiles: not sent: it asks something; your text is kept")
    opened(editor)
    assert lines(editor) == ["one", "two"]
    editor.press("<C-s>")
    asked(editor, 3)
    editor.press("q")
    editor.hides(" to dotfiles")
    editor.lua("pending[2]({ ok = true, outcome = 'queued', text = 'it is in its queue' })")
    said(editor, "dotfiles: it is in its queue")
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1
    opened(editor)
    assert lines(editor) == [""]


def test_of_a_session_that_has_ended_the_text_is_in_a_register(nvim: Editors) -> None:
    """As there is no next time."""
    editor = nvim(config=CALM, columns=80, lines=24)
    host = played(editor)
    opened(editor)
    editor.press("one<CR>two")
    host.push(resting("other", project="other"))
    editor.shows("The session has ended.")
    editor.press("<Esc>q")
    editor.hides(" to dotfiles")
    said(editor, "dotfiles: the session has ended; your text is in register 1")
    assert editor.lua("return vim.fn.getreg('1')") == "one\ntwo\n"
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_the_window_at_any_width(nvim: Editors, screen: Screens, columns: int) -> None:
    """To whom it goes, what that session does, why nothing was sent, and the keys."""
    editor = nvim(config=CALM, columns=columns, lines=20)
    played(editor)
    editor.lua("_G.reply = { ok = false, why = 'its prompt holds “and then”; go there' }")
    opened(editor)
    editor.press("good; now the same for bash, and keep the old one as prompt.bak<Esc>")
    editor.shows("<CR> send")
    screen.matches(editor, f"send_{columns}")
    editor.press("<CR>")
    screen.matches(editor, f"send_refused_{columns}")


def test_our_keys_count_where_another_plugin_maps_them(nvim: Editors, version: str) -> None:
    """Some follow links with <CR> in Markdown; what is configured counts, false as well."""
    keys = {"<C-s>": False, "<C-y>": "send", "<Esc>": "close"}
    config = {**CALM, "send": {"keys": keys}}
    editor = nvim(version, config, columns=80, lines=24)
    played(editor)
    editor.lua("""
      vim.api.nvim_create_autocmd('FileType', { pattern = 'markdown', callback = function()
        vim.bo.textwidth = 20
        vim.keymap.set('n', '<CR>', '<Cmd>let g:wrong = 1<CR>', { buffer = true })
      end })
    """)
    for key in ("<Esc><CR>", "<C-y>"):
        editor.command("ClaudeSessions send dotfiles")
        editor.shows("<C-y> send")
        mode(editor, "i")
        editor.press(f"one two three four five six{key}")
        editor.hides(" to dotfiles")
    texts = [request["text"] for _, request in asked(editor, 2)]
    assert texts == ["one two three four five six"] * 2
    assert editor.lua("return vim.g.wrong") is None
    opened(editor)
    editor.press("<Esc>")
    mode(editor, "n")
    editor.press("<Esc>")
    editor.hides(" to dotfiles")


def test_what_is_closed_with_a_command_is_kept(nvim: Editors, version: str) -> None:
    """It is like any other window; an empty text leaves nothing."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(editor)
    for close in (":quit<CR>", ":noautocmd quit<CR>", "<C-w>c"):
        opened(editor)
        editor.press(f"a<Esc>{close}")
        editor.hides(" to dotfiles")
    opened(editor)
    assert lines(editor) == ["aaa"]
    editor.press("<Esc>ggdG:bwipeout!<CR>")
    editor.hides(" to dotfiles")
    opened(editor)
    assert lines(editor) == [""]
    editor.press("<Esc>q")
    editor.hides(" to dotfiles")
    assert editor.lua("return #vim.api.nvim_list_bufs()") == 1


def test_it_follows_the_screen_and_the_tab_page(nvim: Editors) -> None:
    """It keeps its text, where it is opened again, and fits a screen that was resized."""
    editor = nvim(config=CALM, columns=80, lines=24)
    played(editor)
    opened(editor)
    editor.command("tabnew")
    editor.hides(" to dotfiles")
    opened(editor)
    editor.press("one")
    editor.shows("│ one")
    editor.command("tabnew")
    editor.hides(" to dotfiles")
    opened(editor)
    assert lines(editor) == ["one"]
    editor.command("set columns=50 lines=12")
    eventually(lambda: editor.lua("return vim.api.nvim_win_get_width(0)") == 46, "its width")
    editor.press("<Esc>q")
    eventually(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 3, "the tab pages")


def test_where_nothing_followed_a_key_goes_there(nvim: Editors) -> None:
    editor = nvim(config=CALM, columns=80, lines=24)
    _, tty = editor.lua(TERMINAL)
    played(editor, resting(tty=tty))
    editor.lua("_G.reply = { ok = true, outcome = 'nothing', text = 'nothing followed in 3 s' }")
    opened(editor)
    editor.shows(" · terminal ")
    editor.press("one<C-s>")
    editor.shows("Nothing followed in 3 s  go terminal")
    editor.press("go")
    eventually(lambda: editor.lua("return vim.bo.buftype") == "terminal", "its terminal")
    mode(editor, "t")
    editor.hides(" to dotfiles")
    editor.press("<C-\\><C-n>")
    opened(editor, "send")
    assert lines(editor) == ["one"]


def test_what_is_selected_goes_with_it(nvim: Editors, version: str) -> None:
    """A range as whole lines, a selection as it is; below what was written before."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(editor)
    file = editor.home.project / "src" / "a.py"
    file.parent.mkdir()
    file.write_text("def one():\n    return '```'\n\n\ndef two():\n    pass\n")
    editor.command(f"edit {file}")
    opened(editor, "send dotfiles", "1,2")
    editor.press("y<Esc>")
    region = ["src/a.py:1-2", "````python", "def one():", "    return '```'", "````"]
    eventually(lambda: lines(editor) == [*region, "y"], "the lines")
    editor.press("q")
    editor.hides(" to dotfiles")
    editor.lua("vim.keymap.set('x', 'gs', '<Plug>(bellboard-send)')")
    editor.press("5G0wvegs")
    editor.shows("│ y ")
    editor.press("<Esc>")
    word = ["src/a.py:5", "```python", "two", "```", ""]
    eventually(lambda: lines(editor) == [*region, "y", *word], "the word")
    editor.press("ggdGq")
    editor.hides(" to dotfiles")
    editor.press("5G0wve:ClaudeSessions send dotfiles<CR>")
    editor.shows(" to dotfiles")
    mode(editor, "i")
    assert lines(editor) == word


def test_context_is_added_where_the_cursor_is(nvim: Editors, version: str) -> None:
    """Each kind with its key; what there is not is said. Yours come after ours."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(editor)
    root = editor.home.project
    for command in ("init -q", "add .", "commit -qm one"):
        (root / "a.py").write_text("one\n")
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(
            ["git", *author, *command.split()], cwd=root, check=True, env=editor.home.env
        )
    editor.command(f"edit {root / 'a.py'}")
    editor.lua("""
      vim.cmd.cd('/')
      vim.g.bellboard = vim.tbl_extend('force', vim.g.bellboard, { send = { context = {
        who = function(here) return 'for ' .. here.session.session_id end,
        bad = function() error('oops') end,
      } } })
      require('bellboard.config').read()
    """)
    opened(editor)
    for key, why in {
        "2": "Nothing was selected",
        "3": "No diagnostics in that buffer",
        "4": "The quickfix list is empty",
        "5": "No change of that file since the last commit",
        "6": "oops",
    }.items():
        editor.press("<C-g>")
        editor.shows("diff since the last commit")
        editor.press(key)
        editor.shows(why)
        mode(editor, "i")
    (root / ".gitattributes").write_text("* filter=bad diff=bad\n")
    for option in ("filter.bad.clean", "core.fsmonitor", "diff.bad.textconv"):
        git = ["git", "config", option, "touch ran; cat"]
        subprocess.run(git, cwd=root, check=True, env=editor.home.env)
    editor.lua("vim.fn.setbufline('a.py', 1, 'two')")
    editor.lua("""
      local ns, buf = vim.api.nvim_create_namespace('x'), vim.fn.bufnr('a.py')
      vim.diagnostic.set(ns, buf, {
        { lnum = 0, col = 2, message = 'bad\\nname', severity = 2, source = 'pyright' },
      })
      vim.fn.setqflist({ { bufnr = buf, lnum = 1, col = 2, text = ' wrong ' }, { text = 'make' } })
    """)
    editor.press("at  end<Esc>bhi")
    for key, text in {"1": "a.py:1", "7": "for dot", "3": "pyright", "4": "wrong"}.items():
        editor.press("<C-g>")
        editor.shows("diff since the last commit")
        editor.press(key)
        editor.shows(text)
        mode(editor, "i")
    editor.press("<Esc>")
    assert lines(editor) == [
        "at a.py:1for dotfiles",
        "a.py:1:3: warn: bad name [pyright]",
        "a.py:1:2: wrong",
        "make",
        " end",
    ]
    editor.press("ggdG<C-g>")
    editor.shows("diff since the last commit")
    editor.press("5")
    editor.shows("+two")
    mode(editor, "i")
    hunk = ["--- a/a.py", "+++ b/a.py", "@@ -1 +1 @@", "-one", "+two"]
    eventually(lambda: lines(editor) == ["```diff", *hunk, "```", ""], "the diff")
    assert not (root / "ran").exists()
    assert editor.messages().strip() == ""


def test_lua_sends_a_text_or_opens_the_window_with_it(nvim: Editors) -> None:
    """Submitted only if told to; names of context are replaced only where the user sees it."""
    editor = nvim(config=CALM, columns=80, lines=24)
    host = played(editor)
    (editor.home.project / "b.py").write_text("x\n" * 9)
    editor.command(f"edit +7 {editor.home.project / 'b.py'}")
    send = "_G.got = nil require('bellboard').send(...)"
    editor.lua(send, "dotfiles", "run {file}")
    request = {"session_id": "dotfiles", "text": "run {file}", "submit": False}
    assert asked(editor) == [["send", request]]
    said(editor, "dotfiles: it took your prompt")
    done = "local n, t = ... require('bellboard').send(n, t, { submit = true, on_done = function(r)"
    done += " _G.got = r end })"
    editor.lua(done, "dotfiles", "run")
    assert asked(editor, 2)[1] == ["send", {**request, "text": "run", "submit": True}]
    eventually(lambda: editor.lua("return got and got.ok"), "a reply")
    editor.lua(done, "nobody", "run")
    assert 'no session "nobody"' in editor.lua("return got.why")
    editor.lua(done, "dotfiles", " ")
    assert editor.lua("return got") == {"ok": False, "why": "there is no text"}
    editor.lua("require('bellboard').send('dotfiles', 'fix {file}:{line} {odd}', { edit = true })")
    editor.shows("fix b.py:7 {odd}")
    editor.lua("require('bellboard').send('dotfiles', 'and {quickfix}', { edit = true })")
    said(editor, "{quickfix}: the quickfix list is empty")
    assert lines(editor) == ["fix b.py:7 {odd}", "and {quickfix}"]
    host.stops()
    editor.press("<C-s>")
    editor.shows("Not sent: the background process is not running")


def test_without_a_name_it_goes_to_the_session_here_or_you_choose(nvim: Editors) -> None:
    """Of those that rest, the one that has completed last comes first."""
    editor = nvim(config=CALM, columns=80, lines=24)
    played(
        editor,
        blocked("api"),
        session("working", "web", ago=10, project="web", pid=4711),
        resting("old", ago=900, project="old", title="an old one"),
        resting("new", ago=60, project="new", title="a new one"),
    )
    editor.press(":ClaudeSessions send<CR>")
    editor.shows("!status:working !status:blocked")
    picture = editor.hides("web")
    assert picture.text.index("a new one") < picture.text.index("an old one")
    editor.press("<CR>")
    editor.shows(" to new")
    mode(editor, "i")
    editor.press("<Esc>q")
    editor.hides(" to new")
    assert editor.lua("return require('bellboard.board.view').choice().filter") == ""
    assert editor.lua("return require('bellboard.board.view').choice().sort") == "urgency"

    editor.lua("""
      _G.own = vim.ui.select
      vim.ui.select = function(items, _, done) _G.offered = items done(items[2]) end
    """)
    editor.command("ClaudeSessions send")
    editor.shows(" to old")
    mode(editor, "i")
    assert [each["session_id"] for each in editor.lua("return offered")] == ["new", "old"]
    editor.press("<Esc>q")
    editor.hides(" to old")
    editor.lua("vim.ui.select = own")

    editor.command("ClaudeSessions board")
    editor.shows("an old one")
    editor.press("/an old<CR>r")
    editor.shows(" to old")
    mode(editor, "i")
    editor.press("<Esc>q")
    editor.hides(" to old")
    editor.press(":ClaudeSessions send<CR>")
    editor.shows(" to old")
    mode(editor, "i")
    editor.press("<Esc>q")
    editor.hides(" to old")
    assert editor.lua("return vim.bo.filetype") == "bellboard"


def test_interrupt_and_stop_mean_a_session(nvim: Editors, version: str) -> None:
    """Everywhere, after asking; the background process has a command of its own."""
    editor = nvim(version, CALM, columns=80, lines=24)
    played(
        editor,
        resting("api", project="api"),
        session("working", "web", ago=10, project="web", title="build", pid=4711),
    )
    editor.lua("_G.reply = { ok = true, outcome = 'taken', text = 'it has stopped its turn' }")
    editor.command("ClaudeSessions interrupt web")
    editor.shows('Interrupt web "build"?')
    editor.press("1")
    editor.hides("Interrupt web")
    editor.command("ClaudeSessions interrupt web")
    editor.shows("2  Interrupt it")
    editor.press("2")
    assert asked(editor) == [["interrupt", {"session_id": "web"}]]
    said(editor, "web: it has stopped its turn")
    editor.command("ClaudeSessions interrupt api")
    said(editor, "not working")
    editor.lua("_G.reply = { ok = false, why = 'it asks something' }")
    editor.command("ClaudeSessions stop web")
    editor.shows('Stop process 4711 (web "build")?')
    editor.press("2")
    assert asked(editor, 2)[1] == ["stop", {"session_id": "web", "pid": 4711}]
    said(editor, "web: not stopped: it asks something")
    editor.command("ClaudeSessions board")
    editor.shows("build")
    editor.press("/build<CR>I")
    editor.shows('Interrupt web "build"?')
    editor.press("2")
    asked(editor, 3)
    said(editor, "web: not interrupted: it asks something")
    editor.command("ClaudeSessions start")
    said(editor, "process start is the background process")
