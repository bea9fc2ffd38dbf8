local M = {}

---@alias bellboard.Status
---| 'blocked' it asks for something
---| 'error' the turn died
---| 'completed' the turn is over and you have not looked
---| 'unknown' was working when nobody watched
---| 'working' busy
---| 'background' the turn is over, shells still run
---| 'idle' nothing for you

---@alias bellboard.IconName bellboard.Status|'question'

---@class (exact) bellboard.Config
---@field command string name of the command
---@field auto_start boolean start the host when Neovim has started
---@field python? string|string[] interpreter of the host, or a command that ends in one
---@field restarts integer quick deaths of the host in a row before it is given up
---@field icons 'ascii'|'unicode'|'nerd'|table<bellboard.IconName, string>
---@field statusline bellboard.Config.Statusline
---@field float bellboard.Config.Float
---@field board bellboard.Config.Board
---@field jump bellboard.Config.Jump
---@field notices bellboard.Config.Notices
---@field claude string|string[] command that starts Claude Code
---@field launch bellboard.Config.Launch
---@field pull_requests boolean ask gh for the pull request of a branch
---@field host table<string, any> what shapes the states; shared by all Neovims
---@field on_transition? bellboard.Callback
---@field on table<bellboard.Status, bellboard.Callback>

--- A function is called in each Neovim; a command, as a list of words, runs once in the world.
---@alias bellboard.Callback fun(transition: bellboard.TransitionData)|string[]

---@class (exact) bellboard.Config.Statusline
---@field detail boolean say who asks what while exactly one session is blocked
---@field width integer cells that this may take
---@field click boolean make the items react to the mouse
---@field format bellboard.Config.Format

---@class (exact) bellboard.Config.Format what is said, with fields in braces
---@field count string the sessions of one status
---@field one string while exactly one session is blocked
---@field many string while several are
---@field session string one session, where each has an item of its own
---@field terminal string in b:bellboard_status

---@class (exact) bellboard.Config.Float
---@field enabled boolean
---@field width integer most cells it may take
---@field sessions integer most sessions it lists
---@field zindex integer

---@class (exact) bellboard.Config.Board
---@field layout 'split'|'vsplit'|'tab'|'float'
---@field size number rows (split), columns (vsplit), or the part of the screen if not above 1

---@class (exact) bellboard.Config.Launch
---@field layout 'split'|'vsplit'|'tab'|'window' where the terminal of a new session goes
---@field size number rows (split), columns (vsplit), or the part of the screen if not above 1

---@class (exact) bellboard.Config.Jump
---@field insert boolean enter terminal mode in the session's terminal

---@alias bellboard.Channel 'float'|'notify'|'bell'|'desktop'|'sound'|'command'

--- Seconds after which each channel speaks of a session that still waits; false: never.
---@alias bellboard.Ladder table<bellboard.Channel, number|boolean>

---@class (exact) bellboard.Config.Notices
---@field mode 'quiet'|'normal'|'all' the float alone; what needs you; also what is done
---@field blocked bellboard.Ladder
---@field error bellboard.Ladder
---@field completed bellboard.Ladder
---@field background bellboard.Ladder
---@field gap number seconds between two notices of one session on one channel
---@field cap integer notices of one channel in a minute
---@field least number a turn of fewer seconds ends without a word
---@field snooze number minutes that a snooze takes
---@field quiet_hours? string such as '22:00-07:30'
---@field via 'auto'|'notify-send'|'osascript'|'osc9'|'osc777' how the desktop is told
---@field sounds table<string, string> file, or one of the names known, by status
---@field player? string[] what plays a file
---@field command? string[] what tells your phone
---@field labels table<string, bellboard.Config.Label>

---@class (exact) bellboard.Config.Label
---@field pin? boolean comes first on the board, among those of its status
---@field highlight? string group of the label
---@field sounds? table<string, string>
---@field blocked? bellboard.Ladder
---@field error? bellboard.Ladder
---@field completed? bellboard.Ladder
---@field background? bellboard.Ladder

---@class bellboard.UserConfig: bellboard.Config, {}  every field may be left out

---@type bellboard.Config
local defaults = {
  command = 'ClaudeSessions',
  auto_start = true,
  python = nil,
  restarts = 5,
  icons = 'ascii',
  statusline = {
    detail = true,
    width = 40,
    click = true,
    format = {
      count = '{icon}{count}',
      one = '{count} {project}: {asks} {waits}',
      many = '{count} {waits}',
      session = '{icon} {project} {waits}',
      terminal = '{icon} {word} {detail}',
    },
  },
  float = { enabled = true, width = 60, sessions = 4, zindex = 60 },
  board = { layout = 'split', size = 0.35 },
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
  pull_requests = false,
  host = {},
  on_transition = nil,
  on = {},
}

