"""Random walks through real CLIs, compared throughout (`make wild`)."""
