"""Show sessions on a terminal: a list, a live view, a picker."""
