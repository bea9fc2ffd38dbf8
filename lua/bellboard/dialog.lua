-- A window to read, with keys of its own: a request, a question of one key, a menu. Its frame names
-- the keys. Keys that act count once no key was pressed for `answer.key_delay` seconds: earlier
-- keys were meant for something else.
local age = require('bellboard.age')
local canvas = require('bellboard.canvas')
local cells = require('bellboard.text')
local config = require('bellboard.config')
local frame = require('bellboard.frame')
local highlight = require('bellboard.highlight')
local moment = require('bellboard.moment')
local window = require('bellboard.window')

local M = {}

local api = vim.api

local namespace = api.nvim_create_namespace('bellboard')

--- Columns beside the text: a border and a blank on both sides.
local BESIDE = 4
--- Rows around the text that are not its own: two borders and a statusline.
local AROUND = 3
--- Rows that a split leaves to other windows, with their statuslines.
local LEFT = 6
--- Below the floats of other plugins, which have 50 by default.
local BEHIND = 40
--- With 'mousemoveevent', this is no key.
local MOUSE_MOVE = vim.keycode('<MouseMove>')
--- The keys of a menu.
local MENU = '123456789abcdefghilmnoprstuvwxyz'
--- Keys that change text or leave Normal mode, and do nothing in a dialog.
-- stylua: ignore
local INERT = {
  'a', 'c', 'd', 'i', 'o', 'p', 'r', 's', 'x', '~', 'u', '.', 'q', 'Q', 'A', 'C', 'D', 'I', 'J',
  'O', 'P', 'R', 'S', 'X', 'U', '<', '>', '=', '&', '<C-r>', '<C-a>', '<C-x>', '<CR>', 'gi', 'gI',
  'K',
}

---@class bellboard.Row a row of a dialog
---@field text string
---@field chunks? bellboard.Chunk[] how it is colored; without, as its syntax says
---@field gutter? bellboard.Chunk shown before it, not part of the text
---@field group? string of the whole row
---@field spot? bellboard.Spot
---@field syntax? string

---@class bellboard.Spot what a row is: a question or one of its options, a field, a file
---@field question? integer
---@field option? integer
---@field field? integer
---@field file? integer

---@class bellboard.Key
---@field [1] string as in a mapping
---@field act fun()
---@field waits? boolean it counts only after a pause

---@class bellboard.Dialog.Content
---@field title string
---@field prefix? string before the title
---@field since? number shown in the upper right corner
---@field rows bellboard.Row[]
---@field hints bellboard.Hint[]
---@field page? string the key that shows the next page
---@field note? string shown in the lower right corner, if there is room
---@field status? string a message, shown in place of the keys while the last row is not in sight

---@class bellboard.Dialog.Options
---@field keys bellboard.Key[]
---@field name? string of its buffer
---@field is_split? boolean it does not float
---@field most? integer columns, borders included
---@field is_over? boolean it is above other dialogs
---@field passes? boolean any other key closes it and has its usual effect
---@field changed? fun() called when it is to be drawn again
---@field settled? fun() called when its keys begin to count
---@field closed? fun() called when its window was closed by somebody else
---@field left? fun() called when another window was entered

---@class bellboard.Dialog: bellboard.Dialog.Options
---@field win integer
---@field buf integer
---@field content bellboard.Dialog.Content
---@field written? bellboard.Row[]
---@field row? integer of the screen, where it began
---@field ready integer when its keys count, in nanoseconds
---@field timer uv.uv_timer_t
---@field ns integer for its keys
---@field group integer of its autocommands
---@field more integer rows below the screen
---@field is_read boolean whether the last row was on the screen
---@field is_behind? boolean a picker of another plugin is shown
---@field back fun(resumes?: boolean)
local Dialog = {}
Dialog.__index = Dialog

--- Whether the user has pressed a key.
---@param typed string as from |vim.on_key()|
---@return boolean
M.is_key = function(typed)
  return typed ~= '' and typed ~= MOUSE_MOVE
