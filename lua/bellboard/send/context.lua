-- What the user has in front of them, as text for an agent: a file and line, the selection, what is
-- wrong there, what has changed. Each has a name, which stands for it in a text: `{diagnostics}`.
local config = require('bellboard.config')

local M = {}

local api = vim.api

--- Lines of one list, and milliseconds for git.
local MOST, PATIENCE = 200, 5000

---@class bellboard.Here where the user was
---@field buf? integer the buffer of text, if there was one
---@field row? integer
---@field rows? [integer, integer] the first and the last one that were selected
---@field selected? string[] the text that was selected
---@field session? bellboard.Session to whom it goes

---@alias bellboard.Got fun(text: string|nil, why: string|nil)
---@alias bellboard.Provider fun(here: bellboard.Here, done: bellboard.Got)

--- The window of text that the user is in, or came from to a terminal or a window of ours.
---@return integer|nil
local function window_of_text()
  local wins = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr('#')) }
  return vim.iter(vim.list_extend(wins, api.nvim_tabpage_list_wins(0))):find(function(win)
    local buf = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win)
    return buf and vim.bo[buf].buftype == '' and not vim.b[buf].bellboard_view
  end)
end

--- The text of a selection: the one that is being made, or that has been made in these rows, else
--- the rows.
---@param buf integer
---@param rows? [integer, integer] of a command
---@return string[]|nil text
---@return [integer, integer]|nil rows
local function selection(buf, rows)
  local mode = vim.fn.mode()
  local is_made = mode:find('^[vV\22]') ~= nil
  local from, to = vim.fn.getpos(is_made and 'v' or "'<"), vim.fn.getpos(is_made and '.' or "'>")
  local first, last = math.min(from[2], to[2]), math.max(from[2], to[2])
  local kind = is_made and mode or vim.fn.visualmode()
  if is_made or rows and rows[1] == first and rows[2] == last and kind ~= '' then
    return vim.fn.getregion(from, to, { type = kind }), { first, last }
  elseif rows then
    return api.nvim_buf_get_lines(buf, rows[1] - 1, rows[2], false), rows
  end
end

--- Where the user is now.
---@param rows? [integer, integer] that the user has named
---@return bellboard.Here
M.here = function(rows)
  local win, here = window_of_text(), {} ---@type integer|nil, bellboard.Here
  if not win then
    return here
  end
  here.buf, here.row = api.nvim_win_get_buf(win), api.nvim_win_get_cursor(win)[1]
  if win == api.nvim_get_current_win() then
    here.selected, here.rows = selection(here.buf, rows)
  end
  return here
end

