-- Asks a tmux server where a pane is and what it shows, and goes there. Always with a socket and a
-- target, because otherwise tmux uses whatever is active. Nothing here blocks.
-- `system/tmux.py` does the same in Python.
local gate = require('bellboard.jump.gate')
local moment = require('bellboard.moment')

local M = {}

local PATIENCE = 1000 -- ms; a response takes 5
local KILL = 9
local AGAIN = 10000 -- ms until a server is asked for its panes again

---@class bellboard.Pane in one session; a window may be in several
---@field id string
---@field tty string
---@field dead boolean
---@field session string its id
---@field window string its id
---@field target string readable name: `work:2.1`

---@class bellboard.From a pane that a jump started in
---@field tmux? string socket
---@field pane? string

---@class bellboard.Client a terminal attached to the server
---@field name string
---@field tty string
---@field session string
---@field pane string its active pane
---@field back string where the jumps that led there began, or ""
---@field focused boolean
---@field activity integer time of the last key

-- stylua: ignore
local PANES = 'p #{pane_id} #{pane_dead} #{session_id} #{window_id} #{pane_tty}|'
  .. '#{session_name}:#{window_index}.#{pane_index}'
local CLIENTS = 'c #{client_activity} #{client_control_mode} #{session_id} #{pane_id} '
  .. '#{client_flags} #{@bellboard-back} #{client_tty}|#{client_name}'

--- Run a tmux command; `done` gets its output, or nil and the reason, in the main loop.
---@param socket string
---@param command string[]
---@param done fun(text: string|nil, why: string)
M.ask = function(socket, command, done)
  gate.tmux(socket, command, function(argv, refused)
    if not argv then
      done(nil, refused)
      return
    end
    local timer = assert(vim.uv.new_timer())
    local function finish(text, why)
      if not timer:is_closing() then
        timer:close()
        vim.schedule(function()
          done(text, why)
        end)
      end
    end
    local started, process = pcall(vim.system, argv, { text = true }, function(result)
      local ok = result.code == 0 and result.signal == 0
      finish(ok and result.stdout or nil, vim.trim(result.stderr or ''))
    end)
    if not started then
      finish(nil, 'tmux is not installed')
      return
    end
    timer:start(PATIENCE, 0, function()
      -- Do not wait for its end: a stopped server keeps the pipes open.
      finish(nil, 'tmux does not respond')
      process:kill(KILL)
    end)
  end)
end

--- The pane that this Neovim is in. Of `socket,pid,session`, only the socket may have a comma.
---@return bellboard.From
M.here = function()
  return { tmux = (vim.env.TMUX or ''):match('^(.+),[^,]*,[^,]*$'), pane = vim.env.TMUX_PANE }
end

--- Whether a session has a valid pane.
---@param session bellboard.Session
---@return boolean
M.has_pane = function(session)
  return (session.tmux or ''):sub(1, 1) == '/' and (session.pane or ''):match('^%%%d+$') ~= nil
end

---@param text string
---@return bellboard.Pane[], bellboard.Client[]
local function parsed(text)
  local panes, clients = {}, {}
  for row in vim.gsplit(text, '\n', { trimempty = true }) do
    local fixed, free = row:match('^([^|]*)|(.*)$')
    local words = vim.split(fixed or '', ' ')
    if words[1] == 'p' and #words == 6 then
      panes[#panes + 1] = {
        id = words[2],
        dead = words[3] == '1',
        session = words[4],
        window = words[5],
        tty = words[6],
        target = free,
      }
    elseif words[1] == 'c' and #words == 8 and words[3] ~= '1' then
      clients[#clients + 1] = {
        activity = tonumber(words[2]) or 0,
        session = words[4],
        pane = words[5],
        focused = words[6]:find('focused', 1, true) ~= nil,
        back = words[7],
        tty = words[8],
        name = free,
      }
    end
  end
  return panes, clients
end

---@type table<string, table<string, string>> socket → pane → readable name
local targets = {}
---@type table<string, number> socket → when to ask again
local looked = {}

