-- Colours the parts of a request by the syntax of their language: commands, files, plans.
local M = {}

local api = vim.api

---@class bellboard.Range rows with one syntax
---@field syntax string
---@field first integer
---@field last integer

--- Adjacent rows with the same syntax.
---@param rows bellboard.Row[]
---@return bellboard.Range[]
local function ranges_of(rows)
  local found = {}
  for nth, row in ipairs(rows) do
    local last = found[#found]
    if row.syntax and last and last.syntax == row.syntax and last.last == nth - 1 then
      last.last = nth
    elseif row.syntax then
      found[#found + 1] = { syntax = row.syntax, first = nth, last = nth }
    end
  end
  return found
end

--- Colour a buffer. A language without a syntax file stays plain.
---@param buf integer
---@param rows bellboard.Row[]
M.paint = function(buf, rows)
  api.nvim_buf_call(buf, function()
    vim.cmd('syntax clear')
    local included = {}
    for _, range in ipairs(ranges_of(rows)) do
      local cluster = range.syntax:match('^[%w_]+$') and 'Bellboard_' .. range.syntax or nil
      if cluster and included[cluster] == nil then
        vim.b.current_syntax = nil
        local include = 'syntax include @%s syntax/%s.vim'
        included[cluster] = pcall(vim.cmd --[[@as function]], include:format(cluster, range.syntax))
      end
      if included[cluster] then
        local where = ('start=/\\%%%dl/ end=/\\%%%dl$/'):format(range.first, range.last)
        vim.cmd(('syntax region BellboardPart %s keepend contains=@%s'):format(where, cluster))
      end
    end
    vim.b.current_syntax = nil
  end)
end

return M
