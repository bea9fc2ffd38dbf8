"""What can happen to a host: one table of faults, and one way to meet each.

`table` and `volumes`, `strangers`, `surroundings`, `witnessed` have the rows; the other files, and
`witnessed` too, make faults by chance, from a seed and a number, so that each can be repeated.
`fault` says what a row is, `meet` does it and makes every check, `target` is the host with its
checks, `hunt` draws faults at random, alone and together, and reduces what falls to the fewest that
still do: `make fuzz MINUTES=10 SEED=… ONLY=kind`.
"""
