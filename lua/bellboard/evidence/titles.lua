-- Reports the titles of terminals of this Neovim, for sessions whose CLI says there what it does.
-- A title is read soon after its terminal was drawn. (A watcher of b:term_title crashes 0.10.)
local host = require('bellboard.host')
local terminals = require('bellboard.state.terminals')

local M = {}

local api = vim.api

local PAUSE = 150 -- ms between two looks: a spinner changes a title all the time
local LOOKS = 3 -- after the last change: a CLI may set the title later than it draws
local LONGEST = 300 -- characters; as many as the background process reads

---@type table<integer, string> watched buffer → the session reported for it
local heard = {}
---@type table<integer, string> buffer → its title as last reported
local told = {}
---@type table<integer, integer> buffer → how often to look at its title again
local looks = {}

--- The session in a terminal, if the title says what it does.
---@param buf integer
---@return bellboard.Session|nil
local function telling(buf)
  local session = terminals.session(buf)
  return session and session.title_tells and session or nil
end

---@param buf integer
local function report(buf)
  local session = api.nvim_buf_is_loaded(buf) and telling(buf)
  local title = session and vim.b[buf].term_title
  if session and type(title) == 'string' then
    title = vim.fn.strcharpart(title, 0, LONGEST)
    if told[buf] ~= title and host.notify('title', session.session_id, session.pid or 0, title) then
      told[buf] = title
    end
  end
end

---@param buf integer
local function look(buf)
  vim.defer_fn(function()
    report(buf)
    looks[buf] = looks[buf] and looks[buf] > 1 and looks[buf] - 1 or nil
    if looks[buf] then
      look(buf)
    end
  end, PAUSE)
end

---@param buf integer
local function forget(buf)
  heard[buf], told[buf], looks[buf] = nil, nil, nil
end

---@param buf integer
local function listen(buf)
  local is_heard = api.nvim_buf_attach(buf, false, {
    on_lines = function()
      if not telling(buf) then
        forget(buf)
        return true
      end
      local is_looking = looks[buf]
      looks[buf] = LOOKS
      if not is_looking then
        look(buf)
      end
    end,
    on_detach = function()
      forget(buf)
    end,
  })
  heard[buf] = is_heard and '' or nil
end

--- Watch the terminals whose titles say something.
---@param again? boolean report them even if unchanged
local function attend(again)
  for tty in pairs(terminals.list()) do
    local buf = terminals.buffer(tty)
    local session = buf and telling(buf)
    if buf and session then
      if not heard[buf] then
        listen(buf)
      end
      if again or heard[buf] ~= session.session_id then
        heard[buf], told[buf] = session.session_id, nil
        report(buf)
      end
    end
  end
end

--- Report all titles to a new background process.
M.renew = function()
  attend(true)
end

M.attach = function()
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('bellboard.titles', {}),
    pattern = 'BellboardUpdate',
    callback = function()
      attend()
    end,
  })
end

return M
