-- Breaks text into rows of a width, so that a row of the buffer is a row of the screen.
local cells = require('bellboard.text')

local M = {}

--- Bytes of a character, with room for what is combined with it.
local BYTES = 8
--- Cells of a tab.
local TAB = (' '):rep(4)

--- The longest start of a text that fits.
---@param text string
---@param width integer
---@return string
local function start_of(text, width)
  local head = text:sub(1, width)
  if head:find('[\128-\255]') or text:find('^[\128-\191]', width + 1) then
    head = vim.fn.strcharpart(text:sub(1, BYTES * width), 0, width)
    local surplus = cells.width(head) - width
    while surplus > 0 do -- no character has more than two cells
      head = vim.fn.strcharpart(head, 0, vim.fn.strcharlen(head) - math.ceil(surplus / 2))
      surplus = cells.width(head) - width
    end
    head = head ~= '' and head or vim.fn.strcharpart(text:sub(1, BYTES), 0, 1)
  end
  return head
end

--- The rows of a line without tabs; broken after a blank, unless that leaves less than half a row.
---@param text string
---@param width integer
---@return string[]
M.line = function(text, width)
  local rows, at = {}, 1
  width = math.max(width, 2)
  local most = BYTES * width
  while true do
    local rest = text:sub(at, at + most) -- one byte more than a row can have
    if #rest <= most and cells.width(rest) <= width then
      rows[#rows + 1] = rest
      return rows
    end
    local head = start_of(rest, width)
    local blank = #(head:match('^.*%s') or '')
    if not rest:find('^%s', #head + 1) and blank > #head / 2 then
      head = head:sub(1, blank)
    end
    rows[#rows + 1] = head
    at = at + #head
  end
end

--- The rows of a text with line breaks, each with the number of its line; none for those that
--- continue a line.
---@param text string
---@param width integer
---@return { text: string, line?: integer }[]
M.text = function(text, width)
  local rows = {}
  for number, line in ipairs(vim.split(text, '\n', { plain = true })) do
    for nth, row in ipairs(M.line(cells.safe_line(line:gsub('\t', TAB)), width)) do
      rows[#rows + 1] = { text = row, line = nth == 1 and number or nil }
    end
  end
  return rows
end

return M
