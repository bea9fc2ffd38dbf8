-- Keeps keys of a view from counting until none has been pressed for a moment: what is typed before
-- was meant for something else.
local config = require('bellboard.config')

local M = {}

local api = vim.api

--- With 'mousemoveevent', this is no key.
local MOUSE_MOVE = vim.keycode('<MouseMove>')

--- Whether the user has pressed a key.
---@param typed string as from |vim.on_key()|
---@return boolean
M.is_key = function(typed)
  return typed ~= '' and typed ~= MOUSE_MOVE
end

---@class bellboard.Guard
---@field is_ready fun(): boolean whether keys count yet
---@field wait fun() let them count once none has been pressed for a moment
---@field keep fun(buf: integer, waits?: fun()) wait now, and whenever a window of that is entered

---@param settled? fun() called once they count
---@return bellboard.Guard
M.new = function(settled)
  local guard, namespace = {}, api.nvim_create_namespace('')
  local ready = 0 -- when they start to count, in nanoseconds

  guard.is_ready = function()
    return vim.uv.hrtime() >= ready
  end

  guard.wait = function()
    local pause = config.get().answer.ready * 1e9
    local mine = vim.uv.hrtime() + pause
    ready = mine
    local function look()
      local left = mine - vim.uv.hrtime()
      if mine ~= ready then
        return -- a key was pressed
      elseif left > 0 then -- early: a timer counts from the start of this pass of the event loop
        return vim.defer_fn(look, math.ceil(left / 1e6))
      end
      vim.on_key(nil, namespace)
      if settled then
        settled()
      end
    end
    vim.defer_fn(look, math.ceil(pause / 1e6))
    vim.on_key(function(_, typed)
      if M.is_key(typed) and not guard.is_ready() then
        guard.wait()
      end
    end, namespace)
  end

  -- Also in the middle of typing: Neovim enters it if the user closes a window beside it.
  guard.keep = function(buf, waits)
    api.nvim_create_autocmd('WinEnter', {
      buffer = buf,
      callback = function()
        guard.wait()
        if waits then
          waits()
        end
      end,
    })
    guard.wait()
  end

  return guard
end

return M
