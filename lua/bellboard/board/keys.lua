-- The actions of the board, and the keys for them as configured.
local cells = require('bellboard.text')
local config = require('bellboard.config')
local dialog = require('bellboard.dialog')
local host = require('bellboard.process.talk')
local jump = require('bellboard.jump')
local keys = require('bellboard.keys')
local mark = require('bellboard.session_edit')
local message = require('bellboard.message')
local moment = require('bellboard.moment')
local popup = require('bellboard.popup')
local preview = require('bellboard.board.preview')
local prompt = require('bellboard.board.prompt')
local send = require('bellboard.send')
local sessions = require('bellboard.sessions')
local view = require('bellboard.board.view')
local window = require('bellboard.window')

local M = {}

local api = vim.api

---@class bellboard.Action what a key does
---@field one? fun(session: bellboard.Session) acts on the session under the cursor
---@field each? fun(session: bellboard.Session) acts on each of the marked sessions
---@field all? fun(list: bellboard.Session[]) acts on the marked sessions together
---@field anywhere? fun()

---@type table<string, bellboard.Action> by name
local actions = {}

---@param win integer
---@return boolean
local function is_elsewhere(win)
  return window.is_normal(win) and api.nvim_win_get_buf(win) ~= view.buffer()
end

--- Go to another window, so that a jump does not replace the board. A float closes: it would cover
--- the next window.
M.leave = function()
  preview.close()
  local last = vim.fn.win_getid(vim.fn.winnr('#')) -- the board itself, after a popup
  if is_elsewhere(last) then
    api.nvim_set_current_win(last)
  else
    window.go_back(api.nvim_get_current_win())
  end
  if not is_elsewhere(api.nvim_get_current_win()) then
    local other = vim.iter(api.nvim_tabpage_list_wins(0)):find(is_elsewhere)
    api.nvim_set_current_win(other or 0)
  end
  for _, win in ipairs(view.windows()) do
    if api.nvim_win_get_config(win).relative ~= '' then
      window.close(win)
    end
  end
end

---@return boolean
local function is_here()
  return api.nvim_get_current_buf() == view.buffer()
end

