-- The float that lists the blocked sessions, and files that a session changes while the user has
-- unsaved changes of them: in full for a while after one came, then in one line, unless the
-- statusline says the same. It makes room for whatever else is on the screen.
local calls = require('bellboard.float.lines')
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local corner = require('bellboard.float.place')
local highlight = require('bellboard.highlight')
local moment = require('bellboard.moment')
local sessions = require('bellboard.sessions')
local statusline = require('bellboard.statusline')
local unsaved = require('bellboard.unsaved')
local window = require('bellboard.window')

local M = {}

local api = vim.api

---@type integer|nil
local win
---@type integer|nil
local buf
---@type string[]
local texts = {}
---@type bellboard.Form[] that may be shown now, the preferred one first; empty: none
local forms = {}
---@type bellboard.Form|nil
local shown
---@type bellboard.Corner|nil
local present
---@type table<string, true> the blocks that are known, by session and time
local known = {}
--- Whether it has shrunk to one line.
local short = false
--- Whether the user has closed it, until another session is blocked.
local dismissed = false
--- Why it was not shown at the last update; '': it was.
local hidden = ''
---@type uv.uv_timer_t|nil until it shrinks
local timer

---@return boolean
local function is_open()
  return win ~= nil and api.nvim_win_is_valid(win)
end

local function hide()
  if is_open() then
    window.close(win)
  end
  win, shown, present, texts = nil, nil, nil, {}
end

---@param lines bellboard.Chunk[][]
local function draw(lines)
  local wanted = vim.tbl_map(cells.joined, lines)
  if vim.deep_equal(wanted, texts) then
    return
  end
  canvas.replace(buf, wanted)
  texts = wanted
  for row, chunks in ipairs(lines) do
    canvas.color(buf, row, wanted[row], chunks)
  end
end

---@class bellboard.FloatActs what its keys and clicks do
---@field answer fun(id: string) show what a session asks
---@field go fun(id: string) go to a session
---@field pick fun() choose one of all
---@field compare fun(change: bellboard.Unsaved) show what differs

---@type bellboard.FloatActs
local on

--- Go back to the previous window, and act there.
---@param act fun()
local function leave(act)
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  if api.nvim_get_current_win() == win and previous ~= 0 then
    api.nvim_set_current_win(previous)
  end
  vim.schedule(act)
end

--- Show the request of a line's session, or go there; the one-line form opens the full float, "and
--- 3 more" the picker, and the border closes the float.
---@param form bellboard.Form|nil
---@param row integer
---@param answers? boolean
local function choose(form, row, answers)
  leave(function()
    if not form then
      return
    elseif form.changes and form.changes[row] then
      on.compare(form.changes[row])
    elseif form.ids[row] then
      local act = answers and on.answer or on.go
      act(form.ids[row])
    elseif not form.title then
      M.unfold()
    elseif form.lines[row] then
      on.pick()
    else
      M.dismiss()
    end
  end)
end

---@return integer
local function create()
  local made = api.nvim_create_buf(false, true)
  vim.bo[made].bufhidden, vim.bo[made].modifiable, vim.bo[made].undolevels = 'hide', false, -1
  local function map(modes, key, act, desc)
    vim.keymap.set(modes, key, act, { buffer = made, desc = desc, nowait = true })
  end
  map({ 'n', 'i', 'x' }, '<LeftRelease>', function()
    local mouse = vim.fn.getmousepos()
    if mouse.winid == win then
      choose(shown, mouse.line, true)
    end
  end, 'answer')
  map('n', 'a', function()
    choose(shown, api.nvim_win_get_cursor(0)[1], true)
  end, 'answer')
  map('n', '<CR>', function()
    choose(shown, api.nvim_win_get_cursor(0)[1])
  end, 'go to the session')
  map('n', 'q', function()
    leave(M.dismiss)
  end, 'close')
  return made
end

--- Wipe out the buffer if it was unloaded: it would come back as a buffer to edit.
local function discard()
  if buf and api.nvim_buf_is_valid(buf) then
    api.nvim_buf_delete(buf, { force = true })
  end
end

--- The border of the full form, for nvim_open_win().
---@param form bellboard.Form
---@return table
local function frame(form)
  if not form.title then
    return { border = 'none' }
  end
  local border = highlight.border()
  return { border = border, title = form.title, footer = form.footer, footer_pos = 'right' }
end

