-- Files that agents change while a buffer here has changes of them that are not saved.
local cells = require('bellboard.text')
local moment = require('bellboard.moment')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

---@class bellboard.Unsaved
---@field session_id string who changes the file
---@field path string
---@field buf integer
---@field since number
---@field writes? boolean it is about to
---@field wrote? boolean it has, since the user did

---@type table<string, bellboard.Unsaved> by session and buffer
local found = {}
---@type table<string, number> when each file was last seen to have changed
local known = {}
--- Whether sessions were seen: what was changed before that is not news.
local is_on = false
---@type fun() shows them
local show

---@param buf integer
---@return boolean
local function is_changed(buf)
  return api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.bo[buf].modified
end

--- The buffers with unsaved changes of a file, and the names of these files.
---@return { buf: integer, name: string }[]
local function changed()
  local files = {}
  for _, buf in ipairs(vim.tbl_filter(is_changed, api.nvim_list_bufs())) do
    local name = api.nvim_buf_get_name(buf)
    if name ~= '' then
      files[#files + 1] = { buf = buf, name = name }
    end
  end
  return files
end

--- The buffer with unsaved changes of a file. The disk is asked only about such buffers.
---@param path string
---@return integer|nil
M.buffer = function(path)
  for _, file in ipairs(changed()) do
    if file.name == path or vim.uv.fs_realpath(file.name) == path then
      return file.buf
    end
  end
end

--- The files with unsaved changes, by all their names.
---@return string[]
M.paths = function()
  local names = {}
  for _, file in ipairs(changed()) do
    names[file.name] = true
    names[vim.uv.fs_realpath(file.name) or file.name] = true
  end
  local paths = vim.tbl_keys(names)
  table.sort(paths)
  return paths
end

--- Look at what sessions change, and have changed since the last look.
local function update()
  local now = {} ---@type table<string, bellboard.Unsaved>
  for key, change in pairs(found) do
    if change.wrote and is_changed(change.buf) then
      now[key] = vim.tbl_extend('force', change, { writes = false })
    end
  end
  ---@param session bellboard.Session
  ---@param path string
  ---@param since number
  ---@param how 'writes'|'wrote'
  local function add(session, path, since, how)
    local buf = M.buffer(path)
    if buf then
      local key = ('%s %d'):format(session.session_id, buf)
      now[key] = now[key] or { session_id = session.session_id, path = path, buf = buf }
      now[key][how], now[key].since = true, math.max(since, now[key].since or 0)
    end
  end
  for _, session in ipairs(sessions.all()) do
    for path, t in pairs(session.edited or {}) do
      if t > (known[path] or 0) then
        known[path] = t
        if is_on then
          add(session, path, t, 'wrote')
        end
      end
    end
    for _, path in ipairs(session.writes or {}) do
      add(session, path, session.tool_since or session.since, 'writes')
    end
  end
  is_on = is_on or sessions.health().version ~= nil
  local is_news = not vim.deep_equal(now, found)
  found = now
  if is_news then
    show()
  end
end

--- The files, the one changed last first.
---@return bellboard.Unsaved[]
M.list = function()
  local list = vim.tbl_values(found)
  table.sort(list, function(a, b)
    return a.since > b.since or a.since == b.since and a.buf < b.buf
  end)
  return list
end

--- A change in words, such as "api writes src/a.py, which you have changed".
---@param change bellboard.Unsaved
---@param width integer
---@return string
M.words = function(change, width)
  local session = sessions.last_known(change.session_id)
  local who = session and cells.cut(session.words.project, 24) or 'an agent'
  local text = who .. (change.writes and ' writes ' or ' wrote ') .. '%s, which you have changed'
  local room = width - cells.width(text) + 2
  local path = cells.safe(vim.fn.fnamemodify(change.path, ':~:.'))
  path = cells.width(path) <= room and path or vim.fs.basename(path)
  return (text:gsub('%%s', function()
    return cells.cut(path, math.max(room, 8))
  end))
end

--- Look when sessions change, and when a buffer does.
---@param shows fun()
M.attach = function(shows)
  show = shows
  sessions.on_change('unsaved', update)
  api.nvim_create_autocmd({ 'BufModifiedSet', 'BufUnload' }, {
    group = api.nvim_create_augroup('bellboard.unsaved', {}),
    callback = vim.schedule_wrap(function()
      moment.when('draw', update)
    end),
  })
end

return M
