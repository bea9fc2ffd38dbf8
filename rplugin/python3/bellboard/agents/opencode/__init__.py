"""OpenCode: what our plugin in it reports; that or its server takes answers."""
