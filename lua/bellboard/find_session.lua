-- Finds the sessions of a command by their names.
local cells = require('bellboard.text')
local filter = require('bellboard.filter')
local host = require('bellboard.process.talk')
local message = require('bellboard.message')
local nearest = require('bellboard.nearest')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')

local M = {}

--- Least characters of an id in a message, and most sessions in it.
local SHORTEST, SOME = 4, 4

--- The names of a session besides its id. The program accepts the same in a shell: cli/home.py.
---@param session bellboard.Session
---@return string[]
local function names_of(session)
  local words = session.words
  local names = { session.name or words.title, session.title or '', words.project }
  return vim.list_extend(names, { words.repository, session.worktree or '' })
end

--- The ids of all sessions with this name, title, project, repository or worktree, or else start
--- of an id.
---@param called string
---@return string[] in order
local function matches(called)
  local named, alike = {}, {}
  for _, session in ipairs(sessions.list()) do
    local id = session.session_id
    if vim.list_contains(names_of(session), called) then
      named[#named + 1] = id
    elseif vim.startswith(id, called) then
      alike[#alike + 1] = id
    end
  end
  local found = #named > 0 and named or alike
  table.sort(found)
  return found
end

--- The shortest start of an id that no other session matches.
---@param id string
---@return string
local function start_of(id)
  for length = SHORTEST, #id - 1 do
    local start = id:sub(1, length)
    if not tonumber(start) and #matches(start) == 1 then -- `snooze` would read minutes
      return start
    end
  end
  return id
end

--- The message that several sessions match: their ids, with as much of their titles as fits.
---@param called string
---@param found string[]
---@return string
local function ambiguous(called, found)
  local text
  for _, room in ipairs({ 24, 16, 8, 0 }) do
    local some = {}
    for nth = 1, math.min(#found, SOME) do
      local title = cells.cut(sessions.get(found[nth]).words.title, room)
      some[nth] = start_of(found[nth]) .. (title ~= '' and (' (%s)'):format(title) or '')
    end
    some[#some + 1] = #found > SOME and '…' or nil
    text = '%d sessions match "%s": %s; give one of these ids'
    text = text:format(#found, called, table.concat(some, ', '))
    if message.fits(text) then
      break
    end
  end
  return text
end

--- The one session with this id, name, title, project, repository or worktree, or start of an id.
---@param called string
---@param makes_sense? fun(session: bellboard.Session): boolean if there are several: the one that
---  is meant then
---@param on_several? fun() called if there are still several, in place of a message
---@return bellboard.Session|nil nil after a message
---@return string|nil why not, as the message says
M.one = function(called, makes_sense, on_several)
  local exact = sessions.get(called)
  if exact then
    return exact
  end
  local function refuse(why)
    message.info(why)
    return nil, why
  end
  if called == '' then
    return refuse('which session? <Tab> completes names, projects and ids')
  end
  local found = matches(called)
  if #found > 1 and makes_sense then
    local fitting = vim.tbl_filter(function(id)
      return makes_sense(sessions.get(id))
    end, found)
    found = #fitting > 0 and fitting or found
  end
  if #found > 1 and on_several then
    return on_several()
  elseif #found > 1 then
    return refuse(ambiguous(called, found))
  elseif #found == 0 then
    local known = vim.iter(sessions.list()):map(names_of):flatten():totable()
    local step = nearest.meant(called, known, ':ClaudeSessions lists all')
    return refuse(host.instead(('no session "%s"; %s'):format(called, step)))
  end
  return sessions.get(found[1])
end

--- Act on what was chosen once the picker has closed.
---@param act fun(id: string)
---@return fun(session: bellboard.Session|nil)
local function later(act)
  return function(session)
    if session then
      vim.schedule(function()
        act(session.session_id)
      end)
    end
  end
end

--- Act on the session of a name for which the action makes sense; of several, on the one that the
--- user picks, with the name typed into the picker.
---@param called string
---@param makes_sense (fun(session: bellboard.Session): boolean)|nil
---@param act fun(id: string)
M.choose = function(called, makes_sense, act)
  local session = M.one(called, makes_sense, function()
    require('bellboard.picker').open({ query = called, run = later(act) })
  end)
  if session then
    act(session.session_id)
  end
end

--- Filters of the board: the sessions that take the next prompt at once, those that can be
--- interrupted.
M.REST, M.WORK = '!status:working !status:blocked', 'status:working'

--- Whether a session matches a filter.
---@param wanted string
---@return fun(session: bellboard.Session): boolean
M.that = function(wanted)
  local terms = filter.parse(wanted)
  return function(session)
    return filter.matches(session, terms)
  end
end

--- The session that the user is at: in this window, or under the cursor of the board.
---@return bellboard.Session|nil
local function here()
  local board = require('bellboard.board.view')
  local is_board = vim.api.nvim_get_current_buf() == board.buffer()
  return is_board and board.under_cursor() or terminals.current()
end

--- Act on the session of that name, else on the one here, else on the only one of which it makes
--- sense, or on the choice of the user.
---@param called string empty: not said
---@param wanted string|nil a filter: of which it makes sense
---@param act fun(id: string)
M.pick = function(called, wanted, act)
  local fits = M.that(wanted or '')
  if called ~= '' then
    return M.choose(called, fits, act)
  end
  local one = here()
  local fitting = one and { one } or vim.tbl_filter(fits, sessions.list())
  if #fitting == 1 then
    act(fitting[1].session_id)
  else
    require('bellboard.picker').open({ filter = wanted, run = later(act) })
  end
end

---@param session bellboard.Session
---@return boolean
M.needs_you = function(session)
  return session.needs_you == true
end

---@param session bellboard.Session
---@return boolean
M.asks = function(session)
  return session.status == 'blocked'
end

--- Act on the named session, of several on the one that the user picks; else on the one in this
--- window, else on those in the float, else on those that are already `done`, to undo it.
---@param called string empty: not said
---@param act fun(session: bellboard.Session)
---@param done? fun(session: bellboard.Session): boolean
M.each = function(called, act, done)
  if called ~= '' then
    return M.choose(called, nil, function(id)
      local session = sessions.get(id)
      if session then
        act(session)
      end
    end)
  end
  local one = here()
  local meant = one and { one } or sessions.calling()
  if #meant == 0 and done then
    meant = vim.tbl_filter(done, sessions.list())
  end
  if #meant == 0 then
    message.info(host.instead('no session in this window or in the float; name one'))
  end
  vim.iter(meant):each(act)
end

--- The names of sessions for completion: their ids, and names that only one has.
---@return string[]
M.names = function()
  local ids, count, names = {}, {}, {}
  for _, session in ipairs(sessions.list()) do
    ids[#ids + 1], count[session.session_id] = session.session_id, math.huge
    local seen = { [''] = true }
    for _, name in ipairs(names_of(session)) do
      count[name] = (count[name] or 0) + (seen[name] and 0 or 1)
      seen[name] = true
    end
  end
  for name, of in pairs(count) do
    names[#names + 1] = of == 1 and name or nil
  end
  table.sort(names)
  return vim.list_extend(names, ids)
end

return M