--- List all panes and clients of a server; nil and the reason on failure.
---@param socket string
---@param done fun(panes: bellboard.Pane[]|nil, clients: bellboard.Client[], why: string)
M.look = function(socket, done)
  local command = { 'list-panes', '-a', '-F', PANES, ';', 'list-clients', '-F', CLIENTS }
  M.ask(socket, command, function(text, why)
    if not text then
      done(nil, {}, why)
      return
    end
    local panes, clients = parsed(text)
    targets[socket] = {}
    for _, pane in ipairs(panes) do
      targets[socket][pane.id] = pane.target
    end
    done(panes, clients, '')
  end)
end

--- The readable name of a session's pane, as last seen.
---@param session bellboard.Session
---@return string|nil
M.place = function(session)
  return (targets[session.tmux or ''] or {})[session.pane]
end

--- Update the names of these sessions' panes; asks each server at most every 10 s.
---@param sessions bellboard.Session[]
---@param changed fun() called when a name has changed
---@param again? boolean known panes too
M.learn = function(sessions, changed, again)
  local now = vim.uv.now()
  for _, session in ipairs(sessions) do
    local socket, known = session.tmux, targets[session.tmux or '']
    local wanted = session.pane and (again or not known or not known[session.pane])
    if wanted and M.has_pane(session) and now >= (looked[socket] or 0) then
      looked[socket] = now + AGAIN
      M.look(socket, function()
        if not vim.deep_equal(known, targets[socket]) then
          moment.when('draw', changed)
        end
      end)
    end
  end
end

--- The session's own pane: the one with its terminal. If its terminal is unknown, the pane it
--- names, unless it runs inside a Neovim: then it only inherited that.
---@param panes bellboard.Pane[]
---@param session bellboard.Session
---@return bellboard.Pane|nil
M.own = function(panes, session)
  local inherited = nil
  for _, pane in ipairs(panes) do
    if session.tty and pane.tty == session.tty and not pane.dead then
      return pane
    elseif pane.id == session.pane then
      inherited = pane
    end
  end
  return not session.tty and not session.nvim and inherited or nil
end

---@param path string|nil
---@return string|nil
local function real(path)
  return path and vim.uv.fs_realpath(path)
end

--- The pane that this Neovim is in, if it belongs to that server.
---@param socket string
---@return string|nil
local function ours(socket)
  local own = M.here()
  return own.tmux and real(own.tmux) == real(socket) and own.pane or nil
end

--- The user's client: the one that shows this Neovim's pane, else the one used last.
---@param socket string
---@param clients bellboard.Client[]
---@return bellboard.Client|nil
local function asking(socket, clients)
  local pane, best, rank = ours(socket), nil, nil
  for _, client in ipairs(clients) do
    local merits = (client.pane == pane and 4e12 or 0) + (client.focused and 2e12 or 0)
    if not rank or merits + client.activity > rank then
      best, rank = client, merits + client.activity
    end
  end
  return best
end

--- Show a pane on the user's client, without leaving its session if that has the window too. A
--- zoomed window stays zoomed. An option of the pane keeps where the client came from.
---@param socket string
---@param pane bellboard.Pane
---@param panes bellboard.Pane[]
---@param clients bellboard.Client[]
---@param done fun(client: bellboard.Client|nil, why: string, detached: boolean)
M.show = function(socket, pane, panes, clients, done)
  local client, session = asking(socket, clients), pane.session
  for _, place in ipairs(panes) do
    if client and place.id == pane.id and place.session == client.session then
      session = client.session
    end
  end
  local window = ('%s:%s'):format(session, pane.window)
  local command = { 'select-window', '-t', window, ';', 'select-pane', '-Z', '-t', pane.id }
  if client and client.session ~= session then
    vim.list_extend(command, { ';', 'switch-client', '-c', client.name, '-t', session })
  end
  local back = client and (client.back ~= '' and client.back or client.pane) or pane.id
  if back ~= pane.id and client.pane ~= pane.id then
    vim.list_extend(command, { ';', 'set-option', '-p', '-t', pane.id, '@bellboard-back', back })
  end
  M.ask(socket, command, function(text, why)
    done(text and client or nil, why, text ~= nil and not client)
  end)
end

--- The lines that a pane shows, with the sequences of their colours; nil on failure.
---@param socket string
---@param pane string
---@param done fun(lines: string[]|nil)
M.capture = function(socket, pane, done)
  M.ask(socket, { 'capture-pane', '-ep', '-t', pane }, function(text)
    done(text and vim.split(text, '\n') or nil)
  end)
end

return M
