-- lazy.nvim runs this after it has installed or updated the plugin, before loading it.
-- To run it by hand: nvim -l build.lua
if vim.fn.has('nvim-0.10') == 0 then
  error('bellboard.nvim needs Neovim 0.10 or newer', 0)
end
local file = debug.getinfo(1, 'S').source:sub(2)
local root = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(file, ':p')))
local builder = dofile(root .. '/lua/bellboard/system/builder.lua')

---@type bellboard.Built|nil
local built
local said, shown
local inside, is_main = coroutine.running() -- true in `nvim -l` of 0.12: nothing resumes it there
builder.run(root, function(text)
  said = text
end, function(result)
  built = result
end)
while not built do
  vim.wait(50, function()
    return built ~= nil
  end, 10)
  if inside and not is_main and said ~= shown then
    shown = said
    coroutine.yield(said) -- lazy.nvim shows it
  end
end
if not built.ok then
  error('bellboard: ' .. built.text .. '\n' .. built.log, 0)
end
