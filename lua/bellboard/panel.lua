local bellboard = require('bellboard')
local config = require('bellboard.config')
local rows = require('bellboard.rows')
local ui = require('bellboard.ui')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')
---@type integer|nil
local buf
---@type bellboard.Line[]
local drawn = {}
---@type table<string, boolean>
local unfolded = {}

local keys = {
  { '<CR>', 'go to the session' },
  { '<Tab>', 'unfold or fold' },
  { ']]', 'next that needs you' },
  { '[[', 'previous that needs you' },
  { 'K', 'preview' },
  { 'l', 'label' },
  { 'r', 'rename' },
  { 'p', 'park: keep it out of the float, or bring it back' },
  { 's', 'correct the status' },
  { 'y', 'yank the session id' },
  { 'R', 'ask the host for everything anew' },
  { 'q', 'close' },
  { 'g?', 'this help' },
}

---@param row integer
local function colour(row)
  local from, length = 0, #drawn[row].text
  for _, chunk in ipairs(drawn[row].chunks) do
    local to = math.min(from + #chunk[1], length)
    if chunk[2] and to > from then
      api.nvim_buf_set_extmark(buf, namespace, row - 1, from, { end_col = to, hl_group = chunk[2] })
    end
    from = to
  end
end

---@param id string|nil
---@return integer|nil
local function row_of(id)
  for row, each in ipairs(drawn) do
    if id and each.id == id then
      return row
    end
  end
end

--- Write what has changed, and nothing else; every cursor stays with its session.
M.update = function()
  local win = buf and api.nvim_buf_is_valid(buf) and vim.fn.win_findbuf(buf)[1]
  if not win then
    return
  end
  local lines = rows.compose(math.max(api.nvim_win_get_width(win), 40), unfolded)
  local cursors = {}
  for _, window in ipairs(vim.fn.win_findbuf(buf)) do
    local under = drawn[api.nvim_win_get_cursor(window)[1]]
    cursors[window] = under and under.id
  end
  local first, last_old, last_new = 1, #drawn, #lines
  local function same(before, after)
    return before == after
      or before.text == after.text and vim.deep_equal(before.chunks, after.chunks)
  end
  while first <= last_old and first <= last_new and same(drawn[first], lines[first]) do
    first = first + 1
  end
  while last_old >= first and last_new >= first and same(drawn[last_old], lines[last_new]) do
    last_old, last_new = last_old - 1, last_new - 1
  end
  local empty = #drawn == 0
  drawn = lines
  if first > last_old and first > last_new then
    return
  end
  local middle = {}
  for row = first, last_new do
    middle[#middle + 1] = lines[row].text
  end
  vim.bo[buf].modifiable = true
  api.nvim_buf_clear_namespace(buf, namespace, first - 1, last_old)
  api.nvim_buf_set_lines(buf, first - 1, empty and -1 or last_old, false, middle)
  vim.bo[buf].modifiable = false
  for row = first, last_new do
    colour(row)
  end
  for window, id in pairs(cursors) do
    local row = row_of(id)
    if row and row ~= api.nvim_win_get_cursor(window)[1] then
      api.nvim_win_set_cursor(window, { row, 0 })
    end
  end
end

---@return bellboard.Session|nil
local function under_cursor()
  local under = drawn[api.nvim_win_get_cursor(0)[1]]
  return under and under.id and bellboard.session(under.id)
end

---@param direction integer
local function seek(direction)
  local row, count = api.nvim_win_get_cursor(0)[1], #drawn
  for step = 1, count do
    local at = (row - 1 + direction * step) % count + 1
    local session = drawn[at].head and bellboard.session(drawn[at].id)
    if session and vim.tbl_contains({ 'blocked', 'error', 'completed' }, session.status) then
      api.nvim_win_set_cursor(0, { at, 0 })
      return
    end
  end
end

---@param lines string[]
---@param title string
local function popup(lines, title)
  local width = 20
  for _, text in ipairs(lines) do
    width = math.max(width, ui.width(text) + 2)
  end
  vim.lsp.util.open_floating_preview(lines, '', {
    border = 'rounded',
    title = ' ' .. title .. ' ',
    max_width = math.min(width, vim.o.columns - 4),
    max_height = math.floor(vim.o.lines * 0.7),
    wrap = false,
    focus_id = 'bellboard',
  })
end

---@type table<string, fun(session: bellboard.Session)>
local on_session = {
  ['<CR>'] = function(session)
    local previous = vim.fn.win_getid(vim.fn.winnr('#'))
    if previous ~= 0 and api.nvim_win_get_buf(previous) ~= buf then
      api.nvim_set_current_win(previous) -- the board stays where it is
    end
    bellboard.jump(session.session_id)
  end,
  ['<Tab>'] = function(session)
    unfolded[session.session_id] = not unfolded[session.session_id] or nil
    M.update()
  end,
  K = function(session)
    popup(
      vim.tbl_map(ui.safe_line, require('bellboard.pick').preview(session)),
      ui.project(session)
    )
  end,
  l = function(session)
    vim.ui.input({ prompt = 'Label: ', default = session.label }, function(label)
      if label then
        bellboard.tell({ label = { session_id = session.session_id, label = label } })
      end
    end)
  end,
  r = function(session)
    vim.ui.input({ prompt = 'Name: ', default = session.title }, function(name)
      if name then
        bellboard.tell({ name = { session_id = session.session_id, name = name } })
      end
    end)
  end,
  p = function(session)
    local parked = not ui.marked(session, 'parked')
    bellboard.tell({ park = { session_id = session.session_id, parked = parked } })
  end,
  s = function(session)
    vim.ui.select(bellboard.statuses, { prompt = 'It really is' }, function(status)
      if status then
        bellboard.tell({ set = { session_id = session.session_id, status = status } })
      end
    end)
  end,
  y = function(session)
    vim.fn.setreg(vim.v.register, session.session_id)
    vim.notify('yanked ' .. session.session_id)
  end,
}

---@type table<string, fun()>
local anywhere = {
  [']]'] = function()
    seek(1)
  end,
  ['[['] = function()
    seek(-1)
  end,
  R = function()
    require('bellboard.host').notify('snapshot')
  end,
  q = function()
    vim.cmd.close()
  end,
  ['g?'] = function()
    local lines = vim.tbl_map(function(key)
      return (' %-8s %s'):format(key[1], key[2])
    end, keys)
    popup(lines, 'board')
  end,
}

---@return integer
local function create()
  buf = api.nvim_create_buf(false, true)
  drawn = {}
  api.nvim_buf_set_name(buf, 'bellboard://board')
  vim.bo[buf].filetype = 'bellboard'
  vim.bo[buf].modifiable = false
  for _, key in ipairs(keys) do
    local lhs = key[1]
    local function act()
      if anywhere[lhs] then
        return anywhere[lhs]()
      end
      local session = under_cursor()
      if session then
        on_session[lhs](session)
      end
    end
    vim.keymap.set('n', lhs, act, { buffer = buf, desc = key[2], nowait = lhs ~= 'g?' })
    if lhs == '<CR>' then
      vim.keymap.set('n', '<2-LeftMouse>', act, { buffer = buf, desc = key[2] })
    end
  end
  return buf
end

---@return vim.api.keyset.win_config
local function layout()
  local options = config.get().board
  local function size(whole)
    return math.floor(options.size <= 1 and whole * options.size or options.size)
  end
  if options.layout == 'float' then
    local width, height = math.floor(vim.o.columns * 0.9), math.floor(vim.o.lines * 0.8)
    return {
      relative = 'editor',
      width = width,
      height = height,
      row = math.floor((vim.o.lines - height) / 2) - 1,
      col = math.floor((vim.o.columns - width) / 2),
      border = 'rounded',
      title = ' Agent sessions ',
    }
  elseif options.layout == 'vsplit' then
    return { split = 'right', win = -1, width = math.max(size(vim.o.columns), 40) }
  end
  return { split = 'below', win = -1, height = math.max(size(vim.o.lines), 6) }
end

--- Open the board, or go to it.
M.open = function()
  if not (buf and api.nvim_buf_is_valid(buf)) then
    create()
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
      api.nvim_set_current_win(win)
      return
    end
  end
  if config.get().board.layout == 'tab' then
    vim.cmd('tab split')
    api.nvim_win_set_buf(0, buf)
  else
    api.nvim_open_win(buf, true, layout())
  end
  for name, value in pairs({
    wrap = false,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldcolumn = '0',
    list = false,
    spell = false,
    cursorline = true,
    fillchars = 'eob: ',
    winfixbuf = true,
  }) do
    api.nvim_set_option_value(name, value, { scope = 'local', win = 0 })
  end
  M.update()
  local group = api.nvim_create_augroup('bellboard.panel', {})
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'BellboardUpdate',
    callback = M.update,
  })
  api.nvim_create_autocmd({ 'WinResized', 'VimResized' }, {
    group = group,
    callback = vim.schedule_wrap(M.update),
  })
  for row, each in ipairs(drawn) do
    if each.head then
      api.nvim_win_set_cursor(0, { row, 0 })
      break
    end
  end
end

return M
