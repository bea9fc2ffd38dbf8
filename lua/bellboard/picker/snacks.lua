-- The picker of snacks.nvim.
local preview = require('bellboard.preview')
local row = require('bellboard.picker.item')
local sessions = require('bellboard.sessions')

local M = {}

---@param all bellboard.Session[]
---@return table[]
local function items_of(all)
  local items = {}
  for nth, session in ipairs(all) do
    items[nth] = { text = row.words(session), session = session, idx = nth }
  end
  return items
end

---@type bellboard.Layout|nil the last one, and what it is of
local layout, laid, laid_width

--- Chunks for the width of the list.
---@param item table
---@param picker table
local function format(item, picker)
  local win = picker.list.win.win
  local known = win and vim.api.nvim_win_is_valid(win)
  local width = known and vim.api.nvim_win_get_width(win) - 2 or 80
  local all = sessions.list()
  if all ~= laid or width ~= laid_width then
    layout, laid, laid_width = row.layout(all, width), all, width
  end
  return row.columns(item.session, layout)
end

--- Select the row of a session, which may have moved.
---@param picker table
---@param id string|nil
local function stay_on(picker, id)
  if picker.closed then
    return
  end
  for item, nth in picker:iter() do
    if item.session.session_id == id then
      return picker.list:view(nth)
    end
  end
end

---@param _ bellboard.Session[]
---@param opts bellboard.PickOptions
M.open = function(_, opts)
  local actions, keys = {}, {}
  for _, action in ipairs(row.keys()) do
    local name = 'bellboard_' .. action.name
    keys[action.key] = { name, mode = { 'n', 'i' }, desc = action.desc }
    actions[name] = function(picker, item)
      if not action.stays then
        picker:close()
      end
      if item then
        action.run(item.session)
      end
    end
  end
  actions.confirm = function(picker, item)
    picker:close()
    opts.run(item and item.session)
  end
  local picker = require('snacks').picker.pick({
    source = 'bellboard',
    title = 'Agent sessions',
    pattern = opts.query,
    finder = function()
      return items_of(row.listed(opts.filter))
    end,
    format = format,
    preview = function(ctx)
      local buf = ctx.preview:scratch()
      preview.into(ctx.item.session, buf)
    end,
    layout = { preset = 'vertical' },
    actions = actions,
    win = { input = { keys = keys }, list = { keys = keys } },
  })
  sessions.on_change('picker', function()
    if not picker or picker.closed then
      return true
    end
    local item = picker:current({ resolve = false })
    picker:find({
      on_done = function()
        stay_on(picker, item and item.session.session_id)
      end,
    })
  end)
end

return M
