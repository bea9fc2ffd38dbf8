-- Buffers to show text in.
local cells = require('bellboard.text')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

--- Replace the text of a buffer that the user cannot change. Its colors go with it: Neovim would
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

--- Put a text that was not sent into register 1, as if it was cut, so that `p` puts it anywhere.
---@param text string
M.cut = function(text)
  local buf = M.buffer()
  api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(text, '\n', { plain = true }))
  api.nvim_buf_call(buf, function()
    vim.cmd('silent keepjumps %delete')
  end)
  api.nvim_buf_delete(buf, { force = true })
end

--- Name a buffer; another buffer of this name is wiped out. A session file then knows its windows
--- by the name, see board/init.lua; it would fail to restore a second "nofile" buffer.
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

--- The text of chunks, without blanks at the end.
---@param chunks bellboard.Chunk[]
---@return string
M.text = function(chunks)
  return (cells.joined(chunks):gsub('%s+$', ''))
end

--- Color a line that shows that text of these chunks.
---@param buf integer
---@param row integer
---@param text string
---@param chunks bellboard.Chunk[]
M.color = function(buf, row, text, chunks)
  local from, length = 0, #text
  for _, chunk in ipairs(chunks) do
    local to = math.min(from + #chunk[1], length)
    if chunk[2] and to > from then
      api.nvim_buf_set_extmark(buf, namespace, row - 1, from, { end_col = to, hl_group = chunk[2] })
    end
    from = to
  end
end

--- Replace rows of a buffer by lines with colored chunks.
---@param buf integer
---@param first integer
---@param last integer
---@param lines { text: string, chunks: bellboard.Chunk[] }[]
M.put = function(buf, first, last, lines)
  local texts = {}
  for nth, line in ipairs(lines) do
    texts[nth] = line.text
  end
  api.nvim_buf_clear_namespace(buf, namespace, first - 1, last)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, first - 1, last, false, texts)
  vim.bo[buf].modifiable = false
  for nth, line in ipairs(lines) do
    M.color(buf, first + nth - 1, line.text, line.chunks)
  end
end

return M