--- What the type of a default does not say: other types, a closed choice, or keys not known here.
local rules = {
  python = { types = { 'string', 'table' } },
  icons = { types = { 'string', 'table' }, among = { 'ascii', 'unicode', 'nerd' }, open = true },
  host = { open = true },
  on_transition = { types = { 'function', 'table' } },
  on = { open = true, each = { 'function', 'table' } },
  claude = { types = { 'string', 'table' }, open = true, each = { 'string' } },
  ['launch.layout'] = { among = { 'split', 'vsplit', 'tab', 'window' } },
  ['board.layout'] = { among = { 'split', 'vsplit', 'tab', 'float' } },
  ['notices.mode'] = { among = { 'quiet', 'normal', 'all' } },
  ['notices.via'] = { among = { 'auto', 'notify-send', 'osascript', 'osc9', 'osc777' } },
  ['notices.quiet_hours'] = {
    types = { 'string' },
    like = '^%d%d?:%d%d%-%d%d?:%d%d$',
    example = '22:00-07:30',
  },
  ['notices.sounds'] = { open = true, each = { 'string' } },
  ['notices.player'] = { types = { 'table' }, each = { 'string' } },
  ['notices.command'] = { types = { 'table' }, each = { 'string' } },
  ['notices.labels'] = { inside = true },
  ['notices.labels.*'] = { types = { 'table' } },
  ['notices.labels.*.pin'] = { types = { 'boolean' } },
  ['notices.labels.*.highlight'] = { types = { 'string' } },
  ['notices.labels.*.sounds'] = { types = { 'table' }, each = { 'string' } },
}
for _, status in ipairs({ 'blocked', 'error', 'completed', 'background' }) do
  rules['notices.' .. status] = { inside = true }
  rules['notices.labels.*.' .. status] = { types = { 'table' } }
  for _, channel in ipairs({ 'float', 'notify', 'bell', 'desktop', 'sound', 'command' }) do
    local delay = (channel ~= 'float' or status == 'blocked')
        and { types = { 'number', 'boolean' }, least = 0 }
      or nil
    rules[('notices.%s.%s'):format(status, channel)] = delay
    rules[('notices.labels.*.%s.%s'):format(status, channel)] = delay
  end
end

--- What is known of an option; what is inside a label is alike for all labels.
---@param path string
---@return table|nil
local function rule_of(path)
  return rules[path] or rules[(path:gsub('^(notices%.labels%.)[^.]+', '%1*'))]
end

---@type bellboard.UserConfig|nil  what setup() was given
local given
---@type bellboard.Config|nil
local resolved
---@type string[]
local problems = {}

---@param path string
---@param value any
---@param default any
---@return string|nil problem
local function check(path, value, default)
  local rule = rule_of(path) or {}
  local types = rule.types or { type(default) }
  if not vim.tbl_contains(types, type(value)) then
    return ('%s: expected %s, got %s'):format(path, table.concat(types, ' or '), type(value))
  end
  if rule.among and type(value) == 'string' and not vim.tbl_contains(rule.among, value) then
    return ('%s: expected one of %s, got "%s"'):format(path, table.concat(rule.among, ', '), value)
  end
  if rule.like and not value:match(rule.like) then
    return ('%s: expected e.g. "%s", got "%s"'):format(path, rule.example, value)
  end
  if rule.least and type(value) == 'number' and value < rule.least then
    return ('%s: expected at least %s, got %s'):format(path, rule.least, value)
  end
  for key, member in pairs(rule.each and type(value) == 'table' and value or {}) do
    if not vim.tbl_contains(rule.each, type(member)) then
      local expected = table.concat(rule.each, ' or ')
      return ('%s.%s: expected %s, got %s'):format(path, key, expected, type(member))
    end
  end
end

