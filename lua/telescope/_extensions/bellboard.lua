-- :Telescope bellboard, the picker of sessions with the keys of the board under Alt.
local row = require('bellboard.picker.item')
local preview = require('bellboard.preview')
local sessions = require('bellboard.sessions')

local action_state = require('telescope.actions.state')
local actions = require('telescope.actions')
local config = require('telescope.config').values
local finders = require('telescope.finders')
local pickers = require('telescope.pickers')
local previewers = require('telescope.previewers')

---@param picker table
---@return integer cells of a line of results
local function width_of(picker)
  local win = picker.results_win
  local known = win and vim.api.nvim_win_is_valid(win)
  return known and vim.api.nvim_win_get_width(win) - #picker.selection_caret - 1 or 80
end

---@param entries table<string, table> by session; Telescope follows the one that is selected
---@param wanted string|nil a filter
---@return table
local function finder(entries, wanted)
  local all, layout, layout_width = row.listed(wanted), nil, nil

  ---@param entry table
  ---@param picker table
  local function display(entry, picker)
    local width = width_of(picker)
    if width ~= layout_width then
      layout, layout_width = row.layout(all, width), width
    end
    local text, colors = '', {}
    for _, chunk in ipairs(row.columns(entry.value, layout)) do
      colors[#colors + 1] = { { #text, #text + #chunk[1] }, chunk[2] }
      text = text .. chunk[1]
    end
    return text, colors
  end

  return finders.new_table({
    results = all,
    entry_maker = function(session)
      local entry = entries[session.session_id] or {}
      entries[session.session_id] = entry
      entry.value, entry.ordinal, entry.display = session, row.words(session), display
      return entry
    end,
  })
end

--- Refresh the picker on changes, keeping the selected row.
---@param prompt integer
---@param entries table<string, table>
---@param wanted string|nil
local function follow(prompt, entries, wanted)
  sessions.on_change('telescope', function()
    local picker = action_state.get_current_picker(prompt)
    if picker then
      picker.selection_strategy = 'follow'
      picker:refresh(finder(entries, wanted), { reset_prompt = false })
    end
    return not vim.api.nvim_buf_is_valid(prompt)
  end)
end

---@param prompt integer
---@param map fun(modes: string[], key: string, action: function, opts: table)
---@param run fun(session: bellboard.Session|nil)
local function attach(prompt, map, run)
  actions.select_default:replace(function()
    local entry = action_state.get_selected_entry()
    actions.close(prompt)
    run(entry and entry.value)
  end)
  for _, action in ipairs(row.keys()) do
    map({ 'i', 'n' }, action.key, function()
      local entry = action_state.get_selected_entry()
      if not action.stays then
        actions.close(prompt)
      end
      if entry then
        action.run(entry.value)
      end
    end, { desc = action.desc })
  end
end

---@param opts? table of Telescope, such as a theme; `run` gets the chosen session
local function open(opts)
  opts = opts or {}
  if not row.sessions() then
    return
  end
  local entries = {}
  pickers
    .new(opts, {
      prompt_title = 'Agent sessions',
      finder = finder(entries, opts.filter),
      sorter = config.generic_sorter(opts),
      previewer = previewers.new_buffer_previewer({
        title = 'What it shows',
        define_preview = function(self, entry)
          preview.into(entry.value, self.state.bufnr)
        end,
      }),
      layout_strategy = 'vertical', -- rows are long, and previews are wide
      layout_config = { preview_cutoff = 20 },
      on_complete = {
        function(picker)
          picker.selection_strategy = opts.selection_strategy or config.selection_strategy
        end,
      },
      attach_mappings = function(prompt, map)
        attach(prompt, map, opts.run or row.go)
        follow(prompt, entries, opts.filter)
        return true -- keep Telescope's default keys
      end,
    })
    :find()
end

return require('telescope').register_extension({ exports = { bellboard = open } })
