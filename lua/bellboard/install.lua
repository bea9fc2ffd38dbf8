-- Install the hooks into the settings of agents, or remove them, after showing the diffs.
local canvas = require('bellboard.canvas')
local config = require('bellboard.config')
local guards = require('bellboard.key_delay')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local popup = require('bellboard.popup')
local program = require('bellboard.process.program')
local window = require('bellboard.window')

local M = {}

--- The options of `bellboard hooks` that name agents, or a settings file.
M.files = { '--agent', '--all', '--user', '--project', '--local', '--settings' }

local home = vim.pesc(vim.fs.normalize('~') .. '/')

--- What the program printed besides the diff.
---@param lines string[]
---@return string[]
local function notes_of(lines)
  return vim.tbl_filter(function(line)
    return line ~= '' and not line:match('^[-+@ \\]')
  end, lines)
end

--- The files that the diffs change, as the user knows them.
---@param printed string[]
---@return string[]
local function files_of(printed)
  local files = {}
  for n, line in ipairs(printed) do
    local file = line:match('^%+%+%+ (.*)$')
    if file and vim.startswith(printed[n - 1] or '', '--- ') then
      files[#files + 1] = vim.fn.fnamemodify((file:gsub('\t.*$', '')), ':~')
    end
  end
  return files
end

--- Whether a file that the user already had is changed, so that a backup of it is kept.
---@param diff string[]
---@return boolean
local function keeps_backup(diff)
  for _, line in ipairs(diff) do
    local lines = line:match('^@@ (.-) @@')
    if lines and not (vim.startswith(lines, '-0,0 ') or vim.endswith(lines, ' +0,0')) then
      return true
    end
  end
  return false
end

---@param diff string[]
---@param files string[]
---@param apply? fun() default: it is only shown
local function preview(diff, files, apply)
  local what = #files == 1 and files[1] or ('%d files'):format(#files)
  local kept = keeps_backup(diff) and ' (a dated backup is kept)' or ''
  local keys = apply and ('press y to write this%s, q to cancel'):format(kept)
    or 'this would be written; q closes it'
  local head = ('# %s: %s'):format(what, keys)
  local lines = { head }
  for _, note in ipairs(notes_of(diff)) do
    lines[#lines + 1] = '# ' .. note
  end
  lines[#lines + 1] = ''
  local buf = canvas.buffer(vim.list_extend(lines, diff))
  canvas.name(buf, 'bellboard://hooks')
  vim.bo[buf].filetype = 'diff'
  canvas.colour(buf, 1, head, { { head, 'BellboardStatus' } }) -- not as quiet as a comment
  local height = math.min(#lines, math.max(6, math.floor(vim.o.lines * 0.7)))
  local win = window.open(buf, true, { split = 'below', win = -1, height = height })
  local guard = guards.new()
  guard.keep(buf)
  for _, lhs in ipairs({ 'y', '<CR>', 'q' }) do
    vim.keymap.set('n', lhs, function()
      if lhs ~= 'q' and not guard.is_ready() then
        return -- typed before it was read
      end
      window.close(win)
      if lhs ~= 'q' and apply then
        apply()
      end
    end, { buffer = buf, nowait = true })
  end
end

--- Show what `install` or `uninstall` would change, and apply it when confirmed.
---@param verb 'install'|'uninstall'
---@param rest string[] which files; default: those of the agents on this machine
M.open = function(verb, rest)
  local is_dry = vim.list_contains(rest, '--dry-run')
  local words = { 'hooks', verb }
  local claude = verb == 'install' and vim.fn.exepath(config.claude()[1]) or ''
  if claude ~= '' then
    vim.list_extend(words, { '--cli', claude }) -- in front: one of the user's counts, as the last
  end
  vim.list_extend(words, rest)
  local function apply()
    program.run(vim.list_extend({ unpack(words) }, { '--yes' }), function(printed, why)
      if not printed then
        return popup.refuse(why, verb)
      end
      local notes = notes_of(vim.split(printed, '\n'))
      -- Leave out the name of the backup: the message must fit on one line.
      local text = table.concat(notes, '; '):gsub('; backup: %S+', ''):gsub(home, '~/')
      message.info(#text < vim.v.echospace - 12 and text or (notes[1]:gsub('; backup: %S+', '')))
    end)
  end
  program.run(vim.list_extend({ unpack(words) }, { '--dry-run' }), function(printed, why, partly)
    local diff = vim.split(vim.trim(printed or partly or ''), '\n')
    local files = files_of(diff)
    if not printed and #files == 0 then
      popup.refuse(why, verb)
    elseif not printed then
      message.error(why) -- of one file; there are others
    end
    if #files > 0 then
      moment.when('open', function()
        preview(diff, files, not is_dry and apply or nil)
      end)
    elseif printed then
      apply() -- nothing to change; it reports that
    end
  end)
end

return M