end

--- The cells that a row of text can have.
---@return integer
function Dialog:width()
  local most = self:floats() and (self.most or config.get().answer.width) or math.huge
  return math.max(math.min(most, vim.o.columns) - BESIDE, 16)
end

--- Whether the dialog floats, as a split without room does.
---@return boolean
function Dialog:floats()
  return not (self.is_split and self.win) or api.nvim_win_get_config(self.win).relative ~= ''
end

---@return boolean
function Dialog:is_open()
  return api.nvim_win_is_valid(self.win) and api.nvim_win_get_buf(self.win) == self.buf
end

--- Whether keys go to this window, and not to a split copy of it.
---@return boolean
function Dialog:is_here()
  return api.nvim_get_current_win() == self.win
end

-- The frame -------------------------------------------------------------------------------------

--- Its title, with its age in the corner.
---@param width integer
---@param edge string
---@return bellboard.Chunk[]
function Dialog:head(width, edge)
  local content = self.content
  local ago = content.since and (' %s '):format(age.of(content.since)) or ''
  local prefix = ' ' .. (content.prefix or '')
  local room = math.max(width - cells.width(prefix .. ago) - 1, 1)
  return frame.spread({
    { prefix, 'BellboardDim' },
    { cells.cut(content.title, room), 'BellboardFloatTitle' },
    { ' ', 'BellboardDim' },
  }, ago ~= '' and { { ago, 'BellboardDim' } } or {}, width, edge)
end

--- Its keys, as many as there is room for, or its message, and its note.
---@param width integer
---@param edge string
---@return bellboard.Chunk[]
function Dialog:foot(width, edge)
  local content, is_below = self.content, self.more > 0
  local key = content.page and not content.status and ': ' .. content.page or ''
  local more = (' %d more%s '):format(self.more, key)
  local right = is_below and { { more, 'BellboardHidden' } } or {}
  local room = width - cells.sum(right)
  if is_below and content.status then
    local text = (' %s '):format(cells.cut(content.status, room - 2))
    return frame.spread({ { text, 'BellboardStatus' } }, right, width, edge)
  end
  local left = frame.keys(content.hints, room)
  local note = content.note and (' %s '):format(content.note) or ''
  if not is_below and note ~= '' and cells.sum(left) + cells.width(note) < width then
    right = { { note, 'BellboardDim' } }
  end
  return frame.spread(left, right, math.max(width, cells.sum(left) + cells.sum(right)), edge)
end

--- Draw the title and the keys: in the border, or in the bar of a split.
function Dialog:frame()
  local width = api.nvim_win_get_width(self.win)
  if self:floats() then
    return api.nvim_win_set_config(self.win, {
      title = self:head(width, frame.edge(self.win, 'top')),
      footer = self:foot(width, frame.edge(self.win, 'bottom')),
    })
  end
  local function bar(chunks)
    return table.concat(vim.tbl_map(function(chunk)
      return ('%%#%s#%s'):format(chunk[2] or 'WinBar', (chunk[1]:gsub('%%', '%%%%')))
    end, chunks))
  end
  local content = self.content
  local whole = cells.width((content.prefix or '') .. content.title) + 10
  local title = self:head(math.min(whole, math.max(math.floor(width / 2), 10)), ' ')
  local foot = self:foot(math.max(width - cells.sum(title), 1), ' ')
  vim.wo[self.win].winbar = bar(title) .. bar(foot)
end

-- The text --------------------------------------------------------------------------------------

---@class bellboard.Range rows with one syntax
---@field syntax string
---@field first integer
---@field last integer

