-- Reports the titles of terminals of this Neovim, for sessions whose CLI shows its state there.
-- A title is read soon after its terminal was drawn. (A watcher of b:term_title crashes 0.10.)
local drawn = require('bellboard.report.drawn')
local host = require('bellboard.process.talk')

local NEEDS = 'title_tells'
local PAUSE = 150 -- ms between two reads: a spinner changes a title all the time
local READS = 3 -- reads after the last change: a CLI may set the title after drawing
local LONGEST = 300 -- characters; as many as the background process reads

---@type table<integer, string> buffer → its title as last reported
local told = {}

---@param buf integer
---@param session bellboard.Session
local function report(buf, session)
  local title = vim.b[buf].term_title
  if type(title) == 'string' then
    title = vim.fn.strcharpart(title, 0, LONGEST)
    if told[buf] ~= title and host.notify('title', session.session_id, session.pid or 0, title) then
      told[buf] = title
    end
  end
end

return drawn.watch({
  name = 'titles',
  needs = NEEDS,
  report = report,
  drawn = function(buf)
    local looks = 0
    local function look()
      local session = drawn.session(buf, NEEDS)
      if session then
        report(buf, session)
      end
      looks = session and looks - 1 or 0
      if looks > 0 then
        vim.defer_fn(look, PAUSE)
      end
    end
    return function()
      local is_looking = looks > 0
      looks = READS
      if not is_looking then
        vim.defer_fn(look, PAUSE)
      end
    end
  end,
  forget = function(buf)
    told[buf] = nil
  end,
})
