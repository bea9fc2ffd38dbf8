-- Runs code in another Neovim, over its socket. sockconnect() and rpcrequest() would block while
-- the other Neovim is stopped or waits for a key.
local gate = require('bellboard.jump.gate')

local M = {}

local PATIENCE = 500 -- ms; a response takes 1
local MOST = 2 ^ 20 -- bytes of all responses; a terminal of 200 rows has 100 kB
local LONGEST = 500 -- bytes of an error

local REQUEST, RESPONSE = 0, 1

--- Run Lua code in another Neovim that returns a table. `done` is called once, in the main loop,
--- with that table, or with nil and the reason.
---@param address string of its server
---@param code string
---@param arguments any[]
---@param done fun(result: table|nil, why: string)
M.ask = function(address, code, arguments, done)
  local pipe ---@type uv.uv_pipe_t|nil
  local timer = assert(vim.uv.new_timer())
  local unpack = vim.mpack.Unpacker()

  local function finish(result, why)
    if not timer:is_closing() then
      timer:close()
      if pipe then
        pipe:close()
      end
      vim.schedule(function()
        done(result, why or '')
      end)
    end
  end

  ---@param method string
  ---@param given any[]
  local function call(method, given)
    pipe:write(vim.mpack.encode({ REQUEST, 0, method, given }))
  end

  --- Even a Neovim that waits for a key responds to nvim_get_mode. Send the code only to
  --- one that does not wait, or it would run later, unexpectedly.
  local asked = false
  local function answered(message)
    local problem, result = message[3], message[4]
    if message[1] ~= RESPONSE then
      return
    elseif problem ~= vim.NIL then
      finish(nil, tostring(problem[2]):sub(1, LONGEST))
    elseif asked then
      finish(type(result) == 'table' and result or nil, 'it has nothing to show')
    elseif result.blocking then
      finish(nil, 'it is waiting for a key')
    elseif result.blocking == false then
      asked = true
      call('nvim_exec_lua', { code, arguments })
    else
      error('not a mode')
    end
  end

  --- Take what it sends; an error if that is not what a Neovim sends.
  local function take(data)
    local at = 1
    while at <= #data and not timer:is_closing() do
      local message
      message, at = unpack(data, at)
      if message ~= nil then
        answered(message)
      end
    end
  end

  timer:start(PATIENCE, 0, function()
    finish(nil, 'it does not respond')
  end)
  gate.connect(address, function(connected, why)
    if not connected or timer:is_closing() then
      if connected then
        connected:close()
      end
      return finish(nil, why)
    end
    pipe = connected
    local left = MOST
    pipe:read_start(function(broken, data)
      left = left - #(data or '')
      if broken or not data then
        finish(nil, 'it closed the connection')
      elseif left < 0 then
        finish(nil, 'its reply is too long')
      elseif not pcall(take, data) then
        finish(nil, 'its reply is not valid')
      end
    end)
    call('nvim_get_mode', { nil })
  end)
end

return M
