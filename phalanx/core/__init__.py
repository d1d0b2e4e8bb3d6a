"""The core package: types, primitives, traces and programs. It knows no particular operation."""
