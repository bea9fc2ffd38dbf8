-- The sessions of the board, their order and their headings.
local filter = require('bellboard.filter')
local sessions = require('bellboard.sessions')

local M = {}

---@class bellboard.BoardChoice what the user wants to see
---@field group 'urgency'|'repository'|'none'
---@field sort 'urgency'|'recent'|'name'
---@field filter string
---@field here? string only sessions of the repository that this directory is in
---@field folded table<string, boolean> sections, by key
---@field unfolded table<string, boolean> sessions, by id
---@field marked table<string, boolean> sessions, by id

---@class bellboard.Section
---@field key string
---@field title? string nil: without a heading
---@field mixed boolean its sessions are of several repositories
---@field rank number
---@field sessions bellboard.Session[]

---@class bellboard.Held the session under the cursor, which stays where it is
---@field id string
---@field key string of its section
---@field at integer its position there

---@param path string|nil
---@param folder string
---@return boolean
local function inside(path, folder)
  return path ~= nil and (path == folder or vim.startswith(path, (folder:gsub('/$', '')) .. '/'))
end

--- The sessions in a directory or above it, and others of their repositories: worktrees may be
--- anywhere.
---@param all bellboard.Session[]
---@param directory string
---@return bellboard.Session[]
local function of_directory(all, directory)
  local here, repositories = {}, {}
  for _, session in ipairs(all) do
    for _, key in ipairs({ 'cwd', 'project_dir', 'worktree' }) do
      local path = session[key]
      if path and (inside(path, directory) or inside(directory, path)) then
        here[session] = true
        repositories[session.repository or ''] = true
      end
    end
  end
  repositories[''] = nil
  return vim.tbl_filter(function(session)
    return here[session] or repositories[session.repository] or false
  end, all)
end

---@type table<string, fun(a: bellboard.Session, b: bellboard.Session): boolean>
local before = {
  recent = function(a, b)
    return a.since > b.since
  end,
  name = function(a, b)
    for _, word in ipairs({ 'repository', 'branch', 'title' }) do
      if a.words[word] ~= b.words[word] then
        return a.words[word] < b.words[word]
      end
    end
    return false
  end,
}

--- The sessions that the user wants to see, sorted.
---@param all bellboard.Session[] most urgent first
---@param choice bellboard.BoardChoice
---@return bellboard.Session[]
M.listed = function(all, choice)
  if choice.here then
    all = of_directory(all, choice.here)
  end
  local terms = filter.parse(choice.filter)
  if #terms > 0 then
    all = vim.tbl_filter(function(session)
      return filter.matches(session, terms)
    end, all)
  end
  local order = before[choice.sort]
  if order then
    local rank = {}
    for nth, session in ipairs(all) do
      rank[session] = nth
    end
    all = vim.list_slice(all)
    table.sort(all, function(a, b)
      if order(a, b) == order(b, a) then -- equal ones stay in order of urgency
        return rank[a] < rank[b]
      end
      return order(a, b)
    end)
  end
  return all
end

---@param session bellboard.Session
---@param choice bellboard.BoardChoice
---@return string
local function key_of(session, choice)
  if sessions.pinned(session) then
    return 'pinned'
  elseif choice.group == 'none' then
    return 'all'
  elseif choice.group == 'urgency' and session.needs_you then
    return 'needs'
  end
  return 'in ' .. (session.repository or session.project or '')
end

---@param key string
---@param choice bellboard.BoardChoice
---@param nth integer
---@return bellboard.Section
local function section(key, choice, nth)
  local repository = key:match('^in (.*)$')
  if repository then
    local rank = choice.sort == 'urgency' and sessions.place(repository) or 1e9 + nth
    return { key = key, title = repository, mixed = false, rank = rank, sessions = {} }
  end
  local rank = ({ pinned = -2, needs = -1 })[key] or 0
  local title = choice.group ~= 'none' and ({ pinned = 'Pinned', needs = 'Needs you' })[key] or nil
  return { key = key, title = title, mixed = true, rank = rank, sessions = {} }
end

--- The repositories of some sessions.
---@param all bellboard.Session[]
---@return string[]
M.repositories = function(all)
  local found, names = {}, {}
  for _, session in ipairs(all) do
    local name = session.words.repository
    names[#names + 1] = not found[name] and name or nil
    found[name] = true
  end
  return names
end

--- Whether sessions of one repository need no headings: the board's own heading names it, and they
--- are sorted by urgency.
---@param all bellboard.Session[]
---@param choice bellboard.BoardChoice
---@return boolean
local function is_plain(all, choice)
  local is_sorted = choice.group == 'repository' or choice.sort == 'urgency'
  return choice.group ~= 'none' and is_sorted and #M.repositories(all) == 1
end

--- Put sessions under headings: pinned ones, those that need you, then by repository. If all are
--- of one repository, they are one section without a heading.
---@param all bellboard.Session[] as listed
---@param choice bellboard.BoardChoice
---@param held? bellboard.Held
---@return bellboard.Section[]
M.of = function(all, choice, held)
  local found, by_key, kept = {}, {}, nil
  local plain = is_plain(all, choice)
  for _, session in ipairs(all) do
    local is_held = held and held.id == session.session_id
    local key = is_held and held.key or key_of(session, choice)
    if plain and key ~= 'pinned' then
      key = 'in ' .. (session.repository or session.project or '')
      held = is_held and vim.tbl_extend('force', held, { key = key }) or held
    end
    if not by_key[key] then
      by_key[key] = section(key, choice, #found)
      by_key[key].title = not (plain and key ~= 'pinned') and by_key[key].title or nil
      found[#found + 1] = by_key[key]
    end
    if is_held then
      kept = session
    else
      table.insert(by_key[key].sessions, session)
    end
  end
  if held and kept then
    local members = by_key[held.key].sessions
    table.insert(members, math.min(held.at, #members + 1), kept)
  end
  table.sort(found, function(a, b)
    return a.rank < b.rank
  end)
  return found
end

return M
