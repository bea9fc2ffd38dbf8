-- Buffers to show text in. Of lines with coloured chunks, only those that have changed are
-- written.
local cells = require('bellboard.text')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

--- Replace the text of a buffer that the user cannot change. Its colours go with it: Neovim would
--- keep each as an empty mark.
---@param buf integer
---@param lines string[]
M.replace = function(buf, lines)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

--- A buffer that is wiped out once no window shows it.
---@param lines? string[] that the user cannot change; default: an empty buffer to write into
---@return integer
M.buffer = function(lines)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable = 'wipe', true -- it is off in `nvim -M`
  vim.b[buf].bellboard_view = true
  if lines then
    M.replace(buf, lines)
  end
  return buf
end

--- Name a buffer; another one of that name is wiped out. A session file knows its windows by that
--- name then, see restored.lua: of several with "nofile" it would fail to restore the second one.
---@param buf integer
---@param name string
M.name = function(buf, name)
  for _, other in ipairs(api.nvim_list_bufs()) do
    if other ~= buf and api.nvim_buf_get_name(other) == name then
      api.nvim_buf_delete(other, { force = true })
    end
  end
  pcall(api.nvim_buf_set_name, buf, name) -- an autocommand of the user may fail
  vim.bo[buf].buftype = 'nowrite'
end

---@param before bellboard.Line
---@param after bellboard.Line
local function same(before, after)
  return before == after
    or before.text == after.text and vim.deep_equal(before.chunks, after.chunks)
end

--- The text of chunks, without blanks at the end.
---@param chunks bellboard.Chunk[]
---@return string
M.text = function(chunks)
  return (cells.joined(chunks):gsub('%s+$', ''))
end

--- Colour a line that shows that text of these chunks.
---@param buf integer
---@param row integer
---@param text string
---@param chunks bellboard.Chunk[]
M.colour = function(buf, row, text, chunks)
  local from, length = 0, #text
  for _, chunk in ipairs(chunks) do
    local to = math.min(from + #chunk[1], length)
    if chunk[2] and to > from then
      api.nvim_buf_set_extmark(buf, namespace, row - 1, from, { end_col = to, hl_group = chunk[2] })
    end
    from = to
  end
end

---@class bellboard.Hunk rows of the buffer, and the lines that replace them; last < first: none
---@field first integer
---@field last integer
---@field first_new integer
---@field last_new integer

---@param buf integer
---@param hunk bellboard.Hunk
---@param lines bellboard.Line[]
local function put(buf, hunk, lines)
  local texts = {}
  for nth = hunk.first_new, hunk.last_new do
    texts[#texts + 1] = lines[nth].text
  end
  if hunk.last >= hunk.first then
    api.nvim_buf_clear_namespace(buf, namespace, hunk.first - 1, hunk.last)
  end
  api.nvim_buf_set_lines(buf, hunk.first - 1, hunk.last, false, texts)
  for nth = hunk.first_new, hunk.last_new do
    M.colour(buf, hunk.first + nth - hunk.first_new, lines[nth].text, lines[nth].chunks)
  end
end

---@param lines bellboard.Line[]
---@param first integer
---@param last integer
---@return table<bellboard.Line, integer>
local function places(lines, first, last)
  local found = {}
  for nth = first, last do
    found[lines[nth]] = nth
  end
  return found
end

--- The differences. A line that has moved is the same table, so it is removed at one place and
--- added at another, and the lines between stay.
---@param before bellboard.Line[]
---@param after bellboard.Line[]
---@return bellboard.Hunk[]
local function differences(before, after)
  local i, j, last, last_new = 1, 1, #before, #after
  while i <= last and i <= last_new and same(before[i], after[i]) do
    i, j = i + 1, j + 1
  end
  while last >= i and last_new >= j and same(before[last], after[last_new]) do
    last, last_new = last - 1, last_new - 1
  end
  local hunks = {}
  local old, new = places(before, i, last), places(after, j, last_new)
  local function add(upto, upto_new)
    local hunk = hunks[#hunks]
    if hunk and hunk.last == i - 1 and hunk.last_new == j - 1 then
      hunk.last, hunk.last_new = upto, upto_new
    else
      hunks[#hunks + 1] = { first = i, last = upto, first_new = j, last_new = upto_new }
    end
    i, j = upto + 1, upto_new + 1
  end
  while i <= last and j <= last_new do
    local to, to_new = old[after[j]], new[before[i]]
    to, to_new = to and to >= i and to, to_new and to_new >= j and to_new
    if same(before[i], after[j]) then
      i, j = i + 1, j + 1
    elseif to and (not to_new or to - i <= to_new - j) then
      add(to - 1, j - 1)
    elseif to_new then
      add(i - 1, to_new - 1)
    else
      add(i, j)
    end
  end
  if i <= last or j <= last_new then
    add(last, last_new)
  end
  return hunks
end

--- Write the lines that differ.
---@param buf integer
---@param before bellboard.Line[] what the buffer shows; none: it is new
---@param after bellboard.Line[]
M.write = function(buf, before, after)
  local hunks = differences(before, after)
  if #hunks == 0 then
    return
  end
  vim.bo[buf].modifiable = true
  if #before == 0 then -- a new buffer has a line
    hunks[1].last = 1
  end
  for nth = #hunks, 1, -1 do -- upwards, so that the rows of the others stay right
    put(buf, hunks[nth], after)
  end
  vim.bo[buf].modifiable = false
end

return M
