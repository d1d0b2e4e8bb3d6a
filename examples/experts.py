"""A mixture of experts: every device has an expert, and every token goes to one of them.

A router chooses an expert for each token. Devices sort their tokens by expert, `all_to_all` takes
them there, the experts work, and a second `all_to_all` takes the results home. An expert has room
for some tokens of each device; those that find none stay as they are.

    python examples/experts.py
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # of a CPU

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, jit, lax, nn, shard_map, value_and_grad

EXPERTS, WIDTH, HIDDEN, TOKENS, ROOM = 8, 16, 32, 96, 4  # ROOM: of an expert, for each device


def expert(up, down, x):
    """What one expert makes of tokens [..., width]."""
    return nn.gelu(x @ up) @ down


def route(router, x):
    """For tokens [t, width] the share of the chosen expert, and a place [t, experts, room].

    The place is 1 where a token has it, and all 0 where the expert has no room any more.
    """
    chances = nn.softmax(x @ router)
    chosen = nn.one_hot(jnp.argmax(chances, -1), EXPERTS)
    before = jnp.cumsum(chosen, 0) - chosen  # tokens of this expert that come first
    turn = jnp.sum(before * chosen, -1).astype(int)
    place = chosen[:, :, None] * nn.one_hot(turn, ROOM)[:, None, :]  # 0 from ROOM on
    return jnp.sum(chances * chosen, -1), place


def mixture(params, x):
    """On every device: its tokens [t, width] to the same, by way of the experts of all devices."""
    share, place = route(params["router"], x)
    sent = jnp.einsum("td,ter->erd", x, place)  # [experts, room, width]
    here = lax.all_to_all(sent, "expert", 0, 0, tiled=True)  # [devices, room, width]
    done = expert(params["up"][0], params["down"][0], here)
    back = lax.all_to_all(done, "expert", 0, 0, tiled=True)  # [experts, room, width]
    return x + share[:, None] * jnp.einsum("erd,ter->td", back, place)


def over(mesh):
    """The mixture as a function of whole arrays."""
    experts = {"router": P(), "up": P("expert"), "down": P("expert")}
    return shard_map(mixture, mesh=mesh, in_specs=(experts, P("expert")), out_specs=P("expert"))


def on_one_device(params, x):
    """The same: tokens as the devices would have them, and every expert on every token."""

    def of_a_device(x):
        share, place = route(params["router"], x)
        every = jnp.stack([expert(params["up"][i], params["down"][i], x) for i in range(EXPERTS)])
        return x + share[:, None] * jnp.einsum("etd,ter->td", every, place)

    return phalanx.vmap(of_a_device)(x.reshape(EXPERTS, -1, WIDTH)).reshape(x.shape)


def loss_of(layer):
    """The distance to the tokens turned round."""
    return lambda params, x: jnp.mean((layer(params, x) - jnp.flip(x, -1)) ** 2)


def operands(seed=0):
    """The router and the weights of all experts, and tokens."""
    rng = np.random.default_rng(seed)
    shapes = {
        "router": (WIDTH, EXPERTS),
        "up": (EXPERTS, WIDTH, HIDDEN),
        "down": (EXPERTS, HIDDEN, WIDTH),
    }
    params = {k: np.float32(rng.normal(0, s[-2] ** -0.5, s)) for k, s in shapes.items()}
    return params, np.float32(rng.normal(size=(TOKENS, WIDTH)))


def main():
    mesh = phalanx.make_mesh((EXPERTS,), ("expert",))
    found = []
    for name, layer in (("one device", on_one_device), ("experts", over(mesh))):
        value, slope = jit(value_and_grad(loss_of(layer)))(*operands())
        found.append(slope)
        print(f"{name:10} loss {float(value):.6f}")
    for name in found[0]:
        difference = np.abs(found[0][name] - found[1][name]).max()
        print(f"gradients of {name} differ by {difference:.1e}")


if __name__ == "__main__":
    main()
