-- Messages to the user.
local M = {}

--- Whether messages go to the command line, where one that does not fit waits for ENTER.
---@return boolean|nil
M.is_echoed = function()
  if type(vim.notify) ~= 'function' then -- a table that can be called, as of nvim-notify
    return false
  end
  local source = debug.getinfo(vim.notify, 'S').source
  local is_own = source == '?' or source:find('^@vim/_') -- compiled into Neovim, or its own file
  return is_own and #vim.api.nvim_list_uis() > 0
end

--- The text without its middle if it does not fit: the end says what to do.
---@param text string
---@return string
local function fitted(text)
  text = text:gsub('%s*\n%s*', '; ')
  local long, kept = vim.fn.strcharlen(text), vim.fn.strcharlen(text)
  local cut = text
  while kept > 2 and vim.api.nvim_strwidth(cut) > vim.v.echospace do
    kept = kept - 1
    local head = math.floor(kept * 0.6)
    cut = vim.fn.strcharpart(text, 0, head) .. '…' .. vim.fn.strcharpart(text, long - kept + head)
  end
  return cut
end

--- Call vim.notify.
---@param text string
---@param level integer
---@param opts? table
---@return any
M.notify = function(text, level, opts)
  -- With 'cmdheight' 0, an error of any length waits for ENTER.
  local waits = level == vim.log.levels.ERROR and vim.o.cmdheight == 0 and M.is_echoed()
  return vim.notify(text, waits and vim.log.levels.WARN or level, opts)
end

--- Scheduled, as a message may wait for a key.
---@param text string
---@param level integer
local function notify(text, level)
  vim.schedule(function()
    local whole = 'bellboard: ' .. text
    M.notify(M.is_echoed() and fitted(whole) or whole, level)
  end)
end

---@param text string
M.info = function(text)
  notify(text, vim.log.levels.INFO)
end

---@param text string
M.warn = function(text)
  notify(text, vim.log.levels.WARN)
end

---@param text string
M.error = function(text)
  notify(text, vim.log.levels.ERROR)
end

return M
