-- Shows notices with vim.notify, the bell or the desktop.
local cells = require('bellboard.text')
local message = require('bellboard.message')
local outer = require('bellboard.outer_terminal')
local popup = require('bellboard.popup')
local sessions = require('bellboard.sessions')

local M = {}

--- A notice for this Neovim to show.
---@class bellboard.Notice
---@field channel 'notify'|'bell'|'desktop'
---@field session_id string
---@field status bellboard.Status
---@field title string
---@field text string
---@field sequence? string escape sequence that makes the terminal send a desktop notification

--- A past notice, of any Neovim.
---@class bellboard.PastNotice
---@field t number
---@field channel bellboard.Channel
---@field session_id string
---@field status? bellboard.Status
---@field why string of the change of status
---@field text string as it was shown; '' if that was not kept

local LEVELS = {
  blocked = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
  completed = vim.log.levels.INFO,
  background = vim.log.levels.INFO,
}

---@param notice bellboard.Notice
---@return string
local function line_of(notice)
  return cells.safe(notice.title .. (notice.text ~= '' and ': ' .. notice.text or ''))
end

---@type table<string, fun(notice: bellboard.Notice)>
local speak = {
  notify = function(notice)
    local id = 'bellboard.' .. notice.session_id
    message.tell({
      text = line_of(notice),
      level = LEVELS[notice.status],
      about = id,
      opts = {
        title = 'bellboard',
        id = id, -- by which snacks.nvim replaces the session's last notification
        key = id, -- and fidget.nvim
        ft = 'text', -- not Markdown: the text is from an agent
      },
    })
  end,
  bell = function()
    outer.send('\a')
  end,
  desktop = function(notice)
    outer.send(notice.sequence or '')
  end,
}

--- Show a notice.
---@param notice bellboard.Notice
M.show = function(notice)
  local loud = speak[notice.channel]
  if loud then
    loud(notice)
  end
end

--- Show past notices in a window, newest last; `<CR>` goes to the session of a line.
---@param log bellboard.PastNotice[]
M.history = function(log)
  local lines = {}
  for nth, past in ipairs(log) do
    local text = past.text
    if text == '' then
      local session = sessions.get(past.session_id)
      local name = session and session.words.project or past.session_id:sub(1, 8)
      text = ('%s: %s, %s'):format(name, past.status or 'ended', past.why)
    end
    local when = os.date('%d %b %H:%M:%S', math.floor(past.t)) --[[@as string]]
    lines[nth] = ('%s  %-8s %s'):format(when, past.channel, cells.safe(text))
  end
  if #log == 0 then
    return popup.window({ 'No notifications yet.' }, 'notifications')
  end
  popup.window(lines, 'notifications', true, function(row)
    require('bellboard.jump').to(log[row].session_id)
  end)
end

return M
