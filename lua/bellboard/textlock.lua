-- The lock on buffers and windows (|textlock|), for example while an expression mapping waits for a
-- key. Messages of the background process and timers run even then.
local M = {}

local api = vim.api

local PAUSE = 50 -- ms until the lock is looked at again: nothing reports its end

---@type fun()[] what waits for the end of the lock, in order
local waiting = {}
local is_armed = false

--- Neovim checks the lock before the arguments, and no buffer has that number.
---@return boolean
local function is_locked()
  local _, why = pcall(api.nvim_buf_set_lines, -1, 0, 0, false, {})
  return why:find('E565', 1, true) ~= nil
end

local function run()
  while waiting[1] and not is_locked() do
    local ok, problem = pcall(table.remove(waiting, 1))
    if not ok then -- what waits behind it does not wait for it
      vim.schedule(function()
        error(problem, 0)
      end)
    end
  end
  if waiting[1] and not is_armed then
    is_armed = true
    vim.defer_fn(function()
      is_armed = false
      run()
    end, PAUSE)
  end
end

--- Do something that changes buffers or windows: now, or once it is allowed and all that came
--- before is done.
---@param act fun()
M.after = function(act)
  waiting[#waiting + 1] = act
  run()
end

return M
