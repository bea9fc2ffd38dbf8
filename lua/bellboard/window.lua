-- Windows: opened, closed, and the way back to where the user was. A call into Neovim that fails,
-- fails once, with its reason.
local moment = require('bellboard.moment')

local M = {}

local api = vim.api

--- Of a float in place of a split: below the pickers of other plugins, which have 50 by
--- default.
local ZINDEX = 45

--- Windows of ours, and the way back from each.
---@type table<integer, fun(resumes?: boolean)>
local ways_back = {}

--- Whether there is such a window, and it does not float.
---@param win integer
---@return boolean
M.is_normal = function(win)
  return win ~= 0 and api.nvim_win_is_valid(win) and api.nvim_win_get_config(win).relative == ''
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

--- End Visual and Select mode, which would go on in the next window.
M.leave_visual = function()
  if api.nvim_get_mode().mode:find('^[vVsS\22\19]') then
    vim.cmd.normal({ '\27', bang = true })
  end
end

--- Close the float of ours that the user is in, such as the board: it would cover the next window.
M.leave_float = function()
  local win = api.nvim_get_current_win()
  if not M.is_normal(win) and vim.b.bellboard_view then
    M.close(win)
  end
end

--- End the modes in which a window that is entered would not take its keys. CTRL-O suspends them.
---@param buf integer
local function settle(buf)
  M.leave_visual()
  if not vim.bo[buf].modifiable and api.nvim_get_mode().mode:find('^n?[iRt]') then
    vim.cmd.stopinsert()
  end
end