--- The path of a buffer, as the agent names it: relative to its folder, or on another machine to
--- the repository.
---@param here bellboard.Here
---@param buf integer|nil
---@return string|nil
local function path_of(here, buf)
  local path = buf and api.nvim_buf_is_valid(buf) and api.nvim_buf_get_name(buf) or ''
  local session = here.session or {}
  local folder = not session.machine and session.cwd or path ~= '' and vim.fs.root(path, '.git')
  local root = folder and folder:gsub('/$', '') .. '/'
  return root and vim.startswith(path, root) and path:sub(#root + 1) or path ~= '' and path or nil
end

--- A text between fences.
---@param text string
---@param language string
---@return string
local function fenced(text, language)
  local fence = '```'
  while text:find(fence, 1, true) do
    fence = fence .. '`'
  end
  return ('%s%s\n%s\n%s\n'):format(fence, language, text, fence)
end

--- The lines of a list, as many as are read.
---@param lines string[]
---@return string
local function listed(lines)
  local some = vim.list_slice(lines, 1, MOST)
  some[#some + 1] = #lines > MOST and ('… and %d more'):format(#lines - MOST) or nil
  return table.concat(some, '\n') .. '\n'
end

local NO_FILE = 'no file in front'
local compare = vim.text and vim.text.diff or vim.diff

---@type table<string, bellboard.Provider>
local provide = {
  file = function(here, done)
    done(path_of(here, here.buf), NO_FILE)
  end,
  line = function(here, done)
    done(here.row and tostring(here.row), NO_FILE)
  end,
  place = function(here, done)
    local path = path_of(here, here.buf)
    done(path and ('%s:%d'):format(path, here.row), NO_FILE)
  end,
  selection = function(here, done)
    if not here.selected then
      return done(nil, 'nothing was selected')
    end
    local path, rows = path_of(here, here.buf), here.rows or {}
    local lines = rows[1] == rows[2] and '%s:%d\n' or '%s:%d-%d\n'
    local text = fenced(table.concat(here.selected, '\n'), vim.bo[here.buf].filetype)
    done((path and lines:format(path, rows[1], rows[2]) or '') .. text)
  end,
  diagnostics = function(here, done)
    local path = path_of(here, here.buf) or ''
    local lines = vim.tbl_map(function(each)
      local severity = vim.diagnostic.severity[each.severity]:lower()
      local source = each.source and (' [%s]'):format(each.source) or ''
      local text = ('%s:%d:%d: %s: %s%s'):format(
        path,
        each.lnum + 1,
        each.col + 1,
        severity,
        each.message,
        source
      )
      return (text:gsub('%s*\n%s*', ' '))
    end, here.buf and vim.diagnostic.get(here.buf) or {})
    done(#lines > 0 and listed(lines) or nil, 'no diagnostics in that buffer')
  end,
  quickfix = function(here, done)
    local lines = vim.tbl_map(function(item)
      local path = item.valid == 1 and path_of(here, item.bufnr)
      return path and ('%s:%d:%d: %s'):format(path, item.lnum, item.col, vim.trim(item.text))
        or item.text
    end, vim.fn.getqflist())
    done(#lines > 0 and listed(lines) or nil, 'the quickfix list is empty')
  end,
  diff = function(here, done)
    local path = here.buf and api.nvim_buf_get_name(here.buf) or ''
    if path == '' then
      return done(nil, NO_FILE)
    end
    local function heard(result)
      if result.code ~= 0 then
        return done(nil, 'git: ' .. vim.trim(result.stderr or ''):match('^[^\n]*'))
      elseif not api.nvim_buf_is_loaded(here.buf) then
        return done(nil, NO_FILE)
      end
      local now = table.concat(api.nvim_buf_get_lines(here.buf, 0, -1, false), '\n') .. '\n'
      local text = compare(result.stdout:gsub('\r\n', '\n'), now, { ctxlen = 3 })
      local name = path_of(here, here.buf)
      text = text ~= '' and ('--- a/%s\n+++ b/%s\n%s'):format(name, name, vim.trim(text)) or nil
      done(text and fenced(text, 'diff'), 'no change of that file since the last commit')
    end
    -- It reads what was committed, and no file: that would run filters of the repository.
    local what = { 'cat-file', 'blob', 'HEAD:./' .. vim.fs.basename(path) }
    local command = vim.list_extend({ 'git', '-C', vim.fs.dirname(path) }, what)
    local options = { timeout = PATIENCE, env = { GIT_NO_LAZY_FETCH = '1', LC_ALL = 'C' } }
    if not pcall(vim.system, command, options, vim.schedule_wrap(heard)) then
      done(nil, 'git cannot be run')
    end
  end,
}

---@class bellboard.ContextItem what can be added
---@field [1] string its name
---@field [2] string what it is, in words

---@type bellboard.ContextItem[]
local items = {
  { 'place', 'file and line' },
  { 'selection', 'selection' },
  { 'diagnostics', 'diagnostics' },
  { 'quickfix', 'quickfix list' },
  { 'diff', 'diff since the last commit' },
}

--- What can be added: of ours, then of the user's.
---@return bellboard.ContextItem[]
M.items = function()
  local all = { unpack(items) }
  for name in vim.spairs(config.get().send.context) do
    all[#all + 1] = { name, name }
  end
  return all
end

--- Whether a name stands for something.
---@param name string
---@return boolean
M.is_known = function(name)
  return (config.get().send.context[name] or provide[name]) ~= nil
end

--- Get the text that a name stands for, now or soon.
---@param name string
---@param here bellboard.Here
---@param done bellboard.Got
M.get = function(name, here, done)
  local own = config.get().send.context[name]
  if not own then
    return provide[name](here, done)
  end
  local ok, text = pcall(own, here)
  if ok and (text == nil or type(text) == 'string') then
    done(text, ('"%s" has nothing to add'):format(name))
  else
    local why = ok and 'it returned no string' or tostring(text)
    done(nil, ('send.context.%s failed: %s'):format(name, why))
  end
end

return M
