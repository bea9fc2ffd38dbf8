-- Decides whether to start in this Neovim: only if a user sees it, and not just to edit a message.
local M = {}

--- File types of messages for which a version control system opens an editor.
local MESSAGES = { gitcommit = true, gitrebase = true, hgcommit = true, jjdescription = true }
--- Files of git without such a type.
local HUNK = '%.git/.*addp%-hunk%-edit%.diff$'

--- Whether Neovim was started by git or the like to edit a message.
---@return boolean
local function edits_message()
  local path = vim.fn.argc() == 1 and vim.fn.argv(0) --[[@as string]] or ''
  if path == '' then
    return false
  end
  local named = vim.filetype.match({ filename = path })
  return MESSAGES[named or vim.bo.filetype] or path:find(HUNK) ~= nil
end

--- Whether to start automatically.
---@param auto_start boolean|fun(): boolean
---@return boolean
M.wanted = function(auto_start)
  if type(auto_start) ~= 'function' then
    return auto_start and not (vim.g.vscode or edits_message()) -- VSCode draws no floats
  end
  local ok, wanted = pcall(auto_start)
  if not ok then
    require('bellboard.message').warn('error in auto_start: ' .. tostring(wanted))
  end
  return ok and wanted == true
end

--- Start if configured, once a user interface is attached: never in `nvim --headless`, `-l` or
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
