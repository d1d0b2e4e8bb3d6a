"""The core room: types, primitives, traces and programs. It knows no particular operation."""
