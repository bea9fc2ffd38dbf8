-- The keys of the board and of pickers, with their actions: the defaults of
-- |g:bellboard.board.keys| and the help of keys come from here.
local M = {}

---@class bellboard.ViewKey
---@field [1] string the key
---@field [2] string its action: the name in |g:bellboard.board.keys|
---@field [3] string what it does
---@field picker? string the key in a picker
---@field stays? boolean the picker stays open

---@type bellboard.ViewKey[]
M.board = {
  { '<CR>', 'go', 'go to the session; fold a heading', picker = '<CR>' },
  { 'a', 'answer', 'show what it asks, or its reply', picker = '<M-a>' },
  { 'r', 'send', 'write to it', picker = '<M-r>' },
  { 'K', 'preview', 'preview; its reply, once it is done' },
  { 'P', 'preview_window', 'preview beside the board' },
  { '<Tab>', 'fold', 'unfold or fold a session or section' },
  { 'zR', 'unfold_all', 'unfold all' },
  { 'zM', 'fold_all', 'fold all' },
  { ']]', 'next', 'next session that needs you' },
  { '[[', 'prev', 'previous session that needs you' },
  { 'f', 'filter', 'filter as you type' },
  { 'F', 'unfilter', 'show all sessions again' },
  { '.', 'here', 'only this project, or all' },
  { 't', 'group', 'group by urgency or repository, or not' },
  { 'S', 'sort', 'sort by urgency, time or name' },
  { 'm', 'mark', 'mark for the next key, or unmark' },
  { 'M', 'unmark_all', 'unmark all' },
  { 'd', 'seen', 'mark as seen', picker = '<M-d>', stays = true },
  { 'p', 'park', 'park (keep it out of the float) or unpark', picker = '<M-p>', stays = true },
  { 's', 'snooze', 'snooze: mute it for a while', picker = '<M-s>' },
  { 'l', 'label', 'label' },
  { 'N', 'rename', 'name' },
  { 'c', 'correct', 'correct the status' },
  { 'I', 'interrupt', 'interrupt it (asks first)' },
  { 'x', 'stop', 'stop its process (asks first)' },
  { 'o', 'resume', 'resume a session that ended here' },
  { 'e', 'explain', 'explain its status' },
  { 'y', 'yank', 'yank the session id' },
  { 'R', 'refresh', 'refresh everything' },
  { 'q', 'close', 'close' },
  { 'g?', 'help', 'this help' },
}

--- The action of each key.
---@param keys bellboard.ViewKey[]
---@return table<string, string>
M.defaults = function(keys)
  local actions = {}
  for _, key in ipairs(keys) do
    actions[key[1]] = key[2]
  end
  return actions
end

return M
