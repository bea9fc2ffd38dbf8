local host = require('bellboard.host')
local terminals = require('bellboard.state.terminals')
local tmux = require('bellboard.system.tmux')

local M = {}

local api = vim.api

--- A focus that is never reported lost is believed for so long after the last key, in milliseconds.
local PRESENCE = 60000

local focused = true
--- The terminal reports its focus: then nothing else proves it.
local reported = false
---@type string|false session in view here
local viewed = false
---@type boolean|nil what the host said last: whether this Neovim had the focus last of all
local front
---@type uv.uv_timer_t|nil runs while nothing but a recent key proves that somebody is here
local presence

--- Tell the host when what is in view has changed.
---@param anew? boolean tell it again
local function look(anew)
  local session = focused and terminals.current()
  local id = session and session.session_id or false
  if id ~= viewed or anew and id then
    viewed = id
    host.tell({
      view = id and { session_id = id } or false,
      viewer = 'nvim ' .. vim.v.servername,
    })
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

--- Somebody is at work here: the only sign of it where no focus is reported.
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
  if not focused or front == false then
    front = nil -- until the host has heard
    focus(true)
  end
end

--- tmux reports the focus of its panes only if it is told to. Without that a Neovim in a pane that
--- nobody sees would look at its sessions for ever.
local function doubt()
  local socket = vim.split(vim.env.TMUX or '', ',')[1]
  if socket == '' or vim.fn.executable('tmux') == 0 then
    return
  end
  tmux.ask(socket, { 'show-options', '-gv', 'focus-events' }, function(told)
    if vim.trim(told or '') == 'off' then
      presence = presence or assert(vim.uv.new_timer())
      vim.on_key(vim.schedule_wrap(here), api.nvim_create_namespace('bellboard.focus'))
      here()
    end
  end)
end

--- The host says whether this is the Neovim that had the focus last.
---@param is_front boolean
M.is_front = function(is_front)
  front = is_front
end

--- Whether nothing tells of the focus, so that only keys prove that somebody is here.
---@return boolean
M.unsure = function()
  return presence ~= nil and not reported
end

--- A host that is new knows of no views.
M.renew = function()
  look(true)
end

--- Watch who looks at what.
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
  on({ 'InsertEnter', 'CmdlineEnter', 'TermEnter' }, here)
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'BellboardUpdate',
    callback = function()
      look()
    end,
  })
  doubt()
end

return M
