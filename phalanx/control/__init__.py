"""Primitives with sub-programs: calls, and the bodies of mapped functions."""
