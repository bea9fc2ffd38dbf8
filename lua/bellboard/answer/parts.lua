-- How rows of a request are made; and those of what it is about: commands, texts, files, diffs,
-- plans.
local cells = require('bellboard.text')
local wrap = require('bellboard.answer.wrap')

local M = {}

---@class bellboard.Row a row of a request
---@field text string
---@field chunks? bellboard.Chunk[] how it is coloured; without, as its syntax says
---@field gutter? bellboard.Chunk shown before it, not part of the text
---@field group? string of the whole row
---@field spot? bellboard.Spot
---@field syntax? string

---@class bellboard.Spot what a row is: a question or one of its options, or a field of a form
---@field question? integer
---@field option? integer
---@field field? integer

--- Indentation of what is asked, below its heading.
M.INDENT = '  '
--- Rows that are coloured by their syntax; more would be slow.
local COLOURED = 1000
--- Lines around a change.
local CONTEXT = 3

--- What a tab in a changed line looks like: four blanks are another change.
local TAB = '⇥   '

local DIFFERENT = { ['+'] = 'DiffAdd', ['-'] = 'DiffDelete' }
local SYNTAX = { command = 'sh', plan = 'markdown', json = 'json' }

--- A row in one colour.
---@param text string
---@param group? string
---@return bellboard.Row
M.row = function(text, group)
  return { text = text, chunks = { { text, group } } }
end

