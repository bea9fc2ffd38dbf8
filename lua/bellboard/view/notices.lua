local cells = require('bellboard.view.cells')
local sessions = require('bellboard.state.sessions')

local M = {}

local api = vim.api

--- What this Neovim is to say, as the host decided.
---@class bellboard.Notice
---@field channel 'notify'|'bell'|'desktop'
---@field session_id string
---@field status bellboard.Status
---@field title string
---@field text string
---@field sequence? string the escape sequence that makes the terminal tell its desktop

--- What was said, by whichever Neovim.
---@class bellboard.Rung
---@field t number
---@field channel bellboard.Channel
---@field session_id string
---@field status? bellboard.Status
---@field why string

local LEVELS = {
  blocked = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
  completed = vim.log.levels.INFO,
  background = vim.log.levels.INFO,
}

---@type table<string, any> what vim.notify gave back, by session; nvim-notify replaces by it
local records = {}
---@type table<string, integer> the notification of mini.notify, by session
local minis = {}

--- Wait until a message is no bother: in a prompt it would be lost, or push away what is typed.
---@param speak fun()
local function when_free(speak)
  local mode = api.nvim_get_mode()
  if not mode.blocking and not mode.mode:find('^[cr!]') and mode.mode:sub(1, 2) ~= 'no' then
    return speak()
  end
  api.nvim_create_autocmd('ModeChanged', {
    group = api.nvim_create_augroup('bellboard.notice', { clear = false }),
    once = true,
    callback = function()
      vim.schedule(function()
        when_free(speak)
      end)
    end,
  })
end

--- One line that fits the command line: a longer one would wait for a key.
---@param notice bellboard.Notice
---@return string
local function line_of(notice)
  local text = notice.text ~= '' and (': ' .. notice.text) or ''
  return cells.cut(cells.safe(notice.title .. text), math.max(20, vim.v.echospace))
end

--- mini.notify knows no replacing: take the last one of this session away, and remember the new.
---@param id string
local function forget_mini(id)
  local mini = rawget(_G, 'MiniNotify')
  if type(mini) ~= 'table' or type(mini.get_all) ~= 'function' then
    return
  end
  pcall(mini.remove, minis[id])
  vim.schedule(function() -- it adds in one of its own, before this
    minis[id] = vim.iter(vim.tbl_keys(mini.get_all())):fold(0, math.max)
  end)
end

---@type table<string, fun(notice: bellboard.Notice)>
local speak = {
  notify = function(notice)
    local id = 'bellboard.' .. notice.session_id
    local opts = {
      title = 'bellboard',
      id = id, -- snacks.nvim
      key = id, -- fidget.nvim
      replace = records[id], -- nvim-notify
      ft = 'text', -- not Markdown: an agent wrote it
    }
    local ok, record = pcall(vim.notify, line_of(notice), LEVELS[notice.status], opts)
    if not ok and opts.replace then -- it is gone from there
      opts.replace = nil
      record = vim.notify(line_of(notice), LEVELS[notice.status], opts)
    end
    records[id] = type(record) == 'table' and record or nil
    forget_mini(id)
  end,
  bell = function()
    M.send('\a')
  end,
  desktop = function(notice)
    M.send(notice.sequence or '')
  end,
}

--- Give the terminal of this Neovim something that it acts on.
---@param sequence string
M.send = function(sequence)
  if vim.env.TMUX and sequence:sub(1, 1) == '\27' then -- tmux passes on only what is wrapped
    sequence = '\27Ptmux;' .. sequence:gsub('\27', '\27\27') .. '\27\\'
  end
  if api.nvim_ui_send then
    api.nvim_ui_send(sequence)
  else
    api.nvim_chan_send(vim.v.stderr, sequence)
  end
end

--- Say what the host decided is to be said here.
---@param notice bellboard.Notice
M.show = function(notice)
  local loud = speak[notice.channel]
  if loud then
    when_free(function()
      loud(notice)
    end)
  end
end

--- What has rung, newest last, in a buffer of its own.
---@param rung bellboard.Rung[]
M.history = function(rung)
  local lines = {}
  for place, one in ipairs(rung) do
    local session = sessions.get(one.session_id)
    local name = session and session.words.project or one.session_id:sub(1, 8)
    local words = { one.channel, name, one.status or 'ended', cells.safe(one.why) }
    local when = os.date('%d %b %H:%M:%S', math.floor(one.t)) --[[@as string]]
    lines[place] = ('%s  %-8s %-16s %-10s %s'):format(when, unpack(words))
  end
  vim.cmd('botright new')
  local buf = api.nvim_get_current_buf()
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = 'nofile', 'wipe', false
  api.nvim_buf_set_lines(buf, 0, -1, false, #lines > 0 and lines or { 'Nothing has rung yet.' })
  vim.bo[buf].modifiable = false
  vim.wo.wrap = false
  api.nvim_win_set_height(0, math.max(3, math.min(#lines, 12)))
  vim.cmd('normal! G')
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'Close' })
end

return M
