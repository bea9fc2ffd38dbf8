-- Goes to a session outside this Neovim: to its tmux pane, to the Neovim that it runs in, or to its
-- window of the terminal program.
local cells = require('bellboard.text')
local gate = require('bellboard.jump.gate')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local neighbour = require('bellboard.jump.neighbour')
local terminals = require('bellboard.terminals')
local tmux = require('bellboard.jump.tmux')

local M = {}

---@class bellboard.Moves how a jump moves
---@field show fun(buf: integer) shows a terminal of this Neovim
---@field landed fun(session: bellboard.Session)

--- Everything known about where a session runs.
---@param session bellboard.Session
---@return string
local function whereabouts(session)
  local known = {}
  for _, key in ipairs({ 'pid', 'tty', 'cwd', 'nvim', 'terminal_program', 'ssh' }) do
    if session[key] then
      known[#known + 1] = ('%s %s'):format(key:gsub('_', ' '), session[key])
    end
  end
  return #known > 0 and table.concat(known, ', ') or session.session_id
end

---@param session bellboard.Session
---@param why string
local function lost(session, why)
  message.info(('%s: %s'):format(why, whereabouts(session)))
end

--- No terminal shows that tmux session: offer to attach to it here.
---@param socket string
---@param pane bellboard.Pane
---@param done fun(why: string|nil)
local function attach(socket, pane, done)
  local name = cells.safe(pane.target:match('^(.*):') or pane.target)
  local opts = { prompt = ('No terminal shows the tmux session %s'):format(name) }
  vim.ui.select({ 'Attach in a terminal here', 'Cancel' }, opts, function(_, choice)
    if choice ~= 1 then
      return
    end
    gate.tmux(socket, { 'attach-session', '-t', pane.session }, function(argv, why)
      if argv then
        require('bellboard.jump.launch').terminal(argv, { TMUX = '' }) -- it may be nested
      end
      done(not argv and why or nil)
    end)
  end)
end

--- Make tmux show a pane. If the client runs in a terminal of this Neovim, show that as well.
---@param socket string
---@param pane bellboard.Pane
---@param panes bellboard.Pane[]
---@param clients bellboard.Client[]
---@param show fun(buf: integer)
---@param done fun(why: string|nil)
local function to_pane(socket, pane, panes, clients, show, done)
  tmux.show(socket, pane, panes, clients, function(client, why, detached)
    if detached then
      return attach(socket, pane, done)
    end
    local outer = client and terminals.buffer(client.tty)
    if outer then
      show(outer)
    end
    done(not client and why or nil)
  end)
end

--- Go to a tmux pane. If its client runs in a terminal of this Neovim, `show` gets that.
---@param place bellboard.From
---@param show fun(buf: integer)
---@param done fun(why: string|nil)
M.to_pane = function(place, show, done)
  tmux.look(place.tmux, function(panes, clients, why)
    for _, pane in ipairs(panes or {}) do
      if pane.id == place.pane then
        to_pane(place.tmux, pane, panes, clients, show, done)
        return
      end
    end
    done(panes and ('pane %s is gone'):format(place.pane) or why)
  end)
end

--- Run in another Neovim, which may have another version of this plugin.
local ARRIVE = "return require('bellboard')._arrive(...)"

---@param session bellboard.Session
---@param moves bellboard.Moves
local function to_neighbour(session, moves)
  local about = { session.tty or '', tmux.here(), session.session_id }
  neighbour.ask(session.nvim, ARRIVE, about, function(answer, why)
    if answer and not answer.shown then
      lost(session, 'its terminal in the other Neovim is gone')
      return
    end
    local problem = not answer and ('the other Neovim did not show it: %s'):format(why) or nil
    local place = answer or tmux.has_pane(session) and session or {} -- that Neovim's own pane
    local function over(missed)
      if problem or missed then
        lost(session, problem or missed)
      else
        moves.landed(session)
      end
    end
    if place.tmux and place.pane then
      M.to_pane({ tmux = place.tmux, pane = place.pane }, moves.show, over)
    else
      over()
      if answer then
        message.info('shown in the Neovim at ' .. session.nvim)
      end
    end
  end)
end

--- Show the window of the terminal program that a session runs in.
---@param session bellboard.Session
---@param moves bellboard.Moves
local function to_window(session, moves)
  host.ask('show', { session_id = session.session_id }, function(reply)
    if reply.ok then
      moves.landed(session)
    else
      lost(session, reply.why)
    end
  end)
end

--- Go to a session: to its own tmux pane, else to its Neovim or its window.
---@param session bellboard.Session
---@param moves bellboard.Moves
M.to = function(session, moves)
  local in_neighbour = session.nvim and session.nvim ~= vim.v.servername
  if not tmux.has_pane(session) then
    if in_neighbour then
      to_neighbour(session, moves)
    elseif session.kitty then
      to_window(session, moves)
    else
      lost(session, 'no known way to get there')
    end
    return
  end
  tmux.look(session.tmux, function(panes, clients, why)
    local pane = panes and tmux.own(panes, session)
    if pane then
      to_pane(session.tmux, pane, panes, clients, moves.show, function(missed)
        if missed then
          lost(session, missed)
        else
          moves.landed(session)
        end
      end)
    elseif in_neighbour then
      to_neighbour(session, moves)
    else
      lost(session, panes and ('its tmux pane %s is gone'):format(session.pane) or why)
    end
  end)
end

return M
