-- The values that each option accepts, and the user's options checked against them.
local M = {}

--- Most urgent first.
---@type bellboard.Status[]
M.statuses = { 'blocked', 'error', 'completed', 'unknown', 'working', 'background', 'idle' }
---@alias bellboard.Grouping 'urgency'|'repository'|'none'
---@alias bellboard.Sorting 'urgency'|'recent'|'name'
---@type bellboard.Grouping[]
M.groupings = { 'urgency', 'repository', 'none' }
---@type bellboard.Sorting[]
M.sortings = { 'urgency', 'recent', 'name' }
local NOTIFIED = { 'blocked', 'error', 'completed', 'background' }
local CHANNELS = { 'float', 'notify', 'bell', 'desktop', 'sound', 'command' }
--- Words that stand for a status.
local MEANT = { done = 'completed', failed = 'error', waiting = 'blocked', busy = 'working' }
--- Seconds in the rules of the background process; its core/options.py says what each is for.
-- stylua: ignore
local SECONDS = {
  'hold', 'settle', 'swap', 'outweigh', 'dwell', 'grace', 'late', 'report', 'hooks', 'compaction',
  'fresh', 'silence', 'quiet', 'team', 'forget', 'prompts',
}

local MOST = 1000000000 -- of any number: fits where Neovim takes an integer

--- A key in the notation of Neovim: `<c-k>` is `<C-K>`.
---@param key any
---@return any
local function notation(key)
  return type(key) == 'string' and vim.fn.keytrans(vim.keycode(key)) or key
end

--- Whether a text is two times of day, as core/notices.py reads them.
---@param text string
---@return boolean
local function are_hours(text)
  local h1, m1, h2, m2 = text:match('^(%d%d?):(%d%d)%s*%-%s*(%d%d?):(%d%d)$')
  if not h1 then
    return false
  end
  return math.max(m1, m2) < 60 and math.max(60 * h1 + m1, 60 * h2 + m2) <= 1440
end

---@class bellboard.Rule
---@field types? string[] default: the type of the default
---@field among? string[] what a string can be
---@field defaults? boolean a string can be what one of the defaults is
---@field like? string|fun(text: string): boolean pattern of a string, or whether it will do
---@field example? string
---@field least? number default: 0
---@field whole? boolean a number without a fraction
---@field list? boolean a list of strings, or a function: taken over whole
---@field filled? boolean the list has at least one member
---@field inside? boolean the manual describes its members with it
---@field notation? boolean the members are named by keys

--- Where the type of the default is not enough. A star stands for any name.
---@type table<string, bellboard.Rule>
local rules = {
  command = { like = '^%u%w*$', example = 'Agents' },
  auto_start = { types = { 'boolean', 'function' } },
  restarts = { whole = true },
  python = { types = { 'string', 'table' }, list = true },
  icons = { types = { 'string', 'table' }, among = { 'ascii', 'unicode', 'nerd' }, inside = true },
  ['icons.question'] = { types = { 'string' }, like = '^%C*$', example = '?' },
  ['statusline.width'] = { least = 1, whole = true },
  ['statusline.format'] = { types = { 'function' } },
  ['float.width'] = { least = 10, whole = true },
  ['float.sessions'] = { least = 1, whole = true },
  ['float.zindex'] = { least = 1, whole = true },
  on_transition = { types = { 'function', 'table' }, list = true },
  on = { inside = true },
  machines = { inside = true },
  ['machines.*'] = { types = { 'table' }, list = true, filled = true },
  claude = { types = { 'string', 'table' }, list = true, filled = true },
  ['launch.layout'] = { among = { 'split', 'vsplit', 'tab', 'window' } },
  ['board.layout'] = { among = { 'split', 'vsplit', 'tab', 'float' } },
  ['board.group'] = { among = M.groupings },
  ['board.sort'] = { among = M.sortings },
  ['board.keys'] = { inside = true, notation = true },
  ['board.keys.*'] = { types = { 'string', 'function', 'false' }, defaults = true },
  ['answer.layout'] = { among = { 'float', 'split' } },
  ['answer.width'] = { least = 30, whole = true },
  ['answer.keys'] = { inside = true, notation = true },
  ['answer.keys.*'] = { types = { 'string', 'false' }, defaults = true },
  ['notices.mode'] = { among = { 'quiet', 'normal', 'all' } },
  ['notices.via'] = { among = { 'auto', 'notify-send', 'osascript', 'osc9', 'osc777' } },
  ['notices.cap'] = { whole = true },
  ['notices.quiet_hours'] = {
    types = { 'string' },
    like = are_hours,
    example = '22:00-07:30',
  },
  ['notices.sounds'] = { inside = true },
  ['notices.player'] = { types = { 'table' }, list = true },
  ['notices.command'] = { types = { 'table' }, list = true },
  ['notices.labels'] = { inside = true },
  ['notices.labels.*'] = { types = { 'table' } },
  ['notices.labels.*.pin'] = { types = { 'boolean' } },
  ['notices.labels.*.highlight'] = { types = { 'string' } },
  ['notices.labels.*.sounds'] = { types = { 'table' } },
  ['host.approval'] = { types = { 'boolean', 'table' }, inside = true },
  ['host.approval.enabled'] = { types = { 'boolean' } },
}
for _, status in ipairs(M.statuses) do
  rules['icons.' .. status] = { types = { 'string' }, like = '^%C*$', example = '!' }
  rules['on.' .. status] = { types = { 'function', 'table' }, list = true }
