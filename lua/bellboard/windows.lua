-- Opens, enters and leaves windows, also if an autocommand of somebody else fails on the way.
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local visual = require('bellboard.visual')

local M = {}

local api = vim.api

--- Events that Neovim reports before it leaves or closes something: it does not, if one of them
--- fails.
local BEFORE = table.concat({
  'BufDelete,BufHidden,BufLeave,BufUnload,BufWinLeave,BufWipeout',
  'TabClosed,TabLeave,WinClosed,WinLeave',
}, ',')

--- Of a float in place of a split: below the pickers of other plugins, which have 50 unless they
--- choose.
local ZINDEX = 45

--- Do something once more without the autocommands that come before it.
---@param act fun(...): any
---@param ... any
local function insist(act, ...)
  local ignored = vim.o.eventignore
  vim.o.eventignore = ignored == '' and BEFORE or ignored .. ',' .. BEFORE
  pcall(act, ...)
  vim.o.eventignore = ignored
end

--- Do something that triggers autocommands. If one of them fails, do it all the same, and then show
--- the error.
---@generic T
---@param done fun(): T|nil what there is if it was done
---@param act fun(...): any
---@param ... any
---@return T
local function despite(done, act, ...)
  local ok, why = pcall(act, ...)
  local made = done()
  if not (ok or made) then
    insist(act, ...)
    made = done()
  end
  if not (ok or made) then
    error(why, 0)
  elseif not ok then
    vim.schedule(function()
      message.warn('an autocommand failed: ' .. tostring(why))
    end)
  end
  return made
end

--- End the modes in which a window that is entered would not take its keys. CTRL-O suspends them.
---@param buf integer
local function settle(buf)
  visual.leave()
  if not vim.bo[buf].modifiable and api.nvim_get_mode().mode:find('^n?[iR]') then
    vim.cmd.stopinsert()
  end
end

--- Show our buffer in a window that has just been opened and entered. The old one is in it if
--- BufLeave failed, and would fail again.
---@param buf integer
local function fill(buf)
  if api.nvim_get_current_buf() ~= buf then
    vim.cmd(('noautocmd buffer %d'):format(buf))
  end
end

--- Enter the window that has been opened since, with a buffer. It is there, but not entered, if
--- WinLeave failed: opened once more, there would be two. Another plugin may have opened one of its
--- own after it, and entered that, such as a tree in each tab page.
---@param before table<integer, true>
---@param buf integer
---@param enter boolean
---@param made integer|nil it, if that is known
---@return integer|nil
local function opened(before, buf, enter, made)
  local since = vim.tbl_filter(function(win)
    return not before[win]
  end, api.nvim_list_wins())
  table.sort(since)
  for _, win in ipairs(since) do
    made = made or api.nvim_win_get_buf(win) == buf and win or nil
  end
  made = made or since[1]
  if made and enter then
    if api.nvim_get_current_win() ~= made then
      insist(api.nvim_set_current_win, made)
    end
    fill(buf)
  end
  return made
end

---@return table<integer, true>
local function all()
  local found = {}
  for _, win in ipairs(api.nvim_list_wins()) do
    found[win] = true
  end
  return found
end

--- Whether there is such a window, and it does not float.
---@param win integer
---@return boolean
M.is_normal = function(win)
  return win ~= 0 and api.nvim_win_get_config(win).relative == ''
end

--- Whether another buffer may be shown in a window: not in a sidebar, the quickfix list or a help.
---@param win integer
---@return boolean
M.is_free = function(win)
  if not M.is_normal(win) then
    return false
  end
  local options = vim.wo[win]
  local is_fixed = options.winfixbuf or options.winfixwidth or options.winfixheight
  local kind = vim.bo[api.nvim_win_get_buf(win)].buftype
  return not is_fixed and kind ~= 'quickfix' and kind ~= 'help'
end

---@param buf integer
---@param enter boolean
---@param layout vim.api.keyset.win_config
---@return integer
local function open(buf, enter, layout)
  local before, made = all(), nil
  return despite(function()
    return opened(before, buf, enter, made)
  end, function()
    made = api.nvim_open_win(buf, enter, layout)
  end)
end

