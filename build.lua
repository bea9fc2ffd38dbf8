-- lazy.nvim runs this after it has installed or updated the plugin, before loading it.
-- To run it by hand: nvim -l build.lua
if vim.fn.has('nvim-0.10') == 0 then
  error('bellboard.nvim needs Neovim 0.10 or newer', 0)
end
local file = debug.getinfo(1, 'S').source:sub(2)
local root = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(file, ':p')))

---@type vim.SystemCompleted|nil
local done
local said, shown = '', ''
local inside, is_main = coroutine.running() -- true in `nvim -l` of 0.12: nothing resumes it there
vim.system({ 'sh', root .. '/build.sh' }, {
  stdout = function(_, data)
    said = vim.trim(data or said):match('[^\n]*$')
  end,
}, function(result)
  done = result
end)
while not done do
  vim.wait(50, function()
    return done ~= nil
  end, 10)
  if inside and not is_main and said ~= shown then
    shown = said
    coroutine.yield(said) -- lazy.nvim shows it
  end
end
if done.code ~= 0 then
  error('bellboard: ' .. said, 0)
end
pcall(vim.cmd.helptags, { root .. '/doc', magic = { file = false } }) -- a mere clone has none
