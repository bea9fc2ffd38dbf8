-- The picker for users without one: a prompt, the rows that match, and a preview below.
local canvas = require('bellboard.canvas')
local highlight = require('bellboard.highlight')
local picker_keys = require('bellboard.picker.keys')
local preview = require('bellboard.preview')
local rows = require('bellboard.picker.rows')
local sessions = require('bellboard.sessions')
local window = require('bellboard.window')

local M = {}

local api = vim.api

local WIDEST, TALLEST = 140, 40
local LEAST_PREVIEW = 4 -- lines; with less room there is no preview

---@class bellboard.OwnPicker
---@field input integer buffers
---@field list integer
---@field wins integer[] of the prompt, the rows and maybe the preview
---@field shown bellboard.Session[]
---@field at integer
---@field seen? bellboard.Session the one previewed

--- The sessions that contain all of these words.
---@param query string
---@return bellboard.Session[]
local function matching(query)
  local words = vim.split(query:lower(), '%s+', { trimempty = true })
  return vim.tbl_filter(function(session)
    local text = rows.words(session):lower()
    return vim.iter(words):all(function(word)
      return text:find(word, 1, true) ~= nil
    end)
  end, sessions.list())
end

---@param picker bellboard.OwnPicker
local function show_preview(picker)
  local win, session = picker.wins[3], picker.shown[picker.at]
  if win and session ~= picker.seen then
    picker.seen = session
    local buf = canvas.buffer()
    api.nvim_win_set_buf(win, buf)
    highlight.frame(win) -- the options of a window are those of the buffer in it
    if session then
      preview.into(session, buf)
    end
  end
end

