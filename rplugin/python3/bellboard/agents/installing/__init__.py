"""Install, check and remove hooks in the files of any CLI."""
