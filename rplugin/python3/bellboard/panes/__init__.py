"""tmux: the panes, the ways to them, and what is shown there."""
