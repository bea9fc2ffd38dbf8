-- The picker of fzf-lua.
local preview = require('bellboard.preview')
local item = require('bellboard.picker.item')

local M = {}

local WIDTH = 0.9 -- of the screen; the preview is below the list
local FAR = 300 -- cells to the right: text that is searched, but not shown

---@param chunks bellboard.Chunk[]
---@return string
local function in_color(chunks)
  local utils = require('fzf-lua.utils')
  return table.concat(vim.tbl_map(function(chunk)
    return (utils.ansi_from_hl(chunk[2], chunk[1]))
  end, chunks))
end

---@param all bellboard.Session[]
---@param opts bellboard.PickOptions
M.open = function(all, opts)
  local lines, layout = {}, item.layout(all, math.floor(vim.o.columns * WIDTH) - 6)
  for nth, session in ipairs(all) do
    local row = in_color(item.columns(session, layout))
    lines[nth] = ('%d\t%s%s%s'):format(nth, row, (' '):rep(FAR), item.words(session))
  end
  ---@param line string|nil
  ---@return bellboard.Session|nil
  local function session_of(line)
    return line and all[tonumber(line:match('^%d+'))]
  end
  local actions = {
    enter = function(selected)
      opts.run(session_of(selected[1]))
    end,
  }
  for _, action in ipairs(item.keys()) do
    actions[action.key:gsub('<M%-(.)>', 'alt-%1')] = {
      desc = action.desc,
      exec_silent = action.stays or nil,
      fn = function(selected)
        local session = session_of(selected[1])
        if session then
          action.run(session)
        end
      end,
    }
  end
  local previewer = require('fzf-lua.previewer.builtin').base:extend()
  function previewer:populate_preview_buf(line)
    local session, buf = session_of(line), self:get_tmp_buffer()
    self:set_preview_buf(buf, true)
    if session then
      preview.into(session, buf)
    end
  end
  require('fzf-lua').fzf_exec(lines, {
    prompt = '> ',
    query = opts.query,
    previewer = {
      _ctor = function()
        return previewer
      end,
    },
    winopts = {
      title = ' Agent sessions ',
      width = WIDTH,
      preview = { layout = 'vertical', vertical = 'down:60%', hidden = false },
    },
    fzf_opts = {
      ['--delimiter'] = '\t',
      ['--with-nth'] = '2..',
      ['--no-hscroll'] = true,
      ['--ellipsis'] = ' ',
      ['--no-multi'] = true,
      ['--tiebreak'] = 'index',
    },
    actions = actions,
  })
end

return M
