"""``check``: what is probably wrong with a program, found out by looking at it."""
