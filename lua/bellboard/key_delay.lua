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
---@field keep fun(buf: integer) wait now, whenever a window of that is entered, and after each key
---  of a prompt or command line while it exists

---@param settled? fun() called once they count
---@param waits? fun() called once they have to wait
---@return bellboard.Guard
M.new = function(settled, waits)
  -- Only one: if another is added while Neovim calls the callbacks of all, it skips some, or calls
  -- them twice.
  local guard, namespace = {}, api.nvim_create_namespace('')
  local ready = 0 -- when they start to count, in nanoseconds
  local kept = {} ---@type table<integer, true> buffers

  local function again()
    guard.wait()
    if waits then
      waits()
    end
  end

  -- The key that ends a prompt has its usual effect as well, and what follows may be of the prompt.
  local function heed(_, typed)
    if not M.is_key(typed) then
      return
    elseif not guard.is_ready() then
      return guard.wait()
    end
    for buf in pairs(kept) do
      kept[buf] = api.nvim_buf_is_loaded(buf) or nil
    end
    if not next(kept) then
      vim.on_key(nil, namespace)
    elseif api.nvim_get_mode().mode:find('^[cr]') then
      again()
    end
  end

  guard.is_ready = function()
    return vim.uv.hrtime() >= ready
  end

  guard.wait = function()
    local pause = config.get().answer.key_delay * 1e9
    local mine = vim.uv.hrtime() + pause
    ready = mine
    local function look()
      local left = mine - vim.uv.hrtime()
      if mine ~= ready then
        return -- a key was pressed
      elseif left > 0 then -- early: a timer counts from the start of this pass of the event loop
        return vim.defer_fn(look, math.ceil(left / 1e6))
      end
      vim.on_key(next(kept) and heed or nil, namespace)
      if settled then
        settled()
      end
    end
    vim.defer_fn(look, math.ceil(pause / 1e6))
    vim.on_key(heed, namespace)
  end

  -- Also in the middle of typing: Neovim enters it if the user closes a window beside it.
  guard.keep = function(buf)
    api.nvim_create_autocmd('WinEnter', { buffer = buf, callback = again })
    kept[buf] = true
    guard.wait()
  end

  return guard
end

return M
