"""``explain``: what a program costs on its devices, and what limits it."""
