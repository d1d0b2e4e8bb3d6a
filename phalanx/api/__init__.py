"""The functions that users call: transformations of functions of trees of arrays."""
