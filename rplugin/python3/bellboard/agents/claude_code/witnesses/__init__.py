"""What Claude Code tells beside its hooks: session files, transcripts, processes."""
