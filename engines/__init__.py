"""Engines that start processes, and stores, as others make them: our programs, run by each.

``./dev engines`` installs them in an environment of its own, and runs the tests here.
"""
