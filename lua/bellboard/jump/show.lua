-- The window that shows a terminal after a jump, and the buffers that windows showed before. The
-- plugin that owns a terminal shows it in its usual place.
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local moment = require('bellboard.moment')
local terminals = require('bellboard.terminals')
local windows = require('bellboard.window')

local M = {}

local api = vim.api

local SETTLES = 200 -- ms in which the plugin that owns a terminal may still change the mode

local entered = 0 -- number of terminals: only the newest timer cleans up

---@class bellboard.Place
---@field win integer
---@field buf integer
---@field view? vim.fn.winsaveview.ret none of a terminal that scrolls
---@field alternate integer the alternate file, or -1
---@field filetype string

--- 'filetype' of a view of ours → opens it again after a jump has closed it.
---@type table<string, fun()>
M.reopens = {}

---@type table<integer, { place: bellboard.Place, by: integer }> window → what it showed, and shows
local replaced = {}

--- The buffer, cursor and view of the current window.
---@return bellboard.Place
M.here = function()
  local is_last = api.nvim_get_mode().mode == 't' or vim.fn.line('.') == vim.fn.line('$')
  local scrolls = vim.bo.buftype == 'terminal' and is_last
  return {
    win = api.nvim_get_current_win(),
    buf = api.nvim_get_current_buf(),
    view = not scrolls and vim.fn.winsaveview() or nil,
    alternate = vim.fn.bufnr('#'),
    filetype = vim.bo.filetype,
  }
end

--- Note that the first of several jumps starts.
M.start = function()
  replaced = {}
end

--- Note that a jump has put another buffer into a window.
---@param place bellboard.Place
---@param by integer
M.replace = function(place, by)
  local known = replaced[place.win]
  replaced[place.win] =
    { place = known and known.by == place.buf and known.place or place, by = by }
end

--- Restore the cursor and the alternate file of a window that shows its buffer again.
---@param place bellboard.Place
M.restore = function(place)
  api.nvim_win_call(place.win, function()
    if place.view then
      vim.fn.winrestview(place.view)
    end
    if api.nvim_buf_is_valid(place.alternate) then
      vim.fn.setreg('#', place.alternate)
    end
  end)
end

---@class bellboard.Keeper
---@field module string loaded once the plugin has a terminal
---@field show fun(theirs: table, buf: integer) shows the buffer if it is the plugin's

---@type bellboard.Keeper[]
local keepers = {
  {
    module = 'sidekick.cli.terminal',
    show = function(theirs, buf)
      for _, terminal in pairs(theirs.terminals) do
        if terminal.buf == buf then
          terminal:focus()
        end
      end
    end,
  },
  {
    module = 'claudecode.terminal',
    show = function(theirs, buf)
      if theirs.get_active_terminal_bufnr() == buf then
        theirs.open()
      end
    end,
  },
  {
    module = 'snacks.terminal',
    show = function(theirs, buf)
      for _, terminal in ipairs(theirs.list()) do
        if terminal.buf == buf then
          terminal:show():focus()
        end
      end
    end,
  },
  {
    module = 'toggleterm.terminal',
    show = function(theirs, buf)
      for _, terminal in ipairs(theirs.get_all(true)) do
        if terminal.bufnr == buf then
          terminal:open()
        end
      end
    end,
  },
}

--- Let the plugin that owns a hidden terminal show it.
---@param buf integer
---@return boolean shown
local function keeper_shows(buf)
  for _, keeper in ipairs(keepers) do
    local theirs = package.loaded[keeper.module]
    if type(theirs) == 'table' and pcall(keeper.show, theirs, buf) then
      local win = vim.fn.bufwinid(buf)
      if win ~= -1 then
        api.nvim_set_current_win(win)
        return true
      end
    end
  end
  return false
end

--- A window that already shows the buffer: the current one, one in this tab, or any.
---@param buf integer
---@return integer|nil
local function window_of(buf)
  local found, rank = nil, 0
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local here = win == api.nvim_get_current_win() and 3
    local merit = here or api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() and 2 or 1
    if merit > rank and api.nvim_win_get_config(win).focusable then
      found, rank = win, merit
    end
  end
  return found