--- Copy what is right of `user` over `base`, in place; note what is wrong.
---@param base table
---@param user table
---@param prefix string
local function merge(base, user, prefix)
  for key, value in pairs(user) do
    local path = prefix .. tostring(key)
    local rule = rule_of(path)
    if base[key] == nil and not rule then
      problems[#problems + 1] = path .. ': no such option'
    else
      local problem = check(path, value, base[key])
      if problem then
        problems[#problems + 1] = problem
      elseif
        rule
        and not rule.each
        and path:find('^notices%.labels%.')
        and type(value) == 'table'
      then
        base[key] = base[key] or {}
        merge(base[key], value, path .. '.')
      elseif type(value) == 'table' and type(base[key]) == 'table' and not (rule and rule.open) then
        merge(base[key], value, path .. '.')
      else
        base[key] = value
      end
    end
  end
end

---@return bellboard.Config
local function resolve()
  problems = {}
  local config = vim.deepcopy(defaults)
  local global = vim.g.bellboard
  if type(global) == 'function' then
    local ok, made = pcall(global)
    if not ok then
      problems[#problems + 1] = 'the function threw: ' .. tostring(made)
    end
    global = ok and made or nil
  end
  for _, source in ipairs({ global or vim.empty_dict(), given or vim.empty_dict() }) do
    if type(source) == 'table' then
      merge(config, source, '')
    else
      problems[#problems + 1] = 'expected a table or a function, got ' .. type(source)
    end
  end
  if #problems > 0 then
    table.sort(problems)
    vim.schedule(function()
      vim.notify(M.complaint(), vim.log.levels.WARN)
    end)
  end
  return config
end

--- Store options; they count from now on. Equal to setting `vim.g.bellboard`.
---@param opts? bellboard.UserConfig
M.set = function(opts)
  given = opts
  resolved = nil
end

--- Read them anew: `vim.g.bellboard` may be another one by now.
M.read = function()
  resolved = nil
end

---@return bellboard.Config
M.get = function()
  resolved = resolved or resolve()
  return resolved
end

--- What was wrong in one line of the screen, as a start must not end in a prompt.
---@return string
M.complaint = function()
  local text = ('bellboard: vim.g.bellboard.%s (default used)'):format(problems[1])
  if #problems > 1 or #text > vim.v.echospace then
    local paths = {}
    for place, problem in ipairs(problems) do
      paths[place] = problem:match('^([%w_.]+):') or 'vim.g.bellboard'
    end
    text = ('bellboard: wrong %s; :checkhealth bellboard'):format(table.concat(paths, ', '))
  end
  if #text > vim.v.echospace then
    text = text:sub(1, math.max(vim.v.echospace - 3, 0)) .. '...'
  end
  return text
end

--- What was wrong with the configuration, one line each.
---@return string[]
M.problems = function()
  M.get()
  return problems
end

--- Every option by its dotted path, for the manual's test; some are described with their parent.
---@return string[]
M.keys = function()
  local keys = { 'python', 'on_transition' } -- nil by default
  for _, key in ipairs({ 'quiet_hours', 'player', 'command' }) do
    keys[#keys + 1] = 'notices.' .. key
  end
  local function walk(table_, prefix)
    for key, value in pairs(table_) do
      keys[#keys + 1] = prefix .. key
      if type(value) == 'table' and not (rules[prefix .. key] or {}).inside then
        walk(value, prefix .. key .. '.')
      end
    end
  end
  walk(defaults, '')
  table.sort(keys)
  return keys
end

---@class bellboard.Interpreter
---@field command string[]
---@field why string where it was found

--- The folder of this plugin.
---@return string
M.root = function()
  return vim.fs.dirname(
    vim.fs.dirname(vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2))))
  )
end

--- The interpreter of the host. Nothing is started to find it: a wrong one says so when it dies.
---@return bellboard.Interpreter
M.interpreter = function()
  local wanted = M.get().python
  if type(wanted) == 'string' then
    return { command = { vim.fn.expand(wanted) }, why = 'the option python' }
  elseif wanted then
    return { command = wanted, why = 'the option python' }
  end
  local own = M.root() .. '/.venv/bin/python'
  if vim.fn.executable(own) == 1 then
    return { command = { own }, why = "the plugin's own .venv" }
  end
  local prog = vim.g.python3_host_prog
  if type(prog) == 'string' and prog ~= '' then
    return { command = { vim.fn.expand(prog) }, why = 'g:python3_host_prog' }
  end
  local launcher = vim.fn.exepath('pynvim-python')
  if launcher ~= '' then
    -- Not the launcher itself: it would leave the real interpreter behind when stopped.
    local sibling = vim.fs.dirname(vim.uv.fs_realpath(launcher) or launcher) .. '/python'
    if vim.fn.executable(sibling) == 1 then
      return { command = { sibling }, why = 'the environment of pynvim-python' }
    end
  end
  local found = vim.fn.exepath('python3')
  return { command = { found ~= '' and found or 'python3' }, why = 'python3 on PATH' }
end

--- The command line of `bellboard`, run with that interpreter.
---@return string[]
M.program = function()
  local entry = M.root() .. '/rplugin/python3/bellboard/__main__.py'
  return vim.list_extend({ unpack(M.interpreter().command) }, { entry })
end

--- The command that starts Claude Code.
---@return string[]
M.claude = function()
  local wanted = M.get().claude
  if type(wanted) == 'string' then
    return { vim.fn.expand(wanted) }
  end
  return #wanted > 0 and vim.list_slice(wanted) or { defaults.claude }
end

return M
