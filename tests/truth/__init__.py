"""The live truth test: what is published, compared with what the CLI says about itself."""
