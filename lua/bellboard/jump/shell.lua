-- Runs commands of the shell program from Neovim: shows output in a message, or in a window.
local cells = require('bellboard.text')
local message = require('bellboard.message')
local popup = require('bellboard.popup')
local program = require('bellboard.process.program')

local M = {}

--- Its commands that are subcommands here, too; others have their own form in Neovim, such as the
--- board for `list` and `watch`.
M.commands = {
  'answers',
  'explain',
  'forget',
  'history',
  'name',
  'path',
  'record',
  'replay',
  'rules',
  'set',
  'tmux',
}

--- Those that print what happened, newest last.
local logs = { explain = true, history = true, replay = true }

--- What some say here in one message, by how their text starts.
---@type table<string, table<string, string>>
local brief = {
  answers = {
    ['Hooks wait'] = 'answers on: hooks wait; see :help bellboard-answer',
    ['Hooks do'] = 'answers off: an answer is typed into the terminal',
  },
}

--- Run a command of the program.
---@param words string[]
M.run = function(words)
  program.run(words, function(printed, why, partly)
    local text = (printed or partly or ''):gsub('%s+$', '')
    for start, words_here in pairs(printed and brief[words[1]] or {}) do
      text = vim.startswith(text, start) and words_here or text
    end
    local lines = vim.split(text, '\n', { trimempty = true })
    if not printed then
      popup.refuse(('%s: %s'):format(words[1], why), words[1], lines)
    elseif #lines > 1 or not message.fits(text) then
      popup.window(lines, words[1], logs[words[1]])
    else
      message.info(cells.safe(vim.trim(lines[1] or words[1] .. ': done')))
    end
  end)
end

return M
