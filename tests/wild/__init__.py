"""Random walks through real CLIs, compared all the time (`make wild`)."""
