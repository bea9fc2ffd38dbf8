-- The values that an option accepts.
local M = {}

--- Where the type of the default is not enough: other types, fixed choices, or free keys.
local rules = {
  python = { types = { 'string', 'table' } },
  icons = { types = { 'string', 'table' }, among = { 'ascii', 'unicode', 'nerd' }, open = true },
  host = { open = true },
  on_transition = { types = { 'function', 'table' } },
  on = { open = true, each = { 'function', 'table' } },
  claude = { types = { 'string', 'table' }, open = true, each = { 'string' } },
  ['launch.layout'] = { among = { 'split', 'vsplit', 'tab', 'window' } },
  ['board.layout'] = { among = { 'split', 'vsplit', 'tab', 'float' } },
  ['notices.mode'] = { among = { 'quiet', 'normal', 'all' } },
  ['notices.via'] = { among = { 'auto', 'notify-send', 'osascript', 'osc9', 'osc777' } },
  ['notices.quiet_hours'] = {
    types = { 'string' },
    like = '^%d%d?:%d%d%-%d%d?:%d%d$',
    example = '22:00-07:30',
  },
  ['notices.sounds'] = { open = true, each = { 'string' } },
  ['notices.player'] = { types = { 'table' }, each = { 'string' } },
  ['notices.command'] = { types = { 'table' }, each = { 'string' } },
  ['notices.labels'] = { inside = true },
  ['notices.labels.*'] = { types = { 'table' } },
  ['notices.labels.*.pin'] = { types = { 'boolean' } },
  ['notices.labels.*.highlight'] = { types = { 'string' } },
  ['notices.labels.*.sounds'] = { types = { 'table' }, each = { 'string' } },
}
for _, status in ipairs({ 'blocked', 'error', 'completed', 'background' }) do
  rules['notices.' .. status] = { inside = true }
  rules['notices.labels.*.' .. status] = { types = { 'table' } }
  for _, channel in ipairs({ 'float', 'notify', 'bell', 'desktop', 'sound', 'command' }) do
    local delay = (channel ~= 'float' or status == 'blocked')
        and { types = { 'number', 'boolean' }, least = 0 }
      or nil
    rules[('notices.%s.%s'):format(status, channel)] = delay
    rules[('notices.labels.*.%s.%s'):format(status, channel)] = delay
  end
end

--- The rule of an option; all labels share theirs.
---@param path string
---@return table|nil
M.of = function(path)
  return rules[path] or rules[(path:gsub('^(notices%.labels%.)[^.]+', '%1*'))]
end

---@param path string
---@param value any
---@param default any
---@return string|nil problem
M.problem = function(path, value, default)
  local rule = M.of(path) or {}
  local types = rule.types or { type(default) }
  if not vim.tbl_contains(types, type(value)) then
    return ('%s: expected %s, got %s'):format(path, table.concat(types, ' or '), type(value))
  end
  if rule.among and type(value) == 'string' and not vim.tbl_contains(rule.among, value) then
    return ('%s: expected one of %s, got "%s"'):format(path, table.concat(rule.among, ', '), value)
  end
  if rule.like and not value:match(rule.like) then
    return ('%s: expected e.g. "%s", got "%s"'):format(path, rule.example, value)
  end
  if rule.least and type(value) == 'number' and value < rule.least then
    return ('%s: expected at least %s, got %s'):format(path, rule.least, value)
  end
  for key, member in pairs(rule.each and type(value) == 'table' and value or {}) do
    if not vim.tbl_contains(rule.each, type(member)) then
      local expected = table.concat(rule.each, ' or ')
      return ('%s.%s: expected %s, got %s'):format(path, key, expected, type(member))
    end
  end
end

return M
