-- The options as the user has set them, checked.
local message = require('bellboard.message')
local options = require('bellboard.config.options')

local M = {}

---@type bellboard.UserConfig|fun(): bellboard.UserConfig|nil  the argument of setup()
local given
---@type bellboard.Config|nil
local resolved
---@type string[]
local problems = {}

M.statuses = options.statuses

local MOST = 1000000000 -- of any number: fits where Neovim takes an integer

---@class bellboard.Node an option, or a table of them
---@field option? bellboard.ConfigOption
---@field members table<string, bellboard.Node>
---@field star? bellboard.Node for members of other names

---@return bellboard.Node
local function node()
  return { members = {} }
end

local root, defaults = node(), {}
---@type table<string, bellboard.ConfigOption>
local by_path = {}
for _, option in ipairs(options.options) do
  local at, names = root, vim.split(option[1], '.', { plain = true })
  for _, name in ipairs(names) do
    if name == '*' then
      at.star = at.star or node()
      at = at.star
    else
      at.members[name] = at.members[name] or node()
      at = at.members[name]
    end
  end
  at.option, by_path[option[1]] = option, option
  if not vim.list_contains(names, '*') then
    local parent, last = defaults, table.remove(names)
    for _, name in ipairs(names) do
      parent[name] = parent[name] or {}
      parent = parent[name]
    end
    parent[last] = option[2]
  end
end

