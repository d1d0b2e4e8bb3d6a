"""What ``jax.experimental`` has besides ``phalanx.experimental``."""
