"""The live truth test: what is published, compared with the CLI's own account."""
