"""OpenCode: our plugin in it reports sessions; the plugin or OpenCode's server takes answers."""