end
for _, option in ipairs(SECONDS) do
  rules['host.' .. option] = { types = { 'number' } }
end
for _, class in ipairs({ 'fast', 'question', 'web', 'slow' }) do
  rules['host.approval.' .. class] = { types = { 'number' } }
end
for _, status in ipairs(NOTIFIED) do
  rules['notices.' .. status] = { inside = true }
  rules['notices.labels.*.' .. status] = { types = { 'table' } }
  rules['notices.sounds.' .. status] = { types = { 'string' } }
  rules['notices.labels.*.sounds.' .. status] = { types = { 'string' } }
  for _, channel in ipairs(CHANNELS) do
    local delay = (channel ~= 'float' or status == 'blocked')
        and { types = { 'number', 'boolean' } }
      or nil
    rules[('notices.%s.%s'):format(status, channel)] = delay
    rules[('notices.labels.*.%s.%s'):format(status, channel)] = delay
  end
end

---@class bellboard.Node an option: a table of options, or a value
---@field shown string its path
---@field pattern string its path in the rules
---@field default any

---@param parent bellboard.Node
---@param key any
---@return bellboard.Node
---@return bellboard.Rule|nil
local function child(parent, key)
  local default
  if type(parent.default) == 'table' then
    default = parent.default[key]
  end
  local pattern = parent.pattern .. tostring(key)
  local any = parent.pattern .. '*'
  pattern = not rules[pattern] and rules[any] and any or pattern
  local shown = parent.shown .. tostring(key)
  return { shown = shown, pattern = pattern, default = default }, rules[pattern]
end

