-- The commands `:Bellboard` and `:ClaudeSessions`, which are the same: their subcommands and
-- completion.
local config = require('bellboard.config')
local coprocess = require('bellboard.process.run')
local edit = require('bellboard.session_edit')
local host = require('bellboard.process.talk')
local install = require('bellboard.install')
local jump = require('bellboard.jump')
local launch = require('bellboard.jump.launch')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local names = require('bellboard.find_session')
local nearest = require('bellboard.nearest')
local popup = require('bellboard.popup')
local sessions = require('bellboard.sessions')

require('bellboard.start') -- the process needs it

local M = {}

--- Completes `new --agent`.
local agents = {
  ------ The agents, written by doc/tables.py ------
  'claude',
  'codex',
  'opencode',
  'copilot',
  'qwen',
  'gemini',
  'pi',
  'kimi',
  'cursor',
  'droid',
  'goose',
  'antigravity',
  'amp',
  'crush',
  ------ Here ends what doc/tables.py writes ------
}

---@class bellboard.Subcommand
---@field [1] string its name
---@field [2] string its arguments, as in the help; '': it takes none
---@field desc string what it does, for the help
---@field run fun(words: string[], count: integer, rows?: [integer, integer])
---@field complete? fun(before: string[]): string[] what may follow these words
---@field is_apart? boolean it does not start the background process
---@field is_windowless? boolean it opens no window, so that the command-line window stays open

--- Complete one session, after a number of words.
---@param after? integer
---@return fun(before: string[]): string[]
local function session_after(after)
  return function(before)
    return #before == (after or 0) and names.names() or {}
  end
end

--- Complete one word.
---@param words string[]
---@return fun(before: string[]): string[]
local function first(words)
  return function(before)
    return #before == 0 and words or {}
  end
end

---@return string[]
local function filters()
  return vim.tbl_map(function(session)
    return 'agent:' .. (session.agent or '')
  end, sessions.list())
end

---@return string[]
local function hook_options()
  return install.files
end

