-- Whether this Neovim is one to start with: someone sits in front of it, and not for one message.
local M = {}

--- File types of what a version control system opens an editor for.
local ERRANDS = { gitcommit = true, gitrebase = true, hgcommit = true, jjdescription = true }
--- Files of git that have no such type.
local HUNK = '%.git/.*addp%-hunk%-edit%.diff$'

--- Neovim was started by git or the like, to edit one message.
---@return boolean
local function is_errand()
  local path = vim.fn.argc() == 1 and vim.fn.argv(0) --[[@as string]] or ''
  if path == '' then
    return false
  end
  local named = vim.filetype.match({ filename = path })
  return ERRANDS[named or vim.bo.filetype] or path:find(HUNK) ~= nil
end

--- Whether to start by itself.
---@param auto_start boolean|fun(): boolean
---@return boolean
M.wanted = function(auto_start)
  if type(auto_start) ~= 'function' then
    return auto_start and not is_errand()
  end
  local ok, wanted = pcall(auto_start)
  if not ok then
    require('bellboard.message').warn('error in auto_start: ' .. tostring(wanted))
  end
  return ok and wanted == true
end

--- Start if that is wanted, once a user interface is attached: never in `nvim --headless`, `-l` or
--- `-es`.
---@param auto_start boolean|fun(): boolean
---@param start fun()
M.await = function(auto_start, start)
  if not M.wanted(auto_start) then
    return
  elseif #vim.api.nvim_list_uis() > 0 then
    return start()
  end
  local opts = { once = true, callback = vim.schedule_wrap(start) }
  vim.api.nvim_create_autocmd('UIEnter', opts)
end

return M
