-- The lines below a session on the board that are shown when it is unfolded.
local age = require('bellboard.age')
local cells = require('bellboard.text')
local sessions = require('bellboard.sessions')

local M = {}

---@param task bellboard.Task
---@return string
local function age_of(task)
  return task.since and ', ' .. age.of(task.since) or ''
end

--- The name of another session, if it is known.
---@param id string
---@return string
local function name_of(id)
  local session = sessions.get(id)
  if not session then
    return id
  end
  local words = session.words
  local name = vim.trim(('%s %s'):format(words.project, words.branch))
  return ('%s, %s'):format(words.title ~= '' and words.title or name, words.word)
end

---@alias bellboard.AddDetail fun(name: string, text: any)

--- Its subagents, its team, its lead and its background tasks.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function crew(session, add)
  for _, agent in ipairs(session.agents or {}) do
    local text = ('%s %s'):format(agent.type or '', agent.description or '')
    add('agent', text .. (agent.blocked and ', blocked' or '') .. age_of(agent))
  end
  for _, id in ipairs(session.team or {}) do
    add('teammate', name_of(id))
  end
  if session.parent then
    add('lead', name_of(session.parent))
  end
  for _, task in ipairs(session.background or {}) do
    add(task.type or 'shell', (task.description or task.id) .. age_of(task))
  end
end

--- Its state beyond the status.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function state(session, add)
  if session.tasks then
    add('tasks', ('%d of %d done'):format(session.tasks.done, session.tasks.total))
  end
  if #(session.markers or {}) > 0 then
    add('markers', table.concat(session.markers, ', '))
  end
  if session.quiet_since then
    add('quiet', 'for ' .. age.of(session.quiet_since))
  end
  if session.tool_since then
    add('tool', ('%s for %s'):format(session.tool or '', age.of(session.tool_since)))
  end
  local left = age.left(session.snoozed_until)
  if left ~= '' then
    add('snoozed', 'for ' .. left)
  end
  add('model', session.words.model)
end

--- Its last messages, the newest prompt last.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function said(session, add)
  local prompts = session.prompts or { session.last_prompt }
  for _, prompt in ipairs(prompts) do
    add('prompt', prompt)
  end
  add('message', session.last_message)
end

--- Where it runs.
---@param session bellboard.Session
---@param add bellboard.AddDetail
local function whereabouts(session, add)
  if session.machine then
    local pid = session.far_pid and 'process ' .. session.far_pid or ''
    add('machine', ('%s %s %s'):format(session.machine, session.terminal or '', pid))
  end
  add('link', vim.trim(('%s  %s'):format(age.outdated(session), session.link_why or '')))
  add('cwd', session.cwd)
  local pull_request = { session.words.pull_request, session.pull_request_state }
  add('pr', table.concat(pull_request, ' ') .. ' ' .. (session.pull_request_url or ''))
  add('ports', table.concat(session.ports or {}, ', '))
  local process = { session.pid or '', session.tty or '', session.terminal_program or '' }
  add('process', table.concat(process, ' '))
  add('ssh', session.ssh)
  add('session', session.session_id)
  if #(session.previous or {}) > 0 then
    add('before', table.concat(session.previous, ', '))
  end
end

---@param session bellboard.Session
---@return bellboard.Chunk[][]
M.lines = function(session)
  local lines = {}
  local function add(name, text)
    text = cells.safe(text)
    if text ~= '' then
      local label = ('     %s '):format(cells.fit(cells.safe(name), 9))
      lines[#lines + 1] = { { label, 'BellboardDim' }, { text } }
    end
  end
  for _, part in ipairs({ crew, state, said, whereabouts }) do
    part(session, add)
  end
  return lines
end

return M
