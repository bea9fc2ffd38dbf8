"""Random walks through real CLIs, compared throughout (`make live ONLY=walks`)."""
