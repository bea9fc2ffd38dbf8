-- Reports what terminals of this Neovim show, for sessions whose status is visible nowhere else.
-- Only Neovim can read them; it does so when they change.
local drawn = require('bellboard.report.drawn')
local host = require('bellboard.process.talk')
local terminals = require('bellboard.terminals')

local NEEDS = 'blind'
local ROWS = 60 -- from the bottom up; more than any dialog has
local SETTLE = 150 -- ms after a change, as a screen is drawn in parts
local LONGEST = 1000 -- ms between two reports while a screen keeps changing

---@param buf integer
---@param session bellboard.Session
local function report(buf, session)
  host.notify('screen', session.session_id, session.pid, terminals.rows(buf, ROWS))
end

return drawn.watch({
  name = 'screens',
  needs = NEEDS,
  report = report,
  drawn = function(buf)
    local waiting, last = false, 0
    local function look()
      waiting, last = false, vim.uv.now()
      local session = drawn.session(buf, NEEDS)
      if session then
        report(buf, session)
      end
    end
    return function()
      if not waiting then
        waiting = true
        vim.defer_fn(look, math.max(SETTLE, last + LONGEST - vim.uv.now()))
      end
    end
  end,
})
