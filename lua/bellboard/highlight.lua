-- Highlight groups, icons and borders.
local config = require('bellboard.config')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

local WEAK = 2.5 -- contrast of text that is hard to read
local LOSS = 1.5 -- times that a background takes from it, if it is to blame

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
  BellboardCursorLine = 'CursorLine',
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

--- Let a window's cursor line have our group.
---@param win integer
M.mark_cursor_line = function(win)
  local own = vim.wo[win].winhighlight
  if not own:find('CursorLine:', 1, true) then
    local all = (own ~= '' and own .. ',' or '') .. 'CursorLine:BellboardCursorLine'
    api.nvim_set_option_value('winhighlight', all, { scope = 'local', win = win })
  end
end

--- How bright a color is, as WCAG defines it.
---@param rgb integer
---@return number
local function light_of(rgb)
  local sum = 0
  for shift, weight in pairs({ [16] = 0.2126, [8] = 0.7152, [0] = 0.0722 }) do
    local part = bit.band(bit.rshift(rgb, shift), 255) / 255
    sum = sum + weight * (part <= 0.03928 and part / 12.92 or ((part + 0.055) / 1.055) ^ 2.4)
  end
  return sum
end

---@param one integer
---@param other integer
---@return number
local function contrast(one, other)
  local a, b = light_of(one), light_of(other)
  return (math.max(a, b) + 0.05) / (math.min(a, b) + 0.05)
end

--- Whether a color that can be read on other lines is hard to read on the cursor's line.
---@param behind integer background of the cursor's line
---@param normal integer background of other lines
---@return boolean
local function is_hard(behind, normal)
  return vim.iter({ 'Title', 'Comment', 'WarningMsg', 'Added', 'Directory' }):any(function(name)
    local group = api.nvim_get_hl(0, { name = name, link = false })
    local is_colored = group.fg and not group.bg and not group.reverse
    local here = is_colored and contrast(group.fg, behind) or WEAK
    return here < WEAK and contrast(group.fg, normal) > LOSS * here
  end)
end

--- Errors of some colorschemes are reversed and have no background: the background of a bar would
--- become their text. Give them the background of text. Where our colors are hard to read on the
--- cursor's line, or a terminal with few colors does not show it, it is underlined.
local function settle()
  local blocked = api.nvim_get_hl(0, { name = 'BellboardBlocked' })
  local errors = api.nvim_get_hl(0, { name = 'ErrorMsg', link = false })
  local normal = api.nvim_get_hl(0, { name = 'Normal', link = false })
  if blocked.link == 'ErrorMsg' and errors.reverse and not errors.bg then
    errors.bg, errors.ctermbg = normal.bg, normal.ctermbg
    api.nvim_set_hl(0, 'BellboardBlocked', errors)
  end
  local ours = api.nvim_get_hl(0, { name = 'BellboardCursorLine' })
  local theirs = api.nvim_get_hl(0, { name = 'CursorLine', link = false })
  local behind_text = normal.bg or vim.o.background == 'dark' and 0 or 0xffffff
  local hides = theirs.bg and is_hard(theirs.bg, behind_text)
  if ours.link == 'CursorLine' and (hides or not (theirs.ctermbg or theirs.cterm)) then
    local underlined = vim.tbl_extend('force', theirs, { cterm = { underline = true } })
    underlined = hides and { underline = true, cterm = { underline = true } } or underlined
    api.nvim_set_hl(0, 'BellboardCursorLine', underlined)
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
