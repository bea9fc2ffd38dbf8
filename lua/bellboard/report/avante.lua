-- What the state of avante.nvim's sidebars says about their chats.
local M = { agent = 'avante', filetype = 'Avante' }

---@type table<string, bellboard.ChatSays>
M.states = {
  generating = 'works',
  thinking = 'works',
  searching = 'works',
  ['tool calling'] = 'works',
  compacting = 'works',
  cancelled = 'breaks off',
  failed = 'fails',
}

--- Whether it asks: with buttons in the chat, or in a popup next to its input.
---@param tab integer
---@param sidebar table
---@return boolean
local function asks(tab, sidebar)
  local helpers = package.loaded['avante.llm_tools.helpers']
  local popup = type(helpers) == 'table' and helpers.confirm_popup
  local win = popup and popup._container_winid
  local is_here = win and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_tabpage(win)
  return sidebar.permission_handler ~= nil or is_here == tab
end

--- Why it failed: its last words may be a table that it printed.
---@param words string
---@return string
local function reason(words)
  return words:match('message = "([^"\n]+)"') or vim.trim(words):gsub('^Error: ', '')
end

---@param buf integer
---@return bellboard.ChatSays|nil says
---@return { error?: any }|nil about
M.read = function(buf)
  local avante = package.loaded.avante
  for tab, sidebar in pairs(type(avante) == 'table' and avante.sidebars or {}) do
    if vim.tbl_get(sidebar, 'containers', 'result', 'bufnr') == buf then
      local says = asks(tab, sidebar) and 'asks' or M.states[sidebar.current_state] or 'rests'
      local messages = vim.tbl_get(sidebar, 'chat_history', 'messages') or {}
      local last = vim.tbl_get(messages[#messages] or {}, 'message', 'content')
      return says, says == 'fails' and { error = type(last) == 'string' and reason(last) } or {}
    end
  end
end

return M
