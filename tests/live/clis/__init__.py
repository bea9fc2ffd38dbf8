"""Play scenes on the real CLIs of other agents: what we show, while they run, is what they show."""
