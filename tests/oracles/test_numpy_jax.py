"""What programs for jax rely on: dtypes, weakness and values of phalanx.numpy as in installed jax.

Each line below is evaluated by both.
"""

import jax
import numpy as np
import pytest

import phalanx.numpy

EXPRESSIONS = """
jnp.array(1)
jnp.array(2.0)
jnp.asarray(2.)
jnp.array([1,2])
jnp.array(np.float64(2))
jnp.array(wf)
jnp.asarray(wf)
jnp.sum(wf)
jnp.mean(wf)
jnp.mean(wi)
jnp.max(wf)
jnp.prod(wf)
jnp.sin(wi)
jnp.sin(x)
jnp.full((2,),1)
jnp.full((2,),1.)
jnp.zeros_like(wf)
jnp.ones_like(wf)
jnp.full_like(wf,2)
jnp.arange(3)
jnp.arange(3.)
jnp.where(x>0,1.,0.)
jnp.where(x>0,1,0)
jnp.where(x>0,x,0.)
jnp.clip(x,0,1)
jnp.clip(x,0.,1.)
jnp.clip(wf,0,1)
f**-1
x**2
x**2.
x**jnp.array([1,2,-1])
2**x
jnp.power(2,3)
x//0
x%0
f//0
f%0
-f//0.
jnp.array([True])+jnp.array([True])
abs(jnp.array([True]))
jnp.sign(jnp.uint8(3))
jnp.int8(1)/1000
jnp.uint8(1)-2
f[10]
f[-10]
f[jnp.array([10,-10,-1])]
f[np.array([10,-10,-1])]
f.at[10].get()
f.at[10].set(5.)
f.at[-10].set(5.)
f.at[jnp.array([10,-10,-1])].set(5.)
f.at[10].get(mode='fill')
f.at[10].get(mode='fill',fill_value=7)
x.at[10].get(mode='fill')
jnp.take(f,10)
jnp.take(f,-4)
jnp.take(x,10)
jnp.take(jnp.uint8(x),10)
jnp.take(x>0,10)
jnp.take_along_axis(f,jnp.array([10]),0)
f[True]
f[False]
f[jnp.array(1):2]
jnp.stack([1,2])
jnp.var(x)
jnp.std(wf)
jnp.sum(jnp.int8(x))
jnp.sum(x>0)
jnp.sum(jnp.uint8(x))
jnp.prod(x>0)
jnp.cumsum(x>0)
jnp.cumsum(jnp.int8(x))
jnp.cumprod(jnp.int8(x))
jnp.max(x>0)
jnp.argmax(f)
jnp.round(x)
jnp.round(wf)
jnp.floor(x)
jnp.ceil(x>0)
jnp.sqrt(x)
jnp.square(wi)
jnp.reciprocal(x)
jnp.abs(wi)
jnp.real(wi)
jnp.imag(f)
jnp.isnan(x)
jnp.nan_to_num(x)
jnp.nan_to_num(f*jnp.nan,nan=3)
jnp.heaviside(x,0.5)
jnp.float_power(x,2)
jnp.true_divide(wi,2)
jnp.divmod(f,2)
jnp.ldexp(f,x)
jnp.maximum(x,2.5)
jnp.max(f,initial=5)
jnp.sum(f,where=f>0,initial=3)
jnp.array([1,2.5,True])
jnp.array([wf,1])
jnp.array([jnp.int8(1),2.5])
jnp.array(3,dtype=jnp.int8)
jnp.array(2.7,dtype=int)
jnp.ones(3,int)
jnp.arange(5,0,-2)
jnp.arange(jnp.int8(3))
jnp.arange(2,dtype=float)
jnp.dot(x,2)
jnp.dot(x>0,x>0)
jnp.matmul(x>0,x>0)
jnp.float32(3)
jnp.int32([1,2])
f.astype(int)
f.astype(bool)
x.astype(jnp.uint8)-3
jnp.asarray(wf).astype(float)
wf.astype(jnp.float32)
f.at[f>1].set(0.)
f.at[f>1].add(jnp.array([3.]))
x & True
jnp.logical_not(f)
jnp.invert(True)
jnp.right_shift(jnp.uint8(200),1)
divmod(x,2)
round(f,1)
jnp.sort(wf[None])
jnp.average(x)
jnp.mean(jnp.float16(x))
jnp.mean(x>0)
jnp.nansum(x)
jnp.nanmean(x)
jnp.nanmax(x)
jnp.pad(x,1,constant_values=2.5)
jnp.linalg.norm(x)
jnp.exp(jnp.float16(1))
jnp.sum(jnp.float16([60000.,60000.,-60000]))
jnp.cumsum(jnp.float16(x))
jnp.true_divide(jnp.int8(1),jnp.float16(2))
jnp.concatenate([x,f])
jnp.concatenate([wf[None],x])
jnp.stack([wf,wf])
jnp.concatenate([wf[None],wf[None]])
jnp.broadcast_to(wf,(2,))
jnp.sinc(x)
jnp.bitwise_count(x)
jnp.copysign(x,-1)
f.sum(0,None,None,True)
jnp.take(f,-1,mode='clip')
jnp.take(f,-5,mode='clip')
jnp.take(f,-1,mode='wrap')
jnp.take(f,4,mode='wrap')
jnp.take(m,jnp.array([0,5]),axis=1,mode='fill',fill_value=-1)
jnp.take_along_axis(m,jnp.array([[0],[5],[-1]]),1,mode='clip')
f.at[-1].get(mode='clip')
f.at[jnp.array([-1,-9,9])].get(mode='clip')
f.at[jnp.array([-1,-9,9])].set(7.,mode='clip')
f.at[jnp.array([1,1])].divide(2.)
x.at[jnp.array([1,1])].divide(2)
x.at[1].divide(2)
jnp.pad(f,(1,2),mode='reflect')
jnp.pad(f,(1,2),mode='wrap')
jnp.pad(f,(1,2),mode='mean')
jnp.pad(f,(1,2),mode='linear_ramp')
jnp.unique(jnp.array([3,1,3]),size=4)
jnp.unique(jnp.array([3,1,3]),size=4,fill_value=-1)
jnp.unique(jnp.array([3,1,3]),return_index=True,return_inverse=True,return_counts=True,size=3)
jnp.nonzero(x,size=4)
jnp.nonzero(x,size=4,fill_value=-1)
jnp.nonzero(x,size=1)
jnp.where(x>0,size=3,fill_value=9)
jnp.searchsorted(f,jnp.array([0.,1.5,jnp.nan,9.]))
jnp.searchsorted(f,jnp.array([0.,1.,jnp.nan,9.]),side='right')
jnp.sort(jnp.array([3.,jnp.nan,1.]),descending=True)
jnp.argsort(jnp.array([3,1,1]),descending=True)
"""