--- The parts of a type, such as `'a'|'b'|fun(): boolean`.
---@param type string
---@return string[]
local function kinds(type)
  local found, part, depth = {}, '', 0
  for char in (type .. '|'):gmatch('.') do
    depth = depth + (char:find('[(<]') and 1 or char:find('[)>]') and -1 or 0)
    if char == '|' and depth == 0 then
      found[#found + 1], part = part, ''
    else
      part = part .. char
    end
  end
  return found
end

--- The values of an option that has a few.
---@param path string
---@return string[]
M.values = function(path)
  return vim.tbl_map(function(kind)
    return kind:sub(2, -2)
  end, kinds(by_path[path][3]))
end

---@param kind string
---@param value any
---@return boolean
local function is_a(kind, value)
  if kind == 'integer' then
    return type(value) == 'number' and value % 1 == 0
  elseif kind == 'string[]' then
    local is_list = type(value) == 'table' and vim.islist(value) and #value > 0
    return is_list
      and vim.iter(value):all(function(member)
        return type(member) == 'string'
      end)
  elseif kind:find("^'") then
    return value == kind:sub(2, -2)
  end
  return kind == 'any'
    or kind == tostring(value)
    or type(value) == kind
    or type(value) == 'function' and kind:find('^fun') ~= nil
    or type(value) == 'table' and kind:find('^table') ~= nil
end

--- The number of letters to change to turn one word into the other.
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
---@param words string[]
---@return string
local function advice(word, words)
  local nearest, least = nil, #word / 2 + 0.5
  for _, name in ipairs(words) do
    local far = distance(word, name)
    if far < least then
      nearest, least = name, far
    end
  end
  if nearest then
    return ('; did you mean "%s"?'):format(nearest)
  end
  table.sort(words)
  return #words > 0 and #words <= 8 and '; choose from ' .. table.concat(words, ', ') or ''
end

--- The fault of a value, if it has one.
---@param option bellboard.ConfigOption
---@param value any
---@return string|nil
local function problem(option, value)
  local wanted, least = kinds(option[3]), option.least or 0
  local matches = vim.tbl_filter(function(kind)
    return is_a(kind, value)
  end, wanted)
  local expected
  if #matches == 0 then
    expected = table.concat(
      vim.tbl_map(function(kind)
        return (kind:gsub('^fun%b().*', 'function'):gsub('^table%b<>', 'table'))
      end, wanted),
      ' or '
    )
  elseif type(value) == 'number' and value < least then
    expected = 'at least ' .. least
  elseif type(value) == 'number' and (value > MOST or value ~= value) then
    expected = 'at most ' .. MOST
  elseif type(value) == 'string' and option.valid and not option.valid(value) then
    expected = ("e.g. '%s'"):format(option.example)
  elseif type(value) == 'string' and option.among then
    local names = vim.tbl_values(option.among)
    return not vim.list_contains(names, value)
        and ('unknown name "%s"%s'):format(value, advice(value, names))
      or nil
  else
    return nil
  end
  local got = (type(value) == 'table' or type(value) == 'function') and type(value)
    or value == vim.NIL and 'v:null or a Vim function; set it in Lua'
    or vim.inspect(value)
  return ('expected %s, got %s'):format(expected, got)
end

--- Merge the user's valid options into the defaults, and note the faults of the others.
---@param base table
---@param user table
---@param at bellboard.Node
---@param path string
local function merge(base, user, at, path)
  local names = at.star and at.star.option.names
  for key, value in pairs(user) do
    if type(key) == 'string' and at.option and at.option.are_keys then
      key = vim.fn.keytrans(vim.keycode(key)) -- `<c-k>` is `<C-K>`
    end
    local shown = path .. tostring(key)
    local member = at.members[key]
      or (not names or vim.list_contains(names, key)) and at.star
      or nil
    local wrong
    if type(key) ~= 'string' then
      wrong = ('expected a name, got %s'):format(key)
    elseif not member then
      wrong = 'no such option' .. advice(key, names or vim.tbl_keys(at.members))
    else
      wrong = problem(member.option or { shown, nil, 'table' }, value)
    end
    if wrong then
      problems[#problems + 1] = ('%s: %s'):format(shown, wrong)
    elseif type(value) == 'table' and (member.star or next(member.members)) then
      base[key] = type(base[key]) == 'table' and base[key] or {}
      merge(base[key], value, member, shown .. '.')
    else
      base[key] = value
    end
  end
end

--- Report all faults in one line: more lines would prompt for ENTER at startup.
local function complain()
  local found = problems
  vim.schedule(function()
    if found ~= problems then -- the options were read again
      return
    end
    local paths = vim.tbl_map(function(each)
      return each:match('^(%S+):') or 'vim.g.bellboard'
    end, found)
    local text = #found == 1 and found[1] or 'wrong options: ' .. table.concat(paths, ', ')
    text = ('bellboard: %s; :checkhealth bellboard'):format(text)
    message.tell({ text = text, level = vim.log.levels.WARN })
  end)
end

---@return bellboard.Config
local function resolve()
  problems = {}
  local config = vim.deepcopy(defaults)
  for _, source in ipairs({ vim.g.bellboard or vim.empty_dict(), given or vim.empty_dict() }) do
    local ok, made = true, source
    if type(source) == 'function' then
      ok, made = pcall(source)
    end
    if not ok then
      problems[#problems + 1] = 'error in the function: ' .. tostring(made)
    elseif type(made) == 'table' then
      merge(config, made, root, '')
    elseif made ~= nil then
      problems[#problems + 1] = 'expected a table or a function, got ' .. type(made)
    end
  end
  if #problems > 0 then
    table.sort(problems)
    complain()
  end
  return config
end

--- Set options. Same as setting `vim.g.bellboard`.
---@param opts? bellboard.UserConfig|fun(): bellboard.UserConfig
M.set = function(opts)
  given = opts
  resolved = nil
end

--- Read `vim.g.bellboard` again.
M.read = function()
  resolved = nil
end

---@return bellboard.Config
M.get = function()
  resolved = resolved or resolve()
  return resolved
end

--- The faults of the configuration, one line each.
---@return string[]
M.problems = function()
  M.get()
  return problems
end

--- An option that is a command, as a list; `~` is the home directory in any of its words.
---@param command string|string[]
---@return string[]
M.words = function(command)
  local home = vim.uv.os_homedir()
  return vim.tbl_map(function(word)
    return home and (word == '~' or vim.startswith(word, '~/')) and home .. word:sub(2) or word
  end, type(command) == 'string' and { command } or command)
end

--- The command that starts Claude Code.
---@return string[]
M.claude = function()
  return M.words(M.get().claude)
end

return M
