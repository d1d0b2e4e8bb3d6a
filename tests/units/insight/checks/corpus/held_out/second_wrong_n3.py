# FAULTY (n): log of weights which are exactly zero, masked only afterwards; the branch not taken
# has an infinite derivative and 0 * inf gives NaN gradients.
import functools

import phalanx as jax
import phalanx.numpy as jnp


def project_simplex(v):
    n = v.shape[-1]
    u = -jnp.sort(-v)
    css = jnp.cumsum(u) - 1.0
    support = u - css / jnp.arange(1, n + 1) > 0
    k = jnp.sum(support)
    tau = css[k - 1] / k
    return jnp.maximum(v - tau, 0.0)


def diversity(w):
    return -jnp.sum(jnp.where(w > 0, w * jnp.log(w), 0.0), axis=-1)


def portfolio_loss(theta, features, returns, coef):
    raw = features @ theta
    weights = jax.vmap(project_simplex)(raw)
    gain = jnp.einsum("ti,ti->t", weights, returns)
    risk = jnp.var(gain)
    bonus = diversity(weights).mean()
    aux = {"gain": gain.mean(), "held": jnp.mean(jnp.sum(weights > 0, axis=-1))}
    return -gain.mean() + 0.5 * risk - coef * bonus, aux


def make_update(coef, lr):
    valgrad = jax.value_and_grad(functools.partial(portfolio_loss, coef=coef), has_aux=True)

    @jax.jit
    def update(theta, features, returns):
        (loss, aux), g = valgrad(theta, features, returns)
        norm = jnp.sqrt(jnp.sum(g * g) + 1e-12)
        return theta - lr * g / jnp.maximum(norm, 1.0), loss, aux

    return update


def main():
    kf, kr, kt = jax.random.split(jax.random.PRNGKey(21), 3)
    features = jax.random.normal(kf, (30, 4))
    returns = 0.1 * jax.random.normal(kr, (30, 6))
    theta = jax.random.normal(kt, (4, 6))
    update = make_update(coef=0.01, lr=0.2)
    for _ in range(4):
        theta, loss, aux = update(theta, features, returns)
        print(float(loss), {k: float(v) for k, v in aux.items()})


if __name__ == "__main__":
    main()
