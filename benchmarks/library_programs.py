"""Programs on libraries written for JAX, which `benchmarks.on_libraries` measures.

Each is a function without arguments that makes a step: a function without arguments, too, which is
called again and again. It imports what it needs, so that a process imports that alone. One that
makes no step is about the start alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LANES = 8


@dataclass(frozen=True)
class Program:
    """A program, and over how many devices the peer runs it: one for each lane."""

    name: str
    devices: int
    make: Callable[[], Callable[[], Any] | None]


PROGRAMS: list[Program] = []


def program(name: str, devices: int = 1) -> Callable:
    def register(make: Callable) -> Callable:
        PROGRAMS.append(Program(name, devices, make))
        return make

    return register


def carried(step: Callable, state: tuple) -> Callable[[], Any]:
    """`step`, whose first results are its next first arguments."""
    kept = [state]

    def call() -> Any:
        *new, value = step(*kept[0])
        kept[0] = tuple(new)
        return value

    return call


@program("a start with flax and optax")
def start() -> None:
    import jax.numpy as jnp
    import optax
    from flax import linen as nn

    assert jnp, (optax, nn)


# ---- training ------------------------------------------------------------------------------------


@program("optax: Adam on 8 small layers")
def adam() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import optax

    optimizer = optax.adam(1e-3)
    x = jax.random.normal(jax.random.key(0), (16, 8))
    params = [{"w": jnp.eye(8) + 0.1 * i, "b": jnp.zeros(8)} for i in range(8)]

    def loss(params: Any) -> Any:
        y = x
        for layer in params:
            y = jnp.tanh(y @ layer["w"] + layer["b"])
        return jnp.mean(y * y)

    @jax.jit
    def step(params: Any, state: Any) -> tuple:
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return carried(step, (params, optimizer.init(params)))


@program("equinox: training step of a perceptron")
def equinox() -> Callable[[], Any]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    net = eqx.nn.MLP(3, 1, width_size=32, depth=3, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)
    x = jax.random.normal(jax.random.key(1), (64, 3))
    y = jnp.sin(x).sum(-1, keepdims=True)

    def loss(net: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jax.vmap(net)(x) - y) ** 2)

    @eqx.filter_jit
    def step(net: Any, state: Any) -> tuple:
        value, grads = eqx.filter_value_and_grad(loss)(net, x, y)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(net, updates), state, value

    return carried(step, (net, optimizer.init(eqx.filter(net, eqx.is_array))))


@program("optax: 8 lanes", LANES)
def optax_lanes() -> Callable[[], Any]:
    from functools import partial

    import jax
    import jax.numpy as jnp
    import optax

    schedule = optax.cosine_decay_schedule(0.1, 10_000)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    x = jax.random.normal(jax.random.key(0), (LANES, 32, 16))
    params = [{"w": jnp.eye(16) + 0.1 * i, "b": jnp.zeros(16)} for i in range(4)]

    def loss(params: Any, x: Any) -> Any:
        for layer in params:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return jnp.mean(x * x)

    @partial(jax.pmap, axis_name="data", in_axes=(None, None, 0), out_axes=None)
    def step(params: Any, state: Any, x: Any) -> tuple:
        value, grads = jax.lax.pmean(jax.value_and_grad(loss)(params, x), "data")
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return carried(lambda params, state: step(params, state, x), (params, optimizer.init(params)))


@program("flax: 8 lanes", LANES)
def flax_lanes() -> Callable[[], Any]:
    from functools import partial

    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.relu(nn.Conv(8, (3, 3))(x)).mean((1, 2))
            return nn.Dense(4)(nn.relu(nn.Dense(32)(x)))

    images = jax.random.normal(jax.random.key(0), (LANES, 4, 8, 8, 1))
    labels = (jnp.abs(images).mean((2, 3, 4)) * 50).astype(int) % 4
    net = Net()
    params = net.init(jax.random.key(1), images[0])["params"]
    state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-2))

    @partial(jax.pmap, axis_name="data", in_axes=(None, 0, 0), out_axes=None)
    def step(state: Any, images: Any, labels: Any) -> tuple:
        def loss(params: Any) -> Any:
            logits = state.apply_fn({"params": params}, images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, grads = jax.lax.pmean(jax.value_and_grad(loss)(state.params), "data")
        return state.apply_gradients(grads=grads), value

    return carried(lambda state: step(state, images, labels), (state,))


# ---- equations and chains ------------------------------------------------------------------------


def populations() -> tuple[Callable, Any]:
    """The solution of a differential equation at a few times, of its parameters; and these."""
    import diffrax
    import jax.numpy as jnp

    times = jnp.linspace(0.0, 10.0, 21)

    def predator_and_prey(t: Any, y: Any, rates: Any) -> Any:
        prey, predators = y
        a, b, c, d = rates
        return jnp.stack([prey * (a - b * predators), predators * (c * prey - d)])

    def solve(rates: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(predator_and_prey),
            diffrax.Tsit5(),
            t0=0.0,
            t1=10.0,
            dt0=0.1,
            y0=jnp.array([10.0, 10.0]),
            args=rates,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
        ).ys

    return solve, jnp.array([1.1, 0.1, 0.02, 0.4])


@program("diffrax: a solve")
def solve() -> Callable[[], Any]:
    import jax

    solve, rates = populations()
    f = jax.jit(solve)
    return lambda: f(rates)


@program("diffrax: the gradient of a solve")
def solve_gradient() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    solve, rates = populations()
    f = jax.jit(jax.grad(lambda rates: jnp.mean(solve(rates) ** 2)))
    return lambda: f(rates)


@program("numpyro: 50 draws by NUTS")
def nuts() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(x: Any, y: Any = None) -> None:
        weights = numpyro.sample("weights", dist.Normal(0, 2).expand([2]).to_event(1))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ weights, scale), obs=y)

    x = jax.random.normal(jax.random.key(0), (100, 2))
    y = x @ jnp.array([1.0, -2.0]) + 0.5 * jax.random.normal(jax.random.key(1), (100,))
    sampler = MCMC(NUTS(model), num_warmup=50, num_samples=50, progress_bar=False)

    def call() -> Any:
        sampler.run(jax.random.key(2), x, y)
        return sampler.get_samples()

    return call
