-- Runs code in another Neovim, over its socket. sockconnect() and rpcrequest() would block while
-- the other Neovim is stopped or waits for a key.
local gate = require('bellboard.system.gate')

local M = {}

local PATIENCE = 500 -- ms; a response takes 1

local REQUEST, RESPONSE = 0, 1

--- Run Lua code in another Neovim. `done` is called once, in the main loop, with the result, or
--- with nil and the reason.
---@param address string of its server
---@param code string
---@param arguments any[]
---@param done fun(result: any, why: string)
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

  --- Even a Neovim that waits for a key responds to nvim_get_mode. Only send the code if it does
  --- not, or it would run unexpectedly later.
  local asked = false
  local function answered(message)
    if message[1] ~= RESPONSE then
      return
    elseif message[3] ~= vim.NIL and message[3] ~= nil then
      finish(nil, tostring(message[3][2] or message[3]))
    elseif asked then
      finish(message[4])
    elseif message[4].blocking then
      finish(nil, 'it is waiting for a key')
    else
      asked = true
      call('nvim_exec_lua', { code, arguments })
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
    pipe:read_start(function(broken, data)
      if broken or not data then
        finish(nil, 'it is gone')
        return
      end
      local at = 1
      while at <= #data and not timer:is_closing() do
        local message
        message, at = unpack(data, at)
        if message ~= nil then
          answered(message)
        end
      end
    end)
    call('nvim_get_mode', { nil })
  end)
end

return M
