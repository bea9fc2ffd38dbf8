"""What lies below: files, watches, processes, terminals. Nothing here knows what a session is."""
