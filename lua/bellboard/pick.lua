local bellboard = require('bellboard')
local preview = require('bellboard.preview')
local tmux = require('bellboard.tmux')
local ui = require('bellboard.ui')

local M = {}

local api = vim.api

---@class bellboard.PickLayout how wide the columns are
---@field name integer
---@field title integer
---@field asks integer

---@class bellboard.PickTexts
---@field name string repository and branch, by which a session is known
---@field title string
---@field asks string what it asks or does

---@type table<bellboard.Session, bellboard.PickTexts> a changed session is another table
local kept = setmetatable({}, { __mode = 'k' })

---@param session bellboard.Session
---@return bellboard.PickTexts
local function texts_of(session)
  if not kept[session] then
    local words = session.words
    kept[session] = {
      name = vim.trim(words.project .. ' ' .. words.branch),
      title = words.title,
      asks = words.text ~= '' and ('%s: %s'):format(words.word, words.text) or words.word,
    }
  end
  return kept[session]
end

--- Columns no wider than what is in them; what it asks gets what the others leave.
---@param sessions bellboard.Session[]
---@param width integer
---@return bellboard.PickLayout
M.layout = function(sessions, width)
  local name, title, asks = 0, 0, 0
  for _, session in ipairs(sessions) do
    local texts = texts_of(session)
    name = math.max(name, ui.width(texts.name))
    title = math.max(title, ui.width(texts.title))
    asks = math.max(asks, ui.width(texts.asks))
  end
  name = math.min(name, 28, math.floor(width / 4))
  title = width >= 70 and math.min(title, 24, math.floor(width / 5)) or 0
  local others = 2 + name + 2 + (title > 0 and title + 2 or 0) + 7 + 10 -- icon, age, place
  return { name = name, title = title, asks = math.min(asks, math.max(16, width - others)) }
end

--- What a picker's line says, in coloured pieces.
---@param session bellboard.Session
---@param layout bellboard.PickLayout
---@return bellboard.Chunk[]
M.columns = function(session, layout)
  local texts = texts_of(session)
  local title = layout.title > 0 and ui.fit(texts.title, layout.title) .. '  ' or ''
  return {
    { ui.fit(ui.icon(session), 2), ui.group(session) },
    { ui.fit(texts.name, layout.name) .. '  ', 'BellboardProject' },
    { title, 'BellboardDim' },
    { ui.fit(texts.asks, layout.asks), 'BellboardDetail' },
    { ui.fit(ui.age(session.since), 5, true) .. '  ', 'BellboardDim' },
    { ui.cut(ui.place(session), 10), 'BellboardDim' },
  }
end

--- Everything by which a session may be looked for, nothing of it cut.
---@param session bellboard.Session
---@return string
M.words = function(session)
  local texts = texts_of(session)
  return table.concat({ texts.name, texts.title, texts.asks, ui.place(session) }, ' ')
end

---@param session bellboard.Session
---@return { buf: integer }
local function preview_item(session)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  preview.into(session, buf)
  return { buf = buf, pos = { api.nvim_buf_line_count(buf), 0 } }
end

--- The sessions to choose from, most urgent first, then oldest first; where they are is looked up
--- anew for the next time.
---@return bellboard.Session[]|nil none: what to do about it is shown instead
M.sessions = function()
  local sessions = bellboard.sessions()
  if #sessions == 0 then
    require('bellboard.panel').open() -- it says what to do next
    return nil
  end
  tmux.learn(sessions, bellboard._refresh, true)
  return vim.list_extend({}, sessions)
end

--- Choose a session and go there. Any `vim.ui.select` will do; better ones show the preview.
M.open = function()
  local sessions = M.sessions()
  if not sessions then
    return
  end
  -- Numbers and a border stand around it; wider than this, no eye follows a line.
  local layout = M.layout(sessions, math.min(vim.o.columns, 140) - 8)
  vim.ui.select(sessions, {
    prompt = 'Agent sessions',
    kind = 'bellboard',
    format_item = function(session, in_chunks)
      local chunks, text = M.columns(session, layout), ''
      if in_chunks == true then -- this picker draws coloured pieces
        return chunks
      end
      for _, chunk in ipairs(chunks) do
        text = text .. chunk[1]
      end
      return (text:gsub('%s+$', ''))
    end,
    preview_item = preview_item,
    snacks = {
      format = function(entry)
        return M.columns(entry.item, layout)
      end,
    },
  }, function(session)
    if session then
      vim.schedule(function() -- some pickers call this within nvim_win_call(), which comes back
        bellboard.jump(session.session_id)
      end)
    end
  end)
end

return M
