# RIGHT: the microbatch loss is divided by lanes times microbatches before psum; the log of class
# frequencies is a log of data
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn

P = jax.sharding.PartitionSpec
MICRO, T = 3, 2.0


def distill(student, teacher, log_freq, x, y, weight):
    z = x @ student["w"] + student["b"]
    soft = nn.softmax(x @ teacher["w"] / T)
    kd = -jnp.sum(soft * nn.log_softmax(z / T), axis=-1) * T**2
    hard = -jnp.take_along_axis(nn.log_softmax(z + log_freq), y[:, None], axis=-1)[:, 0]
    return jnp.mean(0.7 * kd + 0.3 * hard) * weight


def make_step(mesh, lanes, lr):
    weight = 1.0 / (lanes * MICRO)

    def device_step(student, teacher, log_freq, x, y):
        def micro(acc, chunk):
            loss, g = jax.value_and_grad(distill)(student, teacher, log_freq, *chunk, weight)
            return jax.tree_util.tree_map(jnp.add, acc, (loss, g)), None

        chunks = (x.reshape(MICRO, -1, x.shape[-1]), y.reshape(MICRO, -1))
        zero = (jnp.zeros(()), jax.tree_util.tree_map(jnp.zeros_like, student))
        (loss, grads), _ = lax.scan(micro, zero, chunks)
        loss, grads = lax.psum((loss, grads), "dp")
        student = jax.tree_util.tree_map(lambda p, g: p - lr * g, student, grads)
        return student, loss

    specs = (P(), P(), P(), P("dp"), P("dp"))
    return jax.jit(
        jax.shard_map(device_step, mesh=mesh, in_specs=specs, out_specs=(P(), P()), check_vma=False)
    )


def main():
    lanes = jax.local_device_count()
    mesh = jax.make_mesh((lanes,), ("dp",))
    rng = np.random.RandomState(14)
    d, c = 7, 4
    teacher = {"w": jnp.asarray(rng.randn(d, c), jnp.float32)}
    student = {"w": jnp.zeros((d, c)), "b": jnp.zeros((c,))}
    train_step = make_step(mesh, lanes, lr=0.2)
    labels = rng.choice(c, size=500, p=[0.5, 0.3, 0.15, 0.05])
    freq = np.bincount(labels, minlength=c) / labels.size
    log_freq = jnp.log(jnp.asarray(freq, jnp.float32))
    for it in range(5):
        x = rng.randn(lanes * MICRO * 4, d).astype(np.float32)
        y = np.asarray(jnp.argmax(x @ teacher["w"] + log_freq, -1)).astype(np.int32)
        x, y = (jax.device_put(a, jax.sharding.NamedSharding(mesh, P("dp"))) for a in (x, y))
        student, loss = train_step(student, teacher, log_freq, x, y)
        print(it, float(loss))


if __name__ == "__main__":
    main()