end

--- Leave a floating window, or a window that must keep its buffer, for a normal one: the last, else
--- the first.
local function leave()
  if not windows.is_free(api.nvim_get_current_win()) then
    local last_win = vim.fn.win_getid(vim.fn.winnr('#'))
    local wins = { last_win, unpack(api.nvim_tabpage_list_wins(0)) }
    api.nvim_set_current_win(
      vim.iter(wins):find(windows.is_free) or vim.iter(wins):find(windows.is_normal)
    )
  end
end

--- Whether a window is the last one of a running terminal that would end without one.
---@param win integer
---@return boolean
local function keeps_running(win)
  local buf = api.nvim_win_get_buf(win)
  local how = vim.bo[buf].bufhidden
  local hides = how == 'hide' or how == '' and vim.o.hidden
  return not hides and #vim.fn.win_findbuf(buf) == 1 and terminals.is_running(buf)
end

--- Show a buffer in the current window, or in a split if that window must keep its buffer.
---@param buf integer
---@return bellboard.Place|nil before what a window showed instead of it
M.put = function(buf)
  if api.nvim_get_current_buf() == buf then
    return
  end
  leave()
  local before = M.here()
  local is_kept = not windows.is_free(before.win) or keeps_running(before.win)
  if is_kept or not pcall(api.nvim_win_set_buf, before.win, buf) then
    windows.split(buf, '')
    return
  end
  return before
end

--- Show the previous buffer in each window, unless the user has shown another one there since.
M.bring_back = function()
  for win, one in pairs(replaced) do
    local place = one.place
    local is_there = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == one.by
    if is_there and api.nvim_buf_is_valid(place.buf) and not keeps_running(win) then
      if pcall(api.nvim_win_set_buf, win, place.buf) then
        M.restore(place)
      end
    end
  end
  replaced = {}
end

--- Show a hidden buffer: let the plugin that owns it do so, else open it as 'switchbuf' says, by
--- default in the current window.
---@param buf integer
local function open(buf)
  leave()
  if keeper_shows(buf) then
    return
  end
  for _, how in ipairs(vim.split(vim.o.switchbuf, ',')) do
    local modifier = ({ newtab = 'tab', vsplit = 'vertical', split = '' })[how]
    if modifier then
      return windows.split(buf, modifier)
    end
  end
  local before = M.put(buf)
  if before then
    M.replace(before, buf)
  end
end

--- Start Terminal mode, and once more if the owner of the terminal ends it: it may restore a mode
--- on entering. Not if the user has pressed a key.
---@param buf integer
local function insert(buf)
  vim.cmd.startinsert()
  entered = entered + 1
  local nth = entered
  local namespace, is_pressed = api.nvim_create_namespace('bellboard.insert'), false
  local again = vim.schedule_wrap(function()
    local is_normal = api.nvim_get_current_buf() == buf and api.nvim_get_mode().mode == 'nt'
    if is_normal and not is_pressed then
      vim.cmd.startinsert()
    end
  end)
  vim.on_key(function(_, typed)
    is_pressed = is_pressed or dialog.is_key(typed)
  end, namespace)
  again() -- the owner may end the mode before Neovim has entered it
  local group = api.nvim_create_augroup('bellboard.insert', {})
  local once = { group = group, pattern = 't:nt', once = true, callback = again }
  api.nvim_create_autocmd('ModeChanged', once)
  vim.defer_fn(function()
    if nth == entered then
      vim.on_key(nil, namespace)
      api.nvim_create_augroup('bellboard.insert', {})
    end
  end, SETTLES)
end

---@param buf integer
local function show(buf)
  windows.leave_float()
  windows.leave_visual() -- Neovim 0.10 would enter no terminal
  local win = window_of(buf)
  if win then
    api.nvim_set_current_win(win)
  else
    open(buf)
  end
  if config.get().jump.insert and vim.bo[buf].buftype == 'terminal' then
    insert(buf)
  end
end

--- Show a terminal's buffer, and enter it.
---@param buf integer
M.show = function(buf)
  moment.after_command_window(function()
    show(buf)
  end)
end

return M
