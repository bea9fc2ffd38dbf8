-- All options: their defaults, their types and what they are for. Validation uses this table;
-- `python doc/tables.py` makes the list in the help and the types for language servers from it.
local keys = require('bellboard.keys')

local M = {}

--- Most urgent first.
---@type bellboard.Status[]
M.statuses = { 'blocked', 'error', 'completed', 'unknown', 'working', 'background', 'idle' }

local ICONS = { 'question', unpack(M.statuses) }
local NOTIFIED = { 'blocked', 'error', 'completed', 'background' }
local CHANNELS = { 'float', 'notify', 'bell', 'desktop', 'sound', 'command' }
local ELSEWHERE = { unpack(CHANNELS, 2) } -- the float lists only what is blocked
local CALLBACK = 'fun(transition: bellboard.TransitionData)|string[]'

local BOARD_KEYS = keys.defaults(keys.board)
-- stylua: ignore
local ANSWER_KEYS = {
  A = 'yes', P = 'always', D = 'no', R = 'reply', S = 'stop', C = 'edit',
  i = 'fill', ['<CR>'] = 'pick', ['<Space>'] = 'page', gd = 'diff',
  r = 'send', go = 'go', s = 'snooze', d = 'seen', ['<Tab>'] = 'skip', u = 'update',
  gl = 'failed', q = 'close', ['<Esc>'] = 'close',
}
local SEND_KEYS = {
  ['<CR>'] = 'send',
  ['<C-S>'] = 'send',
  ['<C-CR>'] = 'send',
  gp = 'put',
  ['<C-G>'] = 'context',
  go = 'go',
  q = 'close',
}
local AT_ONCE = { notify = 0, desktop = 0, sound = 0 }
local LABELS = {
  ONEOFF = { completed = AT_ONCE },
  HEAVY = { pin = true, completed = AT_ONCE },
  IMPORTANT = {
    pin = true,
    highlight = 'BellboardImportant',
    blocked = AT_ONCE,
    completed = AT_ONCE,
  },
}

---@param blocked boolean
---@param notify number|false
---@param desktop number
---@param command number|false
local function ladder(blocked, notify, desktop, command)
  return {
    float = blocked and 0 or nil,
    notify = notify,
    bell = false,
    desktop = desktop,
    sound = false,
    command = command,
  }
end

--- Whether a text is two times of day, as core/notices.py reads them.
---@param text string
---@return boolean
local function are_hours(text)
  local h1, m1, h2, m2 = text:match('^(%d%d?):(%d%d)%s*%-%s*(%d%d?):(%d%d)$')
  return h1 ~= nil and math.max(m1, m2) < 60 and math.max(60 * h1 + m1, 60 * h2 + m2) <= 1440
end

---@param text string
---@return boolean
local function is_line(text)
  return not text:find('%c')
end

---@class bellboard.ConfigOption
---@field [1] string its path; a star stands for the names of a table's members
---@field [2] any its default
---@field [3] string its type; a star in the path: of each member
---@field [4]? string what it is for; nil: the help does not list it
---@field least? number default: 0
---@field names? string[] what the star stands for; default: anything
---@field among? table<string, string> the members can be what these are
---@field are_keys? boolean the names are keys
---@field valid? fun(text: string): boolean whether a string can be used
---@field example? string one that can

