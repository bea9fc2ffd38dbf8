local bellboard = require('bellboard')
local config = require('bellboard.config')

local M = {}

local api = vim.api

---@type table<string, integer>|nil terminal device → buffer; nil: look again
local terminals
---@type { win: integer, buf: integer }|nil where the first jump began
local origin
---@type string|nil session that was jumped to last
local last

---@param text string
local function say(text)
  vim.notify('bellboard: ' .. text, vim.log.levels.INFO)
end

--- Terminal buffers of this Neovim by their device.
---@return table<string, integer>
M.terminals = function()
  if not terminals then
    terminals = {}
    for _, buf in ipairs(api.nvim_list_bufs()) do
      if vim.bo[buf].buftype == 'terminal' then
        local info = api.nvim_get_chan_info(vim.bo[buf].channel)
        if info.pty and info.pty ~= '' then
          terminals[info.pty] = buf
        end
      end
    end
  end
  return terminals
end

--- The terminal buffer that a session runs in, if it is one of this Neovim's.
---@param session bellboard.Session
---@return integer|nil
M.buffer = function(session)
  local buf = session.tty and M.terminals()[session.tty]
  return buf and api.nvim_buf_is_valid(buf) and buf or nil
end

--- The session in the current window, if there is one.
---@return bellboard.Session|nil
M.current = function()
  local buf = api.nvim_get_current_buf()
  if vim.bo[buf].buftype ~= 'terminal' then
    return nil
  end
  for tty, terminal in pairs(M.terminals()) do
    if terminal == buf then
      return bellboard.session_of_tty(tty)
    end
  end
end

---@param buf integer
local function show(buf)
  local win = vim.fn.win_findbuf(buf)[1]
  if win then
    api.nvim_set_current_win(win)
  elseif vim.wo.winfixbuf then
    vim.cmd.sbuffer(buf)
  else
    api.nvim_win_set_buf(0, buf)
  end
  if config.get().jump.insert then
    vim.cmd.startinsert()
  end
end

