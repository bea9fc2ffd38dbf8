-- Reads files again that an agent has changed, in buffers without changes of the user's own.
local moment = require('bellboard.moment')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

---@type table<string, number> when each file was last seen to have changed
local known = {}
---@type table<string, true> files to read again once the user types no command
local pending = {}
local first = true

--- Whether a buffer can be read again without a loss or a question.
---@param buf integer
---@return boolean
local function is_safe(buf)
  local own = vim.bo[buf].autoread -- nil unless it is set for this buffer
  return api.nvim_buf_is_loaded(buf)
    and vim.bo[buf].buftype == ''
    and not vim.bo[buf].modified
    and (own or own == nil and vim.go.autoread)
end

local function read()
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(buf)
    -- The disk is asked last: Neovim waits for it, and there may be many buffers.
    if
      name ~= ''
      and is_safe(buf)
      and (pending[name] or pending[vim.uv.fs_realpath(name) or ''])
      and vim.uv.fs_stat(name)
    then
      vim.cmd(('silent! checktime %d'):format(buf))
    end
  end
  pending = {}
end

local function update()
  local news = false
  for _, session in ipairs(sessions.all()) do
    for path, t in pairs(session.edited or {}) do
      if t > (known[path] or 0) then
        known[path], news = t, true
        pending[path] = not first or nil
      end
    end
  end
  first = false -- earlier changes are read anyway
  if news and next(pending) then
    moment.when('read', read)
  end
end

M.attach = function()
  sessions.on_change('reload', update)
end

return M
