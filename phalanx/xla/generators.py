"""Builder: random numbers of XLA's own generators."""

from __future__ import annotations

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.core.builder import Value
from phalanx.core.types import Shape
from phalanx.xla.structural import StructuralEmitter


class GeneratorEmitter(StructuralEmitter):
    """What random numbers are made of."""

    def rng_bit_generator(
        self, state: Value, shape: Shape, dtype: np.dtype, algorithm: str
    ) -> tuple[Value, Value]:
        attributes = {"rng_algorithm": hlo.RngAlgorithmAttr.get(algorithm.upper())}
        results = [state.type, self.tensor(shape, dtype)]
        following, bits = self.region_op(
            "stablehlo.rng_bit_generator", results, [state], attributes
        )
        return following, bits

    def rng_uniform(self, low: Value, high: Value, shape: Shape) -> Value:
        lengths = self.constant(np.asarray(shape, np.int64), np.dtype(np.int64), (len(shape),))
        return self.op(
            "stablehlo.rng",
            self.tensor(shape, self.type(low).dtype),
            [low, high, lengths],
            rng_distribution=hlo.RngDistributionAttr.get("UNIFORM"),
        )
