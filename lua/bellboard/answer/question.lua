-- A question in a float that does not block: its keys answer, any other key closes it and has its
-- usual effect. So does any key that was typed before the user can have read the question.
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local guards = require('bellboard.key_delay')
local highlight = require('bellboard.highlight')
local moment = require('bellboard.moment')
local window = require('bellboard.window')

local M = {}

local api = vim.api

---@class bellboard.Option
---@field [1] string its key
---@field [2] string what it does, in words
---@field [3]? fun()

---@param choices bellboard.Option[]
---@param is_ready boolean whether their keys answer yet
---@return bellboard.Chunk[]
local function footer(choices, is_ready)
  local chunks, group = {}, is_ready and 'BellboardKey' or 'BellboardDim'
  for _, choice in ipairs(choices) do
    chunks[#chunks + 1] = { ' ' .. choice[1], group }
    chunks[#chunks + 1] = { (' %s '):format(choice[2]), 'BellboardDim' }
  end
  return chunks
end

---@param lines string[]
---@param width integer
---@return string[]
local function wrapped(lines, width)
  local rows = {}
  for _, text in ipairs(lines) do
    local row = ''
    for word in text:gmatch('%S+') do
      if row ~= '' and cells.width(row) + 1 + cells.width(word) > width then
        rows[#rows + 1], row = row, ''
      end
      row = row == '' and word or row .. ' ' .. word
    end
    rows[#rows + 1] = row
  end
  return rows
end

--- Let a key have its usual effect. It was translated by 'langmap' when it was typed, and would be
--- again if it counted as typed.
---@param key string
local function pass_on(key)
  api.nvim_feedkeys(key, vim.o.langmap == '' and 'mit' or 'mi', false)
end

---@param title string
---@param lines string[]
---@param choices bellboard.Option[]
local function open(title, lines, choices)
  local width = math.min(62, vim.o.columns - 6)
  local rows = wrapped(lines, width)
  local buf = canvas.buffer(vim.tbl_map(function(row)
    return ' ' .. row
  end, rows))
  vim.bo[buf].bufhidden = 'hide' -- a key that closes it may be on its way to a mapping of its
  local height = math.min(#rows, math.max(1, vim.o.lines - 6))
  local win = api.nvim_open_win(buf, true, {
    relative = 'editor',
    width = width + 2,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 2),
    col = math.floor((vim.o.columns - width - 4) / 2),
    style = 'minimal',
    border = highlight.border(),
    title = (' %s '):format(title),
    footer = footer(choices, false),
    footer_pos = 'right',
    zindex = config.get().float.zindex + 1,
    noautocmd = true,
  })
  highlight.frame(win)
  local guard = guards.new(function()
    if api.nvim_win_is_valid(win) then
      api.nvim_win_set_config(win, { footer = footer(choices, true), footer_pos = 'right' })
    end
  end)
  guard.wait()
  local namespace = api.nvim_create_namespace('') -- of this question alone
  local function close()
    vim.on_key(nil, namespace)
    window.close(win)
    vim.schedule(function()
      pcall(api.nvim_buf_delete, buf, { force = true })
    end)
  end
  ---@param lhs string
  ---@param act fun()
  local function map(lhs, act)
    vim.keymap.set('n', lhs, function()
      close()
      act()
    end, { buffer = buf, nowait = true })
  end
  -- Passed on, so that mappings of the window below count, and run there; not <C-c>, <Esc> and
  -- <C-Bslash>.
  for code = 1, 126 do
    local key, named = string.char(code), { ['<'] = '<lt>', ['|'] = '<Bar>' }
    if code ~= 3 and code ~= 27 and code ~= 28 then
      local lhs = code < 32 and ('<C-%s>'):format(string.char(code + 64)) or named[key] or key
      map(lhs, function()
        pass_on(key)
      end)
    end
  end
  map('<Esc>', function() end)
  for _, choice in ipairs(choices) do
    map(choice[1], function()
      if not guard.is_ready() then
        pass_on(choice[1])
      elseif choice[3] then
        choice[3]()
      end
    end)
  end
  vim.on_key(function(_, typed)
    if guards.is_key(typed) then
      moment.when('draw', close) -- so that any other key acts on the window below
    end
  end, namespace)
  api.nvim_create_autocmd('WinLeave', {
    buffer = buf,
    once = true,
    callback = vim.schedule_wrap(close),
  })
end

--- Ask, once the user is in a normal window with nothing else going on.
---@param title string
---@param lines string[] wrapped to fit
---@param choices bellboard.Option[]
M.ask = function(title, lines, choices)
  moment.when('ask', function()
    open(title, lines, choices)
  end)
end

return M