---@type bellboard.ConfigOption[]
M.options = {
  {
    'auto_start',
    true,
    'boolean|fun(): boolean',
    'Start the background process after |VimEnter|, except in the cases that '
      .. '|bellboard-install| lists; if false, the first command starts it.',
  },
  {
    'python',
    nil,
    'string|string[]',
    "Python interpreter, or a command such as `{ 'uv', 'run', '--project', '~/x', 'python' "
      .. "}`. Default: the first that exists of the plugin's `.venv`, |g:python3_host_prog|, the "
      .. 'environment of `pynvim-python`, `python3`.',
  },
  { 'max_restarts', 5, 'integer', 'Give up after this many crashes in a row.' },
  {
    'icons',
    'ascii',
    "'ascii'|'unicode'|'nerd'|table<bellboard.IconName, string>",
    'Set of icons ("nerd" needs a patched font), or icons by status and `question`; tmux and '
      .. 'the shell show those that a Neovim set last.',
  },
  { 'icons.*', nil, 'string', names = ICONS, valid = is_line, example = '!' },

  {
    'statusline.auto',
    true,
    'boolean',
    "Show the counts in Neovim's own statusline; if you have another one, say once how to add "
      .. 'them.',
  },
  { 'statusline.detail', true, 'boolean', 'Show who asks what while one session is blocked.' },
  { 'statusline.width', 40, 'integer', 'Maximum width of the text, in cells.', least = 1 },
  { 'statusline.click', true, 'boolean', 'Respond to mouse clicks.' },
  {
    'statusline.format',
    nil,
    'fun(sessions: bellboard.Session[]): string',
    'Function that gets all sessions, most urgent first, and returns the text.',
  },

  { 'float.enabled', true, 'boolean', 'Show the |bellboard-float|.' },
  { 'float.width', 60, 'integer', 'Maximum width, in cells.', least = 10 },
  { 'float.max_sessions', 4, 'integer', 'Maximum number of sessions listed.', least = 1 },
  { 'float.zindex', 60, 'integer', 'See |nvim_open_win()|.', least = 1 },
  {
    'float.seconds',
    8,
    'number',
    'Shrink to one line, or close where a statusline says the same, after so many seconds, until '
      .. 'another session is blocked; 0: never.',
  },

  { 'board.layout', 'split', "'split'|'vsplit'|'tab'|'float'", 'Where the board opens.' },
  {
    'board.size',
    0.35,
    'number',
    'Number of lines (split) or columns (vsplit); up to 1: a fraction of the screen.',
  },
  {
    'board.group',
    'urgency',
    "'urgency'|'repository'|'none'",
    'What needs you first, then by repository; all by repository; or one list.',
  },
  {
    'board.sort',
    'urgency',
    "'urgency'|'recent'|'name'",
    'Order of the sessions; "recent": the latest change of status first.',
  },
  { 'board.preview', false, 'boolean', 'Open the board with a preview beside it.' },
  {
    'board.keys',
    BOARD_KEYS,
    'table<string, string|false|fun(session: bellboard.Session)>',
    'What each key of the |bellboard-board| does: an action, a function that gets the session '
      .. 'under the cursor, or false to leave the key alone.',
    are_keys = true,
  },
  {
    'board.keys.*',
    nil,
    'string|false|fun(session: bellboard.Session)',
    among = BOARD_KEYS,
  },

  { 'answer.layout', 'float', "'float'|'split'", 'Where the view of a request opens.' },
  { 'answer.width', 100, 'integer', 'Maximum width of the float, in cells.', least = 30 },
  {
    'answer.key_delay',
    0.3,
    'number',
    'Seconds without a key before keys answer, after a view was opened or entered.',
  },
  {
    'answer.keys',
    ANSWER_KEYS,
    'table<string, string|false>',
    'What each key of the view of a request does (|bellboard-answer|), or false to leave the '
      .. 'key alone.',
    are_keys = true,
  },
  { 'answer.keys.*', nil, 'string|false', among = ANSWER_KEYS },

  {
    'send.keys',
    SEND_KEYS,
    'table<string, string|false>',
    'What each key of |bellboard-send| does; those with CTRL also in Insert mode.',
    are_keys = true,
  },
  { 'send.keys.*', nil, 'string|false', among = SEND_KEYS },
  {
    'send.context',
    {},
    'table<string, fun(here: bellboard.Here): string|nil>',
    'More to add to a text: functions by name, each of which gets `buf`, `row`, `rows`, '
      .. '`selected` and `session`.',
  },
  { 'send.context.*', nil, 'fun(here: bellboard.Here): string|nil' },

  { 'jump.insert', true, 'boolean', 'Enter |Terminal-mode| after a jump to a terminal.' },

  {
    'notices.mode',
    'normal',
    "'quiet'|'normal'|'all'",
    'Which notifications there are (|bellboard-notices|), until a subcommand sets another mode.',
  },
  {
    'notices.blocked',
    ladder(true, false, 30, 120),
    'table<bellboard.Channel, number|boolean>',
    'Seconds until each channel notifies you of a session that is blocked; false: never.',
  },
  {
    'notices.error',
    ladder(false, 0, 30, 120),
    'table<bellboard.Channel, number|boolean>',
    'The same after a turn failed.',
  },
  {
    'notices.completed',
    ladder(false, 0, 10, false),
    'table<bellboard.Channel, number|boolean>',
    'The same after a turn was completed.',
  },
  {
    'notices.background',
    ladder(false, 0, 10, false),
    'table<bellboard.Channel, number|boolean>',
    'The same if shells of it still run.',
  },
  { 'notices.blocked.*', nil, 'number|boolean', names = CHANNELS },
  { 'notices.error.*', nil, 'number|boolean', names = ELSEWHERE },
  { 'notices.completed.*', nil, 'number|boolean', names = ELSEWHERE },
  { 'notices.background.*', nil, 'number|boolean', names = ELSEWHERE },
  {
    'notices.min_interval',
    10,
    'number',
    'Minimum number of seconds between two notifications of one session on one channel.',
  },
  {
    'notices.max_per_minute',
    6,
    'integer',
    'Maximum number of notifications a minute on one channel about sessions of this machine, '
      .. 'and as many about those of others; 0: none.',
  },
  {
    'notices.min_turn',
    10,
    'number',
    'Do not announce the end of a turn shorter than this many seconds.',
  },
  { 'notices.snooze', 15, 'number', 'Default length of a snooze, in minutes.' },
  {
    'notices.quiet_hours',
    nil,
    'string',
    "Hours without notifications, for example '22:00-07:30'.",
    valid = are_hours,
    example = '22:00-07:30',
  },
  {
    'notices.desktop',
    'auto',
    "'auto'|'notify-send'|'osascript'|'osc9'|'osc777'",
    'How to send desktop notifications; the last two are escape sequences to your terminal, '
      .. 'which also work over ssh.',
  },
  {
    'notices.sounds',
    {},
    'table<bellboard.Status, string>',
    'For each status a file, or a sound that most machines have: ask, done, failed, alarm, '
      .. 'urgent, fanfare.',
  },
  { 'notices.sounds.*', nil, 'string', names = NOTIFIED },
  {
    'notices.player',
    nil,
    'string[]',
    'Command that plays sounds. Default: the first that exists of pw-play, paplay, afplay, '
      .. 'ffplay, aplay.',
  },
  { 'notices.command', nil, 'string[]', 'Command that notifies you: |bellboard-notices|.' },
  {
    'notices.labels',
    LABELS,
    'table<string, bellboard.Label>',
    'What differs for sessions with a label: |bellboard-labels|.',
  },
  { 'notices.labels.*', nil, 'table' },
  { 'notices.labels.*.pin', nil, 'boolean' },
  { 'notices.labels.*.highlight', nil, 'string' },
  { 'notices.labels.*.sounds', nil, 'table' },
  { 'notices.labels.*.sounds.*', nil, 'string', names = NOTIFIED },

  {
    'ask_unsaved',
    false,
    'boolean',
    'Have Claude Code ask before it writes a file with unsaved changes here: |bellboard-unsaved|.',
  },
  {
    'refuse_quit',
    true,
    'boolean',
    'Refuse once to quit while agents in terminals of this Neovim work or ask: |bellboard-quit|.',
  },
  {
    'report',
    true,
    'boolean',
    'Report the sessions to the terminal that Neovim runs in, if it reads OSC 7501.',
  },
  {
    'claude',
    'claude',
    'string|string[]',
    "Command that starts Claude Code, such as `{ 'claude', '--model', 'opus' }`.",
  },
  {
    'launch.layout',
    'vsplit',
    "'split'|'vsplit'|'tab'|'window'",
    'Where the terminal of a new session opens; "window": in the current window.',
  },
  { 'launch.size', 0.5, 'number', 'Its number of lines or columns, as |g:bellboard.board.size|.' },
  {
    'machines',
    {},
    'table<string, string[]>',
    'Other machines to follow, each with the command that reaches it, such as `{ dev = { '
      .. "'ssh', 'dev' } }`: |bellboard-machines-link|.",
  },
  { 'machines.*', nil, 'string[]' },
  {
    'pull_requests',
    false,
    'boolean',
    "Use `gh` to look up the pull request of each session's branch every five minutes, which "
      .. 'takes the network.',
  },
  -- Seconds in the rules that decide a status: core/options.py says what each is for.
  { 'host', {}, 'table<string, any>' },
  { 'host.*', nil, 'any' },
  {
    'on_transition',
    nil,
    CALLBACK,
    'Function to call on every |BellboardTransition| in each Neovim, or a command to run once '
      .. 'per machine.',
  },
  {
    'on',
    {},
    'table<bellboard.Status, bellboard.Callback>',
    'The same for transitions to one status.',
  },
  { 'on.*', nil, CALLBACK, names = M.statuses },
}
for _, status in ipairs(NOTIFIED) do
  local path, names = 'notices.labels.*.' .. status, status == 'blocked' and CHANNELS or ELSEWHERE
  table.insert(M.options, { path, nil, 'table' })
  table.insert(M.options, { path .. '.*', nil, 'number|boolean', names = names })
end

return M