def given(jnp):
    return {
        "jnp": jnp,
        "np": np,
        "x": jnp.arange(3),
        "f": jnp.arange(3.0),
        "m": jnp.arange(12.0).reshape(3, 4),
        "wi": jnp.asarray(2),
        "wf": jnp.asarray(2.0),
    }


def described(value):
    """Dtype, weakness and value of everything in a result."""
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    if not hasattr(value, "dtype"):
        return value
    return str(value.dtype), bool(value.weak_type), np.asarray(value, np.complex128)


def compare(ours, theirs):
    if isinstance(theirs, list):
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b)
    elif isinstance(theirs, tuple):
        assert ours[:2] == theirs[:2]
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5, atol=1e-6)
    else:
        assert ours == theirs


@pytest.fixture(scope="module")
def both():
    return given(phalanx.numpy), given(jax.numpy)


@pytest.mark.parametrize("expression", EXPRESSIONS.split("\n")[1:-1])
def test_as_in_jax(expression, both):
    compare(*(described(eval(expression, names)) for names in both))


@pytest.mark.parametrize("jnp", [jax.numpy, phalanx.numpy], ids=["jax", "phalanx"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_floats_of_two_bytes_go_through_files(jnp, dtype, tmp_path):
    jnp.save(tmp_path / "x.npy", jnp.arange(3, dtype=dtype))
    x = jnp.load(tmp_path / "x.npy")
    assert x.dtype == dtype
    np.testing.assert_array_equal(np.asarray(x, np.float32), [0, 1, 2])
