-- The own reports of programs in terminals here (OSC 7501): the last report of each record. The
-- background process understands them; here only as much is read as decides which report replaces
-- which.
local M = {}

local api = vim.api

---@class bellboard.Report
---@field key string by which a later one replaces it
---@field id string of its record
---@field nth integer among those of its terminal
---@field t number when it arrived
---@field text string as it came
---@field stays boolean it outlives the program
---@field passes boolean once it is sent, nothing of it is left

---@class bellboard.Reporter a terminal whose program reports
---@field tty string
---@field pid integer of the job
---@field reports table<string, bellboard.Report> by their keys
---@field order table<integer, bellboard.Report> by their numbers
---@field count integer
---@field first integer no report has a lower number
---@field last integer the number of the last report
---@field sent integer and of the last that was sent
---@field dropped integer how many were too long, since then
---@field has_ended boolean its job has

--- Records of a terminal; the least recently updated one goes first.
local MOST = 256
--- The states of the protocol, and whether a report outlives the program.
local STATES =
  { idle = false, working = false, blocked = false, done = true, error = true, clear = false }
--- Keys; no id has this character. A report whose key begins with it leaves nothing once sent.
local ROOT, CLEAR, PROMPT, GONE, JUNK = '', '!', '!!prompt', '!!gone', '!!junk'

---@type table<integer, bellboard.Reporter> by buffer
local reporters = {}

--- The program that reports in a terminal: a job, not a buffer that a plugin fills.
---@param buf integer
---@return bellboard.Reporter|nil
M.of = function(buf)
  if not reporters[buf] then
    local info = api.nvim_get_chan_info(vim.bo[buf].channel)
    if info.stream ~= 'job' or (info.pty or '') == '' then
      return nil
    end
    local pid = vim.fn.jobpid(info.id)
    -- stylua: ignore
    reporters[buf] = {
      tty = info.pty, pid = pid, has_ended = false,
      reports = {}, order = {}, count = 0, first = 1, last = 0, sent = 0, dropped = 0,
    }
  end
  return reporters[buf]
end

---@param buf integer
M.forget = function(buf)
  reporters[buf] = nil
end

--- The number of programs that report here.
---@return integer
M.count = function()
  local count = 0
  for _, reporter in pairs(reporters) do
    count = count + (reporter.reports[ROOT] and not reporter.has_ended and 1 or 0)
  end
  return count
end

---@param id string
---@return boolean
local function is_path(id)
  local levels = 0
  for segment in (id .. '/'):gmatch('([^/]*)/') do
    levels = levels + 1
    if #segment > 32 or not segment:find('^[%w_.+-]+$') then
      return false
    end
  end
  return levels <= 8 and #id <= 128
end

--- The record and key of a report. A report without effect replaces no other.
---@param text string
---@return string|nil state
---@return string id
local function read(text)
  local state, id, is_junk = nil, ROOT, false
  if text:find('[ \t]') then -- around a key or a value, it is ignored
    text = text:gsub('[ \t]', '')
  end
  for key, value in text:gmatch('[:;]([a-z]+)=([^:]*)') do
    if key == 'id' then
      id, is_junk = value, is_junk or not is_path(value)
    elseif key == 'state' and value:find('^[%w_.,+/=-]*$') then
      state = value
    end
  end
  return not is_junk and STATES[state] ~= nil and state or nil, id
end

---@param reporter bellboard.Reporter
---@param report bellboard.Report
local function drop(reporter, report)
  reporter.reports[report.key], reporter.order[report.nth] = nil, nil
  reporter.count = reporter.count - 1
end

---@param reporter bellboard.Reporter
---@param key string
---@param id string
---@return bellboard.Report
local function put(reporter, key, id)
  local report, order = reporter.reports[key], reporter.order
  if report then
    order[report.nth] = nil
  else
    report = { key = key, id = id, passes = key:byte() == CLEAR:byte() }
    reporter.reports[key], reporter.count = report, reporter.count + 1
  end
  reporter.last = reporter.last + 1
  report.nth, order[reporter.last] = reporter.last, report
  if reporter.count > MOST then -- only now: a full table would be made again for each
    while not order[reporter.first] do
      reporter.first = reporter.first + 1
    end
    drop(reporter, order[reporter.first])
  end
  return report
end

--- The program has ended, or a shell prompts again: completed work stays until it is seen.
---@param reporter bellboard.Reporter
M.rest = function(reporter)
  local root = reporter.reports[ROOT]
  local is_over = root and not root.stays -- a completed part says nothing about the whole
  for _, report in pairs(reporter.reports) do
    if not report.passes and (is_over or not report.stays) then
      drop(reporter, report)
    end
  end
end

--- Clear a record and those below it.
---@param reporter bellboard.Reporter
---@param id string
local function clear(reporter, id)
  local length, slash = #id, ('/'):byte()
  for _, report in pairs(reporter.reports) do
    local other = report.id
    local is_below = other:byte(length + 1) == slash and other:sub(1, length) == id
    if other == id or is_below or id == ROOT and report.key ~= PROMPT then
      drop(reporter, report)
    end
  end
end

--- Keep a report.
---@param reporter bellboard.Reporter
---@param t number
---@param text string
M.take = function(reporter, t, text)
  local report
  if text == '133;A' then
    M.rest(reporter)
    report = put(reporter, PROMPT, PROMPT)
  else
    local state, id = read(text)
    if state == 'clear' then
      clear(reporter, id)
      report = put(reporter, CLEAR .. id, id)
    else
      report = put(reporter, state and id or JUNK, state and id or JUNK)
      report.stays = state ~= nil and STATES[state]
    end
  end
  report.t, report.text = t, text
end

--- The terminal is gone, and all its reports with it.
---@param reporter bellboard.Reporter
---@param t number
M.close = function(reporter, t)
  clear(reporter, ROOT)
  local report = put(reporter, GONE, GONE)
  report.t, report.text = t, ''
  reporter.has_ended = true
end

--- Unsent reports, in order; the report of the program as a whole never waits, unless an earlier
--- report ends a record.
---@param reporter bellboard.Reporter
---@param most integer
---@return [number, string][]
---@return integer last the number of the last one
M.unsent = function(reporter, most)
  local reports, said = {}, {}
  for _, report in pairs(reporter.reports) do
    if report.nth > reporter.sent then
      reports[#reports + 1] = report
    end
  end
  table.sort(reports, function(a, b)
    return a.nth < b.nth
  end)
  local is_clear = true
  for nth, report in ipairs(reports) do
    is_clear = is_clear and not (nth > most and report.passes)
    if nth <= most or report.key == ROOT and is_clear then
      said[#said + 1] = { report.t, report.text }
    end
  end
  return said, #reports > most and reports[most].nth or reporter.last
end

--- Note that reports were sent, up to a number.
---@param reporter bellboard.Reporter
---@param last integer
---@return boolean is_left something else is to be sent
M.was_sent = function(reporter, last)
  reporter.sent, reporter.dropped = last, 0
  for _, report in pairs(reporter.reports) do
    if report.passes and report.nth <= last then
      drop(reporter, report)
    end
  end
  return last < reporter.last
end

return M
