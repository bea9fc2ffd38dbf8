-- Opens the user's picker for vim.ui.select, with a preview and actions if it has them. Neovim's
-- own picker has neither: there the board opens, with its filter.
local board = require('bellboard.board')
local board_keys = require('bellboard.board.keys')
local canvas = require('bellboard.canvas')
local preview = require('bellboard.preview')
local prompt = require('bellboard.board.prompt')
local view = require('bellboard.board.view')
local item = require('bellboard.picker.item')

local M = {}

local api = vim.api

--- The part of the screen that most pickers take, as their windows are not known here, and its
--- least columns.
local WIDTH, LEAST = 0.6, 50

---@class bellboard.PickOptions
---@field query? string what is typed already
---@field filter? string as on the board: only the sessions that match, the latest change first
---@field run? fun(session: bellboard.Session|nil) what to do with the choice; default: go there

---@param session bellboard.Session
---@return { buf: integer, pos: [integer, integer] }
local function preview_item(session)
  local buf = canvas.buffer()
  preview.into(session, buf)
  return { buf = buf, pos = { api.nvim_buf_line_count(buf), 0 } }
end

--- Any other vim.ui.select takes no query, so it gets the matching sessions.
---@param all bellboard.Session[]
---@param opts bellboard.PickOptions
local function select(all, opts)
  local layout = item.layout(
    all,
    math.max(math.floor(vim.o.columns * WIDTH), math.min(vim.o.columns, LEAST) - 8)
  )
  vim.ui.select(all, {
    prompt = 'Agent sessions',
    kind = 'bellboard',
    format_item = function(session, in_chunks)
      local chunks = item.columns(session, layout)
      return in_chunks == true and chunks or canvas.text(chunks)
    end,
    preview_item = preview_item,
  }, opts.run)
end

--- The board as a float, with its filter; it closes with the choice.
---@param opts bellboard.PickOptions
local function on_board(opts)
  if prompt.is_open() then
    return
  end
  local before = vim.deepcopy(view.choice())
  board.open('float')
  local typed = opts.filter and opts.filter .. ' ' or opts.query or ''
  view.choose({ filter = typed, folded = {}, unfolded = {}, here = vim.NIL })
  if opts.filter then
    view.choose({ group = 'none', sort = 'recent' })
  end
  view.first()
  local function leave()
    view.choose({
      filter = before.filter,
      folded = before.folded,
      unfolded = before.unfolded,
      here = before.here or vim.NIL,
      group = before.group,
      sort = before.sort,
    })
    board_keys.leave()
  end
  ---@param run fun(session: bellboard.Session)
  ---@param stays boolean the board stays open
  ---@return bellboard.PromptKey
  local function with(run, stays)
    local function act()
      local session = view.under_cursor()
      if not stays then
        leave()
      end
      if session then
        run(session)
      end
    end
    return { stays = stays, run = act }
  end
  local function down()
    view.step(1)
  end
  local function up()
    view.step(-1)
  end
  local prompt_keys = {
    ['<CR>'] = with(opts.run, false),
    ['<Down>'] = { stays = true, run = down },
    ['<C-n>'] = { stays = true, run = down },
    ['<Up>'] = { stays = true, run = up },
    ['<C-p>'] = { stays = true, run = up },
  }
  for _, action in ipairs(item.keys()) do
    prompt_keys[action.key] = with(action.run, action.stays)
  end
  if not prompt.filter(typed, prompt_keys) then -- now: typed keys are for the prompt
    leave()
  end
end

--- Modules that replace vim.ui.select, the field with their function, and our module for them.
local ADAPTERS = {
  { 'snacks.picker', 'select', 'bellboard.picker.snacks' },
  { 'fzf-lua.providers.ui_select', 'ui_select', 'bellboard.picker.fzf' },
}

--- Choose a session.
---@param opts? bellboard.PickOptions
M.open = function(opts)
  opts = vim.tbl_extend('keep', opts or {}, { run = item.go })
  local all = item.sessions()
  if not all then
    return
  end
  opts.filter = opts.filter and #item.listed(opts.filter) > 0 and opts.filter or nil
  all = item.listed(opts.filter)
  for _, adapter in ipairs(ADAPTERS) do
    local plugin = package.loaded[adapter[1]]
    if type(plugin) == 'table' and plugin[adapter[2]] == vim.ui.select then
      return require(adapter[3]).open(all, opts)
    end
  end
  local from = type(vim.ui.select) == 'function' and debug.getinfo(vim.ui.select, 'S').source or ''
  if from:find('telescope', 1, true) then -- telescope-ui-select
    require('telescope').extensions.bellboard.bellboard({
      default_text = opts.query,
      filter = opts.filter,
      run = opts.run,
    })
  elseif from:find('vim/ui%.lua$') then
    on_board(opts)
  else
    select(all, opts)
  end
end

return M
