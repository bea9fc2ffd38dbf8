-- The rows below a request: what can be answered, with which key, and what else there is to do.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local layout = require('bellboard.answer.layout')
local parts = require('bellboard.answer.parts')

local M = {}

--- Keys that change text or leave Normal mode, and do nothing in a view.
-- stylua: ignore
M.INERT = {
  'a', 'c', 'd', 'i', 'o', 'p', 'r', 's', 'x', '~', 'u', '.', 'q', 'Q', 'A', 'C', 'D', 'I', 'J',
  'O', 'P', 'R', 'S', 'X', 'U', '<', '>', '=', '&', '<C-r>', '<C-a>', '<C-x>', '<CR>', 'gi', 'gI',
  'K',
}

--- Rows that say what cannot be chosen here; another machine may send any number.
local MORE = 3
--- Rows for all else, so that what is asked can be seen above many choices.
local SPARED = 11

---@class bellboard.Foot
---@field status? string
---@field can boolean whether its keys answer now
---@field is_over boolean whether they never will again
---@field is_done boolean whether nothing is left but to close it
---@field is_diff boolean whether it is below a diff
---@field is_only_there boolean whether no choice can be given from here
---@field failed? string name of the session whose answer failed
---@field skips boolean whether there is a next one
---@field asks boolean whether there is something else to show
---@field keys table<string, string> choice → its key
---@field choice? string the choice whose number was pressed once
---@field is_short? boolean whether the notes of choices give way to the choices, on a small screen

--- The key with that name.
---@param name string
---@return string|nil
M.key_of = function(name)
  local found = {}
  for lhs, means in pairs(config.get().answer.keys) do
    found[#found + 1] = means == name and lhs or nil
  end
  table.sort(found, function(a, b)
    return #a < #b or #a == #b and a < b
  end)
  return found[1]
end

--- A choice and its key, unless the key no longer does anything.
---@param rows bellboard.Row[]
---@param lhs string
---@param each bellboard.Choice
---@param foot bellboard.Foot
---@param width integer
local function choice(rows, lhs, each, foot, width)
  local wide = math.max(4, cells.width(lhs) + 2)
  lhs = (foot.is_over or foot.is_only_there) and '' or lhs
  local group, key = foot.is_over and 'BellboardDim' or nil, not foot.can and 'BellboardDim' or nil
  group = not group and foot.choice == each.id and 'BellboardChosen' or group
  parts.add_marked(rows, cells.fit(lhs, wide), each.words, width, nil, group, key)
  local note = not foot.is_short and (each.note or '') ~= '' and each.note or nil
  parts.add_text(rows, note, width, 'BellboardDim', (' '):rep(wide))
end

--- What the key that fills in does here, if anything.
---@param request bellboard.Request
---@return string|nil
M.fills = function(request)
  for _, question in ipairs(request.questions or {}) do
    if question.typed ~= false then
      return 'type an answer'
    end
  end
  return request.fields and 'fill' or nil
end

--- The other keys, in as many rows as they need.
---@param rows bellboard.Row[]
---@param request bellboard.Request
---@param foot bellboard.Foot
---@param width integer
local function others(rows, request, foot, width)
  local has_diff = #parts.diffs(request) > 0
  local may = request.way ~= 'look' -- a member of a fleet that may only read may not do these
  local filled = may and not foot.is_over and M.fills(request)
  local chunks, used, goes = {}, 0, not foot.is_done
  local function put()
    rows[#rows + 1] = { text = cells.joined(chunks), chunks = chunks }
    chunks, used = {}, 0
  end
  for _, hint in ipairs({
    filled and { 'fill', filled } or false,
    has_diff and goes and not foot.is_diff and { 'diff', 'diff' } or false,
    foot.asks and goes and { 'update', 'what it asks now' } or false,
    may and goes and { 'go', 'there' } or false,
    foot.failed and { 'failed', 'to ' .. foot.failed } or false,
    may and goes and { 'snooze', 'snooze' } or false,
    foot.skips and goes and { 'skip', 'next' } or false,
    { 'close', foot.is_diff and 'back' or foot.skips and goes and 'quit' or 'close' },
  }) do
    local lhs = hint and M.key_of(hint[1])
    if lhs then
      local head, text = lhs .. ' ', hint[2] .. '   '
      if used + cells.width(head .. text) - 3 > width then
        put()
      end
      chunks[#chunks + 1], chunks[#chunks + 2] = { head, 'BellboardKey' }, { text, 'BellboardDim' }
      used = used + cells.width(head .. text)
    end
  end
  local way = not foot.is_over and request.way ~= 'go' and (request.ways or {})[1]
  local words = way and cells.safe(way.words) or ''
  if used + cells.width(words) > width then
    put()
  end
  chunks[#chunks + 1] = { (' '):rep(width - used - cells.width(words)) .. words, 'BellboardDim' }
  put()
end

--- What the diff of a file does not show of what is asked.
---@param rows bellboard.Row[]
---@param request bellboard.Request
---@param width integer
local function beside(rows, request, width)
  local diffs = parts.diffs(request)
  parts.head(diffs[1], width, rows)
  local what = #diffs > 1 and ('the first of %d diffs'):format(#diffs) or 'the diff'
  local text = ('This is only %s; %s shows all that is asked.'):format(
    what,
    M.key_of('close') or ':q'
  )
  parts.add_text(rows, #request.parts > 1 and text or nil, width, 'BellboardStatus')
end

--- All rows below a request.
---@param request bellboard.Request
---@param foot bellboard.Foot
---@param width integer
---@return bellboard.Row[]
M.rows = function(request, foot, width)
  local rows = {}
  if foot.is_diff then
    beside(rows, request, width)
  end
  parts.add_text(rows, foot.status, width, 'BellboardStatus')
  local go = M.key_of('go')
  local there = ('It can only be answered there%s.'):format(go and ': press ' .. go or '')
  parts.add_text(rows, foot.is_only_there and there or nil, width, 'BellboardStatus')
  for _, each in ipairs(request.choices or {}) do
    local lhs, reply = foot.keys[each.id], M.key_of('reply')
    local is_twofold = each.needs == 'message?' and reply ~= nil
    -- "No, and say why": one key for no, another one to say why.
    local words = is_twofold and each.words:match('^[^,]+') or each.words
    choice(rows, lhs or '', vim.tbl_extend('force', each, { words = words }), foot, width)
    if is_twofold then
      choice(rows, reply --[[@as string]], each, foot, width)
    end
  end
  if not foot.is_short and #rows >= layout.most_of_foot() then
    return M.rows(request, vim.tbl_extend('error', foot, { is_short = true }), width)
  end
  local room = vim.o.lines - SPARED - #rows
  local has_room = room >= 0 and not foot.is_over
  for _, more in ipairs(has_room and vim.list_slice(request.more or {}, 1, MORE) or {}) do
    local whole = {}
    parts.add_text(whole, cells.safe(more), width, 'BellboardDim')
    local cut = parts.row(cells.cut(cells.safe(more), width), 'BellboardDim')
    local added = #whole <= room and whole or { cut }
    vim.list_extend(rows, added)
    room = room - #added
  end
  others(rows, request, foot, width)
  return rows
end

return M
