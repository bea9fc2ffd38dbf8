-- The moments at which Neovim allows an action, or at which it disturbs nobody. Waiting actions run
-- in the order of the calls.
local M = {}

local api = vim.api

--- Events after which a waiting action may be allowed.
local EVENTS =
  { 'ModeChanged', 'CmdlineLeave', 'CmdwinLeave', 'RecordingLeave', 'WinEnter', 'UIEnter' }
--- Milliseconds between looks: no event reports the end of a lock, nor that of every prompt.
local LOCKED, PAUSE = 50, 1000

---@alias bellboard.Moment 'draw'|'open'|'tell'|'read'|'ask'

--- Whether buffers and windows are locked (|textlock|), as while an expression mapping waits for a
--- key. Neovim checks the lock before the arguments, and no buffer has that number.
---@return boolean
local function is_locked()
  local _, why = pcall(api.nvim_buf_set_lines, -1, 0, 0, false, {})
  return why:find('E565', 1, true) ~= nil
end

---@type table<bellboard.Moment, fun(now: { mode: string, blocking: boolean }): boolean>
local allows = {
  --- Change buffers and windows.
  draw = function()
    return not is_locked()
  end,
  --- Open and enter windows: not from a command line or its window.
  open = function(now)
    return not now.mode:find('^c') and vim.fn.getcmdwintype() == '' and not is_locked()
  end,
  --- Show a message: a prompt would lose it, and a message would hide what is typed.
  tell = function(now)
    return not now.blocking and not now.mode:find('^[cr!]') and now.mode:sub(1, 2) ~= 'no'
  end,
  --- Read files again: the user is in normal or terminal mode, with no half-typed command.
  read = function(now)
    return not now.blocking and (now.mode == 'n' or now.mode:find('t$') ~= nil)
  end,
  --- Ask for a key: the user is in a normal window, and nothing else is going on there.
  ask = function(now)
    local is_busy = now.blocking or now.mode ~= 'n' or vim.fn.getcmdwintype() ~= ''
    return not (is_busy or vim.fn.reg_recording() ~= '' or is_locked())
      and api.nvim_win_get_config(0).relative == ''
      and #api.nvim_list_uis() > 0
  end,
}

---@type { moment: bellboard.Moment, act: fun() }[]
local waiting = {}
--- The moment of the call that runs now: a call for the same moment within it is a part of it.
---@type bellboard.Moment|nil
local running
local is_watching = false
local timer = assert(vim.uv.new_timer())
local group = api.nvim_create_augroup('bellboard.moment', {})

---@param moment bellboard.Moment
---@param act fun()
local function run(moment, act)
  local before = running
  running = moment
  local ok, problem = pcall(act)
  running = before
  if not ok then -- a failure holds nothing else up
    vim.schedule(function()
      error(problem, 0)
    end)
  end
end

--- The first call that is allowed now, and waits for no other call of its moment.
---@return { moment: bellboard.Moment, act: fun() }|nil
local function due()
  local now, allowed = api.nvim_get_mode(), {}
  for nth, call in ipairs(waiting) do
    if allowed[call.moment] == nil then
      allowed[call.moment] = allows[call.moment](now)
    end
    if allowed[call.moment] then
      return table.remove(waiting, nth)
    end
  end
end

local function look()
  local call = due()
  while call do
    run(call.moment, call.act)
    call = due()
  end
  if #waiting == 0 then
    timer:stop()
    is_watching = false
    return api.nvim_clear_autocmds({ group = group })
  end
  timer:start(is_locked() and LOCKED or PAUSE, 0, vim.schedule_wrap(look))
end

--- Call `act` now, or as soon as the moment allows it and earlier calls are done.
---@param moment bellboard.Moment
---@param act fun()
M.when = function(moment, act)
  local is_next = running == moment
    or not vim.iter(waiting):any(function(call)
      return call.moment == moment
    end)
  if is_next and allows[moment](api.nvim_get_mode()) then
    return run(moment, act)
  end
  waiting[#waiting + 1] = { moment = moment, act = act }
  if not is_watching then
    is_watching = true
    api.nvim_create_autocmd(EVENTS, { group = group, callback = vim.schedule_wrap(look) })
  end
  timer:start(is_locked() and LOCKED or PAUSE, 0, vim.schedule_wrap(look))
end

--- Close the command-line window if it is open, then call `act`.
---@param act fun()
M.after_command_window = function(act)
  if vim.fn.getcmdwintype() == '' then
    return act()
  end
  M.when('open', act)
  vim.cmd.quit()
end

return M
