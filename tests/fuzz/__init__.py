"""Hostile input for a running host, end to end: `make fuzz MINUTES=10 SEED=… ONLY=category`.

A category makes cases from a seed and a number, so that each can be repeated. Cases are run against
a host in batches. After each batch, the host is checked: an event still arrives within a second, it
is the same process, it printed no traceback, it is idle, `bellboard list` and `doctor` answer, and
nothing grows. A batch that fails is run again on fresh hosts with fewer and fewer of its cases. The
smallest set that still fails is printed with the command that repeats it.

`case` defines a case, `target` is the host with its checks, `hunt` searches for failures, and
`junk` makes random values. The other files are categories.
"""
