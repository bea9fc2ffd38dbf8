-- A copy of a session's screen: from its terminal here, else as the background process reads it.
-- Showing a hidden terminal itself would resize the agent's screen. Nothing here blocks.
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local host = require('bellboard.process.talk')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

local LINES = 200 -- at most, enough for a screen
local PATIENCE = 5000 -- ms for the background process, which takes 10

---@class bellboard.Color of a part of a line
---@field row integer from 0
---@field from integer
---@field to integer
---@field group string

--- The last lines, made safe to show, without empty ones at the end.
---@param lines string[]
---@return string[]|nil
local function tidy(lines)
  local last = #lines
  while last > 0 and lines[last]:match('^%s*$') do
    last = last - 1
  end
  if last == 0 then
    return nil
  end
  return vim.tbl_map(cells.safe_line, vim.list_slice(lines, math.max(1, last - LINES + 1), last))
end

--- The lines of a terminal of this Neovim; other Neovims ask for them too.
---@param tty string
---@return string[]|nil
M.of_terminal = function(tty)
  local buf = terminals.buffer(tty)
  if not buf then
    return nil
  end
  -- A tall screen may end in many empty lines.
  return tidy(api.nvim_buf_get_lines(buf, -2 * LINES, -1, false))
end

--- The known facts about a session.
---@param session bellboard.Session
---@return string[]
local function facts(session)
  local words = session.words
  local machine = words.machine ~= '' and words.machine .. ':' or ''
  local lines = { vim.trim(('%s%s %s'):format(machine, words.repository, words.branch)), '' }
  for _, key in ipairs({ 'title', 'last_prompt', 'detail', 'last_message', 'cwd', 'tty' }) do
    if session[key] then
      lines[#lines + 1] = ('%-13s %s'):format(key:gsub('_', ' '), cells.safe(session[key]))
    end
  end
  return lines
end

--- Start of a line → highlight group, for text that comes without colors.
---@type { [1]: string, [2]: string }[]
local BEGINNINGS = {
  { '^> ', 'BellboardRepository' },
  { '^%s*❯', 'BellboardMarked' },
  { '^%s*●', 'BellboardCompleted' },
  { '^%s*⏺', 'BellboardCompleted' },
  { '^%* ', 'BellboardDim' },
}

---@param lines string[]
---@return bellboard.Color[]
local function colored(lines)
  local colors = {}
  for row, line in ipairs(lines) do
    for _, beginning in ipairs(BEGINNINGS) do
      if line:find(beginning[1]) then
        colors[#colors + 1] = { row = row - 1, from = 0, to = #line, group = beginning[2] }
        break
      end
    end
  end
  return colors
end

local MOST = 1000 -- highlight groups; more colors than that are not shown
---@type table<string, boolean>
local groups = {}
local count = 0

local namespace = api.nvim_create_namespace('bellboard.preview')

--- The highlight group with these attributes. Of the first 16 colors, Neovim knows the user's.
---@param look table
---@return string
local function group_of(look)
  local made = vim.tbl_extend('force', look, {})
  for _, side in ipairs({ 'fg', 'bg' }) do
    local own = vim.g['terminal_color_' .. tostring(look['cterm' .. side])]
    made[side] = type(own) == 'string' and own:match('^#%x%x%x%x%x%x$') or look[side]
  end
  local name = { 'BellboardPreview' }
  for key, value in vim.spairs(made) do
    name[#name + 1] = key .. tostring(value):gsub('#', '')
  end
  local group = table.concat(name, '_')
  if not groups[group] and count >= MOST then
    return 'Normal'
  end
  count, groups[group] = count + (groups[group] and 0 or 1), true
  made.faint = nil
  api.nvim_set_hl(0, group, look.faint and not look.fg and { link = 'BellboardDim' } or made)
  return group
end

---@param reply bellboard.Reply
---@return bellboard.Color[]
local function colors_of(reply)
  local looks = vim.tbl_map(group_of, reply.looks or {})
  return vim.tbl_map(function(span)
    return { row = span[1], from = span[2], to = span[3], group = looks[span[4] + 1] }
  end, reply.spans or {})
end

--- Color the text of a buffer.
---@param buf integer
---@param colors bellboard.Color[]
M.paint = function(buf, colors)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for _, color in ipairs(colors) do
    local opts = { end_col = color.to, hl_group = color.group }
    api.nvim_buf_set_extmark(buf, namespace, color.row, color.from, opts)
  end
end

--- What a session shows; if nothing does, what is known about it, and why. `done` may be called at
--- once.
---@param session bellboard.Session
---@param done fun(lines: string[], colors: bellboard.Color[])
M.lines = function(session, done)
  local here = session.tty and M.of_terminal(session.tty)
  if here then
    done(here, colored(here))
    return
  end
  local is_over = false
  ---@param reply bellboard.Reply
  local function finish(reply)
    local rows, colors = reply.rows or {}, colors_of(reply)
    if is_over then
      return
    elseif #rows == 0 then
      local why = cells.safe(reply.why)
      done(vim.list_extend(facts(session), why ~= '' and { '', why } or {}), {})
    else
      done(rows, #colors > 0 and colors or colored(rows))
    end
    is_over = true
  end
  host.ask('preview', { session_id = session.session_id }, finish)
  vim.defer_fn(function()
    finish({ ok = false, why = 'the background process does not respond' })
  end, PATIENCE)
end

--- Buffers that are being filled → the session that each has to show next.
---@type table<integer, bellboard.Session|false>
local filling = {}

--- Fill a buffer with what a session shows; until that arrives, with what is known about it.
---@param session bellboard.Session
---@param buf integer
---@param again? boolean it shows that session already
M.into = function(session, buf, again)
  local function put(lines, colors)
    if not api.nvim_buf_is_valid(buf) then
      return
    end
    canvas.replace(buf, lines)
    M.paint(buf, colors)
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      api.nvim_win_set_cursor(win, { #lines, 0 })
    end
  end
  if not again then
    put(facts(session), {})
  end
  if filling[buf] ~= nil then
    filling[buf] = session
    return
  end
  filling[buf] = false
  M.lines(session, function(lines, colors)
    local next_session = filling[buf]
    filling[buf] = nil
    if not next_session or next_session.session_id == session.session_id then
      put(lines, colors)
    end
    if next_session and api.nvim_buf_is_valid(buf) then
      M.into(next_session, buf, true)
    end
  end)
end

return M
