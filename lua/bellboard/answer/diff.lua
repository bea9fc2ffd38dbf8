-- A change of a file as a diff of two buffers, in a tab page of its own.
local canvas = require('bellboard.canvas')
local moment = require('bellboard.moment')
local readable = require('bellboard.readable')
local window = require('bellboard.window')

local M = {}

local api = vim.api

--- Columns that two windows side by side need.
local WIDE = 120
--- Bytes of a file to read; of a larger one, only what changes is shown.
local LARGEST = 2 * 1024 * 1024
--- What would hide a part of a change.
local HIDING = { 'icase', 'iblank', 'iwhite', 'iwhiteall', 'iwhiteeol' }

---@type { tab: integer, foot: integer, close: fun() }|nil
local shown
---@type { diffopt: string, diffexpr: string }|nil the user's, while ours are set
local theirs

--- Show each difference, or those that the user wants to see. The options are global.
---@param exactly boolean
local function compare(exactly)
  if exactly and not theirs then
    theirs = { diffopt = vim.o.diffopt, diffexpr = vim.o.diffexpr }
    vim.opt.diffopt:remove(HIDING)
    vim.o.diffexpr = ''
    vim.cmd.diffupdate()
  elseif theirs and not exactly then
    vim.o.diffopt, vim.o.diffexpr = theirs.diffopt, theirs.diffexpr
    theirs = nil
  end
end

--- The whole file before and after, if it has what is to be replaced exactly once.
---@param text string|nil
---@param part bellboard.Part
---@return string old
---@return string new
local function whole(text, part)
  local old, new = part.old or '', part.new or ''
  local first, last = (text or ''):find(old, 1, true)
  if text and old ~= '' and first and not text:find(old, last + 1, true) then
    return text, text:sub(1, first - 1) .. new .. text:sub(last + 1)
  end
  return old, new
end

---@param text string
---@param path string
---@param what string
---@return integer buf
local function buffer(text, path, what)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    lines[#lines] = nil
  end
  local buf = canvas.buffer(lines)
  pcall(canvas.name, buf, ('bellboard://%s/%s'):format(what, path))
  local ok, filetype = pcall(vim.filetype.match, { filename = path, buf = buf })
  vim.bo[buf].filetype = ok and filetype or ''
  return buf
end

--- Close it; whoever is there goes back to the tab page where it was opened.
M.close = function()
  local closed = shown
  shown = nil
  if closed then
    moment.when('open', closed.close)
  end
end

---@return boolean
M.is_open = function()
  return shown ~= nil and api.nvim_tabpage_is_valid(shown.tab)
end

--- Whether the user is in it.
---@return boolean
M.is_here = function()
  return M.is_open() and api.nvim_get_current_tabpage() == shown.tab
end

---@param part bellboard.Part
---@param old string
---@param new string
---@param foot integer
---@param attach fun(buf: integer)
local function open(part, old, new, foot, attach)
  local path, back = part.path or '', api.nvim_get_current_tabpage()
  local feet = vim.fn.win_findbuf(foot)
  local before, after = buffer(old, path, 'now'), buffer(new, path, 'then')
  window.tab(before)
  local tab, left = api.nvim_get_current_tabpage(), api.nvim_get_current_win()
  local beside = vim.o.columns >= WIDE and 'right' or 'below'
  local right = window.open(after, true, { split = beside, win = left })
  compare(true)
  for win, what in pairs({ [left] = 'now', [right] = 'then' }) do
    vim.wo[win].winbar = (' %s  %%#BellboardDim#%s'):format(what, path:gsub('%%', '%%%%'))
    api.nvim_win_call(win, function()
      vim.cmd.diffthis()
    end)
  end
  attach(before)
  attach(after)
  vim.cmd.normal({ 'gg]c', bang = true })
  local below = window.open(foot, false, { split = 'below', win = -1, height = 1 })
  window.bare(below, { winfixheight = true })
  local function copies() -- also those that `:split` or CTRL-W T has made
    return vim.iter({ before, after, foot }):map(vim.fn.win_findbuf):flatten():filter(function(win)
      return not vim.list_contains(feet, win)
    end)
  end
  shown = {
    tab = tab,
    foot = below,
    close = function()
      api.nvim_create_augroup('bellboard.request.diff', {})
      compare(false)
      local is_there = not api.nvim_tabpage_is_valid(tab)
        or api.nvim_get_current_tabpage() == tab
        or copies():find(api.nvim_get_current_win()) ~= nil
      if is_there and api.nvim_tabpage_is_valid(back) then
        api.nvim_set_current_win(api.nvim_tabpage_get_win(back))
      end
      if api.nvim_tabpage_is_valid(tab) then
        if #api.nvim_list_tabpages() == 1 then
          vim.cmd.tabnew() -- the last one cannot be closed
        end
        for _, win in ipairs(api.nvim_tabpage_list_wins(tab)) do -- their buffers go with them
          window.close(win)
        end
      end
      copies():each(window.close)
    end,
  }
  api.nvim_create_autocmd({ 'TabEnter', 'TabLeave' }, {
    group = api.nvim_create_augroup('bellboard.request.diff', {}),
    callback = function(event)
      compare(event.event == 'TabEnter' and api.nvim_get_current_tabpage() == tab)
    end,
  })
  local this = shown
  api.nvim_create_autocmd('WinClosed', {
    pattern = { tostring(left), tostring(right), tostring(below) },
    once = true,
    callback = vim.schedule_wrap(function()
      if shown == this then
        M.close()
      end
    end),
  })
end

--- Make room for all of what is below.
M.fit = function()
  if M.is_open() and api.nvim_win_is_valid(shown.foot) then
    local rows = api.nvim_buf_line_count(api.nvim_win_get_buf(shown.foot))
    api.nvim_win_set_height(shown.foot, rows)
  end
end

---@class bellboard.Around
---@field foot integer buffer to show below it
---@field attach fun(buf: integer) maps keys in both buffers
---@field wanted fun(): boolean whether that change is still asked about, and the user still there
---@field done fun()

--- Show a change.
---@param part bellboard.Part
---@param is_here boolean whether its file is on this machine
---@param around bellboard.Around
M.open = function(part, is_here, around)
  readable.read(is_here and part.path or '', function(stat)
    return stat.size <= LARGEST and 0 or nil
  end, function(text)
    if around.wanted() then
      M.close()
      local old, new = whole(text, part)
      open(part, old, new, around.foot, around.attach)
      around.done()
    end
  end)
end

return M
