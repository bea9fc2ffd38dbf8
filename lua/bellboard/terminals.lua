-- The buffers of this Neovim that show sessions: terminals, by their device, and chats.
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

---@type table<string, integer>|nil terminal device → buffer; nil: list them again
local terminals
---@type table<integer, string> terminal → its device, which is known only while its program runs
local devices = {}
---@type table<integer, string> buffer of a chat → its session
local chats = {}

--- The device of a terminal, while its program runs.
---@param buf integer
---@return string|nil
local function device(buf)
  local pty = api.nvim_get_chan_info(vim.bo[buf].channel).pty
  return pty ~= '' and pty or nil
end

---@return table<string, integer>
M.list = function()
  if not terminals then
    local living = {}
    terminals = {}
    for _, buf in ipairs(api.nvim_list_bufs()) do
      if vim.bo[buf].buftype == 'terminal' then
        local pty = device(buf)
        devices[buf] = pty or devices[buf]
        local found = pty and living or terminals
        found[devices[buf] or ''] = buf
      end
    end
    terminals = vim.tbl_extend('force', terminals, living) -- a device is used again
    terminals[''] = nil
  end
  return terminals
end

--- The terminal buffer with that device.
---@param tty string|nil
---@return integer|nil
M.buffer = function(tty)
  local buf = tty and M.list()[tty]
  return buf and api.nvim_buf_is_valid(buf) and buf or nil
end

--- Set the session of a chat; nil once the chat is closed.
---@param buf integer
---@param id string|nil
M.chat = function(buf, id)
  chats[buf] = id
end

--- The buffer here that shows a session.
---@param tty string|nil
---@param id string|nil
---@return integer|nil
M.of = function(tty, id)
  for buf, session in pairs(chats) do
    if session == id and api.nvim_buf_is_valid(buf) then
      return buf
    end
  end
  return M.buffer(tty)
end

--- Whether a terminal buffer still exists and its program runs.
---@param buf integer
---@return boolean
M.is_running = function(buf)
  return api.nvim_buf_is_valid(buf) and vim.fn.jobwait({ vim.bo[buf].channel }, 0)[1] == -1
end

--- The session in a terminal buffer.
---@param buf integer
---@return bellboard.Session|nil
M.session = function(buf)
  for tty, terminal in pairs(M.list()) do
    if terminal == buf then
      return sessions.of_tty(tty)
    end
  end
end

--- The session in the current window.
---@return bellboard.Session|nil
M.current = function()
  local buf = api.nvim_get_current_buf()
  if chats[buf] then
    return sessions.get(chats[buf])
  end
  return vim.bo[buf].buftype == 'terminal' and M.session(buf) or nil
end

--- The last rows of a terminal, without empty ones at the end.
---@param buf integer
---@param most integer
---@return string[]
M.rows = function(buf, most)
  local last = api.nvim_buf_line_count(buf) -- there may be 100,000
  while last > 0 and api.nvim_buf_get_lines(buf, last - 1, last, false)[1]:match('^%s*$') do
    last = last - 1
  end
  return api.nvim_buf_get_lines(buf, math.max(0, last - most), last, false)
end

--- Rows of a terminal in which a question is looked for: more than any dialog has.
local DEPTH = 60

--- The last rows of a terminal, for the background process, which types into it. A hard blank is
--- a blank, as in tmux.
---@param tty string
---@return string[]|nil
M.last_rows = function(tty)
  local buf = M.buffer(tty)
  local rows = buf and M.rows(buf, DEPTH)
  return rows and vim.tbl_map(function(row)
    return (row:gsub('\194\160', ' '))
  end, rows)
end

--- Type a key into a terminal that still shows these rows, one below the other.
---@param tty string
---@param rows string[]
---@param key string
---@return boolean typed
M.type = function(tty, rows, key)
  local lines = vim.tbl_map(function(row)
    return row:match('^(.*%S)') or ''
  end, M.last_rows(tty) or {})
  local text = '\n' .. table.concat(lines, '\n') .. '\n'
  if not text:find('\n' .. table.concat(rows, '\n') .. '\n', 1, true) then
    return false
  end
  api.nvim_chan_send(vim.bo[M.buffer(tty)].channel, key)
  return true
end

M.attach = function()
  api.nvim_create_autocmd({ 'TermOpen', 'TermClose', 'BufWipeout' }, {
    group = api.nvim_create_augroup('bellboard.terminals', {}),
    callback = function(event)
      terminals = nil
      if event.event == 'TermOpen' then
        devices[event.buf] = device(event.buf)
      elseif event.event == 'BufWipeout' then
        devices[event.buf] = nil
      end
    end,
  })
end

return M
