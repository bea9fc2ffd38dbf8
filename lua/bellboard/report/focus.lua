-- Reports which session the user is looking at.
local host = require('bellboard.process.talk')
local terminals = require('bellboard.terminals')
local tmux = require('bellboard.jump.tmux')
local updates = require('bellboard.updates')

local M = {}

local api = vim.api

--- Without focus events, milliseconds after the last key in which the user counts as present.
local PRESENCE = 60000

local focused = true
--- The terminal reports its focus, so keys no longer matter.
local reported = false
---@type string|false the session in view
local viewed = false
---@type boolean|nil whether this Neovim had the focus last, as the background process knows
local front
---@type uv.uv_timer_t|nil runs while only a recent key proves that the user is here
local presence

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

--- Note a key: without focus events, only keys prove that the user is here.
local function here()
  if reported then
    return
  elseif presence then
    presence:start(
      PRESENCE,
      0,
      vim.schedule_wrap(function()
        focus(reported and focused)
      end)
    ) -- stylua: ignore
  end
  if (not focused or front == false) and #api.nvim_list_uis() > 0 then
    front = nil -- until the background process says so
    focus(true)
  end
end

--- tmux only reports focus if 'focus-events' is on. Without it, a Neovim in a hidden pane would
--- count as looking at its sessions forever.
local function doubt()
  local socket = tmux.here().tmux
  if not socket or vim.fn.executable('tmux') == 0 then
    return
  end
  tmux.ask(socket, { 'show-options', '-gv', 'focus-events' }, function(value)
    if vim.trim(value or '') == 'off' then
      presence = presence or assert(vim.uv.new_timer())
      vim.on_key(vim.schedule_wrap(here), api.nvim_create_namespace('bellboard.focus'))
      here()
    end
  end)
end

--- Whether this Neovim had the focus last, as the background process says.
---@param is_front boolean
M.is_front = function(is_front)
  front = is_front
end

--- Whether only keys prove that the user is here.
---@return boolean
M.unsure = function()
  return presence ~= nil and not reported
end

--- Report the session in view to a new background process.
M.renew = function()
  look(true)
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
    focus(true) -- now, since that it has no focus may follow
    here()
  end)
  local function left()
    if #api.nvim_list_uis() == 0 then -- after CTRL-Z, or detached
      focus(false)
      host.unseen()
    end
  end
  on({ 'UILeave' }, vim.schedule_wrap(left)) -- one that leaves is still listed
  on({ 'InsertEnter', 'CmdlineEnter', 'TermEnter' }, here)
  updates.on('focus.update', function()
    look()
  end)
  doubt()
end

return M
