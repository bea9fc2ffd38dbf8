-- The picker of `:ClaudeSessions`.
local age = require('bellboard.view.age')
local cells = require('bellboard.view.cells')
local place = require('bellboard.view.place')
local preview = require('bellboard.view.preview')
local sessions = require('bellboard.state.sessions')
local style = require('bellboard.view.style')
local tmux = require('bellboard.system.tmux')

local M = {}

local api = vim.api

---@class bellboard.PickLayout widths of the columns
---@field name integer
---@field title integer
---@field asks integer

---@class bellboard.PickTexts
---@field name string project and branch
---@field title string
---@field asks string what it asks or does

---@type table<bellboard.Session, bellboard.PickTexts> a changed session is a new table
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

--- Columns no wider than their contents. The question gets the remaining width.
---@param all bellboard.Session[]
---@param width integer
---@return bellboard.PickLayout
M.layout = function(all, width)
  local name, title, asks = 0, 0, 0
  for _, session in ipairs(all) do
    local texts = texts_of(session)
    name = math.max(name, cells.width(texts.name))
    title = math.max(title, cells.width(texts.title))
    asks = math.max(asks, cells.width(texts.asks))
  end
  name = math.min(name, 28, math.floor(width / 4))
  title = width >= 70 and math.min(title, 24, math.floor(width / 5)) or 0
  local others = 2 + name + 2 + (title > 0 and title + 2 or 0) + 7 + 10 -- icon, age, place
  return { name = name, title = title, asks = math.min(asks, math.max(16, width - others)) }
end

--- A line of the picker, in highlighted chunks.
---@param session bellboard.Session
---@param layout bellboard.PickLayout
---@return bellboard.Chunk[]
M.columns = function(session, layout)
  local texts = texts_of(session)
  local title = layout.title > 0 and cells.fit(texts.title, layout.title) .. '  ' or ''
  return {
    { cells.fit(style.icon(session), 2), style.group(session) },
    { cells.fit(texts.name, layout.name) .. '  ', 'BellboardProject' },
    { title, 'BellboardDim' },
    { cells.fit(texts.asks, layout.asks), 'BellboardDetail' },
    { cells.fit(age.of(session.since), 5, true) .. '  ', 'BellboardDim' },
    { cells.cut(place.of(session), 10), 'BellboardDim' },
  }
end

--- The text that a search matches, uncut.
---@param session bellboard.Session
---@return string
M.words = function(session)
  local texts = texts_of(session)
  return table.concat({ texts.name, texts.title, texts.asks, place.of(session) }, ' ')
end

---@param session bellboard.Session
---@return { buf: integer }
local function preview_item(session)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  preview.into(session, buf)
  return { buf = buf, pos = { api.nvim_buf_line_count(buf), 0 } }
end

--- The sessions to choose from. Also updates the names of their panes for the next time.
---@return bellboard.Session[]|nil nil if there are none: then the board shows what to do
M.sessions = function()
  local all = sessions.list()
  if #all == 0 then
    require('bellboard.view.board').open() -- it shows what to do next
    return nil
  end
  tmux.learn(all, require('bellboard.view.redraw').all, true)
  return vim.list_extend({}, all)
end

--- Choose a session and go there, with any `vim.ui.select`; some show the preview.
M.open = function()
  local all = M.sessions()
  if not all then
    return
  end
  -- Leave room for numbers and a border; longer lines are hard to follow.
  local layout = M.layout(all, math.min(vim.o.columns, 140) - 8)
  vim.ui.select(all, {
    prompt = 'Agent sessions',
    kind = 'bellboard',
    format_item = function(session, in_chunks)
      local chunks, text = M.columns(session, layout), ''
      if in_chunks == true then -- this picker supports chunks
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
      vim.schedule(function() -- some pickers call this in nvim_win_call(), which goes back
        require('bellboard.action.jump').to(session.session_id)
      end)
    end
  end)
end

return M
