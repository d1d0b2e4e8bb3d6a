"""The names of ``phalanx.example_libraries``, each with the module that has it."""

from phalanx.example_libraries import (
    optimizers as optimizers,
    stax as stax,
)
