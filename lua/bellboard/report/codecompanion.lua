-- What the `User` events of codecompanion.nvim say about its chats.
local M = { agent = 'codecompanion', pattern = 'CodeCompanion*' }

---@type table<string, bellboard.ChatSays|fun(data: table): bellboard.ChatSays|nil>
M.events = {
  ChatCreated = 'opens',
  ChatSubmitted = 'works', -- also when it sends the results of tools
  ToolApprovalRequested = 'asks',
  ToolApprovalFinished = 'goes on', -- whatever the answer
  RequestFinished = function(data)
    local is_over = data.interaction ~= 'chat' or data.status == 'success'
    return not is_over and data.status ~= 'cancelled' and 'fails' or nil
  end,
  ToolsFinished = 'rests', -- unless it sends the results at once
  ChatDone = 'rests',
  ChatStopped = 'breaks off',
  ChatClosed = 'closes',
}

--- What an event says, and of which buffer.
---@param name string
---@param data table
---@return bellboard.ChatSays|nil says
---@return integer|nil buf
---@return { tool?: string, error?: string }|nil about
M.read = function(name, data)
  local says = M.events[name:gsub('^CodeCompanion', '')]
  if type(says) == 'function' then
    says = says(data)
  end
  return says, data.bufnr, { tool = data.name, error = data.error }
end

return M
