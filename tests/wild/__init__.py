"""A monkey at the keyboard: random walks on real CLIs, judged all the time (`make wild`)."""
