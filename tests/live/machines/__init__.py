"""Several machines on one board: real sshd, real CLIs on a fake API (`make live ONLY=machines`)."""
