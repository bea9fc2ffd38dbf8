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

--- Whether the terminal was asked, and has replied: a terminal that reads reports does so.
local is_asked, is_read = false, false
--- Whether it has reports of ours.
local has_reports = false
--- Whether it shows a shell, after CTRL-Z; Neovim itself runs on.
local is_suspended = false

---@param ui table<string, any>
---@return boolean
local function is_terminal(ui)
  return ui.stdout_tty == true
end

--- Whether this Neovim has exactly one terminal, and that can be asked.
---@return boolean
local function has_terminal()
  local term = vim.env.TERM or ''
  local is_odd = vim.iter(NEVER):any(function(start)
    return vim.startswith(term, start)
  end)
  if term == '' or is_odd or vim.env.TMUX or vim.env.STY then
    return false
  end
  local uis = vim.tbl_filter(is_terminal, api.nvim_list_uis())
  -- In 0.10, only the terminal in which it was started can be written to.
  return #uis == 1 and (api.nvim_ui_send ~= nil or uis[1].chan == 1)
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
  local is_on = is_read and not is_suspended and config.get().report and has_terminal()
  host.notify('outward', is_on)
  if not is_on then
    M.clear()
  end
end

--- Ask the terminal once, and report if it replies; the options may have changed.
M.renew = function()
  if is_asked then
    renew()
  elseif config.get().report and has_terminal() then
    is_asked = true
    outer.send(QUERY)
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
    if is_asked and not is_read and sequence:find('^\27%]7501;%?') then
      is_read = true
      renew()
    end
  end)
  on('UILeave', function()
    for _, ui in ipairs(api.nvim_list_uis()) do
      if ui.chan == vim.v.event.chan and is_terminal(ui) then
        M.clear()
        is_asked, is_read = false, false
      end
    end
  end)
  on({ 'UIEnter', 'UILeave' }, vim.schedule_wrap(M.renew)) -- a UI that leaves is still listed
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
