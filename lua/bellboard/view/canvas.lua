-- Writes lines into a buffer, and only those that differ from what is there.
local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

---@param before bellboard.Line
---@param after bellboard.Line
local function same(before, after)
  return before == after
    or before.text == after.text and vim.deep_equal(before.chunks, after.chunks)
end

---@param buf integer
---@param row integer
---@param line bellboard.Line
local function colour(buf, row, line)
  local from, length = 0, #line.text
  for _, chunk in ipairs(line.chunks) do
    local to = math.min(from + #chunk[1], length)
    if chunk[2] and to > from then
      api.nvim_buf_set_extmark(buf, namespace, row - 1, from, { end_col = to, hl_group = chunk[2] })
    end
    from = to
  end
end

--- Replace the rows `first` to `last` with `lines[first]` to `lines[last_new]`.
---@param buf integer
---@param lines bellboard.Line[]
---@param first integer
---@param last integer
---@param last_new integer
local function put(buf, lines, first, last, last_new)
  local texts = {}
  for row = first, last_new do
    texts[#texts + 1] = lines[row].text
  end
  api.nvim_buf_clear_namespace(buf, namespace, first - 1, last)
  api.nvim_buf_set_lines(buf, first - 1, last, false, texts)
  for row = first, last_new do
    colour(buf, row, lines[row])
  end
end

--- Write the lines that differ; if their number has changed, also those in between.
---@param buf integer
---@param before bellboard.Line[] what the buffer shows; none: it is new
---@param after bellboard.Line[]
M.write = function(buf, before, after)
  local first, last, last_new = 1, #before, #after
  while first <= last and first <= last_new and same(before[first], after[first]) do
    first = first + 1
  end
  while last >= first and last_new >= first and same(before[last], after[last_new]) do
    last, last_new = last - 1, last_new - 1
  end
  if first > last and first > last_new then
    return
  end
  vim.bo[buf].modifiable = true
  if last ~= last_new then
    put(buf, after, first, #before == 0 and -1 or last, last_new) -- a new buffer has a line
  else
    for row = first, last do
      if not same(before[row], after[row]) then
        put(buf, after, row, row, row)
      end
    end
  end
  vim.bo[buf].modifiable = false
end

return M
