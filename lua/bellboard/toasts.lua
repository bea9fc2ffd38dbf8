-- What nvim-notify, or a plugin that takes its options, needs to replace the notification of a
-- session.
local M = {}

local api = vim.api

---@class bellboard.Toast
---@field text? string
---@field record? any result of vim.notify
---@field win? integer where nvim-notify shows it

---@type table<string, bellboard.Toast> by session
local toasts = {}

--- The module of nvim-notify, if it gets what is passed to vim.notify. noice.nvim replaces by
--- itself, and passes on functions of its own.
---@return table|nil
local function nvim_notify()
  local theirs, noice = package.loaded.notify, package.loaded['noice.source.notify']
  local is_noice = type(noice) == 'table' and noice.notify == vim.notify
  local is_there = type(theirs) == 'table' and type(theirs.history) == 'function'
  return is_there and not is_noice and theirs or nil
end

--- Whether nvim-notify shows that notification. To replace one that is gone would show nothing; and
--- once its history is cleared, its numbers are given to other notifications.
---@param toast bellboard.Toast
---@param theirs table
---@return boolean
local function is_shown(toast, theirs)
  if not (toast.win and api.nvim_win_is_valid(toast.win) and type(toast.record) == 'table') then
    return false
  end
  local ok, records = pcall(theirs.history, { include_hidden = true })
  return ok
    and vim.iter(records):any(function(record)
      return record.id == toast.record.id and vim.deep_equal(record.message, { toast.text })
    end)
end

--- Options for the next notification of a session.
---@param id string
---@return { replace?: any, on_open?: fun(win: integer) }
M.options = function(id)
  local toast, theirs = toasts[id] or {}, nvim_notify()
  if theirs and not is_shown(toast, theirs) then
    toast = {}
  end
  toasts[id] = toast
  local function on_open(win)
    toast.win = win
  end
  return { replace = toast.record, on_open = theirs and on_open or nil }
end

--- Remember what was shown, and what vim.notify returned for it.
---@param id string
---@param text string
---@param record any
M.keep = function(id, text, record)
  toasts[id].text, toasts[id].record = text, type(record) == 'table' and record or nil
end

return M
