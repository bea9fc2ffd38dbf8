-- Reports the board to the terminal that this Neovim runs in (OSC 7501), if that reads reports. The
-- background process says what; here it is asked for, written and cleared.
local config = require('bellboard.config')
local host = require('bellboard.process.talk')
local outer = require('bellboard.outer_terminal')
local receive = require('bellboard.process.receive')

local M = {}

local api = vim.api

local QUERY, CLEAR = '\27]7501;?\27\\', '\27]7501;state=clear\27\\'
--- Starts of TERM: a terminal within another one, which the outer one never reads, or one that
--- prints what it does not know.
local NEVER = { 'screen', 'tmux', 'linux', 'dumb', 'unknown' }

--- The channel of the UI whose terminal was asked.
---@type integer|nil
local asked
--- Whether that has replied: a terminal that reads reports does so.
local is_read = false
--- Whether it has reports of ours.
local has_reports = false
--- Whether it shows a shell, after CTRL-Z; Neovim itself runs on.
local is_suspended = false

---@param ui table<string, any>
---@return boolean
local function is_terminal(ui)
  return ui.stdout_tty == true
end

--- The channel of the terminal of this Neovim, if there is exactly one, and that can be asked.
---@return integer|nil
local function terminal()
  local term = vim.env.TERM or ''
  local is_odd = vim.iter(NEVER):any(function(start)
    return vim.startswith(term, start)
  end)
  if term == '' or is_odd or vim.env.TMUX or vim.env.STY then
    return nil
  end
  local uis = vim.tbl_filter(is_terminal, api.nvim_list_uis())
  -- In 0.10, only the terminal in which it was started can be written to.
  return #uis == 1 and (api.nvim_ui_send ~= nil or uis[1].chan == 1) and uis[1].chan or nil
end

--- Clear the reports in the terminal.
M.clear = function()
  if has_reports then
    has_reports = false
    outer.send(CLEAR)
  end
end

--- Have the whole board reported, or nothing more.
local function renew()
  local is_wanted = config.get().report and not is_suspended
  local is_on = is_read and is_wanted and terminal() == asked
  host.notify('outward', is_on)
  if not is_on then
    M.clear()
  end
end

--- Ask the terminal once, and report if it replies; the options may have changed.
M.renew = function()
  local uis = api.nvim_list_uis() -- none while a shell is in front
  local is_there = vim.iter(uis):any(function(ui)
    return ui.chan == asked
  end)
  if asked and #uis > 0 and not is_there then
    asked, is_read, has_reports, is_suspended = nil, false, false, false
  end
  if asked then
    renew()
  elseif config.get().report then
    asked = terminal()
    if asked then
      outer.send(QUERY)
    end
  end
end

--- Write reports. Called by the background process.
---@param sequences string
M._write = function(sequences)
  if is_read and not is_suspended and vim.v.exiting == vim.NIL then
    has_reports = true
    outer.send(sequences)
  end
end

M.attach = function()
  local group = api.nvim_create_augroup('bellboard.outward', {})
  ---@param events string|string[]
  ---@param callback fun(event: vim.api.keyset.create_autocmd.callback_args)
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  on('TermResponse', function(event)
    local data = event.data -- a string in Neovim 0.10
    local sequence = type(data) == 'table' and data.sequence or data
    if asked and not is_read and sequence:find('^\27%]7501;%?') then
      is_read = true
      renew()
    end
  end)
  on('UILeave', function()
    if vim.v.event.chan == asked and terminal() == asked then
      M.clear()
    end
  end)
  on({ 'UIEnter', 'UILeave' }, vim.schedule_wrap(M.renew)) -- a UI that leaves may be listed yet
  on({ 'VimSuspend', 'VimResume' }, function(event)
    is_suspended = event.event == 'VimSuspend'
    renew()
  end)
  on('VimLeavePre', M.clear)
  receive.on('snapshot', function()
    if is_read then
      renew()
    end
  end)
  M.renew()
end

return M
