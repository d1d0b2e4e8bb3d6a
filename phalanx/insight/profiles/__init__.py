"""``profiling``: how long what a program runs took, by line and by device, as measured."""
