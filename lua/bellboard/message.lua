-- Messages to the user.
local M = {}

--- Milliseconds until a prompt is looked at again: not every one that ends causes an event.
local UNTOLD = 1000
local GROUPS = { [vim.log.levels.WARN] = 'WarningMsg', [vim.log.levels.ERROR] = 'ErrorMsg' }

--- Whether messages go to the command line, where one that does not fit waits for ENTER.
---@return boolean|nil
local function is_echoed()
  if type(vim.notify) ~= 'function' then -- a table that can be called, as of nvim-notify
    return false
  end
  local source = debug.getinfo(vim.notify, 'S').source
  local is_own = source == '?' or source:find('^@vim/_') -- compiled into Neovim, or its own file
  return is_own and #vim.api.nvim_list_uis() > 0
end

--- The text without its middle: the end says what to do.
---@param text string
---@return string
local function fitted(text)
  local long, kept = vim.fn.strcharlen(text), vim.fn.strcharlen(text)
  local cut = text
  while kept > 2 and vim.api.nvim_strwidth(cut) > vim.v.echospace do
    kept = kept - 1
    local head = math.floor(kept * 0.6)
    cut = vim.fn.strcharpart(text, 0, head) .. '…' .. vim.fn.strcharpart(text, long - kept + head)
  end
  return cut
end

--- Show the start and the end of a text that does not fit; `:messages` has all of it.
---@param text string
---@param level integer
local function shorten(text, level)
  local short = vim.o.shortmess
  vim.opt.shortmess:append('T')
  vim.cmd.echohl(GROUPS[level] or 'None')
  vim.cmd.echomsg(vim.fn.string(text))
  vim.cmd.echohl('None')
  vim.o.shortmess = short
end

--- What begins each of our messages.
local PREFIX = 'bellboard: '

--- Whether a message shows all of a text.
---@param text string
---@return boolean
M.fits = function(text)
  local is_line = not text:find('\n') and vim.api.nvim_strwidth(PREFIX .. text) <= vim.v.echospace
  return is_line or not is_echoed()
end

--- Call vim.notify. A text that would wait for ENTER is shortened.
---@param text string
---@param level integer
---@param opts? table
---@return any
M.notify = function(text, level, opts)
  if not is_echoed() then
    return vim.notify(text, level, opts)
  end
  text = text:gsub('%s*\n%s*', '; ')
  local is_long, is_bare = vim.api.nvim_strwidth(text) > vim.v.echospace, vim.o.cmdheight == 0
  if is_long and not is_bare then
    return shorten(text, level)
  end
  -- With 'cmdheight' 0, Neovim shortens nothing, and an error of any length waits for ENTER.
  local waits = is_bare and level == vim.log.levels.ERROR
  return vim.notify(fitted(text), waits and vim.log.levels.WARN or level, opts)
end

--- Wait for the end of a prompt, where a message would be lost or hide what is typed.
---@param speak fun()
M.when_free = function(speak)
  local mode = vim.api.nvim_get_mode()
  if not mode.blocking and not mode.mode:find('^[cr!]') and mode.mode:sub(1, 2) ~= 'no' then
    return speak()
  end
  local waits
  local again = vim.schedule_wrap(function()
    if waits then
      pcall(vim.api.nvim_del_autocmd, waits)
      waits = nil
      M.when_free(speak)
    end
  end)
  waits = vim.api.nvim_create_autocmd('ModeChanged', {
    group = vim.api.nvim_create_augroup('bellboard.message', { clear = false }),
    once = true,
    callback = again,
  })
  vim.defer_fn(again, UNTOLD)
end

--- Scheduled, as a message may wait for a key.
---@param text string
---@param level integer
local function notify(text, level)
  vim.schedule(function()
    M.when_free(function()
      M.notify(PREFIX .. text, level)
    end)
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
