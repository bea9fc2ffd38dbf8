-- A session in a picker: its row, the text of a search, and the keys.
local age = require('bellboard.age')
local board = require('bellboard.board')
local board_keys = require('bellboard.board.keys')
local groups = require('bellboard.board.groups')
local jump = require('bellboard.jump')
local keys = require('bellboard.keys')
local line = require('bellboard.line')
local place = require('bellboard.place')
local sessions = require('bellboard.sessions')

local M = {}

---@class bellboard.PickerAction an action of the board with its key in a picker
---@field key string
---@field name string
---@field desc string
---@field stays boolean the picker stays open
---@field run fun(session: bellboard.Session)

--- The columns for these sessions.
---@param all bellboard.Session[]
---@param width integer
---@return bellboard.Layout
M.layout = function(all, width)
  return line.layout({ { mixed = true, sessions = all } }, width + 1)
end

--- The line of a session, without the blank for a mark.
---@param session bellboard.Session
---@param layout bellboard.Layout
---@return bellboard.Chunk[]
M.columns = function(session, layout)
  return vim.list_slice(line.chunks(session, layout), 2)
end

--- The text that a search matches, uncut: also the status and the kind of its question.
---@param session bellboard.Session
---@return string
M.words = function(session)
  local words = session.words
  return table.concat({
    words.project,
    words.branch,
    words.title,
    words.word,
    words.text,
    place.of(session),
    session.status,
    session.kind or '',
    words.repository,
    words.agent,
    session.machine or '',
    words.label,
    age.outdated(session),
    age.quiet(session),
    table.concat(session.markers or {}, ' '),
  }, ' ')
end

--- The sessions that match a filter, the latest change first; without one all, most urgent first.
---@param wanted string|nil
---@return bellboard.Session[]
M.listed = function(wanted)
  local choice = { filter = wanted or '', sort = wanted and 'recent' or 'urgency' }
  return groups.listed(sessions.list(), choice)
end

--- The sessions to choose from. Also updates the names of their panes for the next time.
---@return bellboard.Session[]|nil nil if there are none: then the board shows what to do
M.sessions = function()
  local all = sessions.list()
  if #all == 0 then
    board.open() -- the board shows what to do next
    return nil
  end
  place.learn(all, true)
  return vim.list_extend({}, all)
end

--- The keys of pickers, except the key to go there.
---@return bellboard.PickerAction[]
M.keys = function()
  local found = {}
  for _, key in ipairs(keys.board) do
    if key.picker and key[2] ~= 'go' then
      found[#found + 1] = {
        key = key.picker,
        name = key[2],
        desc = key[3],
        stays = key.stays == true,
        run = vim.schedule_wrap(function(session) -- once the picker has closed
          board_keys.run(key[2], { session })
        end),
      }
    end
  end
  return found
end

--- Go to a session once the picker has closed and has restored its window.
---@param session bellboard.Session|nil
M.go = function(session)
  if session then
    vim.schedule(function()
      jump.to(session.session_id)
    end)
  end
end

return M