--- Add rows of a text, if there is one.
---@param rows bellboard.Row[] changed
---@param text string|nil
---@param width integer
---@param group? string
---@param indent? string
---@param spot? bellboard.Spot
M.add_text = function(rows, text, width, group, indent, spot)
  indent = indent or ''
  for _, each in ipairs(text and wrap.text(text, width - #indent) or {}) do
    local row = M.row(indent .. each.text, group)
    row.spot = spot
    rows[#rows + 1] = row
  end
end

--- Add a row that starts with a mark; what does not fit goes below its text.
---@param rows bellboard.Row[] changed
---@param head string
---@param text string
---@param width integer
---@param spot bellboard.Spot|nil
---@param group? string
---@param key? string group of the mark
M.add_marked = function(rows, head, text, width, spot, group, key)
  local blank = (' '):rep(cells.width(head))
  for nth, each in ipairs(wrap.text(text, width - #blank)) do
    local start = nth == 1 and head or blank
    rows[#rows + 1] = {
      text = start .. each.text,
      chunks = { { start, key or 'BellboardKey' }, { each.text, group } },
      spot = spot,
    }
  end
end

--- Colour the marks that stand for hidden characters. Without colours, only their text shows them.
---@param row bellboard.Row
local function mark(row)
  local chunks, at = {}, 1
  local function add(first, last)
    if first > at then
      chunks[#chunks + 1] = { row.text:sub(at, first - 1) }
    end
    chunks[#chunks + 1] = { row.text:sub(first, last), 'BellboardHidden' }
    at = last + 1
  end
  for first, last in row.text:gmatch('()<U%+%x+>()') do
    add(first, last - 1)
  end
  local last = row.text:sub(-3)
  if last:find('·$') or last == '⇥' then
    local tail = vim.fn.matchstrpos(row.text, '[·⇥]\\+$')
    if tail[2] >= at - 1 then
      add(tail[2] + 1, tail[3])
    end
  end
  if #chunks > 0 then
    chunks[#chunks + 1] = { row.text:sub(at) }
    row.chunks = chunks
  end
end

--- Add a row of a part; mark what is hidden in it.
---@param made bellboard.Row
---@param part bellboard.Part
---@param rows bellboard.Row[]
local function add(made, part, rows)
  if part.warnings and #part.warnings > 0 then
    mark(made)
  end
  rows[#rows + 1] = made
end

---@param path string
---@return string|nil
local function syntax_of(path)
  local ok, filetype = pcall(vim.filetype.match, { filename = path })
  return ok and filetype or nil
end

--- A text; its lines have numbers if there are several.
---@param part bellboard.Part
---@param width integer
---@param rows bellboard.Row[]
local function text_of(part, width, rows)
  local text = part.kind == 'file' and part.text:gsub('\n$', '') or part.text -- ends its last line
  local many = text:find('\n', 1, true) ~= nil
  local figures = many and #tostring(select(2, text:gsub('\n', '')) + 1) or 0
  local gutter = #M.INDENT + (many and figures + 1 or 0)
  local syntax = SYNTAX[part.kind] or part.kind == 'text' and syntax_of(part.path or '') or nil
  for nth, row in ipairs(wrap.text(text, width - gutter - (many and 0 or 2))) do
    local number = row.line and tostring(row.line) or ''
    local before = many and (' '):rep(figures - #number) .. number .. ' '
      or row.line == nil and '  '
      or ''
    local made = { text = row.text, gutter = { M.INDENT .. before, 'BellboardDim' } }
    made.syntax = nth <= COLOURED and syntax or nil
    add(made, part, rows)
  end
end

--- What a diff changes, with some lines around it.
---@param part bellboard.Part
---@param width integer
---@param rows bellboard.Row[]
local function diff_of(part, width, rows)
  local differ = vim.text and vim.text.diff or vim.diff
  local function ended(text)
    return (text == '' or vim.endswith(text, '\n')) and text or text .. '\n'
  end
  local found = differ(ended(part.old or ''), ended(part.new or ''), { ctxlen = CONTEXT })
  local syntax, first = syntax_of(part.path or ''), true
  for line in vim.gsplit(found, '\n', { plain = true, trimempty = true }) do
    local sign = line:sub(1, 1)
    if sign == '@' and not first then
      rows[#rows + 1] = M.row(M.INDENT .. '...', 'BellboardDim')
    end
    first = false
    local text = DIFFERENT[sign] and line:sub(2):gsub('\t', TAB) or line:sub(2)
    for nth, row in ipairs(sign:find('[ +-]') and wrap.text(text, width - 4) or {}) do
      local made = { text = row.text, group = DIFFERENT[sign] }
      made.gutter = { M.INDENT .. (nth == 1 and sign or ' ') .. ' ', DIFFERENT[sign] }
      -- few colours: syntax colours cannot be read on the background of a change
      local is_readable = vim.o.termguicolors or sign == ' '
      made.syntax = is_readable and #rows <= COLOURED and syntax or nil
      add(made, part, rows)
    end
  end
  if part.old == part.new then
    rows[#rows + 1] = M.row(M.INDENT .. 'no difference', 'BellboardDim')
  end
end

--- The parts of a request that are diffs.
---@param request bellboard.Request
---@return bellboard.Part[]
M.diffs = function(request)
  return vim.tbl_filter(function(part)
    return part.kind == 'diff'
  end, request.parts or {})
end

--- Add what a part is, and what is hidden in it.
---@param part bellboard.Part
---@param width integer
---@param rows bellboard.Row[] changed
M.head = function(part, width, rows)
  local head = vim.trim((part.label or '') .. '  ' .. (part.path or ''))
  M.add_text(rows, head ~= '' and head or nil, width, 'BellboardHeading')
  if part.warnings and #part.warnings > 0 then
    local text = ' ! hidden in it: ' .. table.concat(part.warnings, ', ') .. ' '
    M.add_text(rows, text, width, 'BellboardHidden')
  end
end

---@param part bellboard.Part
---@param width integer
---@return bellboard.Row[]
local function rows_of(part, width)
  local rows = {}
  M.head(part, width, rows)
  if part.kind == 'diff' then
    diff_of(part, width, rows)
  elseif (part.text or '') ~= '' then
    text_of(part, width, rows)
  elseif part.kind == 'command' then
    rows[#rows + 1] = M.row(M.INDENT .. '(empty)', 'BellboardDim')
  end
  return rows
end

---@type table<bellboard.Part, { key: string, rows: bellboard.Row[] }>
local kept = setmetatable({}, { __mode = 'k' })

--- Add the rows of a part: what it is, what is hidden in it, and the part.
---@param part bellboard.Part
---@param width integer
---@param rows bellboard.Row[] changed
M.add = function(part, width, rows)
  local key = ('%d %s'):format(width, vim.o.termguicolors)
  if not kept[part] or kept[part].key ~= key then
    kept[part] = { key = key, rows = rows_of(part, width) }
  end
  vim.list_extend(rows, kept[part].rows)
end

return M