--- Adjacent rows with the same syntax.
---@param rows bellboard.Row[]
---@return bellboard.Range[]
local function ranges_of(rows)
  local found = {}
  for nth, row in ipairs(rows) do
    local last = found[#found]
    if row.syntax and last and last.syntax == row.syntax and last.last == nth - 1 then
      last.last = nth
    elseif row.syntax then
      found[#found + 1] = { syntax = row.syntax, first = nth, last = nth }
    end
  end
  return found
end

--- Color rows by the syntax of their language. A language without a syntax file stays plain.
---@param buf integer
---@param rows bellboard.Row[]
local function paint(buf, rows)
  api.nvim_buf_call(buf, function()
    vim.cmd('syntax clear')
    local included = {}
    for _, range in ipairs(ranges_of(rows)) do
      local cluster = range.syntax:match('^[%w_]+$') and 'Bellboard_' .. range.syntax or nil
      if cluster and included[cluster] == nil then
        vim.b.current_syntax = nil
        local include = 'syntax include @%s syntax/%s.vim'
        included[cluster] = pcall(vim.cmd --[[@as function]], include:format(cluster, range.syntax))
      end
      if included[cluster] then
        local where = ('start=/\\%%%dl/ end=/\\%%%dl$/'):format(range.first, range.last)
        vim.cmd(('syntax region BellboardPart %s keepend contains=@%s'):format(where, cluster))
      end
    end
    vim.b.current_syntax = nil
  end)
end

--- Write all rows, unless it shows them.
function Dialog:write()
  local rows = self.content.rows
  if vim.deep_equal(self.written, rows) then
    return
  end
  self.written = rows
  canvas.replace(
    self.buf,
    vim.tbl_map(function(row)
      return row.text
    end, rows)
  )
  for nth, row in ipairs(rows) do
    canvas.color(self.buf, nth, row.text, row.chunks or {})
    if row.gutter or row.group then
      api.nvim_buf_set_extmark(self.buf, namespace, nth - 1, 0, {
        virt_text = row.gutter and { row.gutter },
        virt_text_pos = row.gutter and 'inline',
        line_hl_group = row.group,
      })
    end
  end
end

--- The place of a float with this many rows: it stays where it began, as long as it fits there.
---@param rows integer
---@return vim.api.keyset.win_config
function Dialog:place(rows)
  local lines = vim.o.lines - vim.o.cmdheight
  local height = math.max(math.min(rows, lines - AROUND), 1)
  local border = highlight.border()
  local width = self:width() + 2
  self.row = self.row or math.max(math.floor((lines - height - AROUND) / 2), 0)
  return {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(math.min(self.row, lines - height - AROUND), 0),
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    border = border == 'shadow' and highlight.plain_border() or border, -- a title needs an edge
    zindex = self.is_behind and BEHIND or config.get().float.zindex + (self.is_over and 2 or 1),
  }
end

--- Note which rows are on the screen.
---@return boolean changed
function Dialog:look()
  local more = math.max(#self.content.rows - vim.fn.line('w$', self.win), 0)
  local is_changed = more ~= self.more
  self.more, self.is_read = more, self.is_read or more == 0
  return is_changed
end

--- Show new or changed content.
---@param content bellboard.Dialog.Content
---@param is_new? boolean something else than before: it is shown from its start
function Dialog:draw(content, is_new)
  local was_at_end = self.more == 0 and not is_new and self.written ~= nil
  local cursor = is_new and { 1, 0 } or api.nvim_win_get_cursor(self.win)
  self.content, self.row = content, not is_new and self.row or nil
  self:write()
  if self:floats() then
    api.nvim_win_set_config(self.win, self:place(#content.rows))
  elseif is_new then
    local most = vim.o.lines - vim.o.cmdheight - LEFT
    api.nvim_win_set_height(self.win, math.max(math.min(#content.rows + 1, most), 2))
  end
  pcall(api.nvim_win_set_cursor, self.win, cursor)
  if is_new then
    self.is_read = false
    paint(self.buf, content.rows)
    vim.wo[self.win].cursorline = vim.iter(content.rows):any(function(row)
      return row.spot ~= nil
    end)
  end
  api.nvim_win_call(self.win, function()
    if is_new then
      vim.fn.winrestview({ topline = 1 })
    elseif was_at_end and vim.fn.line('w$') < #content.rows then
      vim.cmd.normal({ #content.rows - vim.fn.line('w$') .. vim.keycode('<C-e>'), bang = true })
    end
  end)
  self:look()
  self:frame()
end

--- Whether the last row was on the screen.
---@return boolean
function Dialog:was_read()
  self:look()
  return self.is_read
end

--- The part under the cursor.
---@return bellboard.Spot|nil
function Dialog:spot()
  local row = self.content.rows[api.nvim_win_get_cursor(self.win)[1]]
  return row and row.spot
end

--- Put the cursor on the first row of a question, option, field or file, and show all its rows.
---@param spot bellboard.Spot
function Dialog:seek(spot)
  local first, last
  for nth, row in ipairs(self.content.rows) do
    local its = row.spot
    local is_its = its
      and its.question == spot.question
      and its.field == spot.field
      and its.file == spot.file
    if is_its and (not spot.option or its.option == spot.option) then
      first, last = first or nth, nth
    end
  end
  for _, nth in ipairs(first and { last, first } or {}) do
    api.nvim_win_set_cursor(self.win, { nth, 0 })
    api.nvim_win_call(self.win, vim.fn.winsaveview) -- scrolls as far as needed
  end
end

--- Show the next page, with the cursor on it.
function Dialog:page()
  api.nvim_win_call(self.win, function()
    local height = api.nvim_win_get_height(0)
    vim.cmd.normal({ math.max(height - 1, 1) .. vim.keycode('<C-d>'), bang = true })
    vim.wo.scroll = 0
  end)
end

--- Show the last row.
function Dialog:to_end()
  api.nvim_win_set_cursor(self.win, { #self.content.rows, 0 })
  self:draw(self.content)
end

-- Keys ------------------------------------------------------------------------------------------

---@return boolean
function Dialog:is_ready()
  return vim.uv.hrtime() >= self.ready
end

function Dialog:redraw()
  if not self:is_open() then
    return
  elseif self.changed then
    self.changed()
  else
    self:draw(self.content)
  end
end

--- Let the keys count once no key was pressed for a moment.
function Dialog:wait()
  local pause = config.get().answer.key_delay
  self.ready = vim.uv.hrtime() + pause * 1e9
  vim.uv.update_time()
  self.timer:start(
    math.ceil(pause * 1e3) + 1, -- a timer counts whole milliseconds
    0,
    vim.schedule_wrap(function()
      if self:is_open() and self:is_ready() then
        self:redraw()
        if self.settled then
          self.settled()
        end
      end
    end)
  )
end

--- Wait also while the user types before they count, and after each key of a prompt: the key that
--- closes a prompt reaches the dialog as well. Nothing may add a callback to |vim.on_key()| while
--- Neovim calls them, so there is one for as long as the dialog is open.
---@param typed string
function Dialog:heed(typed)
  if not M.is_key(typed) then
    return
  elseif self.passes then
    local is_own = vim.iter(self.keys):any(function(key)
      return vim.keycode(key[1]) == typed
    end)
    if not is_own then
      moment.when('draw', function() -- so that the key acts on the window below
        self:close()
      end)
    end
  elseif not self:is_ready() then
    self:wait()
  elseif api.nvim_get_mode().mode:find('^[cr]') then
    self:wait()
    vim.schedule(function()
      self:redraw()
    end)
  end
end

--- Let a key have its usual effect. It was translated by 'langmap' when it was typed, and would be
--- again if it counted as typed.
---@param key string
local function pass_on(key)
  api.nvim_feedkeys(vim.keycode(key), vim.o.langmap == '' and 'mit' or 'mi', false)
end

---@param key bellboard.Key
function Dialog:press(key)
  if not self:is_here() then
    return
  elseif not key.waits or self:is_ready() then
    key.act()
  elseif self.passes then
    self:close()
    pass_on(key[1])
  end
end

function Dialog:map()
  local function map(lhs, act)
    vim.keymap.set('n', lhs, act, { buffer = self.buf, nowait = true })
  end
  for _, lhs in ipairs(self.passes and {} or INERT) do
    map(lhs, '<Nop>')
  end
  for _, key in ipairs(self.keys) do
    map(key[1], function()
      self:press(key)
    end)
  end
end

-- Opening and closing -----------------------------------------------------------------------------

--- Close the window, and copies that `:split` or CTRL-W T has made: their keys would answer the
--- next request. Go back to where the user was.
function Dialog:close()
  if self.timer:is_closing() then
    return
  end
  vim.on_key(nil, self.ns)
  self.timer:close()
  api.nvim_del_augroup_by_id(self.group)
  local is_here = api.nvim_get_current_buf() == self.buf
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    window.close(win)
  end
  if is_here then
    self.back(true)
  end
end

--- Enter the dialog again, after another window.
function Dialog:enter()
  if self:is_open() then
    self.is_behind = nil
    self:redraw()
    window.enter(self.win)
  end
end

--- Let a window of another plugin cover the dialog, until it is entered again.
function Dialog:yield()
  self.is_behind = true
  self:redraw()
end

function Dialog:follow()
  self.group = api.nvim_create_augroup('bellboard.dialog' .. self.ns, {})
  local function on(events, callback, pattern)
    local where = pattern and { pattern = pattern } or { buffer = self.buf }
    where.group, where.callback = self.group, callback
    api.nvim_create_autocmd(events, where)
  end
  on('WinClosed', function()
    vim.schedule(function()
      if not self.timer:is_closing() then
        (self.closed or self.close)(self)
      end
    end)
  end, tostring(self.win))
  on({ 'WinScrolled', 'CursorMoved' }, function()
    if self:is_open() and self:look() then
      self:redraw()
    end
  end, '*')
  on('WinEnter', function() -- also in the middle of typing, if a window beside it was closed
    self:wait()
    vim.schedule(function() -- it may be half entered
      if self:is_here() then
        self.is_behind = nil
      end
      self:redraw()
    end)
  end)
  on(
    'VimResized',
    vim.schedule_wrap(function()
      self.row = nil
      self:redraw()
    end),
    '*'
  )
  local left = self.passes and self.close or self.left
  if left then
    on(
      'WinLeave',
      vim.schedule_wrap(function()
        if not self:is_here() and not self.timer:is_closing() then
          left(self)
        end
      end)
    )
  end
end

--- Open a dialog.
---@param options bellboard.Dialog.Options
---@param content bellboard.Dialog.Content
---@return bellboard.Dialog
M.open = function(options, content)
  local self = setmetatable(
    vim.tbl_extend('error', options, {
      content = content,
      ready = 0,
      more = 0,
      is_read = false,
      timer = assert(vim.uv.new_timer()),
      ns = api.nvim_create_namespace(''),
      back = window.origin(options.is_split),
      buf = canvas.buffer({}),
    }) --[[@as table]],
    Dialog
  ) --[[@as bellboard.Dialog]]
  vim.bo[self.buf].undolevels = -1
  local where = self:place(#content.rows)
  if self.is_split then
    where = { split = 'below', win = -1, height = math.max(math.floor(vim.o.lines * 0.5), 6) }
  end
  self.win = window.open(self.buf, true, where)
  if self.name then
    canvas.name(self.buf, self.name)
  end
  window.bare(self.win, { foldcolumn = '1', scrolloff = 0, winfixheight = true })
  if self:floats() then
    highlight.frame(self.win)
  end
  highlight.mark_cursor_line(self.win)
  self:map()
  self:follow()
  vim.on_key(function(_, typed)
    self:heed(typed)
  end, self.ns)
  self:wait()
  self:draw(content, true)
  return self
end

-- A question, a menu ------------------------------------------------------------------------------

---@param lines string[]
---@param width integer
---@return bellboard.Row[]
local function wrapped(lines, width)
  local rows = {}
  for _, text in ipairs(lines) do
    local row = ''
    for word in text:gmatch('%S+') do
      if row ~= '' and cells.width(row) + 1 + cells.width(word) > width then
        rows[#rows + 1], row = { text = row }, ''
      end
      row = row == '' and word or row .. ' ' .. word
      while cells.width(row) > width do -- a path
        local part = vim.fn.printf(('%%.%dS'):format(width), row)
        rows[#rows + 1], row = { text = part }, row:sub(#part + 1)
      end
    end
    rows[#rows + 1] = { text = row }
  end
  return rows
end

---@class bellboard.Option
---@field [1] string its key
---@field [2] string what it does, in words
---@field [3]? fun()

--- Ask a question, once the user is in a normal window with nothing else going on. It does not
--- block: its keys answer, any other key closes it and has its usual effect. So does any key that
--- was typed before the user can have read the question.
---@param title string
---@param lines string[]|bellboard.Row[] text is wrapped to fit, rows are shown as they are
---@param choices bellboard.Option[]
M.ask = function(title, lines, choices)
  moment.when('ask', function()
    local self ---@type bellboard.Dialog
    local keys = { {
      '<Esc>',
      act = function()
        self:close()
      end,
    } }
    for _, choice in ipairs(choices) do
      keys[#keys + 1] = {
        choice[1],
        waits = true,
        act = function()
          self:close()
          if choice[3] then
            choice[3]()
          end
        end,
      }
    end
    local has_rows = type(lines[1]) == 'table'
    local rows = has_rows and lines or wrapped(lines, math.min(62, vim.o.columns - BESIDE))
    local content = { title = title, rows = rows, hints = {} }
    local function changed()
      for nth, choice in ipairs(choices) do
        content.hints[nth] = { choice[1], choice[2], is_dim = not self:is_ready() }
      end
      self:draw(content)
    end
    local most = 66
    for _, row in ipairs(has_rows and lines or {}) do
      most = math.max(most, cells.width(row.text) + BESIDE)
    end
    self = M.open({ keys = keys, passes = true, most = most, changed = changed }, content)
    changed()
  end)
end

--- Let the user choose one of a few items, with a key each; in the user's own picker if
--- vim.ui.select was replaced.
---@generic T
---@param items T[]
---@param options { prompt: string, kind?: string, format_item?: fun(item: T): string }
---@param done fun(item: T|nil, nth: integer|nil)
M.select = function(items, options, done)
  local is_function = type(vim.ui.select) == 'function' -- a plugin's may be a table
  local source = is_function and debug.getinfo(vim.ui.select, 'S').source or ''
  if not source:find('vim/ui%.lua$') or #items > #MENU then
    return vim.ui.select(items, options, done)
  end
  local self ---@type bellboard.Dialog
  local function chooses(nth)
    return function()
      self:close()
      done(items[nth], items[nth] and nth)
    end
  end
  local rows, keys, widest = {}, {}, math.max(cells.width(options.prompt) + 4, 24)
  for nth, item in ipairs(items) do
    local lhs = MENU:sub(nth, nth)
    local text = options.format_item and options.format_item(item) or tostring(item)
    text = cells.cut(('%s  %s'):format(lhs, text), vim.o.columns - BESIDE)
    rows[nth] = { text = text, chunks = { { lhs, 'BellboardKey' } }, spot = {} }
    keys[nth] = { lhs, act = chooses(nth) }
    widest = math.max(widest, cells.width(text))
  end
  keys[#keys + 1] = {
    '<CR>',
    act = function()
      chooses(api.nvim_win_get_cursor(0)[1])()
    end,
  }
  for _, lhs in ipairs({ 'q', '<Esc>' }) do
    keys[#keys + 1] = { lhs, act = chooses(0) }
  end
  local cancel = chooses(0)
  self = M.open({
    keys = keys,
    is_over = true,
    most = widest + BESIDE,
    closed = cancel,
    left = cancel,
  }, { title = options.prompt, rows = rows, hints = { { '<CR>', 'choose' }, { 'q', 'cancel' } } })
end

return M
