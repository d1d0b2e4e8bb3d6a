"""The primitives, by family. Each stands whole, with all its rules, in one place."""
