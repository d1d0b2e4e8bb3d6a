"""What ``jax.custom_derivatives`` has besides."""

from phalanx.compat.operations import custom_jvp_call_p, custom_vjp_call_p  # type: ignore[attr-defined]

__all__ = ["custom_jvp_call_p", "custom_vjp_call_p"]
