-- Remembers questions and messages that this user has seen once, in any Neovim: an empty file each.
local M = {}

---@param what string
---@return string
local function file(what)
  return vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'bellboard', what)
end

---@param what string
---@return boolean
M.is = function(what)
  return vim.uv.fs_stat(file(what)) ~= nil
end

--- Remember a question or message; false if it was remembered already, or cannot be.
---@param what string
---@return boolean first
M.note = function(what)
  pcall(vim.fn.mkdir, vim.fs.dirname(file(what)), 'p') -- if it fails, so does fs_open
  local opened = vim.uv.fs_open(file(what), 'wx', 384) -- 0600
  return opened ~= nil and vim.uv.fs_close(opened) == true
end

---@param what string
M.forget = function(what)
  vim.uv.fs_unlink(file(what))
end

return M