---@param node bellboard.Node
---@return string[]
local function members(node)
  local names = type(node.default) == 'table' and vim.tbl_keys(node.default) or {}
  for path in pairs(rules) do
    local name = vim.startswith(path, node.pattern) and path:sub(#node.pattern + 1)
    if name and name:match('^[%w_]+$') and not vim.list_contains(names, name) then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

--- How many letters to change to get from one word to the other.
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local changed = diagonal + (a:byte(i) == b:byte(j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(changed, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

--- A hint for an unknown word: the nearest one, or all.
---@param word string
---@param known string[]
---@return string
local function advice(word, known)
  local meant, least = nil, #word / 2 + 0.5
  for _, name in ipairs(known) do
    local far = MEANT[word] == name and 0 or distance(word, name)
    if far < least then
      meant, least = name, far
    end
  end
  if meant then
    return ('; did you mean "%s"?'):format(meant)
  end
  return #known > 0 and #known <= 8 and '; choose from ' .. table.concat(known, ', ') or ''
end

--- What a number should be instead, if it is out of range.
---@param rule bellboard.Rule
---@param value number
---@return string|nil
local function range(rule, value)
  local least = rule.least or 0
  if value < least then
    return 'at least ' .. least
  elseif value > MOST or value ~= value then -- nor is it "not a number"
    return 'at most ' .. MOST
  elseif rule.whole and value % 1 ~= 0 then
    return 'a whole number'
  end
end

---@param text string
---@param like string|fun(text: string): boolean
---@return boolean
local function fits(text, like)
  if type(like) == 'function' then
    return like(text)
  end
  return text:match(like) ~= nil
end

---@param node bellboard.Node
---@param rule bellboard.Rule
---@param value any
---@param parent bellboard.Node
---@return string|nil
local function problem(node, rule, value, parent)
  local function expected(what, got)
    return ('%s: expected %s, got %s'):format(node.shown, what, got)
  end
  local types = rule.types or { type(node.default) }
  local kind = value == false and vim.list_contains(types, 'false') and 'false' or type(value)
  if not vim.list_contains(types, kind) then
    -- Neovim hands over a Funcref in g:bellboard as v:null
    local got = value == vim.NIL and 'v:null or a Vim function; set it in Lua' or type(value)
    return expected(table.concat(types, ' or '), got)
  elseif type(value) == 'string' then
    local among = rule.defaults and vim.tbl_values(parent.default) or rule.among
    if among and not vim.list_contains(among, value) then
      if rule.defaults then
        return ('%s: unknown name "%s"%s'):format(node.shown, value, advice(value, among))
      end
      return expected('one of ' .. table.concat(among, ', '), ('"%s"'):format(value))
    elseif rule.like and not fits(value, rule.like) then
      return expected(('e.g. "%s"'):format(rule.example), ('"%s"'):format(vim.fn.strtrans(value)))
    end
  elseif type(value) == 'number' then
    local wanted = range(rule, value)
    return wanted and expected(wanted, tostring(value))
  elseif rule.list and type(value) == 'table' then
    if rule.filled and #value == 0 then
      return expected('a list of strings', 'an empty one')
    end
    for key, member in pairs(value) do
      if type(key) ~= 'number' or type(member) ~= 'string' then
        return expected('a list of strings', ('%s under %s'):format(type(member), key))
      end
    end
  end
end

---@param base table
---@param user table
---@param parent bellboard.Node
---@param problems string[]
local function merge(base, user, parent, problems)
  local spelled = (rules[parent.pattern:sub(1, -2)] or {}).notation and notation
  for key, value in pairs(user) do
    key = spelled and spelled(key) or key
    local node, rule = child(parent, key)
    if type(key) ~= 'string' then
      problems[#problems + 1] = ('%s: expected a name, got %s'):format(node.shown, key)
    elseif not rule and node.default == nil then
      local hint = advice(tostring(key), members(parent))
      problems[#problems + 1] = ('%s: no such option%s'):format(node.shown, hint)
    else
      local wrong = problem(node, rule or {}, value, parent)
      if wrong then
        problems[#problems + 1] = wrong
      elseif type(value) == 'table' and not (rule and rule.list) then
        base[key] = type(base[key]) == 'table' and base[key] or {}
        node.shown, node.pattern = node.shown .. '.', node.pattern .. '.'
        merge(base[key], value, node, problems)
      else
        base[key] = value
      end
    end
  end
end

--- Merge the user's valid options into the defaults, and list what is wrong with the others.
---@param config bellboard.Config changed
---@param user table
---@param defaults bellboard.Config
---@param problems string[] changed
M.merge = function(config, user, defaults, problems)
  merge(config, user, { shown = '', pattern = '', default = defaults }, problems)
end

--- Every option by its path, to check that all are documented.
---@param defaults bellboard.Config
---@return string[]
M.paths = function(defaults)
  local paths = {}
  ---@param node bellboard.Node
  local function walk(node)
    for _, name in ipairs(members(node)) do
      local under, rule = child(node, name)
      paths[#paths + 1] = under.shown
      if not (rule and (rule.inside or rule.list)) then
        local shown, pattern = under.shown .. '.', under.pattern .. '.'
        walk({ shown = shown, pattern = pattern, default = under.default })
      end
    end
  end
  walk({ shown = '', pattern = '', default = defaults })
  table.sort(paths)
  return paths
end

return M
