"""The operating system: files, watches, processes, terminals. Nothing here knows about sessions."""