--- The name of some sessions in messages and prompts.
---@param list bellboard.Session[]
---@return string
local function name_of(list)
  local words = list[1].words
  if #list > 1 then
    return ('%d sessions'):format(#list)
  end
  return words.project .. (words.title ~= '' and (' "%s"'):format(words.title) or '')
end

--- Prompt for a word for some sessions; the default is the current one.
---@param what string
---@param current fun(session: bellboard.Session): string|nil
---@param act fun(session: bellboard.Session, word: string)
---@return fun(list: bellboard.Session[])
local function ask(what, current, act)
  return function(list)
    local question = #list == 1 and what .. ': ' or ('%s of %s: '):format(what, name_of(list))
    vim.ui.input({ prompt = question, default = current(list[1]) }, function(word)
      api.nvim_echo({ { '' } }, false, {}) -- else the prompt would stay on the command line
      for _, session in ipairs(word and list or {}) do
        act(session, word)
      end
    end)
  end
end

---@param open boolean
---@return fun()
local function fold_all(open)
  return function()
    view.fold_all(open)
  end
end

---@param direction integer
---@return fun()
local function seek(direction)
  return function()
    if not view.seek(direction) then
      message.info('no session needs you')
    end
  end
end

--- The next value, or the first after the last.
---@param field 'group'|'sort'
---@return fun()
local function turn(field)
  local among = config.values('board.' .. field)
  return function()
    local at = 0
    for nth, each in ipairs(among) do
      at = each == view.choice()[field] and nth or at
    end
    view.choose({ [field] = among[at % #among + 1] })
  end
end

actions.go = {
  one = function(session)
    jump.to(session.session_id)
  end,
}

--- Show the request of a session, or triage several; of those that rest, the reply.
actions.answer = {
  all = function(list)
    if #list > 1 then
      require('bellboard.answer.triage').run(list, true)
    else
      local id = list[1].session_id
      require('bellboard.answer').to(id, nil, function()
        view.go_on(id)
      end)
    end
  end,
}

---@param session bellboard.Session
local function show_terminal(session)
  local shown = require('bellboard.preview')
  shown.lines(session, function(lines, colors)
    moment.when('open', function()
      if is_here() then -- the user may have gone on
        shown.paint(popup.open(lines, session.words.project, true), colors)
      end
    end)
  end)
end

actions.preview = {
  one = function(session)
    if not require('bellboard.answer.request').rests(session) then
      return show_terminal(session)
    end
    require('bellboard.answer').to(session.session_id, function()
      show_terminal(session)
    end)
  end,
}
actions.preview_window = { anywhere = preview.toggle }

actions.fold = {
  anywhere = function()
    if not view.fold() then
      message.info('nothing to fold on this line')
    end
  end,
}
actions.unfold_all = { anywhere = fold_all(true) }
actions.fold_all = { anywhere = fold_all(false) }
actions.next = { anywhere = seek(1) }
actions.prev = { anywhere = seek(-1) }

actions.filter = {
  anywhere = function()
    prompt.filter(view.choice().filter)
  end,
}
actions.unfilter = {
  anywhere = function()
    view.choose({ filter = '', here = vim.NIL })
  end,
}
actions.here = {
  anywhere = function()
    local root = vim.fs.root(vim.fn.getcwd(), '.git') or vim.fn.getcwd()
    view.choose({ here = not view.choice().here and root or vim.NIL })
  end,
}
actions.group = { anywhere = turn('group') }
actions.sort = { anywhere = turn('sort') }

actions.mark = { all = view.mark }
actions.unmark_all = {
  anywhere = function()
    view.choose({ marked = {} })
  end,
}

actions.seen = {
  each = function(session)
    host.tell({ ['goto'] = { session_id = session.session_id } })
  end,
}

--- Park all, or unpark them if all are parked.
actions.park = {
  all = function(list)
    local on = not vim.iter(list):all(mark.is_parked)
    for _, session in ipairs(list) do
      mark.park(session.session_id, on)
    end
  end,
}

actions.snooze = {
  all = function(list)
    local usual = config.get().notices.snooze
    local choices = {
      { ('%g minutes'):format(usual), usual },
      { 'an hour', 60 },
      { 'a day', 24 * 60 },
    }
    if vim.iter(list):any(mark.is_snoozed) then
      table.insert(choices, 1, { 'end the snooze', 0 })
    end
    dialog.select(choices, {
      prompt = ('Snooze %s for'):format(name_of(list)),
      format_item = function(choice)
        return choice[1]
      end,
    }, function(choice)
      for _, session in ipairs(choice and list or {}) do
        mark.snooze(session.session_id, choice[2])
      end
    end)
  end,
}

actions.label = {
  all = ask('Label', function(session)
    return session.label
  end, function(session, word)
    mark.label(session.session_id, word)
  end),
}

actions.rename = {
  one = function(session)
    ask('Name', function()
      return session.name or session.title
    end, function(_, word)
      host.tell({ name = { session_id = session.session_id, name = word } })
    end)({ session })
  end,
}

actions.correct = {
  all = function(list)
    local settable = vim.tbl_filter(function(status)
      return status ~= 'unknown'
    end, sessions.statuses)
    local question = ('Actual status of %s'):format(name_of(list))
    dialog.select(settable, { prompt = question }, function(status)
      for _, session in ipairs(status and list or {}) do
        host.tell({ set = { session_id = session.session_id, status = status } })
      end
    end)
  end,
}

--- Ask whether to do something to sessions, then have it done, and say what came of it.
---@param what 'stop'|'interrupt'
---@param found bellboard.Session[]
---@param question string
---@param failed string what to say if it was not
---@param with? fun(session: bellboard.Session): table what else is sent
local function after_asking(what, found, question, failed, with)
  local act = what:gsub('^%l', string.upper) .. (#found == 1 and ' it' or ' them')
  dialog.select({ 'Cancel', act }, { prompt = question }, function(choice)
    for _, session in ipairs(choice == act and found or {}) do
      local request = { session_id = session.session_id }
      request = vim.tbl_extend('error', request, with and with(session) or {})
      host.ask(what, request, function(reply)
        local outcome = reply.text or reply.is_unsure and reply.why or failed .. reply.why
        message.info(('%s: %s'):format(sessions.name(session), outcome))
      end)
    end
  end)
end

actions.send = {
  one = function(session)
    send.open(session.session_id)
  end,
}

--- Interrupt those that work; the background process checks that no dialog would get the key.
actions.interrupt = {
  all = function(list)
    local found = vim.tbl_filter(function(session)
      return session.status == 'working'
    end, list)
    if #found == 0 then
      return message.info(name_of(list) .. ': not working, so there is nothing to interrupt')
    end
    after_asking('interrupt', found, ('Interrupt %s?'):format(name_of(found)), 'not interrupted: ')
  end,
}

--- Stop the processes shown here; the background process checks that they are still the same.
actions.stop = {
  all = function(list)
    local function process(session)
      return session.pid or session.far_pid
    end
    local found = vim.tbl_filter(process, list)
    if #found == 0 then
      return message.info(name_of(list) .. ': the process is unknown; stop it in its terminal')
    end
    local one = #found == 1 and ('Stop process %d (%s)?'):format(process(found[1]), name_of(found))
    local question = one or ('Stop %d processes?'):format(#found)
    after_asking('stop', found, question, 'not stopped: ', function(session)
      return { pid = process(session) }
    end)
  end,
}

--- Choose a session that ended in this directory and resume it in a terminal.
actions.resume = {
  anywhere = function()
    require('bellboard.jump.launch').resume({}, function()
      if is_here() then
        M.leave()
      end
    end)
  end,
}

--- Explain a session's status from the log, in a window.
actions.explain = {
  one = function(session)
    popup.command({ 'explain', session.session_id })
  end,
}

actions.yank = {
  all = function(list)
    local ids = vim.tbl_map(function(session)
      return session.session_id
    end, list)
    vim.fn.setreg(vim.v.register, table.concat(ids, '\n'))
    message.info('yanked ' .. (#ids == 1 and cells.safe(ids[1]) or #ids .. ' session ids'))
  end,
}

actions.refresh = {
  anywhere = function()
    host.notify('snapshot')
  end,
}

--- Close the board, and go back to the window before.
actions.close = {
  anywhere = function()
    local win = api.nvim_get_current_win()
    M.leave()
    window.close(win)
  end,
}

--- Run an action on sessions: on one, on each, or on all together.
---@param name string
---@param list bellboard.Session[]
M.run = function(name, list)
  local action = actions[name]
  if action.all then
    return action.all(list)
  end
  for _, session in ipairs(list) do
    (action.each or action.one)(session)
  end
end

---@class bellboard.Mapping what a key does, as configured
---@field name? string its action
---@field action bellboard.Action
---@field text string for the help

--- The keys as configured.
---@return table<string, bellboard.Mapping>
local function mapped()
  local text_of, found = {}, {}
  for _, key in ipairs(keys.board) do
    text_of[key[2]] = key[3]
  end
  for lhs, choice in pairs(config.get().board.keys) do
    if type(choice) == 'function' then
      found[lhs] = { action = { each = choice }, text = 'your function' }
    elseif choice then
      found[lhs] = { name = choice, action = actions[choice], text = text_of[choice] }
    end
  end
  return found
end

--- The lines in two columns, if one column is too high and two fit.
---@param lines string[]
---@return string[]
local function beside_each_other(lines)
  local width = 0
  for _, line in ipairs(lines) do
    width = math.max(width, cells.width(line))
  end
  if #lines <= vim.o.lines - 6 or 2 * width + 8 > vim.o.columns then
    return lines
  end
  local rows, both = math.ceil(#lines / 2), {}
  for row = 1, rows do
    both[row] = cells.fit(lines[row], width + 2) .. (lines[row + rows] or '')
  end
  return both
end

--- The keys of each action in the order of the table, then those with a user's function.
actions.help = {
  anywhere = function()
    local lines, all = {}, mapped()
    local function add(text, is_of)
      local found = vim.tbl_filter(function(lhs)
        return is_of(lhs, all[lhs])
      end, vim.tbl_keys(all))
      table.sort(found)
      if #found > 0 then
        lines[#lines + 1] = (' %-9s %s'):format(table.concat(found, ' '), text)
      end
    end
    for _, key in ipairs(keys.board) do
      add(key[3], function(_, mapping)
        return mapping.name == key[2]
      end)
    end
    for lhs, mapping in vim.spairs(all) do
      if not mapping.name then
        add(mapping.text, function(other)
          return other == lhs
        end)
      end
    end
    popup.open(beside_each_other(lines), 'board')
  end,
}

--- The sessions of the visual selection, which ends; the marked ones, or those under the cursor.
---@param mapping bellboard.Mapping
---@return bellboard.Session[]
local function targets(mapping)
  if vim.list_contains({ 'v', 'V', '\22' }, vim.fn.mode()) then
    local first, last = vim.fn.line('v'), vim.fn.line('.')
    window.leave_visual()
    return view.among(math.min(first, last), math.max(first, last))
  end
  local marked = mapping.name ~= 'mark' and not mapping.action.one and view.marked() or {}
  local row = api.nvim_win_get_cursor(0)[1]
  return #marked > 0 and marked or view.among(row, row)
end

---@param mapping bellboard.Mapping
local function press(mapping)
  local action, name = mapping.action, mapping.name
  if action.anywhere then
    return action.anywhere()
  end
  local _, section = view.under_cursor()
  if section and name == 'go' and vim.fn.mode() == 'n' then
    return view.fold()
  end
  local list = targets(mapping)
  if #list == 0 then
    message.info('no session on this line')
  elseif action.one and (#list > 1 or section) then
    message.info('this key acts on one session: put the cursor on it')
  else
    if name ~= 'mark' and not action.one and next(view.choice().marked) then
      view.choose({ marked = {} })
    end
    if name then
      return M.run(name, list)
    end
    vim.iter(list):each(action.each)
  end
end

--- Map the keys in a board's buffer; a double click goes to the session.
---@param buf integer
M.attach = function(buf)
  for lhs, mapping in pairs(mapped()) do
    local function act()
      press(mapping)
    end
    local opts = { buffer = buf, desc = mapping.text, nowait = #lhs == 1 }
    vim.keymap.set(mapping.action.anywhere and 'n' or { 'n', 'x' }, lhs, act, opts)
    if mapping.name == 'go' then
      vim.keymap.set('n', '<2-LeftMouse>', act, { buffer = buf, desc = mapping.text })
    end
  end
end

return M
