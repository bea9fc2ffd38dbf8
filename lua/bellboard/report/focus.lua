-- Reports which session the user is looking at, and at which Neovim the user is.
local host = require('bellboard.process.talk')
local receive = require('bellboard.process.receive')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

local focused = true
--- Whether the terminal reports its focus.
local reported = false
---@type string|false the session in view
local viewed = false
--- Whether this Neovim had the focus last, as the background process knows.
local front = true

--- Report the session in view if it has changed.
---@param again? boolean report it anyway
local function look(again)
  local session = focused and terminals.current()
  local id = session and session.session_id or false
  if id ~= viewed or again and id then
    viewed = id
    host.tell({ view = id and { session_id = id } or false, viewer = 'nvim ' .. vim.v.servername })
  end
end

---@param now boolean
local function focus(now)
  focused = now
  if now then
    host.focused()
  end
  look()
end

--- Take the focus when somebody types here, if the terminal does not report it.
local function typed()
  if not (reported or front) and #api.nvim_list_uis() > 0 then
    front = true -- until the background process says otherwise
    focus(true)
  end
end

--- Watch which session is in view.
M.attach = function()
  local group = api.nvim_create_augroup('bellboard.focus', {})
  ---@param events string[]
  ---@param callback fun(event: vim.api.keyset.create_autocmd.callback_args)
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  on({ 'WinEnter', 'BufEnter', 'TermEnter' }, function()
    look()
  end)
  on({ 'FocusGained', 'FocusLost' }, function(event)
    reported = true
    focus(event.event == 'FocusGained')
  end)
  on({ 'UIEnter' }, function()
    focus(true) -- now, since the loss of focus may follow
  end)
  local function left()
    if #api.nvim_list_uis() == 0 then -- after CTRL-Z, or detached
      focus(false)
      host.unseen()
    end
  end
  on({ 'UILeave' }, vim.schedule_wrap(left)) -- a UI that leaves is still listed
  on({ 'InsertEnter', 'CmdlineEnter', 'TermEnter' }, typed)
  sessions.on_change('focus', function()
    look()
  end)
  receive.on('front', function(is_front)
    front = is_front
  end)
  receive.on('snapshot', function()
    look(true)
  end)
end

return M
