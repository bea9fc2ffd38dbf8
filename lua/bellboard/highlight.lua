-- Highlight groups, icons and borders.
local config = require('bellboard.config')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

---@alias bellboard.Chunk { [1]: string, [2]?: string } text and highlight group

--- Highlight groups as links, so that colorschemes and users can set them. Each of these reads on
--- the background of text in every colorscheme that Neovim has, and so do floats, which have that.
---@type table<string, string|false> false: no colors of its own
M.highlights = {
  BellboardBlocked = 'ErrorMsg',
  BellboardError = 'WarningMsg',
  BellboardCompleted = 'Added',
  BellboardUnknown = 'Question',
  BellboardWorking = 'Directory',
  BellboardBackground = 'Comment',
  BellboardIdle = 'Comment',
  BellboardQuiet = 'Comment',
  BellboardStale = 'Comment',
  BellboardRepository = 'Title',
  BellboardMarked = 'WarningMsg',
  BellboardProject = false,
  BellboardDetail = false,
  BellboardDim = 'Comment',
  BellboardLabel = 'Special',
  BellboardImportant = 'WarningMsg',
  BellboardHeading = 'Title',
  BellboardKey = 'Special',
  BellboardChosen = 'Added',
  BellboardHidden = 'CurSearch',
  BellboardStatus = 'WarningMsg',
  BellboardFloat = 'Normal',
  BellboardFloatBorder = 'Comment',
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
local function group_of(status)
  return sessions.stale() and 'BellboardStale' or groups[status] or 'BellboardUnknown'
end

---@param session bellboard.Session
---@return string
M.group = function(session)
  if session.link_since then
    return 'BellboardStale'
  end
  local quiet = M.is_quiet(session) and not sessions.stale()
  return quiet and 'BellboardQuiet' or group_of(session.status)
end

--- The same text in one quiet color, as it may be outdated.
---@param chunks bellboard.Chunk[]
---@return bellboard.Chunk[]
M.faded = function(chunks)
  return vim.tbl_map(function(chunk)
    return { chunk[1], 'BellboardDim' }
  end, chunks)
end

--- The number of sessions with each icon, most urgent first: `!1 `, `?1 `, `*2 `.
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
      local group = group_of(name == 'question' and 'blocked' or name)
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

--- Lines of a border; 'ambiwidth' and setcellwidths() decide how wide they are.
local LINES = '─│'

--- Whether the characters of a text take more than a cell each. Neovim refuses such a border.
---@param text string
---@return boolean
local function is_wide(text)
  return api.nvim_strwidth(text) > vim.fn.strcharlen(text)
end

--- A border of our own choice: rounded, or of blanks where lines are two cells wide.
---@return 'rounded'|'solid'
M.plain_border = function()
  return is_wide(LINES) and 'solid' or 'rounded'
end

--- The border of a float: 'winborder', else a plain one. Titles need a border, so 'none' becomes
--- one of blanks, and so does a border of wide characters.
---@return string|string[]
M.border = function()
  local own = vim.fn.exists('+winborder') == 1 and vim.o.winborder or ''
  if own == '' then
    return M.plain_border()
  elseif own:find(',', 1, true) then
    return is_wide(own) and 'solid' or vim.split(own, ',', { plain = true })
  elseif own == 'shadow' then
    return own
  end
  return (own == 'none' or is_wide(LINES)) and 'solid' or own
end

--- Give a float our colors, and show lines as they were written.
---@param win integer
M.frame = function(win)
  vim.wo[win].winhighlight = 'NormalFloat:BellboardFloat,FloatBorder:BellboardFloatBorder'
    .. ',FoldColumn:BellboardFloat,CursorLineFold:BellboardFloat'
  for _, name in ipairs({ 'foldenable', 'rightleft' }) do -- a float inherits the user's
    api.nvim_set_option_value(name, false, { scope = 'local', win = win })
  end
end

--- Errors of some colorschemes are reversed and have no background: the background of a bar would
--- become their text. Give them the background of text.
local function settle()
  local blocked = api.nvim_get_hl(0, { name = 'BellboardBlocked' })
  local errors = api.nvim_get_hl(0, { name = 'ErrorMsg', link = false })
  if blocked.link == 'ErrorMsg' and errors.reverse and not errors.bg then
    local normal = api.nvim_get_hl(0, { name = 'Normal', link = false })
    errors.bg, errors.ctermbg = normal.bg, normal.ctermbg
    api.nvim_set_hl(0, 'BellboardBlocked', errors)
  end
end

--- Define the highlight groups; `:colorscheme` and `:highlight clear` keep default links.
M.attach = function()
  for name, target in pairs(M.highlights) do
    api.nvim_set_hl(0, name, { link = target or nil, default = true })
  end
  settle()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('bellboard.highlight', {}),
    callback = settle,
  })
end

return M
