-- The options and their defaults.

---@alias bellboard.Status
---| 'blocked' waiting for your answer
---| 'error' the turn failed
---| 'completed' the turn is over and you have not looked
---| 'unknown' was working when last seen
---| 'working' busy
---| 'background' the turn is over, shells still run
---| 'idle' nothing for you

---@alias bellboard.IconName bellboard.Status|'question'

---@class (exact) bellboard.Config
---@field command string name of a second command, besides :Bellboard
---@field auto_start boolean|fun(): boolean start the background process with Neovim
---@field python? string|string[] interpreter of the background process, or a command
---@field restarts integer give up after this many crashes in a row
---@field icons 'ascii'|'unicode'|'nerd'|table<bellboard.IconName, string>
---@field statusline bellboard.Config.Statusline
---@field float bellboard.Config.Float
---@field board bellboard.Config.Board
---@field answer bellboard.Config.Answer
---@field jump bellboard.Config.Jump
---@field notices bellboard.Config.Notices
---@field claude string|string[] command that starts Claude Code
---@field launch bellboard.Config.Launch
---@field machines table<string, string[]> other machines to follow, and the command to reach each
---@field pull_requests boolean ask gh for the pull request of a branch
---@field host table<string, any> seconds in the rules that decide a status; shared by all Neovims
---@field on_transition? bellboard.Callback
---@field on table<bellboard.Status, bellboard.Callback>

--- A function is called in each Neovim; a command (a list of arguments) runs once per machine.
---@alias bellboard.Callback fun(transition: bellboard.TransitionData)|string[]

---@class (exact) bellboard.Config.Statusline
---@field auto boolean show in Neovim's own statusline; else say once how to add it
---@field detail boolean while exactly one session is blocked, show its project and question
---@field width integer maximum width in cells
---@field click boolean make the items clickable
---@field format? fun(sessions: bellboard.Session[]): string the text, instead of ours

---@class (exact) bellboard.Config.Float
---@field enabled boolean
---@field width integer maximum width in cells
---@field sessions integer maximum number of sessions
---@field zindex integer
---@field seconds number shrink to one line this long after the last session was blocked; 0: never

---@class (exact) bellboard.Config.Board
---@field layout 'split'|'vsplit'|'tab'|'float'
---@field size number rows (split), columns (vsplit), or the part of the screen if not above 1
---@field group bellboard.Grouping
---@field sort bellboard.Sorting
---@field preview boolean open it with a preview beside it
---@field keys table<string, string|false|fun(session: bellboard.Session)>

---@class (exact) bellboard.Config.Answer the view of a request
---@field layout 'float'|'split'
---@field width integer maximum width in cells
---@field ready number seconds without a key before keys answer
---@field keys table<string, string|false>

---@class (exact) bellboard.Config.Launch
---@field layout 'split'|'vsplit'|'tab'|'window' where the terminal of a new session goes
---@field size number rows (split), columns (vsplit), or the part of the screen if not above 1

---@class (exact) bellboard.Config.Jump
---@field insert boolean enter terminal mode in the session's terminal

---@alias bellboard.Channel 'float'|'notify'|'bell'|'desktop'|'sound'|'command'

--- Seconds until each channel notifies about a session that is still waiting; false: never.
---@alias bellboard.Ladder table<bellboard.Channel, number|boolean>

---@class (exact) bellboard.Config.Notices
--- Quiet: only the float. Normal: what needs you, and a message when done. All: on every channel.
---@field mode 'quiet'|'normal'|'all'
---@field blocked bellboard.Ladder
---@field error bellboard.Ladder
---@field completed bellboard.Ladder
---@field background bellboard.Ladder
---@field gap number seconds between two notices about a session on one channel
---@field cap integer notices per minute on one channel
---@field least number no notice for turns shorter than this many seconds
---@field snooze number minutes of a snooze
---@field quiet_hours? string such as '22:00-07:30'
---@field via 'auto'|'notify-send'|'osascript'|'osc9'|'osc777' how to send desktop notifications
---@field sounds table<string, string> file or built-in name, by status
---@field player? string[] command that plays a file
---@field command? string[] command that notifies your phone
---@field labels table<string, bellboard.Config.Label>

---@class (exact) bellboard.Config.Label
---@field pin? boolean keep it on top: of the board, and of sessions with the same status
---@field highlight? string highlight group of the label
---@field sounds? table<string, string>
---@field blocked? bellboard.Ladder
---@field error? bellboard.Ladder
---@field completed? bellboard.Ladder
---@field background? bellboard.Ladder

---@class bellboard.UserConfig: bellboard.Config, {}  every field is optional

---@type bellboard.Config
return {
  command = 'ClaudeSessions',
  auto_start = true,
  python = nil,
  restarts = 5,
  icons = 'ascii',
  statusline = {
    auto = true,
    detail = true,
    width = 40,
    click = true,
    format = nil,
  },
  float = { enabled = true, width = 60, sessions = 4, zindex = 60, seconds = 8 },
  board = {
    layout = 'split',
    size = 0.35,
    group = 'urgency',
    sort = 'urgency',
    preview = false,
    -- stylua: ignore
    keys = {
      ['<CR>'] = 'go', a = 'answer', K = 'preview', P = 'beside', ['<Tab>'] = 'fold',
      zR = 'unfold_all', zM = 'fold_all', [']]'] = 'next', ['[['] = 'prev',
      f = 'filter', F = 'unfilter', ['.'] = 'here', t = 'group', S = 'sort',
      m = 'mark', M = 'unmark_all',
      d = 'seen', p = 'park', s = 'snooze', l = 'label', r = 'rename', c = 'correct',
      x = 'stop', o = 'resume', e = 'explain', y = 'yank', R = 'refresh', q = 'close',
      ['g?'] = 'help',
    },
  },
  answer = {
    layout = 'float',
    width = 100,
    ready = 0.3,
    -- stylua: ignore
    keys = {
      A = 'yes', P = 'always', D = 'no', R = 'reply', S = 'stop', C = 'edit',
      i = 'fill', ['<CR>'] = 'pick', ['<Space>'] = 'page', gd = 'diff',
      go = 'go', s = 'snooze', ['<Tab>'] = 'skip', u = 'update', gl = 'failed',
      q = 'close', ['<Esc>'] = 'close',
    },
  },
  jump = { insert = true },
  -- stylua: ignore
  notices = {
    mode = 'normal',
    blocked = {
      float = 0, notify = false, bell = false, desktop = 30, sound = false, command = 120,
    },
    error = { notify = 0, bell = false, desktop = 30, sound = false, command = 120 },
    completed = { notify = 0, bell = false, desktop = 10, sound = false, command = false },
    background = { notify = 0, bell = false, desktop = 10, sound = false, command = false },
    gap = 10,
    cap = 6,
    least = 10,
    snooze = 15,
    quiet_hours = nil,
    via = 'auto',
    sounds = {},
    player = nil,
    command = nil,
    labels = {
      ONEOFF = { completed = { notify = 0, desktop = 0, sound = 0 } },
      HEAVY = { pin = true, completed = { notify = 0, desktop = 0, sound = 0 } },
      IMPORTANT = {
        pin = true,
        highlight = 'BellboardImportant',
        blocked = { notify = 0, desktop = 0, sound = 0 },
        completed = { notify = 0, desktop = 0, sound = 0 },
      },
    },
  },
  claude = 'claude',
  launch = { layout = 'vsplit', size = 0.5 },
  machines = {},
  pull_requests = false,
  host = {},
  on_transition = nil,
  on = {},
}
