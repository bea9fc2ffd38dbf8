-- The rows of a picker, and what a search finds.
local age = require('bellboard.age')
local canvas = require('bellboard.canvas')
local line = require('bellboard.line')
local place = require('bellboard.place')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

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

--- Put lines and their colours into a buffer.
---@param buf integer
---@param lines bellboard.Chunk[][]
M.fill = function(buf, lines)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local texts = vim.tbl_map(canvas.text, lines)
  api.nvim_buf_set_lines(buf, 0, -1, false, texts)
  for row, chunks in ipairs(lines) do
    canvas.colour(buf, row, texts[row], chunks)
  end
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

--- The sessions to choose from. Also updates the names of their panes for the next time.
---@return bellboard.Session[]|nil nil if there are none: then the board shows what to do
M.sessions = function()
  local all = sessions.list()
  if #all == 0 then
    require('bellboard.board').open() -- it shows what to do next
    return nil
  end
  place.learn(all, true)
  return vim.list_extend({}, all)
end

return M
