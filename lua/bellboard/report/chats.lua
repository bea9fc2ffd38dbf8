-- Reports chats with agents inside this Neovim, as their plugins announce them: codecompanion.nvim
-- in `User` events, agentic.nvim through `agentic.lua`. Without such a plugin nothing runs.
local host = require('bellboard.process.talk')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

---@alias bellboard.ChatSays 'opens'|'works'|'asks'|'goes on'|'fails'|'rests'|'breaks off'|'closes'
---@alias bellboard.ChatAbout { tool?: any, error?: any }

--- Milliseconds that a chat must rest before its turn counts as ended: it also rests between two
--- requests of a turn, and an error is announced last.
local SETTLE = 200

--- Event of codecompanion.nvim → report.
---@type table<string, bellboard.ChatSays|fun(data: table): bellboard.ChatSays|nil>
local events = {
  ChatCreated = 'opens',
  ChatSubmitted = 'works', -- also when it sends the results of tools
  ToolApprovalRequested = 'asks',
  ToolApprovalFinished = 'goes on', -- whatever the answer
  RequestFinished = function(data)
    local is_over = data.interaction ~= 'chat' or data.status == 'success'
    return not is_over and data.status ~= 'cancelled' and 'fails' or nil
  end,
  ToolsFinished = 'rests', -- unless the results are sent at once
  ChatDone = 'rests',
  ChatStopped = 'breaks off',
  ChatClosed = 'closes',
}

--- Makes the ids of chats unique among Neovims.
local prefix = ('%x-%d'):format(os.time(), vim.fn.getpid())

---@type table<integer, true> chats in a turn
local at_work = {}
---@type table<integer, integer> chat → number of the last event that counts
local heard = {}
---@type table<integer, string> chat → its folder, as it began: the user may be in a tab page of
---  another project when it ends
local folders = {}

---@param value any
---@return string|nil
local function text(value)
  return type(value) == 'string' and vim.fn.strcharpart(value, 0, 300) or nil
end

--- The folder of a window that shows a chat, or of the current one.
---@param buf integer
---@return string
local function folder_of(buf)
  local win = vim.fn.win_findbuf(buf)[1]
  if not win then
    return vim.fn.getcwd()
  end
  local tab, nr = unpack(vim.fn.win_id2tabwin(win))
  return vim.fn.getcwd(nr, tab)
end

---@param agent string
---@param buf integer
---@param says bellboard.ChatSays
---@param about bellboard.ChatAbout
local function report(agent, buf, says, about)
  local id = ('%s-%s-%d'):format(agent, prefix, buf)
  at_work[buf] = (says == 'works' or says == 'asks' or says == 'goes on') or nil
  terminals.chat(buf, says ~= 'closes' and id or nil)
  local folder = folders[buf] or folder_of(buf)
  folders[buf] = says ~= 'closes' and folder or nil
  host.notify('chat', agent, {
    event = says,
    session_id = id,
    cwd = folder,
    tool_name = text(about.tool),
    error = text(about.error),
    nth = heard[buf],
  }, vim.v.servername)
end

--- Report an event of a chat.
---@param agent string
---@param buf integer
---@param says bellboard.ChatSays
---@param about bellboard.ChatAbout
M.hear = function(agent, buf, says, about)
  local is_ending = says == 'rests' or says == 'fails' or says == 'breaks off'
  if (is_ending or says == 'goes on') and not at_work[buf] then
    return -- after its end, an open question is closed
  end
  local nth = (heard[buf] or 0) + 1
  heard[buf] = nth
  if says == 'rests' then
    vim.defer_fn(function()
      if heard[buf] == nth then
        report(agent, buf, says, about)
      end
    end, SETTLE)
  elseif says ~= 'works' or not at_work[buf] then
    report(agent, buf, says, about)
  end
end

M.attach = function()
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('bellboard.chats', {}),
    pattern = 'CodeCompanion*',
    callback = function(event)
      local data = type(event.data) == 'table' and event.data or {}
      local says = events[event.match:gsub('^CodeCompanion', '')]
      if type(says) == 'function' then
        says = says(data)
      end
      if says and type(data.bufnr) == 'number' then
        M.hear('codecompanion', data.bufnr, says, { tool = data.name, error = data.error })
      end
    end,
  })
end

return M
