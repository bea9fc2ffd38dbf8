-- The rows of a request: who asks, what is asked, the user's draft, and the choices; or those of a
-- last turn. A row of the text is a row of the screen.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local place = require('bellboard.place')
local requests = require('bellboard.answer.request')
local sessions = require('bellboard.sessions')
local unsaved = require('bellboard.unsaved')

local M = {}

--- Bytes of a character, with room for combining characters.
local BYTES = 8
--- Cells of a tab.
local TAB = (' '):rep(4)

--- The longest start of a text that fits.
---@param text string
---@param width integer
---@return string
local function start_of(text, width)
  local head = text:sub(1, width)
  if head:find('[\128-\255]') or text:find('^[\128-\191]', width + 1) then
    head = vim.fn.strcharpart(text:sub(1, BYTES * width), 0, width)
    local surplus = cells.width(head) - width
    while surplus > 0 do -- no character has more than two cells
      head = vim.fn.strcharpart(head, 0, vim.fn.strcharlen(head) - math.ceil(surplus / 2))
      surplus = cells.width(head) - width
    end
    head = head ~= '' and head or vim.fn.strcharpart(text:sub(1, BYTES), 0, 1)
  end
  return head
end

--- The rows of a line without tabs; broken after a blank, unless that leaves less than half a row.
---@param text string
---@param width integer
---@return string[]
M.line = function(text, width)
  local rows, at = {}, 1
  width = math.max(width, 2)
  local most = BYTES * width
  while true do
    local rest = text:sub(at, at + most) -- one byte more than a row can have
    if #rest <= most and cells.width(rest) <= width then
      rows[#rows + 1] = rest
      return rows
    end
    local head = start_of(rest, width)
    local blank = #(head:match('^.*%s') or '')
    if not rest:find('^%s', #head + 1) and blank > #head / 2 then
      head = head:sub(1, blank)
    end
    rows[#rows + 1] = head
    at = at + #head
  end
end

--- The rows of a text with line breaks, each with the number of its line; none for those that
--- continue a line.
---@param text string
---@param width integer
---@return { text: string, line?: integer }[]
local function wrapped(text, width)
  local rows = {}
  for number, line in ipairs(vim.split(text, '\n', { plain = true })) do
    for nth, row in ipairs(M.line(cells.safe_line(line:gsub('\t', TAB)), width)) do
      rows[#rows + 1] = { text = row, line = nth == 1 and number or nil }
    end
  end
  return rows
end

--- Indentation of what is asked, below its heading.
local INDENT = '  '
--- Rows that are colored by their syntax; more would be slow.
local COLORED = 1000
--- Lines around a change.
local CONTEXT = 3

--- A tab in a changed line: four blanks would be another change.
local CHANGED_TAB = '⇥   '

--- In most colorschemes, "DiffDelete" is purple, or gray on gray.
local DIFFERENT = { ['+'] = 'DiffAdd', ['-'] = 'Removed' }
--- The heading of files that no tool of a turn names.
local UNCLAIMED = 'Changed since, by its commands or by somebody else:'
local SYNTAX = { command = 'sh', plan = 'markdown', json = 'json' }

--- A row in one color.
---@param text string
---@param group? string
---@return bellboard.Row
local function plain(text, group)
  return { text = text, chunks = { { text, group } } }
end

--- Add rows of a text, if there is one.
---@param rows bellboard.Row[] changed
---@param text string|nil
---@param width integer
---@param group? string
---@param indent? string
---@param spot? bellboard.Spot
local function add_text(rows, text, width, group, indent, spot)
  indent = indent or ''
  for _, each in ipairs(text and wrapped(text, width - #indent) or {}) do
    local row = plain(indent .. each.text, group)
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
local function add_marked(rows, head, text, width, spot, group, key)
  local blank = (' '):rep(cells.width(head))
  for nth, each in ipairs(wrapped(text, width - #blank)) do
    local start = nth == 1 and head or blank
    rows[#rows + 1] = {
      text = start .. each.text,
      chunks = { { start, key or 'BellboardKey' }, { each.text, group } },
      spot = spot,
    }
  end
end

--- Color the marks that stand for hidden characters. Without colors, only their text shows them.
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
  local gutter = #INDENT + (many and figures + 1 or 0)
  local syntax = SYNTAX[part.kind] or part.kind == 'text' and syntax_of(part.path or '') or nil
  for nth, row in ipairs(wrapped(text, width - gutter - (many and 0 or 2))) do
    local number = row.line and tostring(row.line) or ''
    local before = many and (' '):rep(figures - #number) .. number .. ' '
      or row.line == nil and '  '
      or ''
    local made = { text = row.text, gutter = { INDENT .. before, 'BellboardDim' } }
    made.syntax = nth <= COLORED and syntax or nil
    add(made, part, rows)
  end
end

--- The changes of a diff, with some lines around each.
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
      rows[#rows + 1] = plain(INDENT .. '...', 'BellboardDim')
    end
    first = false
    local text = DIFFERENT[sign] and line:sub(2):gsub('\t', CHANGED_TAB) or line:sub(2)
    for nth, row in ipairs(sign:find('[ +-]') and wrapped(text, width - 4) or {}) do
      local made = { text = row.text, group = DIFFERENT[sign] }
      made.gutter = { INDENT .. (nth == 1 and sign or ' ') .. ' ', DIFFERENT[sign] }
      -- A deleted line is red as a whole; with few colors, those of a syntax cannot be read on the
      -- background of a change.
      local is_readable = sign == ' ' or sign == '+' and vim.o.termguicolors
      made.syntax = is_readable and #rows <= COLORED and syntax or nil
      add(made, part, rows)
    end
  end
  if part.old == part.new then
    rows[#rows + 1] = plain(INDENT .. 'no difference', 'BellboardDim')
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

--- Add the heading of a part, and warnings about hidden characters.
---@param part bellboard.Part
---@param width integer
---@param rows bellboard.Row[] changed
local function head_of(part, width, rows)
  local head = vim.trim((part.label or '') .. '  ' .. (part.path or ''))
  add_text(rows, head ~= '' and head or nil, width, 'BellboardHeading')
  if part.warnings and #part.warnings > 0 then
    local text = ' ! hidden in it: ' .. table.concat(part.warnings, ', ') .. ' '
    add_text(rows, text, width, 'BellboardHidden')
  end
end

---@param part bellboard.Part
---@param width integer
---@return bellboard.Row[]
local function rows_of(part, width)
  local rows = {}
  head_of(part, width, rows)
  if part.kind == 'diff' then
    diff_of(part, width, rows)
  elseif (part.text or '') ~= '' then
    text_of(part, width, rows)
  elseif part.kind == 'command' then
    rows[#rows + 1] = plain(INDENT .. '(empty)', 'BellboardDim')
  end
  return rows
end

---@type table<bellboard.Part, { key: string, rows: bellboard.Row[] }>
local kept = setmetatable({}, { __mode = 'k' })

--- Add the rows of a part: its heading, warnings about hidden characters, and its text.
---@param part bellboard.Part
---@param width integer
---@param rows bellboard.Row[] changed
M.part = function(part, width, rows)
  local key = ('%d %s'):format(width, vim.o.termguicolors)
  if not kept[part] or kept[part].key ~= key then
    kept[part] = { key = key, rows = rows_of(part, width) }
  end
  vim.list_extend(rows, kept[part].rows)
end

---@param question bellboard.Question
---@param at integer
---@param draft bellboard.Draft
---@param width integer
---@param rows bellboard.Row[]
local function question_of(question, at, draft, width, rows)
  local here = { question = at }
  if (question.header or '') ~= '' then
    add_text(rows, question.header, width, 'BellboardHeading', '', here)
  end
  add_text(rows, question.text, width, nil, '', here)
  local chosen, typed = draft.chosen[at] or {}, draft.typed[at]
  for nth, option in ipairs(question.options or {}) do
    local is = chosen[nth] and not typed
    local box = (question.many and '[%s]' or '(%s)'):format(is and 'x' or ' ')
    local spot = { question = at, option = nth }
    -- Keys are single digits: "12" would choose option 1, and then option 2 of the next question.
    local head = ('%s%s %s '):format(INDENT, nth <= 9 and nth or ' ', box)
    add_marked(rows, head, option.label, width, spot, is and 'BellboardChosen' or nil)
    if (option.description or '') ~= '' then
      add_text(rows, option.description, width, 'BellboardDim', (' '):rep(#head), spot)
    end
  end
  if typed then
    add_marked(rows, INDENT .. '> ', typed, width, here, 'BellboardChosen')
  end
end

--- Values of a form, in words.
local WORDS = { [true] = 'yes', [false] = 'no' }

---@param request bellboard.Request
---@param draft bellboard.Draft
---@param width integer
---@param rows bellboard.Row[]
local function form_of(request, draft, width, rows)
  local widest = 0
  local function name(field)
    local title = cells.safe((field.title or '') ~= '' and field.title or field.name)
    return title .. (field.required and ' *' or '')
  end
  for _, field in ipairs(request.fields) do
    widest = math.min(math.max(widest, cells.width(name(field))), math.floor(width / 2))
  end
  for nth, field in ipairs(request.fields) do
    local value = draft.values[nth]
    local head = INDENT .. cells.fit(name(field), widest) .. '  '
    local kind = field.options and #field.options > 0 and 'choose' or field.type or 'string'
    local text = value == nil and ('(%s)'):format(kind) or WORDS[value] or tostring(value)
    local group = value == nil and 'BellboardDim' or 'BellboardChosen'
    add_marked(rows, head, text == '' and '""' or text, width, { field = nth }, group)
    if (field.description or '') ~= '' then
      add_text(rows, field.description, width, 'BellboardDim', INDENT:rep(2), { field = nth })
    end
  end
end

--- Who asks, in one or two rows.
---@param session bellboard.Session
---@param request bellboard.Request
---@return string
local function asker(session, request)
  local words, who = session.words, {}
  for _, word in ipairs({
    session.machine and 'on ' .. session.machine or '',
    words.repository ~= '' and words.repository or words.project,
    words.branch,
    words.title,
    request.thread_type and request.thread_type ~= '' and 'subagent ' .. request.thread_type or '',
    (request.thread or '') ~= '' and (request.thread_type or '') == '' and 'a subagent' or '',
    place.of(session),
  }) do
    who[#who + 1] = word ~= '' and cells.safe(word) or nil
  end
  return table.concat(who, ' · ')
end

--- Rows of a prompt that stand above the reply to it.
local PROMPT = 4
--- How lines of Markdown begin whose other rows begin below their text.
local HANGING = { '^%s*[-*+] +%[[ xX]%] +', '^%s*[-*+] +', '^%s*%d+[.)] +', '^%s*> +', '^%s+' }
--- What happened to the lines of a file.
local SIGNS = { ['+'] = 'Added', ['-'] = 'Removed' }

--- A text in Markdown, as it is written.
---@param text string
---@param width integer
---@param rows bellboard.Row[]
local function markdown_of(text, width, rows)
  local syntax, is_code = 'markdown', false
  for _, line in ipairs(vim.split(vim.trim(text), '\n', { plain = true })) do
    line = cells.safe_line(line:gsub('\t', TAB)):gsub('%s+$', '')
    is_code = line:find('^%s*```') ~= nil ~= is_code
    local head = ''
    for _, pattern in ipairs(is_code and {} or HANGING) do
      head = head ~= '' and head or line:match(pattern) or ''
    end
    local indent = cells.width(head) < width / 2 and cells.width(head) or 0
    for nth, row in ipairs(M.line(line, width - indent)) do
      local blank = nth > 1 and (' '):rep(indent) or ''
      row = nth > 1 and not is_code and row:gsub('^ ', '') or row
      rows[#rows + 1] = { text = blank .. row, syntax = #rows <= COLORED and syntax or nil }
    end
  end
end

--- The files of a last turn, each with what happened to it.
---@param files bellboard.TurnFile[]
---@param width integer
---@param rows bellboard.Row[]
local function files_of(files, width, rows)
  local widest = 0
  for _, file in ipairs(files) do
    widest = math.max(widest, cells.width(cells.safe(file.path)))
  end
  widest = math.min(widest, math.max(width - #INDENT - 16, 8))
  for nth, file in ipairs(files) do
    if not file.unclaimed and nth == 1 then
      rows[#rows + 1] = plain('')
    elseif file.unclaimed and not (files[nth - 1] or {}).unclaimed then
      rows[#rows + 1] = plain('')
      add_text(rows, UNCLAIMED, width, 'BellboardDim')
    end
    local path, words = cells.safe(file.path), cells.safe(file.words)
    local tail = vim.fn.strcharpart(path, math.max(vim.fn.strcharlen(path) - widest + 1, 0))
    path = cells.width(path) > widest and '…' .. tail or path
    local chunks = { { INDENT .. cells.fit(path, widest), nil } }
    for word in cells.cut(words, width - widest - #INDENT - 2):gmatch('%S+') do
      chunks[#chunks + 1] = { #chunks == 1 and '  ' or ' ' }
      chunks[#chunks + 1] = { word, SIGNS[word:match('^([+-])%d')] or 'BellboardDim' }
    end
    rows[#rows + 1] = { text = cells.joined(chunks), chunks = chunks, spot = { file = nth } }
  end
end

--- The last turn of a session: what it was about, the prompt, the reply, the files.
---@param session bellboard.Session
---@param turn bellboard.Turn
---@param width integer
---@param rows bellboard.Row[]
local function turn_of(session, turn, width, rows)
  local prompt, title = wrapped(turn.prompt or '', width - 2), session.words.title
  local machine = session.machine and 'on ' .. session.machine or ''
  local who = { machine, title, turn.about or '', place.of(session) }
  who[2] = vim.startswith(cells.safe(turn.prompt), cells.safe(title)) and '' or title
  who = vim.tbl_map(
    cells.safe,
    vim.tbl_filter(function(word)
      return word ~= ''
    end, who)
  )
  add_text(rows, #who > 0 and table.concat(who, ' · ') or nil, width, 'BellboardDim')
  for nth, row in ipairs(vim.list_slice(prompt, 1, turn.prompt ~= '' and PROMPT or 0)) do
    local is_cut = nth == PROMPT and #prompt > PROMPT
    local text = is_cut and ('… %d more lines'):format(#prompt - PROMPT + 1) or row.text
    rows[#rows + 1] = plain('> ' .. text, 'BellboardRepository')
  end
  if vim.trim(turn.text) ~= '' then
    rows[#rows + 1] = plain('')
    markdown_of(turn.text, width, rows)
  end
  files_of(turn.files or {}, width, rows)
  if (turn.note or '') ~= '' then
    rows[#rows + 1] = plain('')
    add_text(rows, turn.note:gsub('^%l', string.upper) .. '.', width, 'BellboardStatus')
  end
end

--- Rows that say what cannot be chosen here; another machine may send any number.
local MORE = 3
--- Keys of choices, in the order in which they count.
local CHOOSE = { 'yes', 'always', 'no', 'reply', 'stop', 'edit' }

--- The key with that name.
---@param name string
---@return string|nil
M.key_of = function(name)
  local found = {}
  for lhs, means in pairs(config.get().answer.keys) do
    found[#found + 1] = means == name and lhs or nil
  end
  table.sort(found, function(a, b)
    return #a < #b or #a == #b and a < b
  end)
  return found[1]
end

---@class bellboard.Offer a row to choose: "No, and say why" is two, as only one asks for a message
---@field id string of the choice
---@field lhs? string its key
---@field name? string of its key
---@field words string
---@field note? string

--- The choices, each with its key: a configured key, else the choice's number.
---@param request bellboard.Request
---@return bellboard.Offer[]
M.offers = function(request)
  local keys, names = {}, {} ---@type table<string, string>, table<string, string>
  for _, name in ipairs(CHOOSE) do
    local choice = requests.choice(request, name)
    if choice and not keys[choice.id] then
      keys[choice.id], names[choice.id] = M.key_of(name), name
    end
  end
  local offers, reply = {}, M.key_of('reply')
  for nth, choice in ipairs(request.choices or {}) do
    local is_numbered = nth <= 9 and requests.numbered(request, nth) ~= nil
    local is_twofold = choice.needs == 'message?' and reply ~= nil
    local offer = {
      id = choice.id,
      lhs = keys[choice.id] or is_numbered and tostring(nth) or nil,
      name = names[choice.id],
      words = is_twofold and choice.words:match('^[^,]+') or choice.words,
      note = (choice.note or '') ~= '' and choice.note or nil,
    }
    offers[#offers + 1] = offer
    if is_twofold then
      offers[#offers + 1] = { id = choice.id, lhs = reply, name = 'reply', words = choice.words }
    end
  end
  return offers
end

--- Add the choices: each in a row of its own, the short ones without a note side by side.
---@param rows bellboard.Row[] changed
---@param open bellboard.Open
---@param width integer
---@param is_ready boolean whether their keys count
local function choices_of(rows, open, width, is_ready)
  local is_dim = open.state ~= 'asking'
  local has_keys = not requests.is_only_there(open.request)
  local last ---@type bellboard.Row|nil that has room for another one
  for _, offer in ipairs(M.offers(open.request)) do
    local lhs = has_keys and offer.lhs or ''
    local head = lhs .. (' '):rep(math.max(3 - cells.width(lhs), 1))
    local group = is_dim and 'BellboardDim'
      or open.draft.once == offer.id and 'BellboardChosen'
      or nil
    local key = (is_dim or not is_ready) and 'BellboardDim' or 'BellboardKey'
    local used = last and math.max(cells.width(last.text) + 4, 12) or 0
    if last and not offer.note and used + cells.width(head .. offer.words) <= width then
      local blank = (' '):rep(used - cells.width(last.text))
      last.text = last.text .. blank .. head .. offer.words
      vim.list_extend(last.chunks, { { blank .. head, key }, { offer.words, group } })
    else
      local from = #rows
      add_marked(rows, head, offer.words, width, nil, group, key)
      add_text(rows, offer.note, width, 'BellboardDim', (' '):rep(5))
      local is_short = not offer.note and #rows == from + 1 and cells.width(offer.words) <= 24
      last = is_short and rows[#rows] or nil
    end
  end
end

--- The keys that the frame names, and their ranks: the highest give way first on a narrow screen.
-- stylua: ignore
local RANKS = {
  close = 0, send = 1, go = 1, page = 1, fill = 2, update = 2, failed = 2, diff = 3, skip = 4,
  seen = 5, yes = 5, no = 6, always = 7, reply = 8, snooze = 9, stop = 10, edit = 11,
}
local SHORT = { yes = 'yes', always = 'always', no = 'no', reply = 'reply', stop = 'stop' }

--- The effect of the key that fills in, in words; nil without an effect.
---@param request bellboard.Request
---@return string|nil
M.fills = function(request)
  for _, question in ipairs(request.questions or {}) do
    if question.typed ~= false then
      return 'type an answer'
    end
  end
  return request.fields and 'fill' or nil
end

--- The keys that do something now, in words.
---@param open bellboard.Open
---@param is_ready boolean whether those that wait count
---@return bellboard.Hint[]
M.hints = function(open, is_ready)
  local request, hints, is_named = open.request, {}, {}
  local is_over, is_done = open.state == 'over' or open.state == 'done', open.state == 'done'
  local may = request.way ~= 'look' -- a member of a fleet that may only read may not do the rest
  local failed = open.failed and open.failed()
  ---@param name string
  ---@param words any false: it does nothing now
  ---@param waits? boolean
  local function name_key(name, words, waits)
    local lhs = words and M.key_of(name)
    if lhs and not is_named[name] then
      is_named[name] = true
      hints[#hints + 1] = { lhs, words, rank = RANKS[name], is_dim = waits and not is_ready }
    end
  end
  if not is_over and not requests.is_only_there(request) then
    for _, offer in ipairs(M.offers(request)) do
      local words = offer.name == 'edit' and 'change' or SHORT[offer.name]
      name_key(offer.name or '', words, true)
    end
    name_key('fill', may and M.fills(request))
  end
  name_key('send', request.turn and not is_done and 'write', true)
  local has_diff = #M.diffs(request) > 0 or #(request.turn and request.turn.files or {}) > 0
  name_key('diff', not is_done and has_diff and 'diff')
  name_key(
    'update',
    open.state == 'over' and sessions.get(open.session.session_id) and 'what it asks now'
  )
  name_key('go', may and not is_done and 'terminal', true)
  name_key('failed', failed and 'to ' .. cells.safe(failed.words.project), true)
  name_key('seen', request.turn and not is_done and 'seen', true)
  name_key('snooze', may and not is_done and 'snooze', true)
  name_key('skip', open.skip and not is_done and 'next')
  name_key('close', open.skip and not is_done and 'quit' or 'close')
  return hints
end

--- All rows of a request.
---@param open bellboard.Open
---@param width integer
---@param is_ready boolean whether its keys count
---@param title string|nil what the title of the window has no room for
---@return bellboard.Row[]
M.of = function(open, width, is_ready, title)
  local session, request, draft, rows = open.session, open.request, open.draft, {}
  if request.turn then
    if open.drawn == nil or open.drawn.width ~= width then -- a long reply takes 20 ms
      open.drawn = { width = width, rows = {} }
      turn_of(session, request.turn, width, open.drawn.rows)
    end
    vim.list_extend(rows, open.drawn.rows)
    add_text(rows, open.status, width, 'BellboardStatus')
    return rows
  end
  add_text(rows, title, width, 'BellboardHeading')
  add_text(rows, asker(session, request), width, 'BellboardDim')
  for _, change in ipairs(unsaved.list()) do
    if change.session_id == session.session_id then
      add_text(rows, unsaved.words(change, width), width, 'BellboardStatus')
    end
  end
  for _, part in ipairs(request.parts or {}) do
    rows[#rows + 1] = plain('')
    M.part(part, width, rows)
  end
  for nth, question in ipairs(request.questions or {}) do
    rows[#rows + 1] = plain('')
    question_of(question, nth, draft, width, rows)
  end
  if request.fields and #request.fields > 0 then
    rows[#rows + 1] = plain('')
    form_of(request, draft, width, rows)
  end
  rows[#rows + 1] = plain('')
  if open.state == 'asking' or open.state == 'sending' then
    choices_of(rows, open, width, is_ready)
    for _, more in ipairs(vim.list_slice(request.more or {}, 1, MORE)) do
      add_text(rows, cells.safe(more), width, 'BellboardDim')
    end
  end
  if open.state == 'asking' and requests.is_only_there(request) then
    local go = M.key_of('go')
    local there = "Answer this in the agent's terminal%s."
    add_text(rows, there:format(go and ': press ' .. go or ''), width, 'BellboardStatus')
  elseif open.state == 'asking' and not request.complete and (request.why or '') ~= '' then
    add_text(rows, 'Cannot be answered here: ' .. request.why .. '.', width, 'BellboardStatus')
  end
  add_text(rows, open.status, width, 'BellboardStatus')
  if rows[#rows].text == '' then
    rows[#rows] = nil -- nothing can be chosen
  end
  return rows
end

return M
