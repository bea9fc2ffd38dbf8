-- Forwards the own reports of programs in terminals of this Neovim (OSC 7501), and answers programs
-- that ask whether anybody reads them.
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local host = require('bellboard.process.talk')
local receive = require('bellboard.process.receive')
local autostart = require('bellboard.process.autostart')
local records = require('bellboard.report.records')
local sessions = require('bellboard.sessions')

local M = {}

local api = vim.api

local PAUSE = 33 -- ms after a message, for each report in it: a flood costs no more than that
local MOST = 30 -- reports in a message
local SETTLE = 20 -- ms after a piece, which may be the last
local LONGEST = 4096 -- bytes of a sequence, with its start and end
local PREFIX, QUERY, PROMPT = '7501;', '7501;?', '133;A'
local START = 'state=' -- how all known programs start a report

---@class bellboard.Delivery of what the program in a terminal reports
---@field reporter bellboard.Reporter
---@field waits boolean for the end of a pause
---@field is_new boolean something came since the last message
---@field channel? integer the background process that got the last one
---@field was_counted? boolean among the programs that the statusline counts
---@field open? string the pieces of a report so far, without the prefix
---@field start? string the start of the next one, or more of that
---@field is_due boolean that report is still to be taken
---@field t number when the last piece came
---@field came integer the same, in ms of a clock that never jumps

---@type table<integer, bellboard.Delivery> by buffer
local deliveries = {}
local group = api.nvim_create_augroup('bellboard.reports', {})

--- Whether the background process runs, or will: if it is switched off, no program is answered.
---@return boolean
local function is_on()
  local wanted = coprocess.is_wanted()
  return wanted or wanted == nil and autostart.wanted(config.get().auto_start)
end

--- Send new reports; to a new background process, all that are still true.
---@param delivery bellboard.Delivery
---@return integer count of the reports
local function send(delivery)
  local reporter, channel = delivery.reporter, coprocess.status().channel
  if not channel then
    return 0
  elseif delivery.channel ~= channel then
    reporter.sent = 0
  end
  local said, last = records.unsent(reporter, MOST)
  if #said == 0 and reporter.dropped == 0 then
    return 0
  end
  local message =
    { tty = reporter.tty, pid = reporter.pid, said = said, dropped = reporter.dropped }
  if host.notify('program_status', message) then
    delivery.channel = channel
    delivery.is_new = records.was_sent(reporter, last)
  end
  return #said
end

--- Show how many programs report while no process can read them.
---@param delivery bellboard.Delivery
local function show(delivery)
  local is_counted = delivery.reporter.reports[''] ~= nil and not delivery.reporter.has_ended
  if is_counted ~= delivery.was_counted then
    delivery.was_counted = is_counted
    if coprocess.status().gave_up then
      sessions.changed()
    end
  end
end

---@param delivery bellboard.Delivery
---@param text string
---@param length integer of the whole sequence
local function take(delivery, text, length)
  if length > LONGEST then
    delivery.reporter.dropped = delivery.reporter.dropped + 1
  else
    records.take(delivery.reporter, delivery.t, text)
  end
  delivery.is_new = true
end