--- Remember where the user is: the window, and to resume there, the mode, the cursor, and with
--- `sizes` those of all windows.
---@param sizes? boolean
---@return fun(resumes?: boolean) back
M.origin = function(sizes)
  local win, buf, mode = api.nvim_get_current_win(), api.nvim_get_current_buf(), api.nvim_get_mode()
  local cursor, resize = api.nvim_win_get_cursor(0), sizes and vim.fn.winrestcmd() or nil
  return function(resumes)
    if resumes and resize then
      vim.cmd('silent! ' .. resize)
    end
    if not api.nvim_win_is_valid(win) or resumes and api.nvim_win_get_buf(win) ~= buf then
      return
    end
    api.nvim_set_current_win(win)
    local start = mode.mode:find('^i') and 'startinsert'
      or mode.mode:find('^Rv') and 'startgreplace'
      or mode.mode:find('^R') and 'startreplace'
    if resumes and start then
      vim.cmd[start]({ bang = cursor[2] >= #api.nvim_get_current_line() })
      pcall(api.nvim_win_set_cursor, win, cursor) -- the line may be gone
    elseif resumes and mode.mode:find('^t') then
      vim.cmd.startinsert()
    end
  end
end

--- Call `instead` if there is no room for another window, as on a small screen or with a large
--- 'winminheight'.
---@generic T
---@param act fun(): T
---@param instead fun(): T
---@return T
local function or_if_no_room(act, instead)
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
  local back = enter and M.origin() or nil
  if enter then
    settle(buf)
  end
  local win = or_if_no_room(function()
    return api.nvim_open_win(buf, enter, layout)
  end, function()
    return api.nvim_open_win(buf, enter, float_of(layout))
  end)
  ways_back[win] = back
  return win
end

--- Enter a window of ours.
---@param win integer
M.enter = function(win)
  if api.nvim_get_current_win() ~= win then
    ways_back[win] = M.origin()
  end
  settle(api.nvim_win_get_buf(win))
  api.nvim_set_current_win(win)
end

--- Show a buffer of the user in a new window, or a new tab page if there is no room for one.
---@param buf integer
---@param how ''|'vertical'|'tab'
M.split = function(buf, how)
  or_if_no_room(function()
    vim.cmd(('%s sbuffer %d'):format(how, buf))
  end, function()
    vim.cmd(('tab sbuffer %d'):format(buf))
  end)
end

--- Show our buffer in a new tab page. Who closes that goes back to where it was opened from;
--- Neovim would go to the tab page on the right.
---@param buf integer
M.tab = function(buf)
  local back = M.origin()
  settle(buf)
  M.split(buf, 'tab')
  ways_back[api.nvim_get_current_win()] = back
  local tab = api.nvim_get_current_tabpage()
  api.nvim_create_autocmd('TabLeave', {
    callback = function()
      local is_valid = api.nvim_tabpage_is_valid(tab)
      if is_valid and api.nvim_get_current_tabpage() == tab then
        vim.schedule(function()
          if not api.nvim_tabpage_is_valid(tab) then
            back()
          end
        end)
      end
      return not is_valid
    end,
  })
end

--- Go back to where a window of ours was opened or entered from, if that is still there.
---@param win integer
M.go_back = function(win)
  if ways_back[win] then
    ways_back[win]()
  end
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

--- Neovim 0.10 crashes if a tab page elsewhere is left with floats only.
---@param win integer
local function close_last_floats(win)
  local tab = api.nvim_win_get_tabpage(win)
  local rest = vim.tbl_filter(function(other)
    return other ~= win
  end, tab ~= api.nvim_get_current_tabpage() and api.nvim_tabpage_list_wins(tab) or {})
  if not vim.iter(rest):any(M.is_normal) then
    for _, float in ipairs(rest) do
      api.nvim_win_close(float, true)
    end
  end
end

--- Close a window, if it is open. A user who is there goes back to where it was opened from. The
--- last window shows another buffer instead.
---@param win integer
M.close = function(win)
  if not api.nvim_win_is_valid(win) then
    ways_back[win] = nil
    return
  elseif vim.fn.getcmdwintype() ~= '' and win == vim.fn.win_getid(vim.fn.winnr('#')) then
    -- Neovim keeps the window that the command-line window was opened from.
    return moment.when('open', function()
      M.close(win)
    end)
  end
  if win == api.nvim_get_current_win() then
    M.go_back(win) -- else Neovim would go to the nearest one
  end
  ways_back[win] = nil
  close_last_floats(win)
  local ok, why = pcall(api.nvim_win_close, win, true)
  if ok then
    return
  elseif not (why:find('E444:', 1, true) or why:find('E5601:', 1, true)) then
    error(why, 0)
  end
  vim.wo[win].winfixbuf = false
  local other = vim.fn.bufnr('#')
  local is_other = other > 0 and other ~= api.nvim_win_get_buf(win) and vim.bo[other].buflisted
  api.nvim_win_set_buf(win, is_other and other or api.nvim_create_buf(true, false))
end

--- Make a window show text and nothing else. When it shows another buffer, as after `:bdelete` in
--- the last window, 'winfixbuf' would stay, as the only one of these options.
---@param win integer
---@param also? table<string, any> more options
M.bare = function(win, also)
  for name, value in
    pairs(vim.tbl_extend('force', {
      wrap = false,
      conceallevel = 0,
      number = false,
      relativenumber = false,
      signcolumn = 'no',
      statuscolumn = '',
      colorcolumn = '',
      foldcolumn = '0',
      foldenable = false,
      list = false,
      spell = false,
      cursorline = false,
      cursorcolumn = false,
      fillchars = 'eob: ',
      rightleft = false,
      winfixbuf = true,
    }, also or {}))
  do
    api.nvim_set_option_value(name, value, { scope = 'local', win = win })
  end
  local buf = api.nvim_win_get_buf(win)
  api.nvim_create_autocmd('BufWinLeave', {
    buffer = buf,
    once = true,
    callback = function()
      local wins = vim.fn.win_findbuf(buf)
      vim.schedule(function()
        for _, each in ipairs(wins) do
          if api.nvim_win_is_valid(each) and api.nvim_win_get_buf(each) ~= buf then
            vim.wo[each].winfixbuf = false
          end
        end
      end)
    end,
  })
end

return M
