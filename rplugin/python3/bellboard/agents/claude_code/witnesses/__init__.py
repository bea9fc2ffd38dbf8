"""What Claude Code shows besides its hooks: session files, transcripts, processes."""
