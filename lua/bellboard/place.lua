-- Where a session runs, in a word.
local host = require('bellboard.process.talk')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')

local M = {}

local AGAIN = 10000 -- ms until names are asked for again

---@type table<string, string> pane → its readable name, such as `work:2.1`
local names = {}
---@type number|nil when to ask again
local later

---@param session bellboard.Session
---@return string|nil
local function pane_of(session)
  return session.pane and session.tmux and session.tmux .. ' ' .. session.pane
end

--- `terminal` or `chat` if it runs in this Neovim, else the name of its tmux pane, if known.
---@param session bellboard.Session
---@return string
M.of = function(session)
  if terminals.buffer(session.tty) then
    return 'terminal'
  elseif terminals.of(nil, session.session_id) then
    return 'chat'
  end
  local name = names[pane_of(session)]
  return name and session.words.server .. name or session.words.place
end

--- Ask for the names of panes; at most every 10 s.
---@param all bellboard.Session[]
---@param again? boolean known ones too
M.learn = function(all, again)
  local asked = {}
  for _, session in ipairs(all) do
    local pane = pane_of(session)
    if pane and (again or not names[pane]) then
      asked[#asked + 1] = session.session_id
    end
  end
  if #asked == 0 or later and vim.uv.now() < later then
    return
  end
  later = vim.uv.now() + AGAIN
  host.ask('names', { sessions = asked }, function(reply)
    local is_new = false
    for id, name in pairs(reply.names or {}) do
      local session = sessions.get(id)
      local pane = session and pane_of(session)
      if pane then
        is_new = is_new or names[pane] ~= name
        names[pane] = name
      end
    end
    if is_new then
      sessions.changed()
    end
  end)
end

--- Look up the names of new panes.
M.attach = function()
  sessions.on_change('place', function()
    M.learn(sessions.list())
  end)
end

return M
