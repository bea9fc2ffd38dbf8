-- The colours of a terminal's text, from its SGR sequences. All other sequences are dropped.
local cells = require('bellboard.text')
local palette = require('bellboard.palette')

local M = {}

local api = vim.api

local MOST = 1000 -- highlight groups; more colours than that are not shown

---@class bellboard.Ink
---@field fg? string|integer `#rrggbb`, or the number of a terminal's colour
---@field bg? string|integer
---@field bold? boolean
---@field italic? boolean
---@field underline? boolean
---@field reverse? boolean
---@field faint? boolean

---@class bellboard.Colour
---@field row integer from 0
---@field from integer
---@field to integer
---@field group string

---@type table<string, string>|nil look → highlight group; nil: none is defined
local groups
local count = 0

local FLAGS = { [1] = 'bold', [2] = 'faint', [3] = 'italic', [4] = 'underline', [7] = 'reverse' }
-- stylua: ignore
local ANSI = {
  [0] = '#000000', '#cd3131', '#0dbc79', '#c5a60f', '#2472c8', '#bc3fbc', '#11a8cd', '#cccccc',
  '#767676', '#f14c4c', '#23d18b', '#e5c33b', '#3b8eea', '#d670d6', '#29b8db', '#ffffff',
}

--- A colour of the terminal's palette for a screen with true colours.
---@param number integer
---@return string|integer
local function rgb(number)
  local own = number < 16 and vim.g['terminal_color_' .. number]
  return type(own) == 'string' and own:match('^#%x%x%x%x%x%x$')
    or ANSI[number]
    or palette.rgb_of(number)
end

---@param ink bellboard.Ink
---@return string|nil
local function group_of(ink)
  if not groups then
    groups, count = {}, 0
    api.nvim_create_autocmd('ColorScheme', { -- it clears them
      group = api.nvim_create_augroup('bellboard.sgr', {}),
      callback = function()
        groups = nil
      end,
    })
  end
  local parts = { tostring(ink.fg or ''), tostring(ink.bg or '') }
  for _, flag in pairs(FLAGS) do
    parts[#parts + 1] = ink[flag] and flag or ''
  end
  local key = table.concat(parts, '_')
  if key:match('^_+$') then
    return nil
  elseif not groups[key] and count < MOST then
    count = count + 1
    groups[key] = 'BellboardSgr' .. count
    local look = { bold = ink.bold, italic = ink.italic, underline = ink.underline }
    look.reverse = ink.reverse
    for _, side in ipairs({ 'fg', 'bg' }) do
      local colour = ink[side]
      if colour then
        look[side] = type(colour) == 'number' and rgb(colour) or colour
        look['cterm' .. side] = type(colour) == 'number' and colour
          or palette.number_of(tonumber(colour:sub(2), 16))
      end
    end
    if ink.faint and not ink.fg then
      look = { link = 'BellboardDim' }
    end
    api.nvim_set_hl(0, groups[key], look)
  end
  return groups[key]
end

--- A colour given by the numbers after 38 or 48.
---@param codes integer[]
---@param at integer
---@return string|integer|nil colour
---@return integer at the last number that was used
local function extended(codes, at)
  if codes[at] == 5 then
    local number = codes[at + 1] or 0
    return number <= 255 and number or nil, at + 1
  elseif codes[at] == 2 then
    local r, g, b = codes[at + 1] or 0, codes[at + 2] or 0, codes[at + 3] or 0
    local is_one = math.max(r, g, b) <= 255
    return is_one and ('#%02x%02x%02x'):format(r, g, b) or nil, at + 3
  end
  return nil, at
end

---@param ink bellboard.Ink changed
---@param sequence string
local function apply(ink, sequence)
  local codes, at = {}, 1
  for code in (sequence == '' and '0' or sequence):gmatch('%d+') do
    codes[#codes + 1] = tonumber(code)
  end
  while codes[at] do
    local code = codes[at]
    if code == 0 then
      for key in pairs(ink) do
        ink[key] = nil
      end
    elseif FLAGS[code] then
      ink[FLAGS[code]] = true
    elseif code == 22 then
      ink.bold, ink.faint = nil, nil
    elseif FLAGS[code - 20] then
      ink[FLAGS[code - 20]] = nil
    elseif code == 38 or code == 48 then
      local side = code == 38 and 'fg' or 'bg'
      ink[side], at = extended(codes, at + 1)
    elseif code == 39 or code == 49 then
      ink[code == 39 and 'fg' or 'bg'] = nil
    elseif code >= 30 and code <= 47 then
      ink[code < 40 and 'fg' or 'bg'] = code % 10
    elseif code >= 90 and code <= 107 then
      ink[code < 100 and 'fg' or 'bg'] = code % 10 + 8
    end
    at = at + 1
  end
end

--- What comes after an escape character: change the ink; return the text after the sequence.
---@param piece string
---@param ink bellboard.Ink changed
---@return string
local function after_escape(piece, ink)
  local codes, rest = piece:match('^%[([%d;:]*)m(.*)$')
  if codes then
    apply(ink, (codes:gsub('(%d+):[%d:]*', '%1')))
    return rest
  end
  return piece:match('^%[[%d;:?]*%a(.*)$') or piece:match('^[%(%)]%w(.*)$') or piece:sub(2)
end

--- Separate the text from its colours.
---@param lines string[]
---@return string[] plain safe to show
---@return bellboard.Colour[]
M.parse = function(lines)
  local plain, colours, ink = {}, {}, {}
  for row, line in ipairs(lines) do
    line = line:gsub('\27%][^\7\27]*\7', ''):gsub('\27%][^\7\27]*\27\\', '') -- links
    local text = ''
    for nth, piece in ipairs(vim.split(line, '\27', { plain = true })) do
      local shown = cells.safe_line(nth > 1 and after_escape(piece, ink) or piece)
      local group = shown ~= '' and group_of(ink)
      if group then
        local to = #text + #shown
        colours[#colours + 1] = { row = row - 1, from = #text, to = to, group = group }
      end
      text = text .. shown
    end
    plain[row] = text
  end
  return plain, colours
end

--- Colour the text of a buffer.
---@param buf integer
---@param colours bellboard.Colour[]
M.paint = function(buf, colours)
  local namespace = api.nvim_create_namespace('bellboard.sgr')
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for _, colour in ipairs(colours) do
    local opts = { end_col = colour.to, hl_group = colour.group }
    api.nvim_buf_set_extmark(buf, namespace, colour.row, colour.from, opts)
  end
end

return M
