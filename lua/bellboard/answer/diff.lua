-- A change of a file in a tab page of its own: as a diff of two buffers, in Neovim's own diff mode,
-- or as the text of a diff.
local canvas = require('bellboard.canvas')
local unsaved = require('bellboard.unsaved')
local window = require('bellboard.window')

local M = {}

local api = vim.api

--- Columns that two windows side by side need.
local WIDE = 120
--- Bytes of a file to read; of a larger one, only the change is shown.
local LARGEST = 2 * 1024 * 1024
--- In each window, a red line is a deleted line; where the other window has lines, there is a gap.
local NOW = 'DiffAdd:DiffDelete,DiffDelete:NonText'
local THEN = 'DiffDelete:NonText'

--- The whole file before and after, if it has the old text of the change exactly once. What is no
--- change replaces the file; without a text, it has done so.
---@param text string|nil
---@param part bellboard.Part
---@return string old
---@return string new
---@return boolean is_whole
local function whole(text, part)
  local old, new = part.old or '', part.new or ''
  if text and part.kind ~= 'diff' then
    return text, part.text or text, true
  end
  local first, last = (text or ''):find(old, 1, true)
  if text and old ~= '' and first and not text:find(old, last + 1, true) then
    return text, text:sub(1, first - 1) .. new .. text:sub(last + 1), true
  end
  return old, new, false
end

--- Read a file that may be anything, on a file system that may hang, without waiting for it.
---@param path string
---@param done fun(text: string|nil) nil unless it is a regular file that is not too large
local function read(path, done)
  done = vim.schedule_wrap(done)
  -- Without O_NONBLOCK, a FIFO would keep a thread of Neovim waiting, and Neovim from exiting.
  local flags = vim.uv.constants.O_RDONLY + vim.uv.constants.O_NONBLOCK
  vim.uv.fs_open(path, flags, 0, function(_, file)
    if not file then
      return done(nil)
    end
    vim.uv.fs_fstat(file, function(_, stat)
      if not (stat and stat.type == 'file' and stat.size <= LARGEST) then
        vim.uv.fs_close(file, function() end)
        return done(nil)
      end
      vim.uv.fs_read(file, stat.size, 0, function(_, text)
        vim.uv.fs_close(file, function() end)
        done(text)
      end)
    end)
  end)
end

---@param text string
---@param path string
---@param what string
---@param filetype? string
---@return integer buf
local function buffer(text, path, what, filetype)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    lines[#lines] = nil
  end
  local buf = canvas.buffer(lines)
  canvas.name(buf, ('bellboard://%s/%s'):format(what, path))
  local ok, found = pcall(vim.filetype.match, { filename = path, buf = buf })
  vim.bo[buf].filetype = filetype or ok and found or ''
  return buf
end

--- Show the text of a diff.
---@param text string
---@param path string of the file
M.show = function(text, path)
  local buf = buffer(text, path, 'diff', 'diff')
  vim.keymap.set('n', 'q', '<Cmd>tabclose<CR>', { buffer = buf, nowait = true, desc = 'close' })
  window.tab(buf)
end

--- Keep Neovim from asking whether to read a buffer again when it is entered (W12); `:write` asks.
---@param buf integer
---@return integer autocommand
local function leave_alone(buf)
  return api.nvim_create_autocmd('FileChangedShell', {
    buffer = buf,
    callback = function()
      api.nvim_set_vvar('fcs_choice', '')
    end,
  })
end

--- Show a change: what the file will be beside what it is, or beside its buffer if that has unsaved
--- changes, which can then be merged.
---@param part bellboard.Part
---@param is_here boolean whether its file is on this machine
---@param is_wanted fun(): boolean whether the request is open, and the user still there
M.open = function(part, is_here, is_wanted)
  local path = part.path or ''
  read(is_here and path or '', function(text)
    if not is_wanted() then
      return
    end
    local old, new, is_whole = whole(text, part)
    local own = is_here and is_whole and unsaved.buffer(path)
    local before, after = own or buffer(old, path, 'now'), buffer(new, path, 'then')
    local asks = own and leave_alone(own)
    window.tab(before)
    local left = api.nvim_get_current_win()
    local beside = vim.o.columns >= WIDE and 'right' or 'below'
    local right = window.open(after, true, { split = beside, win = left })
    for win, groups in pairs({ [left] = NOW, [right] = THEN }) do
      vim.wo[win].winhighlight = groups
      api.nvim_win_set_var(win, 'bellboard_diff', true)
      api.nvim_win_call(win, vim.cmd.diffthis)
    end
    vim.cmd.normal({ 'gg]c', bang = true })
    if asks then
      api.nvim_del_autocmd(asks)
    end
  end)
end

return M
