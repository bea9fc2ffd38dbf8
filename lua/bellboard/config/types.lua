---@meta bellboard.config.types
-- The options; written by doc/tables.py.

---@class (exact) bellboard.Config
---@field auto_start boolean|fun(): boolean Start the background process after |VimEnter|, except in the cases that |bellboard-install| lists; if false, the first command starts it.
---@field python? string|string[] Python interpreter, or a command such as `{ 'uv', 'run', '--project', '~/x', 'python' }`. Default: the first that exists of the plugin's `.venv`, |g:python3_host_prog|, the environment of `pynvim-python`, `python3`.
---@field max_restarts integer Give up after this many crashes in a row.
---@field icons 'ascii'|'unicode'|'nerd'|table<bellboard.IconName, string> Set of icons ("nerd" needs a patched font), or icons by status and `question`; tmux and the shell show those that a Neovim set last.
---@field statusline bellboard.Config.Statusline
---@field float bellboard.Config.Float
---@field board bellboard.Config.Board
---@field answer bellboard.Config.Answer
---@field jump bellboard.Config.Jump
---@field notices bellboard.Config.Notices
---@field claude string|string[] Command that starts Claude Code, such as `{ 'claude', '--model', 'opus' }`.
---@field launch bellboard.Config.Launch
---@field machines table<string, string[]> Other machines to follow, each with the command that reaches it, such as `{ dev = { 'ssh', 'dev' } }`: |bellboard-machines-link|.
---@field pull_requests boolean Use `gh` to look up the pull request of each session's branch every five minutes, which takes the network.
---@field host table<string, any>
---@field on_transition? fun(transition: bellboard.TransitionData)|string[] Function to call on every |BellboardTransition| in each Neovim, or a command to run once per machine.
---@field on table<bellboard.Status, bellboard.Callback> The same for transitions to one status.

---@class (exact) bellboard.Config.Statusline
---@field auto boolean Show the counts in Neovim's own statusline; if you have another one, say once how to add them.
---@field detail boolean Show who asks what while one session is blocked.
---@field width integer Maximum width of the text, in cells.
---@field click boolean Respond to mouse clicks.
---@field format? fun(sessions: bellboard.Session[]): string Function that gets all sessions, most urgent first, and returns the text.

---@class (exact) bellboard.Config.Float
---@field enabled boolean Show the |bellboard-float|.
---@field width integer Maximum width, in cells.
---@field max_sessions integer Maximum number of sessions listed.
---@field zindex integer See |nvim_open_win()|.
---@field seconds number Shrink to one line after so many seconds, until another session is blocked; 0: never.

---@class (exact) bellboard.Config.Board
---@field layout 'split'|'vsplit'|'tab'|'float' Where the board opens.
---@field size number Number of lines (split) or columns (vsplit); up to 1: a fraction of the screen.
---@field group 'urgency'|'repository'|'none' What needs you first, then by repository; all by repository; or one list.
---@field sort 'urgency'|'recent'|'name' Order of the sessions; "recent": the latest change of status first.
---@field preview boolean Open the board with a preview beside it.
---@field keys table<string, string|false|fun(session: bellboard.Session)> What each key of the |bellboard-board| does: an action, a function that gets the session under the cursor, or false to leave the key alone.

---@class (exact) bellboard.Config.Answer
---@field layout 'float'|'split' Where the view of a request opens.
---@field width integer Maximum width of the float, in cells.
---@field key_delay number Seconds without a key before keys answer, after a view was opened or entered.
---@field keys table<string, string|false> What each key of the view of a request does (|bellboard-answer|), or false to leave the key alone.

---@class (exact) bellboard.Config.Jump
---@field insert boolean Enter |Terminal-mode| after a jump to a terminal.

---@class (exact) bellboard.Config.Notices
---@field mode 'quiet'|'normal'|'all' Which notifications there are (|bellboard-notices|), until a subcommand sets another mode.
---@field blocked table<bellboard.Channel, number|boolean> Seconds until each channel notifies you of a session that is blocked; false: never.
---@field error table<bellboard.Channel, number|boolean> The same after a turn failed.
---@field completed table<bellboard.Channel, number|boolean> The same after a turn was completed.
---@field background table<bellboard.Channel, number|boolean> The same if shells of it still run.
---@field min_interval number Minimum number of seconds between two notifications of one session on one channel.
---@field max_per_minute integer Maximum number of notifications a minute on one channel about sessions of this machine, and as many about those of others; 0: none.
---@field min_turn number Do not announce the end of a turn shorter than this many seconds.
---@field snooze number Default length of a snooze, in minutes.
---@field quiet_hours? string Hours without notifications, for example '22:00-07:30'.
---@field desktop 'auto'|'notify-send'|'osascript'|'osc9'|'osc777' How to send desktop notifications; the last two are escape sequences to your terminal, which also work over ssh.
---@field sounds table<bellboard.Status, string> For each status a file, or a sound that most machines have: ask, done, failed, alarm, urgent, fanfare.
---@field player? string[] Command that plays sounds. Default: the first that exists of pw-play, paplay, afplay, ffplay, aplay.
---@field command? string[] Command that notifies you: |bellboard-notices|.
---@field labels table<string, bellboard.Label> What differs for sessions with a label: |bellboard-labels|.

---@class (exact) bellboard.Config.Launch
---@field layout 'split'|'vsplit'|'tab'|'window' Where the terminal of a new session opens; "window": in the current window.
---@field size number Its number of lines or columns, as |g:bellboard.board.size|.

---@class bellboard.UserConfig: bellboard.Config, {}  every field is optional
