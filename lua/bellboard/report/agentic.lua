-- What the sessions of agentic.nvim say about their chats.
local M = { agent = 'agentic', filetype = 'AgenticChat' }

--- How a turn ended: only the chat itself shows that.
---@param buf integer
---@param from integer its first line
---@return bellboard.ChatSays
---@return { error?: string }
local function ending(buf, from)
  local last = '\n' .. table.concat(vim.api.nvim_buf_get_lines(buf, from, -1, false), '\n')
  local failed = last:match('\n### [^\n]*Agent finished with error: ([^\n]*)')
  if failed then
    return 'fails', { error = failed }
  end
  return last:find('\n### [^\n]*Generation stopped by the user') and 'breaks off' or 'rests', {}
end

---@param buf integer
---@param from integer
---@return bellboard.ChatSays|nil says
---@return { tool?: any, error?: any }|nil about
M.read = function(buf, from)
  local registry = package.loaded['agentic.session_registry']
  for _, session in pairs(type(registry) == 'table' and registry.sessions or {}) do
    if vim.tbl_get(session, 'widget', 'buf_nrs', 'chat') == buf then
      local permissions = session.permission_manager or {}
      -- Older versions ask one after the other.
      local _, asked = next(permissions.pending or { permissions.current_request })
      if asked then
        return 'asks', { tool = vim.tbl_get(asked, 'request', 'toolCall', 'title') }
      elseif session.is_generating then
        return 'works', {}
      end
      return ending(buf, from)
    end
  end
end

return M
