-- A copy of what a session shows: from its terminal here, its tmux pane, its terminal in another
-- Neovim, or the end of its transcript. Showing a hidden terminal itself would resize the agent's
-- screen. Nothing here blocks.
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local host = require('bellboard.process.talk')
local neighbour = require('bellboard.jump.neighbour')
local readable = require('bellboard.readable')
local sgr = require('bellboard.sgr')
local terminals = require('bellboard.terminals')
local tmux = require('bellboard.jump.tmux')

local M = {}

local api = vim.api

local LINES = 200 -- at most, enough for a screen
local TAIL = 64 * 1024 -- bytes to read of a transcript
local HEAD = 200 -- bytes that contain an entry's type

--- Run in another Neovim, which may have another version of this plugin.
local SHOWN = "return require('bellboard')._shown(...)"

---@alias bellboard.Lines fun(lines: string[]|nil, colours?: bellboard.Colour[])

---@param value any
---@return boolean
local function is_text(value)
  return type(value) == 'string'
end

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

--- What a terminal of this Neovim shows; other Neovims ask for it too.
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

---@param session bellboard.Session
---@param done bellboard.Lines
local function of_pane(session, done)
  if not tmux.has_pane(session) then
    done(nil)
    return
  end
  tmux.look(session.tmux, function(panes)
    local pane = panes and tmux.own(panes, session)
    if not pane then
      done(nil)
      return
    end
    tmux.capture(session.tmux, pane.id, function(lines)
      local plain, colours = sgr.parse(vim.list_slice(lines or {}, 1, LINES))
      local shown = tidy(plain)
      done(
        shown,
        vim.tbl_filter(function(colour)
          return shown ~= nil and colour.row < #shown
        end, colours)
      )
    end)
  end)
end

---@param session bellboard.Session
---@param done bellboard.Lines
local function of_neighbour(session, done)
  if not session.tty or not session.nvim or session.nvim == vim.v.servername then
    done(nil)
    return
  end
  neighbour.ask(session.nvim, SHOWN, { session.tty }, function(lines)
    done(lines and tidy(vim.tbl_filter(is_text, lines)))
  end)
end

--- What is known about a session.
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

--- What its terminal on another machine shows, or why that cannot be seen now.
---@param session bellboard.Session
---@param done bellboard.Lines
local function of_machine(session, done)
  host.ask('preview', { session_id = session.session_id }, function(reply)
    local shown = tidy(reply.rows or {})
    if not shown and not reply.ok then
      shown = vim.list_extend(facts(session), { '', cells.safe(reply.why) })
    end
    done(shown)
  end)
end

--- Add an entry's text; of a tool, only its name and purpose.
---@param entry table
---@param lines string[]
local function spoken(entry, lines)
  local message = type(entry.message) == 'table' and entry.message or {}
  local content = message.content
  if type(content) == 'string' then
    content = { { type = 'text', text = content } }
  end
  for _, part in ipairs(type(content) == 'table' and content or {}) do
    part = type(part) == 'table' and part or {}
    if part.type == 'text' and type(part.text) == 'string' then
      local mark = entry.type == 'user' and '> ' or ''
      for line in vim.gsplit(vim.trim(part.text), '\n') do
        lines[#lines + 1] = mark .. line
      end
      lines[#lines + 1] = ''
    elseif part.type == 'tool_use' then
      local input = type(part.input) == 'table' and part.input or {}
      local what = input.description or input.file_path or input.pattern or ''
      lines[#lines + 1] = cells.cut(cells.safe(('* %s %s'):format(part.name, what)), 80)
      lines[#lines + 1] = ''
    end
  end
end

---@param tail string the end of a transcript
---@param whole boolean whether it starts at the beginning of a line
---@return string[]|nil
local function conversation(tail, whole)
  local lines = {}
  for raw in vim.gsplit(tail, '\n', { plain = true }) do
    local head = raw:sub(1, HEAD)
    local private = head:find('"type":"api-request', 1, true)
    if whole and raw ~= '' and not private and not head:find('"isSidechain":true', 1, true) then
      local ok, entry = pcall(vim.json.decode, raw, { luanil = { object = true, array = true } })
      local said = ok and type(entry) == 'table' and not entry.isMeta and not entry.isSidechain
      if said and (entry.type == 'user' or entry.type == 'assistant') then
        spoken(entry, lines)
      end
    end
    whole = true
  end
  return tidy(lines)
end

--- Only a file of the user, by an absolute path: that may be anything.
---@param session bellboard.Session
---@param done bellboard.Lines
local function of_transcript(session, done)
  readable.read((session.transcript or ''):match('^/.*') or '', function(stat)
    return stat.uid == vim.uv.getuid() and math.max(0, stat.size - TAIL) or nil
  end, function(text, from)
    done(text and conversation(text, from == 0))
  end)
end

--- How a line begins, and its highlight group, for text that comes without colours.
---@type { [1]: string, [2]: string }[]
local BEGINNINGS = {
  { '^> ', 'BellboardRepository' },
  { '^%s*❯', 'BellboardMarked' },
  { '^%s*●', 'BellboardCompleted' },
  { '^%s*⏺', 'BellboardCompleted' },
  { '^%* ', 'BellboardDim' },
}

---@param lines string[]
---@return bellboard.Colour[]
local function coloured(lines)
  local colours = {}
  for row, line in ipairs(lines) do
    for _, beginning in ipairs(BEGINNINGS) do
      if line:find(beginning[1]) then
        colours[#colours + 1] = { row = row - 1, from = 0, to = #line, group = beginning[2] }
        break
      end
    end
  end
  return colours
end

--- What a session shows, from the first source that has it. `done` may be called at once.
---@param session bellboard.Session
---@param done fun(lines: string[], colours: bellboard.Colour[])
M.lines = function(session, done)
  local here = session.tty and M.of_terminal(session.tty)
  if here then
    done(here, coloured(here))
    return
  end
  local places, nth = { of_pane, of_neighbour, of_transcript }, 0
  if session.machine then
    places = { of_machine }
  end
  local function look_on(lines, colours)
    nth = nth + 1
    if lines then
      done(lines, colours or coloured(lines))
    elseif places[nth] then
      places[nth](session, look_on)
    else
      done(facts(session), {})
    end
  end
  look_on(nil)
end

--- Fill a buffer with what a session shows; until that arrives, with what is known about it.
---@param session bellboard.Session
---@param buf integer
---@param again? boolean it shows that session already
M.into = function(session, buf, again)
  local function put(lines, colours)
    if not api.nvim_buf_is_valid(buf) then
      return
    end
    canvas.replace(buf, lines)
    sgr.paint(buf, colours)
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      api.nvim_win_set_cursor(win, { #lines, 0 })
    end
  end
  if not again then
    put(facts(session), {})
  end
  M.lines(session, put)
end

return M
