-- Shows notices with vim.notify, the bell or the desktop.
local cells = require('bellboard.text')
local message = require('bellboard.message')
local popup = require('bellboard.popup')
local sessions = require('bellboard.sessions')
local toasts = require('bellboard.toasts')

local M = {}

local api = vim.api

--- A notice for this Neovim to show.
---@class bellboard.Notice
---@field channel 'notify'|'bell'|'desktop'
---@field session_id string
---@field status bellboard.Status
---@field title string
---@field text string
---@field sequence? string escape sequence that makes the terminal send a desktop notification

--- A past notice, of any Neovim.
---@class bellboard.Rung
---@field t number
---@field channel bellboard.Channel
---@field session_id string
---@field status? bellboard.Status
---@field why string

local LEVELS = {
  blocked = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
  completed = vim.log.levels.INFO,
  background = vim.log.levels.INFO,
}

---@type table<string, integer> notification of mini.notify by session
local minis = {}

---@param notice bellboard.Notice
---@return string
local function line_of(notice)
  return cells.safe(notice.title .. (notice.text ~= '' and ': ' .. notice.text or ''))
end

--- Whether mini.notify shows what vim.notify gets. It may be set up for the progress of language
--- servers only.
---@param mini any
---@return boolean
local function is_shown_by(mini)
  local is_there = type(mini) == 'table' and type(mini.get_all) == 'function'
  local source = type(vim.notify) == 'function' and debug.getinfo(vim.notify, 'S').source or ''
  return is_there and source:find('mini[/.]notify') ~= nil
end

--- mini.notify cannot replace: remove the session's last notification, and remember the new one.
---@param id string
local function forget_mini(id)
  local mini = rawget(_G, 'MiniNotify')
  if not is_shown_by(mini) then
    return
  end
  pcall(mini.remove, minis[id])
  vim.schedule(function() -- after mini.notify's own scheduled call
    minis[id] = vim.iter(vim.tbl_keys(mini.get_all())):fold(0, math.max)
  end)
end

---@type table<string, fun(notice: bellboard.Notice)>
local speak = {
  notify = function(notice)
    local id = 'bellboard.' .. notice.session_id
    local text = line_of(notice)
    message.tell({
      text = text,
      level = LEVELS[notice.status],
      short = cells.safe(notice.title),
      about = id,
      opts = function()
        return vim.tbl_extend('error', toasts.options(id), {
          title = 'bellboard',
          id = id, -- snacks.nvim
          key = id, -- fidget.nvim
          ft = 'text', -- not Markdown: the text is from an agent
        })
      end,
      shown = function(record)
        toasts.keep(id, text, record)
        forget_mini(id)
      end,
    })
  end,
  bell = function()
    M.send('\a')
  end,
  desktop = function(notice)
    M.send(notice.sequence or '')
  end,
}

--- Send an escape sequence to the terminal of this Neovim.
---@param sequence string
M.send = function(sequence)
  if vim.env.TMUX and sequence:sub(1, 1) == '\27' then -- tmux only passes on wrapped sequences
    sequence = '\27Ptmux;' .. sequence:gsub('\27', '\27\27') .. '\27\\'
  end
  if api.nvim_ui_send then
    api.nvim_ui_send(sequence)
  else
    api.nvim_chan_send(vim.v.stderr, sequence)
  end
end

--- Show a notice.
---@param notice bellboard.Notice
M.show = function(notice)
  local loud = speak[notice.channel]
  if loud then
    loud(notice)
  end
end

--- Show past notices in a window, newest last.
---@param rung bellboard.Rung[]
M.history = function(rung)
  local lines = {}
  for nth, one in ipairs(rung) do
    local session = sessions.get(one.session_id)
    local name = session and session.words.project or one.session_id:sub(1, 8)
    local words = { one.channel, name, one.status or 'ended', cells.safe(one.why) }
    local when = os.date('%d %b %H:%M:%S', math.floor(one.t)) --[[@as string]]
    lines[nth] = ('%s  %-8s %-16s %-10s %s'):format(when, unpack(words))
  end
  popup.window(#lines > 0 and lines or { 'No notifications yet.' }, 'notifications', true)
end

return M
