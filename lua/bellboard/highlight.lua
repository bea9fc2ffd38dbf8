-- Icons and highlight groups.
local config = require('bellboard.config')
local ink = require('bellboard.ink')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

---@alias bellboard.Chunk { [1]: string, [2]?: string } text and highlight group

--- The highlight groups, defined with `default = true` so that colorschemes can set them.
---@type table<string, string|false> the group that each links to; false: none
M.highlights = {
  BellboardBlocked = 'DiagnosticError',
  BellboardError = 'DiagnosticWarn',
  BellboardCompleted = 'DiagnosticOk',
  BellboardUnknown = 'DiagnosticHint',
  BellboardWorking = 'DiagnosticInfo',
  BellboardBackground = 'DiagnosticHint',
  BellboardIdle = 'Comment',
  BellboardQuiet = 'Comment',
  BellboardStale = 'NonText',
  BellboardRepository = 'Title',
  BellboardMarked = 'WarningMsg',
  BellboardProject = false,
  BellboardDetail = false,
  BellboardDim = 'Comment',
  BellboardLabel = 'Special',
  BellboardImportant = 'WarningMsg',
  BellboardHeading = 'Title',
  BellboardKey = 'Special',
  BellboardChosen = 'DiagnosticOk',
  BellboardHidden = 'CurSearch',
  BellboardStatus = 'WarningMsg',
  BellboardFloat = 'NormalFloat',
  BellboardFloatBorder = 'FloatBorder',
  BellboardFloatTitle = 'BellboardBlocked',
}

---@type table<string, table<bellboard.IconName, string>>
local icons = {
  -- stylua: ignore
  ascii = {
    blocked = '!', question = '?', error = 'x', completed = '+',
    unknown = '~', working = '*', background = '&', idle = '.',
  },
  -- stylua: ignore
  unicode = {
    blocked = '▲', question = '?', error = '✗', completed = '✓',
    unknown = '≈', working = '●', background = '◌', idle = '·',
  },
  -- stylua: ignore
  nerd = {
    blocked = '\u{f0f3}', question = '\u{f059}', error = '\u{f00d}', completed = '\u{f00c}',
    unknown = '\u{f128}', working = '\u{f013}', background = '\u{f120}', idle = '\u{f186}',
  },
}

local groups = {}
for _, status in ipairs(sessions.statuses) do
  groups[status] = 'Bellboard' .. status:sub(1, 1):upper() .. status:sub(2)
end

---@param status bellboard.IconName
---@return string
M.icon_named = function(status)
  local choice = config.get().icons
  local set = type(choice) == 'table' and choice or icons[choice]
  return set[status] or icons.ascii[status] or '?'
end

--- All icons, for the background process: tmux and the shell show the same.
---@return table<bellboard.IconName, string>
M.icons = function()
  local all = {}
  for name in pairs(icons.ascii) do
    all[name] = M.icon_named(name)
  end
  return all
end

---@param session bellboard.Session
---@return string
M.icon = function(session)
  return M.icon_named(session.words.icon)
end

--- Whether a session works, has reported nothing for a long time, and no tool explains that.
---@param session bellboard.Session
---@return boolean
M.is_quiet = function(session)
  return session.quiet_since ~= nil and session.tool_since == nil
end

--- The highlight group of a status.
---@param status bellboard.Status
---@return string
M.group_of = function(status)
  return sessions.stale() and 'BellboardStale' or groups[status] or 'BellboardUnknown'
end

---@param session bellboard.Session
---@return string
M.group = function(session)
  if session.link_since then
    return 'BellboardStale'
  end
  local quiet = M.is_quiet(session) and not sessions.stale()
  return quiet and 'BellboardQuiet' or M.group_of(session.status)
end

--- The same text in one quiet colour: what it says may be old.
---@param chunks bellboard.Chunk[]
---@return bellboard.Chunk[]
M.faded = function(chunks)
  return vim.tbl_map(function(chunk)
    return { chunk[1], 'BellboardDim' }
  end, chunks)
end

--- How many sessions have each icon, most urgent first: `!1 `, `?1 `, `*2 `.
---@param some bellboard.Session[]
---@return bellboard.Chunk[]
M.tally = function(some)
  local chunks, counts = {}, {}
  for _, session in ipairs(some) do
    local icon = M.icon(session)
    counts[icon] = (counts[icon] or 0) + 1
  end
  for _, name in ipairs({ 'blocked', 'question', unpack(sessions.statuses, 2) }) do
    local icon = M.icon_named(name)
    if counts[icon] then -- names may share one
      local group = M.group_of(name == 'question' and 'blocked' or name)
      chunks[#chunks + 1] = { ('%s%d '):format(icon, counts[icon]), group }
      counts[icon] = nil
    end
  end
  return chunks
end

--- The highlight group of a session's label.
---@param session bellboard.Session
---@return string
M.label_group = function(session)
  local label = config.get().notices.labels[session.label]
  return label and label.highlight or 'BellboardLabel'
end

local function define_highlights()
  for name, target in pairs(M.highlights) do
    api.nvim_set_hl(0, name, { link = target or nil, default = true })
  end
  ink.renew()
end

--- Define the highlight groups, now and after each change of colours. The default ones follow
--- 'background' without a ':colorscheme'.
M.attach = function()
  define_highlights()
  local group = api.nvim_create_augroup('bellboard.style', {})
  for event, pattern in pairs({ ColorScheme = '*', OptionSet = 'background' }) do
    api.nvim_create_autocmd(event, {
      group = group,
      pattern = pattern,
      callback = function()
        define_highlights()
        vim.schedule(ink.renew) -- once statuslines have defined theirs
      end,
    })
  end
end

return M
