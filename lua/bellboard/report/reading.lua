-- Reads the state of chats whose plugin announces too little: when their buffer changes, and a few
-- times a second while they are at work. It changes nothing in the plugin.
local M = {}

local api = vim.api

---@class bellboard.ChatReader
---@field agent string
---@field filetype string of the buffer that shows a chat
---@field read bellboard.ReadChat

--- Says what a chat does; `from` is the line where its last turn begins.
---@alias bellboard.ReadChat
---| fun(buf: integer, from: integer): bellboard.ChatSays|nil, { tool?: any, error?: any }|nil

--- Milliseconds between two looks at a chat at work, which may end without changing a line.
local EVERY = 200

---@type table<integer, true>
local followed = {}

---@param reader bellboard.ChatReader
---@param buf integer
---@param hear fun(says: bellboard.ChatSays, about: { tool?: any, error?: any })
local function follow(reader, buf, hear)
  local said, tool ---@type bellboard.ChatSays|nil, any
  local is_due, from = false, 0
  local look

  local function soon(wait)
    if not is_due then
      is_due = true
      vim.defer_fn(look, wait)
    end
  end

  look = function()
    is_due = false
    if not followed[buf] then
      return
    end
    local ok, says, about = pcall(reader.read, buf, from)
    if not ok or not says then
      return
    end
    about = about or {}
    if says == 'works' and said ~= 'works' and said ~= 'asks' then
      from = api.nvim_buf_line_count(buf)
    end
    if says ~= said or about.tool ~= tool then
      hear(said == 'asks' and says == 'works' and 'goes on' or says, about)
      said, tool = says, about.tool
    end
    if says == 'works' or says == 'asks' then
      soon(EVERY)
    end
  end

  followed[buf] = true
  hear('opens', {})
  api.nvim_buf_attach(buf, false, {
    on_lines = function()
      soon(0)
    end,
    on_detach = vim.schedule_wrap(function()
      followed[buf] = nil
      hear('closes', {})
    end),
  })
  soon(0)
end

---@param group integer
---@param reader bellboard.ChatReader
---@param hear fun(agent: string, buf: integer, says: bellboard.ChatSays, about: table)
M.attach = function(group, reader, hear)
  api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = reader.filetype,
    callback = function(event)
      if not followed[event.buf] then
        follow(reader, event.buf, function(says, about)
          hear(reader.agent, event.buf, says, about)
        end)
      end
    end,
  })
end

return M
