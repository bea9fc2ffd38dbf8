"""The fleet: machines of a team that share their sessions over NATS JetStream.

Only the NATS server listens.  No host imports any of this: `program.py` runs in a process of its
own, and speaks to its host, and to a feed of this machine, in lines.
"""
