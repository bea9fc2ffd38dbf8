-- Opens the sessions again that went down with tmux, Neovim or the machine.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local dialog = require('bellboard.dialog')
local launch = require('bellboard.jump.launch')
local message = require('bellboard.message')
local popup = require('bellboard.popup')
local program = require('bellboard.process.program')

local M = {}

---@class bellboard.Location
---@field kind 'tmux'|'neovim'|'terminal'
---@field session? string
---@field number? integer of the window
---@field window? string its name

---@class bellboard.Lost a session that went down, as `bellboard restore --json` has it
---@field session_id string
---@field argv string[]
---@field directory string
---@field last number when it last reported something
---@field project string
---@field title string
---@field place bellboard.Location where it was
---@field why? string why it cannot be restored

--- Where a session is opened.
---@param lost bellboard.Lost
---@return string
local function place(lost)
  local at = lost.place
  if at.kind ~= 'tmux' then
    return 'here'
  end
  local window = at.window or at.number
  return ('tmux %s%s'):format(at.session or '', window and ':' .. window or '')
end

--- Rows in columns: age, project, place, title.
---@param sessions bellboard.Lost[]
---@return bellboard.Row[]
local function rows_of(sessions)
  local named, placed, columns = 0, 0, vim.o.columns - 8
  for _, lost in ipairs(sessions) do
    named = math.max(named, cells.width(lost.project))
    placed = math.max(placed, cells.width(place(lost)))
  end
  named, placed =
    math.min(named, math.floor(columns / 4)), math.min(placed, math.floor(columns / 3))
  local rows = {}
  for _, lost in ipairs(sessions) do
    local group = lost.why and 'BellboardDim' or 'BellboardFloatTitle'
    local chunks = {
      { ('%4s  '):format(age.of(lost.last)), 'BellboardDim' },
      { cells.fit(lost.project, named) .. '  ', group },
      { cells.fit(place(lost), placed) .. '  ', 'BellboardDim' },
    }
    local room = math.max(1, columns - cells.sum(chunks))
    chunks[4] = { cells.cut(lost.title, room), lost.why and 'BellboardDim' or 'BellboardNormal' }
    rows[#rows + 1] = { text = cells.joined(chunks), chunks = chunks }
    if lost.why then
      local why = cells.cut('      not restored: ' .. lost.why, columns)
      rows[#rows + 1] = { text = why, group = 'BellboardStatus' }
    end
  end
  return rows
end

--- Open what the program has left to us, and say what became of all.
---@param done { restored: bellboard.Lost[], open: bellboard.Lost[], failed: bellboard.Lost[] }
local function opened(done)
  for _, lost in ipairs(done.open) do
    launch.terminal(lost.argv, nil, nil, #done.open > 1 and 'tab' or nil, lost.directory)
  end
  local said = {}
  for _, part in ipairs({ { '%d here', #done.open }, { '%d in tmux', #done.restored } }) do
    said[#said + 1] = part[2] > 0 and part[1]:format(part[2]) or nil
  end
  if #said > 0 then
    message.info('restored: ' .. table.concat(said, ', '))
  end
  for _, lost in ipairs(done.failed) do
    popup.refuse(('%s: %s'):format(lost.project, lost.why), 'restore')
  end
end

---@param ids string[]
local function open(ids)
  local words = vim.list_extend({ 'restore', '--yes', '--json', '--neovim' }, ids)
  program.run(words, function(printed, why, partly)
    local ok, done = pcall(vim.json.decode, printed or partly or '')
    if not ok then
      return popup.refuse(why, 'restore')
    end
    opened(done)
  end)
end

--- List the sessions that went down, ask, and open them.
---@param words string[] which ones; default: all
M.run = function(words)
  program.decoded(vim.list_extend({ 'restore', '--json' }, words), function(decoded, why)
    if not decoded then
      return popup.refuse(why, 'restore')
    end
    local ids, all = {}, decoded.sessions
    for _, lost in ipairs(all) do
      ids[#ids + 1] = not lost.why and lost.session_id or nil
    end
    if #all == 0 then
      return message.info('nothing to restore')
    end
    local choices = {}
    if #ids > 0 then
      choices[1] = {
        'y',
        #ids == 1 and 'restore it' or ('restore all %d'):format(#ids),
        function()
          open(ids)
        end,
      }
    end
    vim.list_extend(choices, {
      { 'n', 'not now' },
      {
        'x',
        'offer no more',
        function()
          popup.command(vim.list_extend({ 'restore', '--dismiss' }, words))
        end,
      },
    })
    local title = #all == 1 and '1 session went down with its terminal'
      or ('%d sessions went down with their terminals'):format(#all)
    dialog.ask(title, rows_of(all), choices)
  end)
end

return M
