"""The hooks in the settings files of Claude Code: put in, looked for, taken out."""