---@param form bellboard.Form
---@return bellboard.Size
local function size_of(form)
  local edge = form.title and 2 or 0
  return { width = form.width + edge, height = #form.lines + edge }
end

---@param form bellboard.Form
---@param spot bellboard.Corner
local function show(form, spot)
  local same_frame = shown and (shown.title == nil) == (form.title == nil)
  if not (is_open() and same_frame) then
    hide()
  end
  if not (buf and api.nvim_buf_is_loaded(buf)) then -- `:%bd` unloads it
    discard()
    buf, texts = create(), {}
  end
  draw(form.lines)
  local layout = vim.tbl_extend('error', spot, {
    relative = 'editor',
    width = form.width,
    height = #form.lines,
    style = 'minimal',
    zindex = config.get().float.zindex,
  }, frame(form))
  if vim.fn.has('nvim-0.11') == 1 then
    layout.focusable, layout.mouse = false, true
  end
  if is_open() then
    api.nvim_win_set_config(win, layout)
  else
    win = api.nvim_open_win(buf, false, vim.tbl_extend('error', layout, { noautocmd = true }))
    highlight.frame(win)
    vim.wo[win].wrap = false
  end
  shown, present = form, spot
end

--- Show the first form that fits into a free corner.
local function arrange()
  if is_open() and api.nvim_get_current_win() == win then
    return -- the float is being clicked
  end
  if is_open() and api.nvim_win_get_tabpage(win) ~= api.nvim_get_current_tabpage() then
    hide()
  end
  local which, spot = corner.find(vim.tbl_map(size_of, forms), win, present)
  if not (which and spot) then
    hide()
    hidden = #forms > 0 and 'no corner of the screen is free' or hidden
  elseif not (is_open() and vim.deep_equal({ forms[which], spot }, { shown, present })) then
    show(forms[which], spot)
    hidden = ''
  end
end

---@return boolean
local function has_room()
  return vim.o.columns >= calls.LEAST_COLUMNS and vim.o.lines >= calls.LEAST_LINES
end

--- Keep making room while there is something to show.
local function follow()
  local group = api.nvim_create_augroup('bellboard.float.open', {})
  -- SafeState comes after each key and each window that a plugin opens, but not in a terminal.
  api.nvim_create_autocmd({ 'SafeState', 'TermEnter', 'CursorMoved', 'CursorMovedI' }, {
    group = group,
    callback = arrange,
  })
  api.nvim_create_autocmd({ 'WinNew', 'WinClosed', 'WinScrolled', 'VimResized', 'TabEnter' }, {
    group = group,
    callback = vim.schedule_wrap(M.update),
  })
end

local function close()
  api.nvim_create_augroup('bellboard.float.open', {})
  if timer then
    timer:stop()
  end
  forms, known, short, dismissed = {}, {}, false, false
  hide()
end

--- The session that was blocked last, and whether anything is news since the last call.
---@param calling bellboard.Session[]
---@param changes bellboard.Unsaved[]
---@return bellboard.Session|nil newest
---@return boolean is_new
local function listen(calling, changes)
  local newest, is_new, now = calling[1], false, {}
  for _, change in ipairs(changes) do
    local key = ('%s %s %s'):format(change.session_id, change.since, change.path)
    is_new = is_new or not known[key]
    now[key] = true
  end
  for _, session in ipairs(calling) do
    local key = ('%s %s'):format(session.session_id, session.asked_at or session.since)
    is_new = is_new or not known[key]
    now[key] = true
    if (session.asked_at or session.since) > (newest.asked_at or newest.since) then
      newest = session
    end
  end
  known = now
  return newest, is_new
end

--- Show the float in full, for a while.
M.unfold = function()
  short, dismissed = false, false
  local seconds = config.get().float.seconds
  if seconds > 0 then
    timer = timer or assert(vim.uv.new_timer())
    local function shrink()
      short = true
      moment.when('draw', M.update)
    end
    timer:start(seconds * 1000, 0, vim.schedule_wrap(shrink))
  end
  M.update()
end

--- Show the blocked sessions and the changed files; close the float if there are none, or if they
--- are out of date.
M.update = function()
  local enabled = config.get().float.enabled and not sessions.stale()
  local calling, changes = enabled and sessions.calling() or {}, enabled and unsaved.list() or {}
  if #calling + #changes == 0 then
    return close()
  elseif not next(known) then
    follow()
  end
  local newest, is_new = listen(calling, changes)
  if is_new then
    return M.unfold()
  end
  forms, hidden = {}, 'nothing was drawn since the last update (:messages)'
  if dismissed then
    hidden = 'dismissed until another session is blocked'
  elseif not has_room() then
    hidden = ('the screen is smaller than %dx%d'):format(calls.LEAST_COLUMNS, calls.LEAST_LINES)
  elseif short and statusline.is_used() and #changes == 0 then
    hidden = 'the statusline says it'
  else
    forms[1] = not short and calls.in_full(calling, newest, changes) or nil
    forms[#forms + 1] = #changes > 0 and calls.of_change(changes[1])
      or not statusline.is_used() and calls.in_short(calling)
      or nil
  end
  arrange()
end

--- Close the float until another session is blocked.
M.dismiss = function()
  dismissed = #sessions.calling() + #unsaved.list() > 0
  M.update()
end

--- The reason why the float lists no session here.
---@return string
local function unlisted()
  local front = sessions.in_front()
  if not sessions.health().version then
    return 'nothing was received from the background process yet'
  elseif (sessions.counts().blocked or 0) == 0 then
    return 'nothing is blocked'
  elseif front == '' then
    return 'no Neovim has a screen'
  elseif front and front ~= vim.v.servername then
    return 'another Neovim had the focus last: ' .. front
  end
  local reasons = {}
  for id, why in vim.spairs(sessions.left_out()) do
    local session = sessions.get(id)
    reasons[#reasons + 1] = (session and session.words.project or id) .. ': ' .. why
  end
  return #reasons > 0 and table.concat(reasons, '; ')
    or 'the background process has not said yet which sessions to list'
end

--- Whether the float is shown, and if not, why.
---@return string
M.status = function()
  local listed, why = #sessions.calling(), hidden
  if is_open() then
    local count = listed > 0 and listed or #unsaved.list()
    local noun = listed > 0 and 'session' or 'change'
    return ('shown (%d %s%s)'):format(count, noun, count == 1 and '' or 's')
  elseif not config.get().float.enabled then
    why = '`float.enabled` is false'
  elseif sessions.stale() then
    why = 'the sessions are out of date'
  elseif listed + #unsaved.list() == 0 then
    why = unlisted()
  end
  return 'not shown: ' .. why
end

--- Update on changes of sessions.
---@param acts bellboard.FloatActs
M.attach = function(acts)
  on = acts
  sessions.on_change('float', M.update)
end

return M