---@param picker bellboard.OwnPicker
---@param by integer
local function move(picker, by)
  picker.at = math.max(1, math.min(#picker.shown, picker.at + by))
  api.nvim_win_set_cursor(picker.wins[2], { math.max(picker.at, 1), 0 })
  show_preview(picker)
end

--- Show what matches now, with the cursor on the same session if it is still there.
---@param picker bellboard.OwnPicker
---@param stay boolean
local function filter(picker, stay)
  if not vim.iter(picker.wins):all(api.nvim_win_is_valid) then
    return -- one was closed, and the others will be
  end
  local current = picker.shown[picker.at]
  picker.shown = matching(api.nvim_buf_get_lines(picker.input, 0, 1, false)[1] or '')
  picker.at = 1
  for nth, session in ipairs(picker.shown) do
    if stay and current and session.session_id == current.session_id then
      picker.at = nth
    end
  end
  local layout = rows.layout(sessions.list(), api.nvim_win_get_width(picker.wins[2]) - 1)
  vim.bo[picker.list].modifiable = true
  rows.fill(
    picker.list,
    vim.tbl_map(function(session)
      local chunks = rows.columns(session, layout)
      table.insert(chunks, 1, { ' ' })
      return chunks
    end, picker.shown)
  )
  vim.bo[picker.list].modifiable = false
  move(picker, 0)
end

---@type bellboard.OwnPicker|nil
local current

---@param picker bellboard.OwnPicker
local function close(picker)
  if picker ~= current then
    return
  end
  current = nil
  api.nvim_create_augroup('bellboard.picker', {})
  vim.cmd.stopinsert() -- it was left with the mouse
  if vim.list_contains(picker.wins, api.nvim_get_current_win()) then
    window.go_back(picker.wins[1])
  end
  for _, win in ipairs(picker.wins) do
    window.close(win)
  end
end

--- The prompt, the rows below it, and below those the preview.
---@param picker bellboard.OwnPicker
---@param count integer
local function layout(picker, count)
  local width = math.min(vim.o.columns - 2, WIDEST) - 2
  local height = math.min(vim.o.lines - 2, TALLEST)
  local top = math.floor((vim.o.lines - height) / 2)
  local room = height - 1 - 3 * 2 -- the prompt, and three borders
  local list = math.max(1, math.min(count, room - LEAST_PREVIEW, math.floor(room / 2)))
  local function open(buf, row, lines, title, enter)
    local win = window.open(buf, enter == true, {
      relative = 'editor',
      width = width,
      height = lines,
      row = row,
      col = math.floor((vim.o.columns - width - 2) / 2),
      style = 'minimal',
      border = highlight.border(),
      title = title,
      zindex = 100,
    })
    highlight.frame(win)
    vim.wo[win].wrap = false
    return win
  end
  picker.wins[1] = open(picker.input, top, 1, ' Agent sessions ', true)
  vim.wo[picker.wins[1]].winfixbuf = true
  picker.wins[2] = open(picker.list, top + 3, list)
  vim.wo[picker.wins[2]].cursorline = true
  local rest = room - list
  if rest >= LEAST_PREVIEW then
    picker.wins[3] = open(canvas.buffer(), top + 5 + list, rest)
  end
end

--- Let nothing complete words in a buffer: what it offers would cover the rows.
---@param buf integer
local function no_completion(buf)
  if vim.fn.exists('+autocomplete') == 1 then
    vim.bo[buf].autocomplete = false
  end
  vim.b[buf].completion = false -- blink.cmp
  vim.b[buf].minicompletion_disable = true
  api.nvim_create_autocmd('InsertEnter', { -- nvim-cmp, which may be loaded only then
    buffer = buf,
    once = true,
    callback = vim.schedule_wrap(function()
      local off = vim.tbl_get(package.loaded, 'cmp', 'setup', 'buffer')
      if off and api.nvim_get_current_buf() == buf then
        pcall(off, { enabled = false }) -- it takes no buffer
      end
    end),
  })
end

---@type (fun())[] what the keys do that close the picker
local leaving = {}

--- Called by these keys.
---@param nth integer
M.leave = function(nth)
  leaving[nth]()
end

---@param picker bellboard.OwnPicker
local function attach(picker)
  ---@param key string
  ---@param desc string
  ---@param act fun(session: bellboard.Session|nil)
  ---@param stays boolean the picker stays open
  local function map(key, desc, act, stays)
    local opts = { buffer = picker.input, desc = desc }
    local function press()
      local session = picker.shown[picker.at]
      if not stays then
        close(picker)
      end
      act(session)
    end
    vim.keymap.set(stays and { 'n', 'i' } or 'n', key, press, opts)
    if not stays then -- Insert mode ends first: in the user's buffer, it would move the cursor
      leaving[#leaving + 1] = press
      local leave = ("<Cmd>lua require('bellboard.picker.own').leave(%d)<CR>"):format(#leaving)
      vim.keymap.set('i', key, '<Cmd>stopinsert<CR>' .. leave, opts)
    end
  end
  leaving = {}
  for key, by in pairs({ ['<Down>'] = 1, ['<C-n>'] = 1, ['<Up>'] = -1, ['<C-p>'] = -1 }) do
    map(key, 'next or previous', function()
      move(picker, by)
    end, true)
  end
  map('<CR>', 'go to the session', picker_keys.go, false)
  for _, key in ipairs({ '<Esc>', '<C-c>' }) do
    map(key, 'close', function() end, false)
  end
  for _, action in ipairs(picker_keys.list()) do
    local run = vim.schedule_wrap(action.run)
    map(action.key, action.desc, function(session)
      if session then
        run(session)
      end
    end, action.stays)
  end
  local group = api.nvim_create_augroup('bellboard.picker', {})
  api.nvim_create_autocmd({ 'TextChangedI', 'TextChangedP', 'TextChanged' }, {
    group = group,
    buffer = picker.input,
    callback = function()
      filter(picker, false)
    end,
  })
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'BellboardUpdate',
    callback = function()
      filter(picker, true)
    end,
  })
  api.nvim_create_autocmd('WinClosed', {
    group = group,
    pattern = vim.tbl_map(tostring, picker.wins),
    callback = vim.schedule_wrap(function()
      close(picker)
    end),
  })
  api.nvim_create_autocmd('BufWinLeave', { -- as by `:buffer!`
    group = group,
    buffer = picker.input,
    callback = vim.schedule_wrap(function()
      close(picker)
    end),
  })
  api.nvim_create_autocmd('WinLeave', {
    group = group,
    buffer = picker.input,
    callback = function()
      window.left(picker.wins[1], function()
        close(picker)
      end)
    end,
  })
end

M.open = function()
  if current and api.nvim_win_is_valid(current.wins[1]) then
    window.enter(current.wins[1])
    return vim.cmd.startinsert()
  end
  ---@type bellboard.OwnPicker
  local picker = {
    input = canvas.buffer(),
    list = canvas.buffer(),
    wins = {},
    shown = {},
    at = 1,
  }
  current = picker
  no_completion(picker.input)
  layout(picker, #sessions.list())
  attach(picker)
  filter(picker, false)
  vim.cmd.startinsert()
end

return M
