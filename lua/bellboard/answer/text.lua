-- Writes rows into a buffer, in colours that can be read where it is shown.
local canvas = require('bellboard.canvas')
local ink = require('bellboard.ink')
local layout = require('bellboard.answer.layout')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

--- The group with a colour that can be read in the float; what has a background keeps it.
---@param group string
---@return string
M.legible = function(group)
  local keeps = group == 'BellboardHidden' or layout.is_split()
  return keeps and group or ink.on(group, 'BellboardFloat')
end

--- Chunks in colours that can be read.
---@param chunks bellboard.Chunk[]
---@return bellboard.Chunk[]
M.coloured = function(chunks)
  return vim.tbl_map(function(chunk)
    return { chunk[1], chunk[2] and M.legible(chunk[2]) }
  end, chunks)
end

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
    canvas.colour(buf, nth, row.text, M.coloured(row.chunks or {}))
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
