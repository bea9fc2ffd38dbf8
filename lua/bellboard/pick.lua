local bellboard = require('bellboard')
local jump = require('bellboard.jump')
local ui = require('bellboard.ui')

local M = {}

local api = vim.api

--- Lines that a preview shows at most: enough for a screen, cheap for a thousand.
local PREVIEW_LINES = 200

---@param session bellboard.Session
---@return bellboard.Chunk[]
local function columns(session)
  local word, text = ui.doing(session)
  local where, branch = ui.project(session), ui.branch(session)
  local asks = text ~= '' and ('%s: %s'):format(word, text) or word
  local room = math.min(vim.o.columns, 130) - 30 -- numbers, icon, age and place around it
  local title = room >= 60 and 24 or 0
  local name = math.min(24, math.floor((room - title) * 0.4))
  return {
    { ui.fit(ui.icon(session), 2), ui.group(session) },
    { ui.fit(branch ~= '' and where .. ' ' .. branch or where, name) .. ' ', 'BellboardProject' },
    { title > 0 and ui.fit(ui.title(session), title) .. ' ' or '', 'BellboardDim' },
    { ui.fit(asks, room - name - title), 'BellboardDetail' },
    { ui.fit(ui.age(session.since), 5, true) .. '  ', 'BellboardDim' },
    { ui.cut(ui.place(session), 10), 'BellboardDim' },
  }
end

---@param session bellboard.Session
---@param in_chunks? boolean the picker draws coloured chunks
---@return string|bellboard.Chunk[]
local function format_item(session, in_chunks)
  local chunks = columns(session)
  if in_chunks == true then
    return chunks
  end
  local text = ''
  for _, chunk in ipairs(chunks) do
    text = text .. chunk[1]
  end
  return (text:gsub('%s+$', ''))
end

--- What the session shows, copied: showing a hidden terminal itself would resize the agent.
---@param session bellboard.Session
---@return string[]
M.preview = function(session)
  local buf = jump.buffer(session)
  if buf then
    local last = api.nvim_buf_line_count(buf)
    return api.nvim_buf_get_lines(buf, math.max(0, last - PREVIEW_LINES), last, false)
  end
  local screen = jump.capture(session)
  if screen then
    return screen
  end
  local lines = { ui.repository(session) .. ' ' .. ui.branch(session), '' }
  for _, key in ipairs({ 'title', 'last_prompt', 'detail', 'last_message', 'cwd', 'tty' }) do
    if session[key] then
      local name = key:gsub('_', ' ')
      lines[#lines + 1] = ('%-13s %s'):format(name, ui.safe(session[key]))
    end
  end
  return lines
end

---@param session bellboard.Session
---@return { buf: integer }
local function preview_item(session)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  api.nvim_buf_set_lines(buf, 0, -1, false, vim.tbl_map(ui.safe_line, M.preview(session)))
  return { buf = buf }
end

--- Choose a session and go there. Any `vim.ui.select` will do; better ones show the preview.
M.open = function()
  local sessions = bellboard.sessions()
  if #sessions == 0 then
    require('bellboard.panel').open() -- it says what to do next
    return
  end
  vim.ui.select(vim.list_extend({}, sessions), {
    prompt = 'Agent sessions',
    kind = 'bellboard',
    format_item = format_item,
    preview_item = preview_item,
    snacks = {
      format = function(entry)
        return columns(entry.item)
      end,
    },
  }, function(session)
    if session then
      bellboard.jump(session.session_id)
    end
  end)
end

return M
