"""Hostile input for a running host, end to end: `make fuzz MINUTES=10 SEED=… ONLY=category`.

A category makes cases from a seed and a number, so each can be made again. Cases are done to a
host in batches, and after each batch the host is checked: an event of ours still arrives within a
second, it is the same process, it said no traceback, it rests, `bellboard list` and `doctor`
answer, and nothing grows. A batch that fails is done again on fresh hosts with fewer and fewer of
its cases, until the smallest is found; it is printed with the command that repeats it.

`case` says what a case is, `target` is the host with its checks, `hunt` looks for what falls, and
`junk` makes values that nobody expects; every other file is a category or some.
"""