--- Take the report whose pieces have come.
---@param delivery bellboard.Delivery
local function complete(delivery)
  local body = (delivery.open or '') .. (delivery.start or '')
  if delivery.is_due or delivery.start then
    take(delivery, PREFIX .. body, #body + #(PREFIX .. '\27]\27\\'))
  end
  delivery.open, delivery.start, delivery.is_due = body, nil, false
end

---@param body string
---@return boolean
local function has_state(body)
  return (body:find('^' .. START) or body:find(':' .. START, 1, true)) ~= nil
end

--- Whether the next piece ends a report; a broken report has no state, nor room for one.
---@param body string
---@param piece string with a state
---@return boolean
local function is_over(body, piece)
  local goes_on = body:sub(-1) == ':' or piece:sub(1, #START) ~= START
  return has_state(body) or not goes_on
end

--- Whether a text is the start of a report, as far as it goes.
---@param text string
---@return boolean
local function may_start(text)
  local length = math.min(#text, #START)
  return text:sub(1, length) == START:sub(1, length)
end

--- Neovim 0.10 hands over each read: a report may come in pieces, and nothing marks the last one. A
--- piece without a state continues the piece before it.
---@param delivery bellboard.Delivery
---@param piece string
local function join(delivery, piece)
  delivery.came = vim.uv.now()
  if piece == '' then -- an end or a start, read alone
    complete(delivery)
    delivery.open = nil
    return
  end
  local open, start = delivery.open, (delivery.start or '') .. piece
  if may_start(piece) and not may_start(start) then
    open, start = (open or '') .. delivery.start, piece
    delivery.open, delivery.is_due = open, true
  end
  delivery.start = nil
  if #start < #START and may_start(start) then
    delivery.start = start -- or more of the one before: what comes next decides
  elseif has_state(start) and (not open or is_over(open, start)) then
    complete(delivery)
    delivery.open, delivery.is_due = start, true
  else
    delivery.is_due = true
    if #(open or '') <= LONGEST then -- else it is too long, whatever follows
      delivery.open = (open or '') .. start
    end
  end
end

--- Defined below: reports during a pause are sent at its end, when another pause begins.
---@type fun(delivery: bellboard.Delivery)
local flush

---@param delivery bellboard.Delivery
---@param pause integer
local function wait(delivery, pause)
  delivery.waits = true
  vim.defer_fn(function()
    delivery.waits = false
    local rest = delivery.is_due or delivery.start
    if rest and vim.uv.now() - delivery.came >= SETTLE then
      complete(delivery)
      rest = false
    end
    if delivery.is_new then
      flush(delivery)
    elseif rest then
      wait(delivery, SETTLE)
    end
  end, pause)
end

flush = function(delivery)
  delivery.is_new = false
  local count = send(delivery)
  show(delivery)
  wait(delivery, PAUSE * math.max(count, 1))
end

--- Say that a terminal is gone.
---@param buf integer
local function close(buf)
  local delivery = deliveries[buf]
  local reporter = delivery.reporter
  deliveries[buf] = nil
  records.forget(buf)
  delivery.is_due, delivery.start, delivery.is_new = false, nil, false
  if reporter.last > 0 then
    records.close(reporter, sessions.now())
    send(delivery)
    show(delivery)
  end
end

--- Attend to a terminal from its first report on.
---@param buf integer
---@return bellboard.Delivery|nil
local function open(buf)
  local reporter = records.of(buf)
  if not reporter then
    return nil
  end
  local delivery = { reporter = reporter, waits = false, is_new = false, is_due = false, t = 0 }
  deliveries[buf] = delivery
  for event, act in pairs({
    TermClose = function()
      records.rest(reporter)
      reporter.has_ended = true
      show(delivery)
    end,
    BufUnload = function() -- not BufDelete, which 'nobuflisted' causes as well
      close(buf)
    end,
  }) do
    api.nvim_create_autocmd(event, { group = group, buffer = buf, once = true, callback = act })
  end
  return delivery
end

--- Take a request of a terminal: a report, a query, or the prompt of a shell.
---@param buf integer
---@param data string|{ sequence: string, terminator: string|nil } as |TermRequest| has it
M.heard = function(buf, data)
  local is_piece = type(data) == 'string'
  local sequence = is_piece and data or data.sequence --[[@as string]]
  local text, terminator = sequence:sub(3), not is_piece and data.terminator or '\27\\'
  local is_prompt = text == PROMPT or text:find('^' .. PROMPT .. ';') ~= nil
  local is_report = text:find('^' .. PREFIX) ~= nil
  local delivery = deliveries[buf] or is_report and open(buf)
  if not delivery or not (is_report or is_prompt) then
    return
  elseif text == QUERY then
    if is_on() then
      api.nvim_chan_send(vim.bo[buf].channel, sequence .. terminator)
    end
    return
  elseif is_piece and is_report then
    join(delivery, text:sub(#PREFIX + 1))
    delivery.t = sessions.now()
  else
    complete(delivery)
    delivery.open, delivery.t = nil, sessions.now()
    take(delivery, is_prompt and PROMPT or text, #sequence + #terminator)
  end
  if not delivery.waits then
    if delivery.is_new then
      flush(delivery)
    else
      wait(delivery, SETTLE)
    end
  end
end

--- Send a new background process all reports that are still true.
local function renew()
  for _, delivery in pairs(deliveries) do
    if delivery.waits then
      delivery.is_new = true
    else
      flush(delivery)
    end
  end
end

receive.on('snapshot', renew)

return M
