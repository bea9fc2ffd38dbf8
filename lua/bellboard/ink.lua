-- Highlight groups made of one group's colour on another group's background, for a statusline or
-- the border of a float: Neovim 0.10 would show the background of Normal there. A colour that is
-- hard to read on that background is made lighter or darker.
local palette = require('bellboard.palette')

local M = {}

local api = vim.api

--- The minimum contrast, as WCAG defines it: 1 is none, 21 is black on white.
local CONTRAST = 4
local STEPS = 20 -- from a colour to black or white
--- Lines of a border; 'ambiwidth' and setcellwidths() decide how wide they are.
local LINES = '─│'

---@type table<string, { [1]: string, [2]: string }> name → group and ground
local made = {}

---@class bellboard.Face the colours of a group in one kind of terminal
---@field fg? integer
---@field bg? integer
---@field reverse? boolean

---@param rgb integer
---@return number
local function luminance(rgb)
  local linear = vim.tbl_map(function(value)
    value = value / 255
    return value <= 0.03928 and value / 12.92 or ((value + 0.055) / 1.055) ^ 2.4
  end, palette.channels(rgb))
  return 0.2126 * linear[1] + 0.7152 * linear[2] + 0.0722 * linear[3]
end

---@param a integer
---@param b integer
---@return number
local function contrast(a, b)
  local x, y = luminance(a), luminance(b)
  return (math.max(x, y) + 0.05) / (math.min(x, y) + 0.05)
end

---@param from integer
---@param to integer
---@param part number
---@return integer
local function mix(from, to, part)
  local a, b, sum = palette.channels(from), palette.channels(to), 0
  for nth = 1, 3 do
    sum = sum * 256 + math.floor(a[nth] + (b[nth] - a[nth]) * part + 0.5)
  end
  return sum
end

--- The colour, or the nearest lighter or darker one that can be read.
---@param fg integer
---@param bg integer
---@return integer
local function legible(fg, bg)
  local goal = contrast(0, bg) > contrast(0xffffff, bg) and 0 or 0xffffff
  for step = 0, STEPS do
    local colour = mix(fg, goal, step / STEPS)
    if contrast(colour, bg) >= CONTRAST then
      return colour
    end
  end
  return goal
end

--- The same for numbered colours: the number, its bright or dark twin, or on a ground that is not
--- one of the first sixteen the nearest that can be read. Else none, which leaves the ground's own.
---@param fg integer
---@param bg integer
---@return integer|nil
local function legible_number(fg, bg)
  local numbers = { fg, fg < 8 and fg + 8 or fg < 16 and fg - 8 or fg }
  if bg >= 16 then
    numbers[3] = palette.number_of(legible(palette.rgb_of(fg), palette.rgb_of(bg)))
  end
  for _, number in ipairs(numbers) do
    if contrast(palette.rgb_of(number), palette.rgb_of(bg)) >= CONTRAST then
      return number
    end
  end
end

--- The ground's face, with the text in the group's colour. A reversed face stays reversed, as the
--- colours of a terminal may be unknown.
---@param face bellboard.Face of the group
---@param ground bellboard.Face
---@param normal bellboard.Face complete
---@param choose fun(fg: integer, bg: integer): integer|nil
---@return bellboard.Face
local function paint(face, ground, normal, choose)
  if not face.fg then
    return ground
  elseif ground.reverse then
    local fg = choose(face.fg, ground.fg or normal.fg) or ground.bg
    return { fg = ground.fg, bg = fg, reverse = true }
  end
  return { fg = choose(face.fg, ground.bg or normal.bg) or ground.fg, bg = ground.bg }
end

---@param name string
---@return vim.api.keyset.get_hl_info
local function get(name)
  return api.nvim_get_hl(0, { name = name, link = false })
end

---@param hl vim.api.keyset.get_hl_info
---@return bellboard.Face
local function numbered(hl)
  return { fg = hl.ctermfg, bg = hl.ctermbg, reverse = (hl.cterm or {}).reverse }
end

---@param name string
local function define(name)
  local group, ground, normal = get(made[name][1]), get(made[name][2]), get('Normal')
  local dark = vim.o.background == 'dark'
  local full = paint(group, ground, {
    fg = normal.fg or dark and 0xffffff or 0,
    bg = normal.bg or dark and 0 or 0xffffff,
  }, legible)
  local few = paint(numbered(group), numbered(ground), {
    fg = normal.ctermfg or dark and 7 or 0,
    bg = normal.ctermbg or dark and 0 or 15,
  }, legible_number)
  api.nvim_set_hl(0, name, {
    fg = full.fg,
    bg = full.bg,
    reverse = full.reverse,
    bold = group.bold,
    italic = group.italic,
    ctermfg = few.fg,
    ctermbg = few.bg,
    cterm = { reverse = few.reverse, bold = (group.cterm or {}).bold },
  })
end

--- The group with the colour of `group` on the background of `ground`.
---@param group string
---@param ground string
---@return string
M.on = function(group, ground)
  local name = group .. 'On' .. ground
  if not made[name] then
    made[name] = { group, ground }
    define(name)
  end
  return name
end

--- The characters of a text take more than a cell each. Neovim refuses such a border.
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

--- The border of a float: as 'winborder' says, else a plain one. Titles need a border, so 'none'
--- gives one of blanks, and so does one that is two cells wide.
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

--- Give a float our colours, lines as we wrote them, and a border that can be read on them: in some
--- colorschemes the border is for splits, of one colour with its ground.
---@param win integer
M.frame = function(win)
  local edge = M.on('BellboardFloatBorder', 'BellboardFloat')
  vim.wo[win].winhighlight = 'NormalFloat:BellboardFloat,FloatBorder:' .. edge
  for _, name in ipairs({ 'foldenable', 'rightleft' }) do -- a float inherits the user's
    api.nvim_set_option_value(name, false, { scope = 'local', win = win })
  end
end

--- Define all groups again, after a change of colours.
M.renew = function()
  for name in pairs(made) do
    define(name)
  end
end

--- Define them again if they were cleared without an event, as by a theme that is a function.
M.restore = function()
  local name = next(made)
  if name and vim.tbl_isempty(get(name)) then
    M.renew()
  end
end

return M