---@param session bellboard.Session
---@return string
local function whereabouts(session)
  local known = {}
  for _, key in ipairs({ 'pid', 'tty', 'cwd' }) do
    if session[key] then
      known[#known + 1] = ('%s %s'):format(key, session[key])
    end
  end
  return #known > 0 and table.concat(known, ', ') or session.session_id
end

--- The client of this tmux server in whose pane we sit, the one used last if several show it.
---@param socket string
---@param found fun(client: string|nil)
local function client_of(socket, found)
  local pane = vim.env.TMUX_PANE
  local ours = vim.split(vim.env.TMUX or '', ',')[1]
  local list = { 'tmux', '-S', socket, 'list-clients', '-F', '#{client_activity} #{client_name}' }
  if pane and vim.uv.fs_realpath(ours) == vim.uv.fs_realpath(socket) then
    vim.list_extend(list, { '-t', pane })
  end
  vim.system(list, { text = true }, function(done)
    local clients = vim.split(done.stdout or '', '\n', { trimempty = true })
    table.sort(clients)
    local latest = clients[#clients]
    found(latest and latest:match('^%d+ (.+)$'))
  end)
end

---@param session bellboard.Session
---@return boolean
local function in_tmux(session)
  return (session.tmux or ''):sub(1, 1) == '/' and (session.pane or ''):match('^%%%d+$') ~= nil
end

--- What a session's tmux pane shows, if it answers at once.
---@param session bellboard.Session
---@return string[]|nil
M.capture = function(session)
  if not in_tmux(session) then
    return nil
  end
  local command = { 'tmux', '-S', session.tmux, 'capture-pane', '-p', '-t', session.pane }
  local ok, done = pcall(function()
    return vim.system(command, { text = true }):wait(200)
  end)
  if ok and done.code == 0 then
    return vim.split((done.stdout:gsub('%s+$', '')), '\n')
  end
end

---@param session bellboard.Session
local function to_pane(session)
  local socket, pane = session.tmux, session.pane
  client_of(socket, function(client)
    local command = { 'tmux', '-S', socket, 'select-window', '-t', pane }
    vim.list_extend(command, { ';', 'select-pane', '-Z', '-t', pane })
    if client then
      vim.list_extend(command, { ';', 'switch-client', '-Z', '-c', client, '-t', pane })
    end
    vim.system(command, { text = true }, function(done)
      vim.schedule(function()
        if done.code ~= 0 then
          local why = vim.trim(done.stderr or '')
          say(('tmux pane %s is not to be had (%s): %s'):format(pane, why, whereabouts(session)))
        elseif not client then
          say(('selected pane %s, but no terminal shows that tmux: %s'):format(pane, socket))
        end
      end)
    end)
  end)
end

---@param session bellboard.Session
---@return boolean
local function to_editor(session)
  local ok, channel = pcall(vim.fn.sockconnect, 'pipe', session.nvim, { rpc = true })
  if not ok or channel == 0 then
    return false
  end
  -- A notification: that Neovim may be waiting for a key, and we would wait with it.
  vim.rpcnotify(channel, 'nvim_exec_lua', 'require("bellboard").jump(...)', { session.session_id })
  vim.defer_fn(function()
    pcall(vim.fn.chanclose, channel)
  end, 1000)
  return true
end

--- Go to a session: its terminal buffer here, the Neovim or the tmux pane that it runs in.
---@param id string
M.to = function(id)
  local session = bellboard.session(id)
  if not session then
    say(('no session "%s"'):format(id))
    return
  end
  local buf = M.buffer(session)
  local elsewhere = session.nvim and session.nvim ~= vim.v.servername
  if not origin then
    origin = { win = api.nvim_get_current_win(), buf = api.nvim_get_current_buf() }
  end
  last = id
  bellboard.tell({ ['goto'] = { session_id = id } })
  if buf then
    show(buf)
  elseif elsewhere and to_editor(session) then
    if in_tmux(session) then
      to_pane(session)
    else
      say('showing it in the Neovim at ' .. session.nvim)
    end
  elseif in_tmux(session) then
    to_pane(session)
  else
    say('do not know how to get there: ' .. whereabouts(session))
  end
end

--- Whether a session waits for you, or has something that you have not seen.
---@param session bellboard.Session
---@return boolean
M.needs_you = function(session)
  local unseen = vim.tbl_contains(session.markers or {}, 'unseen')
  return session.status == 'blocked'
    or session.status == 'error'
    or session.status == 'completed'
    or unseen
end

--- Go `count` sessions on among those that need you, or those of a status, most urgent first,
--- round and round.
---@param count integer
---@param status? bellboard.Status
M.step = function(count, status)
  local needing = vim.tbl_filter(function(session)
    return status == session.status or (not status and M.needs_you(session))
  end, bellboard.sessions())
  if #needing == 0 then
    say(status and ('none is %s any more'):format(status) or 'nothing needs you')
    return
  end
  local here = M.current()
  local id = here and here.session_id or last
  local at = 0
  for place, session in ipairs(needing) do
    if session.session_id == id then
      at = place
    end
  end
  if at == 0 and count < 0 then
    at = 1
  end
  M.to(needing[(at + count - 1) % #needing + 1].session_id)
end

--- Go back to where the first jump began.
M.back = function()
  if not origin then
    say('nowhere to go back to')
    return
  end
  local from = origin
  origin, last = nil, nil
  vim.cmd.stopinsert()
  if api.nvim_win_is_valid(from.win) then
    api.nvim_set_current_win(from.win)
  end
  if api.nvim_buf_is_valid(from.buf) and not vim.wo.winfixbuf then
    api.nvim_win_set_buf(0, from.buf)
  end
end

--- Watch which terminals there are.
M.attach = function()
  local group = api.nvim_create_augroup('bellboard.jump', {})
  api.nvim_create_autocmd({ 'TermOpen', 'TermClose', 'BufWipeout' }, {
    group = group,
    callback = function()
      terminals = nil
    end,
  })
end

return M