--- Do something else if there is no room for another window, as on a small screen or with a large
--- 'winminheight'.
---@generic T
---@param act fun(): T
---@param instead fun(): T
---@return T
local function roomy(act, instead)
  local ok, made = pcall(act)
  if ok then
    return made
  elseif not tostring(made):find('E36:', 1, true) then
    error(made, 0)
  end
  return instead()
end

--- A float along the edge of the screen where a split has no room.
---@param layout vim.api.keyset.win_config of the split
---@return vim.api.keyset.win_config
local function float_of(layout)
  local columns, lines = vim.o.columns, math.max(vim.o.lines - vim.o.cmdheight - 1, 1)
  local is_beside = layout.split == 'right'
  local width = is_beside and math.min(layout.width or columns, columns) or columns
  local height = is_beside and lines or math.min(layout.height or lines, lines)
  return {
    relative = 'editor',
    width = width,
    height = height,
    row = lines - height,
    col = columns - width,
    border = { '', '─', '', '', '', '', '', '' },
    zindex = ZINDEX,
  }
end

--- Open a window. Where there is no room for a split, it floats.
---@param buf integer
---@param enter boolean
---@param layout vim.api.keyset.win_config
---@return integer
M.open = function(buf, enter, layout)
  if enter then
    settle(buf)
  end
  return roomy(function()
    return open(buf, enter, layout)
  end, function()
    return open(buf, enter, float_of(layout))
  end)
end

--- Go to a window of the user.
---@param win integer
M.go = function(win)
  despite(function()
    return api.nvim_get_current_win() == win or nil
  end, api.nvim_set_current_win, win)
end

--- Enter a window of ours.
---@param win integer
M.enter = function(win)
  settle(api.nvim_win_get_buf(win))
  M.go(win)
end

--- Show a buffer in a window.
---@param win integer
---@param buf integer
M.put = function(win, buf)
  despite(function()
    return api.nvim_win_get_buf(win) == buf or nil
  end, api.nvim_win_set_buf, win, buf)
end

---@param buf integer
---@param how ''|'vertical'|'tab'
local function split(buf, how)
  local before = all()
  despite(function()
    return opened(before, buf, true)
  end, vim.cmd --[[@as function]], ('%s sbuffer %d'):format(how, buf))
end

--- Show a buffer of the user in a new window, or a new tab page if there is no room for one.
---@param buf integer
---@param how ''|'vertical'|'tab'
M.split = function(buf, how)
  roomy(function()
    split(buf, how)
  end, function()
    split(buf, 'tab')
  end)
end

--- Show our buffer in a new tab page.
---@param buf integer
M.tab = function(buf)
  settle(buf)
  M.split(buf, 'tab')
end

--- Close a window. Neovim 0.10 crashes if that leaves only floats in another tab page, so they go
--- first.
---@param win integer
local function shut(win)
  local tab = api.nvim_win_get_tabpage(win)
  if tab ~= api.nvim_get_current_tabpage() then
    local rest = vim.tbl_filter(function(other)
      return other ~= win
    end, api.nvim_tabpage_list_wins(tab))
    local is_last = vim.iter(rest):all(function(other)
      return api.nvim_win_get_config(other).relative ~= ''
    end)
    for _, float in ipairs(is_last and rest or {}) do
      api.nvim_win_close(float, true)
    end
  end
  api.nvim_win_close(win, true)
end

--- Whether Neovim keeps a window because the command-line window was opened from there.
---@param win integer
---@return boolean
M.is_kept = function(win)
  return vim.fn.getcmdwintype() ~= '' and win == vim.fn.win_getid(vim.fn.winnr('#'))
end

--- Call `act` soon, if another window is current then. The command-line window does not count:
--- Neovim returns from there.
---@param win integer
---@param act fun()
M.left = function(win, act)
  vim.schedule(function()
    moment.when('open', function()
      if api.nvim_get_current_win() ~= win then
        act()
      end
    end)
  end)
end

--- Close a window, if it is open. Neovim keeps the one from which the command-line window was
--- opened: that one closes later.
---@param win integer
M.close = function(win)
  if M.is_kept(win) then
    moment.when('open', function()
      M.close(win)
    end)
  elseif api.nvim_win_is_valid(win) then
    despite(function()
      return not api.nvim_win_is_valid(win) or nil
    end, shut, win)
  end
end

return M
