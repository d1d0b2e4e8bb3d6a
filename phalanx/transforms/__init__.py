"""Transformations of programs and traces: stage, linearize, transpose, batch, simplify."""
