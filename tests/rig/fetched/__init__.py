"""What is fetched once into .cache, or found on this machine: Neovims, CLIs, tools."""
