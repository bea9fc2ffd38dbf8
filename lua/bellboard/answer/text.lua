-- Writes rows into a buffer.
local canvas = require('bellboard.canvas')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

---@type table<integer, bellboard.Row[]> buffer → what it shows
local written = {}

--- Write all rows of a buffer, unless it shows them.
---@param buf integer
---@param rows bellboard.Row[]
M.write = function(buf, rows)
  if vim.deep_equal(written[buf], rows) then
    return
  elseif not written[buf] then
    api.nvim_create_autocmd('BufWipeout', {
      buffer = buf,
      callback = function()
        written[buf] = nil
      end,
    })
  end
  written[buf] = rows
  local texts = vim.tbl_map(function(row)
    return row.text
  end, rows)
  canvas.replace(buf, texts)
  for nth, row in ipairs(rows) do
    canvas.colour(buf, nth, row.text, row.chunks or {})
    if row.gutter or row.group then
      api.nvim_buf_set_extmark(buf, namespace, nth - 1, 0, {
        virt_text = row.gutter and { row.gutter },
        virt_text_pos = row.gutter and 'inline',
        line_hl_group = row.group,
      })
    end
  end
end

return M