--- Run a command of the shell program; the name of its session may be several words.
---@param name string
---@return fun(words: string[])
local function of_session(name)
  return function(words)
    popup.command({ name, #words > 0 and table.concat(words, ' ') or nil })
  end
end

---@param name string
---@return fun(words: string[])
local function in_shell(name)
  return function(words)
    popup.command(vim.list_extend({ name }, words))
  end
end

---@param words string[]
---@param act fun(session: bellboard.Session)
---@param done? fun(session: bellboard.Session): boolean
local function each(words, act, done)
  names.each(table.concat(words, ' '), act, done)
end

local process = {
  start = function() end, -- running a subcommand starts it
  stop = coprocess.stop,
  restart = coprocess.restart,
  status = function()
    local status = host.status()
    local running = status.channel and ('runs: pid %d'):format(vim.fn.jobpid(status.channel))
    message.info(running and 'the background process ' .. running or host.outdated())
  end,
}

--- An action of the board, on one session.
---@param name string
---@param id string
local function on_board(name, id)
  require('bellboard.board.keys').run(name, { sessions.get(id) })
end

--- All subcommands, in the order of the help, whose list of them doc/tables.py makes from here. So
--- name, arguments and `desc` are literal.
---@type bellboard.Subcommand[]
M.subcommands = {
  {
    'pick',
    '',
    desc = 'Choose a session and go there: |bellboard-picker|.',
    run = function()
      require('bellboard.picker').open()
    end,
  },
  {
    'board',
    '',
    desc = 'Open the |bellboard-board|, or go to it.',
    run = function()
      require('bellboard.board').open()
    end,
  },
  {
    'next',
    '[{filter}]',
    desc = 'Go to the next session that is blocked, failed or done, most urgent first, then longest waiting; those that you have visited come last. Takes a count, up to the lines of the buffer, and a |bellboard-filter|, such as `agent:codex`.',
    run = function(words, count)
      jump.step(count, nil, table.concat(words, ' '))
    end,
    complete = filters,
  },
  {
    'prev',
    '[{filter}]',
    desc = 'The same, backwards.',
    run = function(words, count)
      jump.step(-count, nil, table.concat(words, ' '))
    end,
    complete = filters,
  },
  {
    'back',
    '',
    desc = 'Go back to where you were before the last jump, or the last jumps in a row, such as the board; also from another Neovim, if both are in tmux.',
    run = function()
      jump.back()
    end,
  },
  {
    'goto',
    '{session}',
    desc = 'Go to that session: |bellboard-jump|. If several have that name, to the one that needs you, or you choose.',
    run = function(words)
      names.choose(table.concat(words, ' '), names.needs_you, jump.to)
    end,
    complete = session_after(),
  },
  {
    'answer',
    '[{session}]',
    desc = 'Show what a session asks, to answer it: |bellboard-answer|. By default the most urgent one, of several with that name the one that asks; a snoozed or parked one comes last.',
    run = function(words)
      local answer = require('bellboard.answer')
      if #words == 0 then
        return answer.to()
      end
      names.choose(table.concat(words, ' '), names.asks, answer.to)
    end,
    complete = session_after(),
  },
  {
    'triage',
    '[all]',
    desc = 'Answer one session after the other; with `all`, then read what is done: |bellboard-triage|.',
    run = function(words)
      if words[1] and words[1] ~= 'all' then
        return message.error(('no "triage %s"; all, or nothing'):format(words[1]))
      end
      require('bellboard.answer.triage').run(nil, words[1] == 'all')
    end,
    complete = first({ 'all' }),
  },
  {
    'send',
    '[{session}]',
    desc = 'Write to a session: |bellboard-send|. By default to the one in this window or under the cursor of the board, else you choose one that rests. A range or a selection goes with it.',
    run = function(words, _, rows)
      local send = require('bellboard.send')
      local here = require('bellboard.send.context').here(rows)
      names.pick(table.concat(words, ' '), names.REST, function(id)
        send.open(id, { here = here })
      end)
    end,
    complete = session_after(),
  },
  {
    'interrupt',
    '[{session}]',
    desc = 'Interrupt what a session does, after asking.',
    run = function(words)
      names.pick(table.concat(words, ' '), names.WORK, function(id)
        on_board('interrupt', id)
      end)
    end,
    complete = session_after(),
  },
  {
    'stop',
    '[{session}]',
    desc = "Stop a session's process, after asking.",
    run = function(words)
      names.pick(table.concat(words, ' '), nil, function(id)
        on_board('stop', id)
      end)
    end,
    complete = session_after(),
  },
  {
    'answers',
    '[on|off]',
    desc = 'Let hooks wait for answers from here, or not; without an argument, show the setting.',
    run = in_shell('answers'),
    complete = first({ 'on', 'off' }),
  },
  {
    'diff',
    '',
    desc = 'Compare your unsaved changes of a file with what an agent writes: |bellboard-unsaved|.',
    run = function()
      require('bellboard.answer').compare()
    end,
  },
  {
    'dismiss',
    '',
    desc = 'Close the |bellboard-float| of this Neovim until another session is blocked. Mutes nothing.',
    run = function()
      require('bellboard.float').dismiss()
    end,
    is_windowless = true,
  },
  {
    'snooze',
    '[{minutes}] [{session}]',
    desc = 'Mute a session for {minutes}, by default |g:bellboard.notices.snooze|. Without {minutes}, the same command again ends the snooze.',
    run = function(words)
      local minutes = tonumber(words[1]) and tonumber(table.remove(words, 1))
      each(words, function(session)
        edit.snooze(session.session_id, minutes)
      end, edit.is_snoozed)
    end,
    complete = function(before)
      return #before == 0
          and vim.tbl_filter(function(name)
            return not tonumber(name) -- it would be read as minutes
          end, names.names())
        or #before == 1 and tonumber(before[1]) and names.names()
        or {}
    end,
    is_windowless = true,
  },
  {
    'park',
    '[{session}]',
    desc = 'Mute a session, and skip it in |:ClaudeSessions-next|, until you run the same command again.',
    run = function(words)
      each(words, function(session)
        edit.park(session.session_id)
      end, edit.is_parked)
    end,
    complete = session_after(),
    is_windowless = true,
  },
  {
    'label',
    '[{label}] [{session}]',
    desc = 'Label a session: |bellboard-labels|. Without {label}, or with `-`, remove the label.',
    run = function(words)
      local label = table.remove(words, 1)
      each(words, function(session)
        edit.label(session.session_id, label ~= '-' and label or nil)
      end)
    end,
    complete = function(before)
      local labels = vim.tbl_keys(config.get().notices.labels)
      table.sort(labels)
      return #before == 0 and labels or session_after(1)(before)
    end,
    is_windowless = true,
  },
  {
    'mode',
    '[quiet|normal|all]',
    desc = 'Set the notification mode of every Neovim, which is remembered; without an argument, show it.',
    run = function(words)
      if not words[1] then
        return message.info('the notification mode is ' .. sessions.mode())
      end
      edit.mode(words[1])
    end,
    complete = first({ 'quiet', 'normal', 'all' }),
    is_windowless = true,
  },
  {
    'notices',
    '',
    desc = 'List past notifications: when, on which channel, and their text. `<CR>` goes to the session, `q` closes the list.',
    run = function()
      host.notify('notices')
    end,
  },
  {
    'new',
    '[{args}]',
    desc = 'Start Claude Code, or `--agent` {name}, in a terminal buffer, with `--worktree` {name} in a worktree, with options and a prompt: |bellboard-new|.',
    run = launch.new,
    complete = function(before)
      local options = { ['--agent'] = agents, ['--worktree'] = {} }
      local values -- of an option that waits for one
      for _, word in ipairs(before) do
        local is_value = values ~= nil
        values = not is_value and options[word] or nil
        if not (is_value or values) then
          return {} -- the rest is for the agent
        end
      end
      return values or { '--agent', '--worktree' }
    end,
  },
  {
    'resume',
    '[{args}]',
    desc = 'Choose a session that ended in this directory and resume it, with its own agent.',
    run = function(words)
      launch.resume(words)
    end,
  },
  {
    'restore',
    '[{session}…]',
    desc = 'Open the sessions again that went down with tmux, Neovim or the machine: |bellboard-restore|. It lists them and asks first. What was in tmux comes into tmux, the rest into terminal buffers.',
    run = function(words)
      require('bellboard.jump.restore').run(words)
    end,
  },
  {
    'explain',
    '{session}',
    desc = 'Show why a session has its status: |bellboard-shell|.',
    run = of_session('explain'),
    complete = session_after(),
  },
  {
    'history',
    '[{args}]',
    desc = 'Show past changes of status: |bellboard-shell|.',
    run = in_shell('history'),
    complete = session_after(),
  },
  {
    'name',
    '{session} [{name}]',
    desc = 'Name a session; without {name}, remove its name.',
    run = in_shell('name'),
    complete = session_after(),
  },
  {
    'set',
    '{session} {status}',
    desc = 'Correct the status of a session: |bellboard-shell|.',
    run = in_shell('set'),
    complete = session_after(),
  },
  {
    'forget',
    '{session}',
    desc = 'Take a session off the board.',
    run = of_session('forget'),
    complete = session_after(),
  },
  {
    'rules',
    '[{args}]',
    desc = 'List rules for your agents that would have spared you questions: |bellboard-shell|.',
    run = in_shell('rules'),
  },
  {
    'install',
    '[{which}]',
    desc = 'Add the hooks to the settings of the agents on this machine, or of one, such as `codex`: |bellboard-hooks-install|, in a terminal. It shows the change and asks first.',
    run = function(words)
      install.hooks('install', words)
    end,
    complete = hook_options,
  },
  {
    'uninstall',
    '[{which}]',
    desc = 'Remove the hooks, in the same way.',
    run = function(words)
      install.hooks('uninstall', words)
    end,
    complete = hook_options,
  },
  {
    'build',
    '',
    desc = "Install bellboard's Python packages, in the background: |bellboard-install|.",
    run = function()
      install.build()
    end,
    is_apart = true,
    is_windowless = true,
  },
  {
    'path',
    '[--remove]',
    desc = 'Link the program `bellboard` into `~/.local/bin`.',
    run = in_shell('path'),
    complete = first({ '--remove' }),
    is_apart = true,
  },
  {
    'tmux',
    '[--apply|--remove|…]',
    desc = 'Show or set up the keys and the statusline of tmux: |bellboard-tmux|.',
    run = in_shell('tmux'),
    complete = first({ '--apply', '--remove' }),
  },
  {
    'demo',
    '',
    desc = 'Try all of this with simulated agents, in a tab page of its own, which CTRL-Q closes. It touches nothing of yours, and leaves nothing.',
    run = function()
      require('bellboard.demo').open()
    end,
    is_apart = true,
  },
  {
    'record',
    '[{args}]',
    desc = 'Record evidence for a bug report: |bellboard-shell|.',
    run = in_shell('record'),
  },
  {
    'replay',
    '{file}',
    desc = 'Replay such a record, and show its sessions: |bellboard-shell|.',
    run = in_shell('replay'),
  },
  {
    'health',
    '',
    desc = 'Run |:checkhealth| bellboard.',
    run = function()
      vim.cmd.checkhealth('bellboard')
    end,
    is_apart = true,
  },
  {
    'process',
    '[start|stop|restart|status]',
    desc = 'Start the background process of this Neovim, stop it, restart it with the current options, or say whether it runs. Sessions are kept: all Neovims share their database.',
    run = function(words)
      local act = process[words[1] or 'status']
      if not act then
        return message.error(('no "process %s"; start, stop, restart or status'):format(words[1]))
      elseif act == process.start then
        coprocess.start()
      end
      act()
    end,
    complete = first({ 'start', 'stop', 'restart', 'status' }),
    is_apart = true,
    is_windowless = true,
  },
}

---@type table<string, bellboard.Subcommand>
local by_name = {}
for _, subcommand in ipairs(M.subcommands) do
  by_name[subcommand[1]] = subcommand
end

--- Why a subcommand cannot be run.
---@param name string
---@param words string[]
---@return string|nil
local function refusal(name, words)
  local subcommand = by_name[name]
  if process[name] and not subcommand then
    local text = 'no subcommand "%s"; :ClaudeSessions process %s is the background process'
    return text:format(name, name)
  elseif not subcommand then
    local step = nearest.meant(name, vim.tbl_keys(by_name), 'try :ClaudeSessions <Tab>')
    return ('no subcommand "%s"; %s'):format(name, step)
  elseif subcommand[2] == '' and #words > 0 then
    return ('%s takes no argument: "%s"'):format(name, table.concat(words, ' '))
  end
end

--- Run a subcommand of `:ClaudeSessions`.
---@param name string
---@param count? integer
---@param words? string[]
---@param rows? [integer, integer] of a range
M.run = function(name, count, words, rows)
  words = words or {}
  local why, subcommand = refusal(name, words), by_name[name]
  if why then
    return message.error(why)
  elseif not subcommand.is_apart then
    coprocess.start()
  end
  local function run()
    subcommand.run(words, count or 1, rows)
  end
  if subcommand.is_windowless then
    run()
  else
    moment.after_command_window(run)
  end
end

---@param args vim.api.keyset.create_user_command.command_args
M.command = function(args)
  local words = args.fargs
  local rows = args.range > 0 and { args.line1, args.line2 } or nil
  M.run(table.remove(words, 1) or 'pick', args.count, words, rows)
end

--- The words after our command in a command line, which may begin with modifiers or other commands.
---@param line string
---@return string[]
local function words_after(line)
  for word, rest in line:gmatch('%f[%a](%u%w*)()') do
    for _, name in ipairs({ 'Bellboard', 'ClaudeSessions' }) do
      if vim.startswith(name, word) then
        return vim.split(line:sub(rest):gsub('\\ ', '_'), '%s+', { trimempty = true })
      end
    end
  end
  return {}
end

---@param lead string
---@param line string
---@param at integer
---@return string[]
M.complete = function(lead, line, at)
  local typed = line:sub(1, at)
  if not vim.endswith(typed, lead) then -- Neovim's leads go on after the cursor
    lead = lead:sub(1, #lead - (#line - at))
  end
  local words = words_after(typed:sub(1, #typed - #lead))
  local subcommand = by_name[table.remove(words, 1) or '']
  local candidates = subcommand and subcommand.complete and subcommand.complete(words)
  if not subcommand and #words == 0 then
    candidates = vim.tbl_keys(by_name)
    table.sort(candidates)
  end
  local found = {}
  for _, candidate in ipairs(candidates or {}) do
    candidate = candidate:gsub('[%s\\]', '\\%0')
    if vim.startswith(candidate, lead) and not vim.list_contains(found, candidate) then
      found[#found + 1] = candidate
    end
  end
  return found
end

return M
