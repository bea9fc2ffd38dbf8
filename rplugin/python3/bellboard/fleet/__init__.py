"""The fleet: machines of a team that share their sessions over NATS JetStream.

Only the NATS server listens.  Nothing of NATS is imported before this machine has joined a fleet,
and then it runs in a thread with an event loop of its own, so no host ever waits for a server.
"""
