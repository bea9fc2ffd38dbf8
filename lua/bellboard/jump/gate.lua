-- The gate: checks every socket of tmux or another Neovim before connecting to it, as gate.py does.
-- The socket and each directory and link on its path must belong to the user or root, and no one
-- else may write to those directories, unless they are sticky like /tmp. It never connects to a
-- host and port, nor to a socket on a FUSE file system, which may lie. Nothing here blocks.
local M = {}

local uv = vim.uv

local PATIENCE = 1000 -- ms; checking a path takes 1
local MOST_LINKS = 16
local ROOT, NOBODY = 0, 65534
local OTHERS, STICKY = 18, 512 -- bits of a mode: 0022, 01000
local ENOENT, ENOTDIR = 2, 20
--- Longest path of a socket's address; libuv would truncate a longer one.
local LONGEST = uv.os_uname().sysname == 'Linux' and 107 or 103
--- System directories. A rootless container shows them as owned by nobody.
local MACHINE = { '/', '/home', '/run', '/run/user', '/tmp', '/var', '/var/tmp' }

---@alias bellboard.Admitted fun(path: string|nil, why: string)

---@param uid integer
---@return boolean
local function is_ours(uid)
  return uid == ROOT or uid == uv.getuid()
end

--- Push the names in a path, last one first.
---@param path string
---@param waiting string[]
local function put(path, waiting)
  local names = vim.split(path, '/', { plain = true })
  for at = #names, 1, -1 do
    if names[at] ~= '' and names[at] ~= '.' then
      waiting[#waiting + 1] = names[at]
    end
  end
end

--- Mount points of FUSE and similar file systems.
---@return table<string, boolean>|nil nil if they cannot be read, as without free descriptors
---@return string|nil why
local function programs()
  local found, file, why, code = {}, io.open('/proc/self/mountinfo')
  if not file and code ~= ENOENT and code ~= ENOTDIR then
    return nil, why
  end
  for row in file and file:lines() or function() end do -- there is none but on Linux
    local place, kind = row:match('^%S+ %S+ %S+ %S+ (%S+) .- %- (%S+) ')
    if place and (kind:sub(1, 4) == 'fuse' or kind == 'virtiofs' or kind == '9p') then
      local path = place:gsub('\\(%d%d%d)', function(octal)
        return string.char(tonumber(octal, 8))
      end)
      found[path] = true
    end
  end
  if file then
    file:close()
  end
  return found
end

---@param path string
---@param stat uv.fs_stat.result
---@return string|nil why it is refused
local function objection(path, stat)
  local nobodys = stat.type == 'directory' and stat.uid == NOBODY
  if not (nobodys and vim.list_contains(MACHINE, path)) and not is_ours(stat.uid) then
    return path .. ' belongs to another user'
  elseif stat.type ~= 'directory' then
    return nil
  elseif bit.band(stat.mode, OTHERS) ~= 0 and bit.band(stat.mode, STICKY) == 0 then
    return 'others may write to ' .. path
  end
end

--- Resolve the path to connect to, or give nil and why it is refused.
---@param address any
---@param gone string the reason if nothing is there
---@param done bellboard.Admitted called once, in the main loop
local function admit(address, gone, done)
  local timer = assert(uv.new_timer())
  local function finish(path, why)
    if not timer:is_closing() then
      timer:close()
      vim.schedule(function()
        done(path, why or '')
      end)
    end
  end
  timer:start(PATIENCE, 0, function()
    finish(nil, 'its folder does not respond')
  end)
  if type(address) ~= 'string' or address:sub(1, 1) ~= '/' or address:find('\0', 1, true) then
    return finish(nil, 'not a local path')
  end

  local mounts, unread = programs()
  if not mounts then
    return finish(nil, 'the mounts cannot be read: ' .. unread)
  end
  local waiting, links = {}, 0
  put(address, waiting)

  ---@param here string the directory reached so far, without a trailing slash
  local function walk(here)
    local name = table.remove(waiting)
    while name == '..' do
      here = here:match('^(.*)/') or ''
      name = table.remove(waiting)
    end
    if not name then
      return finish(nil, 'not a socket')
    end
    local path = here .. '/' .. name
    if mounts[path] then
      return finish(nil, path .. ' is a FUSE mount')
    end
    uv.fs_lstat(path, function(failed, stat)
      if not stat then
        local is_gone = failed and failed:sub(1, 6) == 'ENOENT'
        return finish(nil, is_gone and gone or ('cannot be checked: %s'):format(failed))
      end
      local why = objection(path, stat)
      if why then
        finish(nil, why)
      elseif stat.type == 'directory' then
        walk(path)
      elseif stat.type == 'link' and links < MOST_LINKS then
        links = links + 1
        uv.fs_readlink(path, function(broken, target)
          if not target then
            return finish(nil, ('cannot be checked: %s'):format(broken))
          end
          put(target, waiting)
          walk(target:sub(1, 1) == '/' and '' or here)
        end)
      elseif stat.type == 'link' then
        finish(nil, 'too many links')
      elseif stat.type ~= 'socket' or #waiting > 0 then
        finish(nil, 'not a socket')
      elseif #path > LONGEST then
        finish(nil, 'path too long for a socket')
      else
        finish(path)
      end
    end)
  end
  uv.fs_lstat('/', function(_, stat)
    local why = stat and objection('/', stat)
    if why then
      finish(nil, why)
    else
      walk('')
    end
  end)
end

--- The user at the other end of a connection, if the system reports that.
---@param pipe uv.uv_pipe_t
---@return integer|nil
local function peer(pipe)
  local loaded, ffi = pcall(require, 'ffi')
  local fd = pipe:fileno()
  if not loaded or not fd then
    return nil
  end
  local known, uid = pcall(function()
    if ffi.os == 'Linux' then
      -- SOL_SOCKET and SO_PEERCRED: pid, uid, gid.
      pcall(ffi.cdef, 'int getsockopt(int, int, int, void *, unsigned int *);')
      local credentials, size = ffi.new('int[3]'), ffi.new('unsigned int[1]', 12)
      return ffi.C.getsockopt(fd, 1, 17, credentials, size) == 0 and tonumber(credentials[1]) or nil
    end
    pcall(ffi.cdef, 'int getpeereid(int, unsigned int *, unsigned int *);')
    local ids = ffi.new('unsigned int[2]')
    return ffi.C.getpeereid(fd, ids, ids + 1) == 0 and tonumber(ids[0]) or nil
  end)
  return known and uid or nil
end

--- The command line that runs a tmux command on a server.
---@param socket any
---@param command string[]
---@param done fun(argv: string[]|nil, why: string) called once, in the main loop
M.tmux = function(socket, command, done)
  admit(socket, 'no server running on ' .. tostring(socket), function(path, why)
    done(path and vim.list_extend({ 'tmux', '-u', '-S', path }, command), why)
  end)
end

--- Connect to the Neovim at an address.
---@param address any
---@param done fun(pipe: uv.uv_pipe_t|nil, why: string) called once, by the event loop
M.connect = function(address, done)
  admit(address, 'it has exited', function(path, why)
    if not path then
      return done(nil, why)
    end
    local pipe = assert(uv.new_pipe(false))
    local function answered(failed)
      local uid = not failed and peer(pipe) or nil
      if failed or (uid and not is_ours(uid)) then
        pipe:close()
        return done(nil, failed and 'it has exited' or 'another user listens there')
      end
      done(pipe, '')
    end
    if not pipe:connect(path, answered) then
      answered('cannot connect')
    end
  end)
end

return M
