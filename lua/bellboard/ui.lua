local bellboard = require('bellboard')
local config = require('bellboard.config')
local jump = require('bellboard.jump')
local tmux = require('bellboard.tmux')

local M = {}

local api = vim.api

---@alias bellboard.Chunk { [1]: string, [2]?: string } text and highlight group

--- Every highlight group of ours; a colorscheme may set them, and we never overwrite.
---@type table<string, string|false> what each links to; false: nothing, it shows as what is below
M.highlights = {
  BellboardBlocked = 'DiagnosticError',
  BellboardError = 'DiagnosticWarn',
  BellboardCompleted = 'DiagnosticOk',
  BellboardUnknown = 'DiagnosticHint',
  BellboardWorking = 'DiagnosticInfo',
  BellboardBackground = 'DiagnosticHint',
  BellboardIdle = 'Comment',
  BellboardStale = 'NonText',
  BellboardRepository = 'Title',
  BellboardProject = false,
  BellboardDetail = false,
  BellboardDim = 'Comment',
  BellboardLabel = 'Special',
  BellboardImportant = 'WarningMsg',
  BellboardFloat = 'NormalFloat',
  BellboardFloatBorder = 'FloatBorder',
  BellboardFloatTitle = 'FloatTitle',
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
for _, status in ipairs(bellboard.statuses) do
  groups[status] = 'Bellboard' .. status:sub(1, 1):upper() .. status:sub(2)
end

---@type uv.uv_timer_t|nil
local timer
local due = math.huge
local arming = false

---@return number seconds since the epoch
local function now()
  local seconds, micros = vim.uv.gettimeofday()
  return seconds + micros / 1e6
end

---@param status bellboard.IconName
---@return string
M.icon_named = function(status)
  local choice = config.get().icons
  local set = type(choice) == 'table' and choice or icons[choice]
  return set[status] or icons.ascii[status] or '?'
end

---@param session bellboard.Session
---@return string
M.icon = function(session)
  return M.icon_named(session.words.icon)
end

--- The highlight group of a status.
---@param status bellboard.Status
---@return string
M.group_of = function(status)
  return bellboard.stale() and 'BellboardStale' or groups[status] or 'BellboardUnknown'
end

---@param session bellboard.Session
---@return string
M.group = function(session)
  return M.group_of(session.status)
end

--- The highlight of a session's label, which may have one of its own.
---@param session bellboard.Session
---@return string
M.label_group = function(session)
  local label = config.get().notices.labels[session.label]
  return label and label.highlight or 'BellboardLabel'
end

--- What a terminal or a buffer acts on, what turns the direction of writing, and what takes no
--- room, as in `core/visible.py`; in UTF-8.
---@type { [1]: string, [2]: string }[] pattern, and what stands for it
local unseen = {
  { '[%z\1-\31\127]', ' ' },
  { '\194[\128-\159]', ' ' },
  { '\216\156', ' ' }, -- U+061C
  { '\226\128[\142\143\168-\174]', ' ' }, -- U+200E, U+200F, U+2028 to U+202E
  { '\226\129[\166-\169]', ' ' }, -- U+2066 to U+2069
  { '\239\187\191', ' ' }, -- U+FEFF
  { '\194\173', '' }, -- U+00AD
  { '\205\143', '' }, -- U+034F
  { '\225\133[\159\160]', '' }, -- U+115F, U+1160
  { '\225\158[\180\181]', '' }, -- U+17B4, U+17B5
  { '\225\160[\139-\143]', '' }, -- U+180B to U+180F
  { '\226\128[\139-\141]', '' }, -- U+200B to U+200D
  { '\226\129[\160-\165\170-\175]', '' }, -- U+2060 to U+206F
  { '\227\133\164', '' }, -- U+3164
  { '\239\184[\128-\141]', '' }, -- U+FE00 to U+FE0D
  { '\239\190\160', '' }, -- U+FFA0
  { '\239\191[\176-\187]', '' }, -- U+FFF0 to U+FFFB
  { '\240\157\133[\179-\186]', '' }, -- U+1D173 to U+1D17A
  { '\243\160[\128-\191][\128-\191]', '' }, -- U+E0000 to U+E0FFF
}

--- Text from an agent with nothing in it but what is seen.
---@param text any
---@return string
M.safe_line = function(text)
  text = tostring(text or '')
  if text:find('[%z\1-\31\127-\255]') then
    for _, one in ipairs(unseen) do
      text = text:gsub(one[1], one[2])
    end
  end
  return text
end

--- The same as one tidy piece of a line.
---@param text any
---@return string
M.safe = function(text)
  return vim.trim((M.safe_line(text):gsub('%s+', ' ')))
end

---@param text string
---@return integer
local function width_of(text)
  return text:find('[\128-\255]') and api.nvim_strwidth(text) or #text
end
M.width = width_of

--- Cut to at most so many cells.
---@param text string
---@param cells integer
---@return string
M.cut = function(text, cells)
  if width_of(text) <= cells then
    return text
  elseif cells < 1 then
    return ''
  end
  local kept = vim.fn.strcharpart(text, 0, cells - 1)
  while width_of(kept) > cells - 1 do -- wide characters
    kept = vim.fn.strcharpart(kept, 0, vim.fn.strcharlen(kept) - 1)
  end
  return kept .. '…'
end

--- Cut or fill to exactly so many cells.
---@param text string
---@param cells integer
---@param right? boolean align right
---@return string
M.fit = function(text, cells, right)
  local cut = M.cut(text, cells)
  local fill = (' '):rep(cells - width_of(cut))
  return right and fill .. cut or cut .. fill
end

local function rearm()
  arming = false
  timer = timer or assert(vim.uv.new_timer())
  local wait = math.max(0, due - now()) * 1000
  timer:start(
    math.ceil(wait),
    0,
    vim.schedule_wrap(function()
      due = math.huge
      bellboard._refresh()
    end)
  )
end

--- Be called again when what was shown as an age has become another word.
---@param when number
local function revisit(when)
  if when < due then
    due = when
    if not arming then
      arming = true
      vim.schedule(rearm)
    end
  end
end

local units = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' } }

--- How long ago, in one short word. The steps are coarse, so that little on the screen moves, and
--- the next one is waited for: nothing ticks.
---@param since number
---@return string
M.age = function(since)
  local seconds = math.max(0, now() - since)
  local step, text = 10, 'now'
  if seconds >= 60 then
    for _, unit in ipairs(units) do
      if seconds >= unit[1] then
        step = unit[1]
        text = ('%d%s'):format(math.floor(seconds / step), unit[2])
        break
      end
    end
  elseif seconds >= step then
    text = ('%ds'):format(math.floor(seconds / step) * step)
  end
  revisit(since + (math.floor(seconds / step) + 1) * step)
  return text
end

--- Where a session runs: here, else as its tmux or the background process calls it.
---@param session bellboard.Session
---@return string
M.place = function(session)
  if jump.buffer(session) then
    return 'terminal'
  end
  local target = session.pane and tmux.place(session)
  return target and M.safe(target) or session.words.place
end

local function define_highlights()
  for name, target in pairs(M.highlights) do
    api.nvim_set_hl(0, name, { link = target or nil, default = true })
  end
end

--- Have the highlights, now and after every change of the colorscheme.
M.attach = function()
  define_highlights()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('bellboard.ui', {}),
    callback = define_highlights,
  })
end

return M
