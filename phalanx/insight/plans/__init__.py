"""``plan``: how to divide a training step over a machine, and how long it takes there."""
