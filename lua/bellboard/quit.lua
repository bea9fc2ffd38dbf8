-- Quitting ends the agents in terminals of this Neovim. While one of them works or asks, it is
-- refused once, as Neovim refuses to abandon a changed buffer: by one, which exists only while
-- Neovim looks for them.
local config = require('bellboard.config')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local sessions = require('bellboard.sessions')
local terminals = require('bellboard.terminals')

local M = {}

local api = vim.api

--- Seconds for whoever was refused to quit again, or to see to the agents first.
local GRACE = 60
--- Agents that are named.
local MOST = 3
---@type table<bellboard.Status, string> in which an agent is not ended without a word
local BUSY = { blocked = 'asks', working = 'is at work' }

---@type table<string, number> the sessions that were named, and when
local named = {}
---@type fun() remove the buffer
local discard = function() end

---@return bellboard.Session[]
local function busy()
  return sessions.stale() and {}
    or vim.tbl_filter(function(session)
      local buf = BUSY[session.status] and terminals.of(session.tty, session.session_id)
      return buf ~= nil and (vim.bo[buf].buftype ~= 'terminal' or terminals.is_running(buf))
    end, sessions.list())
end

---@param ending bellboard.Session[]
---@return string who
---@return string hint
local function words(ending)
  local each = vim.tbl_map(function(session)
    return ('%s %s'):format(sessions.name(session), BUSY[session.status])
  end, vim.list_slice(ending, 1, MOST))
  if #ending > MOST then
    each[#each + 1] = ('%d more'):format(#ending - MOST)
  end
  return table.concat(each, ', '), ': quit again to end ' .. (#ending == 1 and 'it' or 'them')
end

--- Autocommands of others have nothing to do with that buffer.
---@param act fun()
local function silently(act)
  local before = vim.o.eventignore
  vim.o.eventignore = 'all'
  local ok, why = pcall(act)
  vim.o.eventignore = before
  if not ok then
    error(why, 0)
  end
end

--- The way back from where Neovim goes when it has found a changed buffer.
---@return fun()
local function origin()
  local win, last = api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr('#'))
  local alternate = vim.fn.bufnr('#')
  return function()
    if api.nvim_get_current_win() ~= win then
      for _, each in ipairs({ last, win }) do
        if api.nvim_win_is_valid(each) then
          api.nvim_set_current_win(each)
        end
      end
    end
    -- Within a function, Neovim forgets it.
    if alternate > 0 and vim.fn.bufnr('#') == api.nvim_get_current_buf() then
      vim.fn.setreg('#', alternate)
    end
  end
end

--- Make a changed buffer. It has a window, which Neovim enters: else the buffer would be shown in
--- place of the current one, and might end an agent there. It floats: `:quit` counts the others.
---@param name string
---@return integer
local function changed(name)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].buftype, vim.bo[buf].bufhidden = 'acwrite', 'wipe'
  pcall(api.nvim_buf_set_name, buf, name) -- a file may have it
  vim.bo[buf].modified = true
  -- stylua: ignore
  api.nvim_open_win(buf, false, {
    relative = 'editor', row = 0, col = 0, width = 1, height = 1,
    style = 'minimal', focusable = false, hide = true,
  })
  return buf
end

--- Have Neovim refuse to quit.
---@param ending bellboard.Session[]
local function refuse(ending)
  local who, hint = words(ending)
  local back, buf = origin(), nil
  silently(function()
    buf = changed(who .. hint)
  end)
  local is_written, group = false, api.nvim_create_augroup('bellboard.quit.refused', {})
  discard = function()
    discard = function() end
    api.nvim_clear_autocmds({ group = group })
    silently(function()
      back()
      api.nvim_buf_delete(buf, { force = true })
    end)
  end
  ---@param event string
  ---@param act fun()
  local function on(event, act)
    api.nvim_create_autocmd(event, { group = group, buffer = buf, callback = act })
  end
  on('BufWriteCmd', function()
    is_written = true -- and still changed: nothing of this can be saved
  end)
  on('BufEnter', function() -- Neovim has named the buffer
    discard()
  end)
  api.nvim_create_autocmd('VimLeavePre', {
    group = group,
    callback = function()
      discard()
    end,
  })
  for _, session in ipairs(ending) do
    named[session.session_id] = sessions.now()
  end
  vim.schedule(function()
    moment.when('tell', function() -- once Neovim has asked about the other changed buffers
      if api.nvim_buf_is_valid(buf) then
        discard()
        message.warn(who .. (is_written and '' or hint)) -- `:wqall` goes on refusing
      end
    end)
  end)
end

M.attach = function()
  api.nvim_create_autocmd('ExitPre', {
    group = api.nvim_create_augroup('bellboard.quit', {}),
    callback = function()
      discard()
      local ending = config.get().refuse_quit and busy() or {}
      local is_news = vim.iter(ending):any(function(session)
        return sessions.now() - (named[session.session_id] or 0) > GRACE
      end)
      if is_news then
        refuse(ending)
      end
    end,
  })
end

return M
