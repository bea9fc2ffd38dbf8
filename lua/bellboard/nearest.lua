-- The word that a mistyped one may have meant. `core/nearest.py` finds the same.
local M = {}

local MOST = 3 -- words in a message
local LEAST = 2 -- letters that say something
local LONG = 60 -- letters: nobody types more by mistake

--- Count the letters to add, drop, replace or swap with the next one.
---@param a integer[] letters
---@param b integer[]
---@return integer
local function mistakes(a, b)
  local last, before, row ---@type integer[], integer[], integer[]
  row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    last, before, row = before, row, { [0] = i }
    for j = 1, #b do
      row[j] = math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i] == b[j] and 0 or 1))
      if i > 1 and j > 1 and a[i] == b[j - 1] and a[i - 1] == b[j] then
        row[j] = math.min(row[j], last[j - 2] + 1)
      end
    end
  end
  return row[#b]
end

--- 0 for a word that begins so, else its number of mistakes; last comes what holds it.
---@param typed string in lower case
---@param word string
---@return integer
local function rank(typed, word)
  local letters = vim.fn.str2list(typed)
  local at = word:find(typed, 1, true)
  if #letters < LEAST or #letters >= LONG then
    return LONG
  elseif at == 1 then
    return 0
  end
  local some = math.max(1, math.floor(#letters / 3))
  local wrong = mistakes(letters, vim.list_slice(vim.fn.str2list(word), 1, LONG))
  return wrong <= some and wrong or at and some + 1 or LONG
end

--- The question which of these words was meant, or what to say if none is like it.
---@param typed string
---@param words string[]
---@param otherwise string
---@return string
M.meant = function(typed, words, otherwise)
  local best, found = LONG - 1, {}
  for _, word in ipairs(words) do
    local nth = rank(vim.fn.tolower(typed), vim.fn.tolower(word))
    if nth < best then
      best, found = nth, {}
    end
    if nth == best then
      found[word] = true
    end
  end
  local most = vim.list_slice(vim.fn.sort(vim.tbl_keys(found)), 1, MOST)
  local last = table.remove(most)
  local before = table.concat(most, ', ') .. (#most > 0 and ' or ' or '')
  return last and ('did you mean %s%s?'):format(before, last) or otherwise
end

return M
