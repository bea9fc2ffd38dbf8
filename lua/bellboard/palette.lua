-- The 256 colours of a terminal, by number, and the same colours as RGB.
local M = {}

--- Red, green and blue.
---@param rgb integer
---@return number[]
M.channels = function(rgb)
  return { math.floor(rgb / 65536) % 256, math.floor(rgb / 256) % 256, rgb % 256 }
end

-- stylua: ignore
local ansi = {
  [0] = 0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
  0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
}

--- The colour that a terminal approximately shows for a colour number.
---@param number integer
---@return integer
M.rgb_of = function(number)
  if number < 16 then
    return ansi[number]
  elseif number >= 232 then
    return (8 + 10 * (number - 232)) * 0x010101
  end
  local sum, cube = 0, number - 16
  for _, unit in ipairs({ 36, 6, 1 }) do
    local level = math.floor(cube / unit) % 6
    sum = sum * 256 + (level == 0 and 0 or 55 + 40 * level)
  end
  return sum
end

--- The nearest number among the 216 colours.
---@param rgb integer
---@return integer
M.number_of = function(rgb)
  local number = 16
  for nth, value in ipairs(M.channels(rgb)) do
    local level = value < 48 and 0 or math.max(1, math.floor((value - 35) / 40))
    number = number + level * 6 ^ (3 - nth)
  end
  return number
end

return M
