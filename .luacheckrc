-- The editor's own globals, and nothing of ours: bellboard defines none.
std = 'luajit'
max_line_length = 100
read_globals = { 'vim' }
globals = { 'vim.g', 'vim.b', 'vim.bo', 'vim.wo', 'vim.o', 'vim.go', 'vim.env' }
files['lua/bellboard/command.lua'] = { max_line_length = false } -- sentences of the help
