"""The benchmarks of training steps whose eight lanes need no eight devices, or that convolve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import transformer
from benchmarks.case import DEVICES, case
from benchmarks.cases import repeated

IMAGES, SIZE, CLASSES = 8, 28, 10  # images of a lane, their height and width


@case("training step, 8 lanes on 1 device", kind="waits")
def one_device(np: Any, api: Any) -> Callable:
    """Where JAX's `pmap` needs eight devices, programs for JAX use `jit` and `vmap`."""
    rng = np.random.default_rng(1)
    text = rng.integers(0, transformer.VOCABULARY, (DEVICES, 1, transformer.LENGTH + 1), np.int32)
    step, ways = transformer.training_step(api), {"axis_name": "batch", "in_axes": (None, 0, 0)}
    if api.__name__ == "jax":
        mapped = api.jit(api.vmap(step, out_axes=None, **ways))
    else:
        mapped = api.pmap(step, out_axes=None, devices=api.devices()[:1], **ways)
    return repeated(mapped, transformer.init(np), text[..., :-1], text[..., 1:])


def convolve(api: Any, images: Any, kernel: Any) -> Any:
    """Half as many pixels each way, from NHWC images and an HWIO kernel."""
    layout = ("NHWC", "HWIO", "NHWC")
    convolved = api.lax.conv_general_dilated(
        images, kernel, (2, 2), "SAME", dimension_numbers=layout
    )
    return api.nn.relu(convolved)


@case("CNN training step", kind="waits")
def convolutional(np: Any, api: Any) -> Callable:
    rng, jnp = np.random.default_rng(0), api.numpy

    def normal(*shape: int) -> Any:
        return rng.normal(0, 0.1, shape).astype(np.float32)

    def loss(params: dict, images: Any, labels: Any) -> Any:
        x = images
        for kernel in params["kernels"]:
            x = convolve(api, x, kernel)
        scores = x.reshape(IMAGES, -1) @ params["dense"]
        return -jnp.mean(api.nn.log_softmax(scores)[jnp.arange(IMAGES), labels])

    def step(params: dict, images: Any, labels: Any) -> tuple[dict, Any]:
        value, grads = api.value_and_grad(loss)(params, images, labels)
        value, grads = api.lax.pmean((value, grads), "batch")
        return api.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    kernels = [normal(3, 3, 1, 16), normal(3, 3, 16, 32)]
    params = {"kernels": kernels, "dense": normal(32 * (SIZE // 4) ** 2, CLASSES)}
    params = api.tree.map(lambda p: np.broadcast_to(p, (DEVICES, *p.shape)), params)
    images = normal(DEVICES, IMAGES, SIZE, SIZE, 1)
    labels = rng.integers(0, CLASSES, (DEVICES, IMAGES), np.int32)
    place = api.pmap(lambda *xs: xs)
    return repeated(api.pmap(step, axis_name="batch"), *place(params, images, labels))
