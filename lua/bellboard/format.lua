-- Fills in formats such as `{icon} {project}: {asks}`.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local place = require('bellboard.place')
local style = require('bellboard.highlight')

local M = {}

---@class bellboard.Item: bellboard.Chunk text; without a group, in the colour of the bar
---@field on? integer target of a click

--- How long it has been waiting, from the first minute on.
---@param since number
---@return string
M.waits = function(since)
  local waited = age.of(since)
  return waited:match('[mhd]$') and waited or ''
end

--- The fields that are not words of the session.
---@type table<string, fun(session: bellboard.Session): string>
local fields = {
  icon = style.icon,
  place = place.of,
  status = function(session)
    return session.status
  end,
  detail = function(session)
    return session.words.text
  end,
  asks = function(session)
    local words = session.words
    return words.text ~= '' and words.text or words.word
  end,
  waits = function(session)
    return session.status == 'blocked' and M.waits(session.since) or ''
  end,
  stale = age.outdated,
  quiet = age.quiet,
  age = function(session)
    return age.of(session.since)
  end,
}

--- The fields that may be cut, and their minimum widths.
local LEAST = { asks = 6, detail = 6, title = 6, branch = 3 }
local NAME = 16 -- maximum width of a project's name

--- Fill in a format. A field that is empty or does not fit is left out with the text before it; the
--- fields that may be cut share the remaining width.
---@param format string
---@param value fun(field: string): string
---@param room integer
---@param group string for icon and count
---@param on? integer
---@return bellboard.Item[]
M.fill = function(format, value, room, group, on)
  local parts, taken, long, name = {}, 0, 0, nil
  for before, field in format:gmatch('([^{]*){(%w+)}') do
    local part = { before = before, field = field, text = value(field), long = LEAST[field] }
    parts[#parts + 1] = part
    if part.long then
      long = long + 1
    elseif field == 'project' then
      name = part
    elseif part.text ~= '' then
      taken = taken + cells.width(before) + cells.width(part.text)
    end
  end
  if name then
    name.text = cells.cut(name.text, math.min(NAME, room - taken - cells.width(name.before)))
    taken = taken + cells.width(name.before) + cells.width(name.text)
  end
  local rest, items = room - taken, {}
  for _, part in ipairs(parts) do
    local text = part.text
    if part.long then
      local share = math.floor(rest / long) - cells.width(part.before)
      local fits = share >= math.min(part.long, cells.width(text))
      text = fits and cells.cut(text, share) or ''
      rest = rest - (text ~= '' and cells.width(part.before) + cells.width(text) or 0)
      long = long - 1
    end
    if text ~= '' then
      local urgent = part.field == 'icon' or part.field == 'count'
      if part.before ~= '' then
        items[#items + 1] = { part.before, nil, on = on }
      end
      items[#items + 1] = { text, urgent and group or nil, on = on }
    end
  end
  local after = format:match('[^}]*$')
  if after ~= '' and #items > 0 then
    items[#items + 1] = { after, nil, on = on }
  end
  return items
end

---@param session bellboard.Session
---@return fun(field: string): string
M.of_session = function(session)
  return function(field)
    return fields[field] and fields[field](session) or session.words[field] or ''
  end
end

return M
