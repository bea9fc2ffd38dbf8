-- Read a file that may be anything, on a file system that may hang, without waiting for it.
local M = {}

---@param path string
---@param from fun(stat: uv.fs_stat.result): integer|nil where to start; nil: do not read it
---@param done fun(text: string|nil, from: integer|nil) nil unless it is a regular file
M.read = function(path, from, done)
  done = vim.schedule_wrap(done)
  -- Without O_NONBLOCK, a FIFO would keep a thread of Neovim waiting, and Neovim from exiting.
  local flags = vim.uv.constants.O_RDONLY + vim.uv.constants.O_NONBLOCK
  vim.uv.fs_open(path, flags, 0, function(_, file)
    if not file then
      return done(nil)
    end
    vim.uv.fs_fstat(file, function(_, stat)
      local start = stat and stat.type == 'file' and from(stat)
      if not start then
        vim.uv.fs_close(file, function() end)
        return done(nil)
      end
      vim.uv.fs_read(file, stat.size - start, start, function(_, text)
        vim.uv.fs_close(file, function() end)
        done(text, start)
      end)
    end)
  end)
end

return M
