-- Text from agents: made safe to show, and fitted to a width in cells.
local M = {}

local api = vim.api

--- Control characters, bidirectional marks and the invisible characters that `core/text.py`
--- lists, in UTF-8.
---@type { [1]: string, [2]: string }[] pattern and replacement
local unseen = {
  { '[%z\1-\31\127]', ' ' },
  { '\194[\128-\159]', ' ' },
  { '\216\156', ' ' }, -- U+061C
  { '\226\128[\142\143\168-\174]', ' ' }, -- U+200E, U+200F, U+2028 to U+202E
  { '\226\129[\166-\169]', ' ' }, -- U+2066 to U+2069
  { '\239\187\191', ' ' }, -- U+FEFF
  { '\194\173', '' }, -- U+00AD
  { '\205\143', '' }, -- U+034F
  { '\220\143', '' }, -- U+070F
  { '\225\133[\159\160]', '' }, -- U+115F, U+1160
  { '\225\158[\180\181]', '' }, -- U+17B4, U+17B5
  { '\225\160[\139-\143]', '' }, -- U+180B to U+180F
  { '\226\128[\139-\141]', '' }, -- U+200B to U+200D
  { '\226\129[\160-\165\170-\175]', '' }, -- U+2060 to U+206F
  { '\227\133\164', '' }, -- U+3164
  { '\239\184[\128-\141]', '' }, -- U+FE00 to U+FE0D
  { '\239\190\160', '' }, -- U+FFA0
  { '\239\191[\176-\187]', '' }, -- U+FFF0 to U+FFFB
  { '\240\147\144[\176-\191]', '' }, -- U+13430 to U+1343F
  { '\240\147\145[\128-\159]', '' }, -- U+13440 to U+1345F
  { '\240\155\178[\160-\163]', '' }, -- U+1BCA0 to U+1BCA3
  { '\240\157\133[\179-\186]', '' }, -- U+1D173 to U+1D17A
  { '\243\160[\128-\191][\128-\191]', '' }, -- U+E0000 to U+E0FFF
}

--- U+FE0E or U+FE0F after a symbol decides how it is drawn; a telephone key ends with U+20E3.
local SELECTOR, KEYCAP = '\239\184[\142\143]', '\226\131\163'

--- Combining marks, in UTF-8. More than four on one letter cover the rows around it.
local MARKS = {
  '^\204[\128-\191]$', -- U+0300 to U+033F
  '^\205[\128-\175]$', -- U+0340 to U+036F
  '^\210[\131-\137]$', -- U+0483 to U+0489
  '^\225\170[\176-\191]$', -- U+1AB0 to U+1ABF
  '^\225\171[\128-\191]$', -- U+1AC0 to U+1AFF
  '^\225\183[\128-\191]$', -- U+1DC0 to U+1DFF
  '^\226\131[\144-\191]$', -- U+20D0 to U+20FF
  '^\239\184[\160-\175]$', -- U+FE20 to U+FE2F
}
local PILE = 4

--- The end of a text that was cut; two cells wide if 'ambiwidth' says so.
local MORE = '…'

--- Remove selectors (U+FE0E, U+FE0F) that follow no symbol.
---@param text string
---@return string
local function selected(text)
  return (
    text:gsub('()' .. SELECTOR .. '()', function(from, to)
      local before = text:sub(from - 1, from - 1)
      local is_lone = before:find('[%z\1-\127]')
        or text:sub(math.max(1, from - 3), from - 1):find(SELECTOR)
      return is_lone and text:sub(to, to + 2) ~= KEYCAP and '' or nil
    end)
  )
end

---@param char string
---@return boolean
local function is_mark(char)
  for _, pattern in ipairs(MARKS) do
    if char:find(pattern) then
      return true
    end
  end
  return false
end

---@param text string
---@return string
local function without_piles(text)
  local count = 0
  return (
    text:gsub('[%z\1-\127\194-\244][\128-\191]*', function(char)
      count = #char > 1 and is_mark(char) and count + 1 or 0
      return count > PILE and '' or nil
    end)
  )
end

--- The text with only visible characters.
---@param text any
---@return string
M.safe_line = function(text)
  text = tostring(text or '')
  if text:find('[%z\1-\31\127-\255]') then
    for _, one in ipairs(unseen) do
      text = text:gsub(one[1], one[2])
    end
    text = without_piles(selected(text))
  end
  return text
end

--- The same text on one line, with single spaces.
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

--- The width of chunks.
---@param chunks bellboard.Chunk[]
---@return integer
M.sum = function(chunks)
  local sum = 0
  for _, chunk in ipairs(chunks) do
    sum = sum + width_of(chunk[1])
  end
  return sum
end

--- The text of chunks.
---@param chunks bellboard.Chunk[]
---@return string
M.joined = function(chunks)
  local parts = {}
  for nth, chunk in ipairs(chunks) do
    parts[nth] = chunk[1]
  end
  return table.concat(parts)
end

--- Cut the text to at most this many cells.
---@param text string
---@param cells integer
---@return string
M.cut = function(text, cells)
  if width_of(text) <= cells then
    return text
  end
  local room = cells - width_of(MORE)
  if room < 0 then
    return ''
  end
  local kept = vim.fn.strcharpart(text, 0, room)
  while width_of(kept) > room do -- wide characters
    kept = vim.fn.strcharpart(kept, 0, vim.fn.strcharlen(kept) - 1)
  end
  return kept:gsub('%s+$', '') .. MORE
end

--- Cut or pad the text to exactly this many cells.
---@param text string
---@param cells integer
---@param right? boolean align right
---@return string
M.fit = function(text, cells, right)
  local cut = M.cut(text, cells)
  local fill = (' '):rep(cells - width_of(cut))
  return right and fill .. cut or cut .. fill
end

return M
