-- The keys of the board, as configured.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local actions = require('bellboard.board.actions')
local message = require('bellboard.message')
local page = require('bellboard.board.page')
local popup = require('bellboard.popup')

local M = {}

local api = vim.api

---@type bellboard.Action[]
M.list = vim.list_extend({}, actions.list)

--- The keys as configured, each with what it does.
---@return table<string, bellboard.Action>
local function mapped()
  local by_name, keys = {}, {}
  for _, action in ipairs(M.list) do
    by_name[action[1]] = action
  end
  for lhs, choice in pairs(config.get().board.keys) do
    local own = type(choice) == 'function' and { lhs, 'your function', each = choice }
    keys[lhs] = own or by_name[choice]
  end
  return keys
end

--- The lines in two columns, if one column is too high and two fit.
---@param lines string[]
---@return string[]
local function beside_each_other(lines)
  local width = 0
  for _, line in ipairs(lines) do
    width = math.max(width, cells.width(line))
  end
  if #lines <= vim.o.lines - 6 or 2 * width + 8 > vim.o.columns then
    return lines
  end
  local rows, both = math.ceil(#lines / 2), {}
  for row = 1, rows do
    both[row] = cells.fit(lines[row], width + 2) .. (lines[row + rows] or '')
  end
  return both
end

--- The keys of each action in the order of the list, then those with a user's function.
local function help()
  local lines, keys = {}, mapped()
  local order = vim.list_extend({}, M.list)
  for lhs, action in vim.spairs(keys) do
    if action[1] == lhs then
      order[#order + 1] = action
    end
  end
  for _, action in ipairs(order) do
    local of_it = vim.tbl_filter(function(lhs)
      return keys[lhs] == action
    end, vim.tbl_keys(keys))
    table.sort(of_it)
    if #of_it > 0 then
      lines[#lines + 1] = (' %-9s %s'):format(table.concat(of_it, ' '), action[2])
    end
  end
  popup.open(beside_each_other(lines), 'board')
end
M.list[#M.list + 1] = { 'help', 'this help', anywhere = help }

--- The sessions of the visual selection, which ends.
---@return bellboard.Session[]
local function selected()
  local first, last = vim.fn.line('v'), vim.fn.line('.')
  vim.cmd.normal({ '\27', bang = true })
  return page.among(math.min(first, last), math.max(first, last))
end

---@param action bellboard.Action
---@return bellboard.Session[]
local function meant(action)
  if vim.list_contains({ 'v', 'V', '\22' }, vim.fn.mode()) then
    return selected()
  end
  local marked = action[1] ~= 'mark' and not action.one and page.marked() or {}
  local row = api.nvim_win_get_cursor(0)[1]
  return #marked > 0 and marked or page.among(row, row)
end

---@param action bellboard.Action
local function press(action)
  if action.anywhere then
    return action.anywhere()
  end
  local _, section = page.under_cursor()
  if section and action[1] == 'go' and vim.fn.mode() == 'n' then
    return page.fold()
  end
  local list = meant(action)
  if #list == 0 then
    message.info('no session on this line')
  elseif action.one and (#list > 1 or section) then
    message.info('this key acts on one session: put the cursor on it')
  else
    if action[1] ~= 'mark' and not action.one and next(page.choice().marked) then
      page.choose({ marked = {} })
    end
    actions.run(action, list)
  end
end

--- Map the keys in a board's buffer; a double click goes to the session.
---@param buf integer
M.attach = function(buf)
  for lhs, action in pairs(mapped()) do
    local function act()
      press(action)
    end
    local opts = { buffer = buf, desc = action[2], nowait = #lhs == 1 }
    vim.keymap.set(action.anywhere and 'n' or { 'n', 'x' }, lhs, act, opts)
    if action[1] == 'go' then
      vim.keymap.set('n', '<2-LeftMouse>', act, { buffer = buf, desc = action[2] })
    end
  end
end

return M
