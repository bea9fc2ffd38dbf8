-- Reports chats of agentic.nvim by the hooks that its `setup()` takes.
local chats = require('bellboard.report.chats')

local M = {}

local api = vim.api

---@type table<integer, integer> tab page → the buffer of its chat
local bufs = {}
---@type table<integer, string> chat that waits for an answer → its tool call, or ''
local asked = {}

--- The chat of a tab page, whose window is open when a prompt is sent.
---@param tab any
---@return integer|nil buf
local function chat_in(tab)
  if bufs[tab] or type(tab) ~= 'number' or not api.nvim_tabpage_is_valid(tab) then
    return bufs[tab]
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(tab)) do
    local buf = api.nvim_win_get_buf(win)
    if vim.bo[buf].filetype == 'AgenticChat' then
      bufs[tab] = buf
      api.nvim_create_autocmd('BufWipeout', {
        group = api.nvim_create_augroup('bellboard.chat.' .. buf, {}),
        buffer = buf,
        callback = function()
          bufs[tab], asked[buf] = nil, nil
          chats.hear('agentic', buf, 'closes', {})
        end,
      })
    end
  end
  return bufs[tab]
end

--- The report in an update of an agent's session. Updates with a state are of version 2 of the
--- Agent Client Protocol.
---@param update table
---@param waits string|nil the tool call that waits
---@return bellboard.ChatSays|nil
local function in_update(update, waits)
  if update.sessionUpdate ~= 'state_update' then
    return waits and update.toolCallId == waits and update.status ~= 'pending' and 'goes on' or nil
  elseif update.state == 'idle' then
    return update.stopReason == 'cancelled' and 'breaks off' or 'rests'
  end
  return ({ running = waits and 'goes on' or 'works', requires_action = 'asks' })[update.state]
end

---@type table<string, fun(data: table, buf: integer): bellboard.ChatSays|nil, bellboard.ChatAbout>
local says = {
  on_prompt_submit = function()
    return 'works', {}
  end,
  on_request_permission = function(data, buf)
    local call = data.request.toolCall
    asked[buf] = call.toolCallId
    return 'asks', { tool = call.title }
  end,
  on_session_update = function(data, buf)
    return in_update(data.update, asked[buf]), {}
  end,
  on_response_complete = function(data)
    local why = type(data.error) == 'table' and data.error.message or data.error
    return data.success == false and 'fails' or 'rests', { error = why }
  end,
}

--- The hooks for `require('agentic').setup({ hooks = … })`, around those of the user. A permission
--- that the user's own hook has decided is not reported.
---@param theirs? table<string, fun(data: table): any>
---@return table<string, fun(data: table): any>
M.hooks = function(theirs)
  theirs = theirs or {}
  local hooks = vim.tbl_extend('force', {}, theirs)
  for name, read in pairs(says) do
    hooks[name] = function(data)
      local decided = theirs[name] and theirs[name](data)
      local buf = decided == nil and chat_in(data.tab_page_id)
      local event, about = nil, nil
      if buf then
        event, about = read(data, buf)
      end
      if buf and event then
        asked[buf] = event == 'asks' and (asked[buf] or '') or nil
        chats.hear('agentic', buf, event, about)
      end
      return decided
    end
  end
  return hooks
end

return M
