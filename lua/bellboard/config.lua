-- The options, as the user has set them.
local defaults = require('bellboard.config.defaults')
local message = require('bellboard.message')
local rules = require('bellboard.config.rules')

local M = {}

---@type bellboard.UserConfig|fun(): bellboard.UserConfig|nil  the argument of setup()
local given
---@type bellboard.Config|nil
local resolved
---@type string[]
local problems = {}

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
      rules.merge(config, made, defaults, problems)
    elseif made ~= nil then
      problems[#problems + 1] = 'expected a table or a function, got ' .. type(made)
    end
  end
  if #problems > 0 then
    table.sort(problems)
    local found = problems
    vim.schedule(function()
      if found == problems then -- else the options were read again, and had their own complaint
        message.tell({ text = M.complaint(), level = vim.log.levels.WARN })
      end
    end)
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

--- What is wrong, in one line: a longer message would prompt for ENTER at startup. What does not
--- fit is left out of the list: the end says what to do.
---@return string
M.complaint = function()
  local advice, paths = ':checkhealth bellboard', {}
  for nth, problem in ipairs(problems) do
    paths[nth] = problem:match('^(%S+):') or 'vim.g.bellboard'
  end
  local forms = { #problems == 1 and problems[1] or nil }
  for shown = #paths, 1, -1 do
    local more = shown < #paths and (' and %d more'):format(#paths - shown) or ''
    local list = table.concat(paths, ', ', 1, shown) .. more
    forms[#forms + 1] = ('wrong %s; %s'):format(list, advice)
  end
  local count = #paths == 1 and '1 wrong option' or ('%d wrong options'):format(#paths)
  forms[#forms + 1] = ('%s; %s'):format(count, advice)
  for _, form in ipairs(forms) do
    if #'bellboard: ' + #form <= vim.v.echospace then
      return 'bellboard: ' .. form
    end
  end
  return ('see ' .. advice):sub(1, math.max(vim.v.echospace, 0))
end

--- What is wrong with the configuration, one line each.
---@return string[]
M.problems = function()
  M.get()
  return problems
end

--- Every option by its dotted path, to check that all are documented.
---@return string[]
M.keys = function()
  return rules.paths(defaults)
end

--- The description of our commands.
M.DESC = 'Agent sessions'

---@param command { definition: string }|nil
---@return boolean
M.is_ours = function(command)
  return command ~= nil and command.definition == M.DESC
end

--- The command to name in a message: another plugin may have the one in the options.
---@return string
M.command = function()
  local wanted = M.get().command
  return M.is_ours(vim.api.nvim_get_commands({})[wanted]) and wanted or 'Bellboard'
end

--- An option that is a command, as a list; `~` is the home directory in any of its words.
---@param wanted string|string[]
---@return string[]
M.words = function(wanted)
  local home = vim.uv.os_homedir()
  return vim.tbl_map(function(word)
    return home and (word == '~' or vim.startswith(word, '~/')) and home .. word:sub(2) or word
  end, type(wanted) == 'string' and { wanted } or wanted)
end

--- The command that starts Claude Code.
---@return string[]
M.claude = function()
  local words = M.words(M.get().claude)
  return #words > 0 and words or { defaults.claude }
end

return M
