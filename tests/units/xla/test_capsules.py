"""Arrays handed to other libraries, and taken from them, by the DLPack protocol.

No GPU is here: CPU devices stand for them, and say that they are.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.core.types import ArrayType
from phalanx.run.runtime import backend
from phalanx.xla import capsules
from phalanx.xla.jaxlib_versions import VERSIONED_CAPSULES
from phalanx.xla.xla_backend import XlaBackend

CUDA, ROCM = 2, 10


class Theirs:
    """An array of another library, as the protocol sees it."""

    def __init__(self, array, device=(1, 0), newest=(1, 0)):
        self.array, self.device, self.newest = array, device, newest
        self.dtype, self.shape = array.dtype, array.shape
        self.asked = []

    def __dlpack__(self, **asked):
        if self.newest is None and "max_version" in asked:
            raise TypeError("max_version")
        self.asked.append(asked)
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.device


@pytest.fixture
def as_gpus(monkeypatch):
    """CPU devices, each of which the protocol calls a GPU with its number."""
    monkeypatch.setattr(XlaBackend, "dlpack_device", lambda _, d: (CUDA, d.id))
    own = XlaBackend.local_devices
    monkeypatch.setattr(XlaBackend, "local_devices", lambda self, platform=None: own(self, "cpu"))
    monkeypatch.setattr("phalanx.run.dlpack.np.from_dlpack", None)  # it reads the host alone


def pointer(x):
    return x.unsafe_buffer_pointer()


def test_what_lies_on_a_gpu_stays_there_and_is_copied_unless_it_may_be_shared(as_gpus):
    mine = phalanx.device_put(jnp.arange(64.0), phalanx.devices()[1])
    theirs = Theirs(mine, (CUDA, 1))
    copied, shared = jnp.from_dlpack(theirs), jnp.from_dlpack(theirs, copy=False)
    assert copied.devices() == shared.devices() == {phalanx.devices()[1]}
    assert pointer(shared) == pointer(mine) != pointer(copied)
    assert copied.tolist() == shared.tolist() == list(range(64))
    elsewhere = jnp.from_dlpack(theirs, device=phalanx.devices()[0])
    assert elsewhere.devices() == {phalanx.devices()[0]} and elsewhere.tolist() == mine.tolist()
    with pytest.raises(BufferError, match=r"cpu:1.*cannot be shared with cpu:0.*test_capsules"):
        jnp.from_dlpack(theirs, device=phalanx.devices()[0], copy=False)
    with pytest.raises(BufferError, match=r"device \(2, 99\).*none of this process"):
        jnp.from_dlpack(Theirs(mine, (CUDA, 99)))


def test_gpus_that_are_not_here():
    with pytest.raises(BufferError, match=r"DLPack's device \(2, 0\).*bring it to the host"):
        jnp.from_dlpack(Theirs(jnp.ones(3), (CUDA, 0)))


@pytest.mark.parametrize("newest", [None, (1, 0)])
def test_dtypes_that_numpy_lacks(newest):
    x = jnp.arange(64.0).astype("bfloat16")
    theirs = Theirs(x, newest=newest)
    assert jnp.from_dlpack(theirs).dtype == x.dtype
    shared, copied = jnp.from_dlpack(theirs, copy=False), jnp.from_dlpack(theirs)
    assert pointer(shared) == pointer(x) != pointer(copied)
    with pytest.raises(BufferError, match=r"float8_e5m2 cannot be handed over.*bfloat16"):
        jnp.from_dlpack(Theirs(jnp.ones(3).astype("float8_e5m2")))


def test_what_cannot_be_shared_is_not():
    with phalanx.enable_x64(True):
        wide = Theirs(jnp.arange(64.0, dtype="float64"))
    assert jnp.from_dlpack(wide).dtype == np.float32
    with pytest.raises(BufferError, match=r"float64 is one of float32 here.*copy=False"):
        jnp.from_dlpack(wide, copy=False)
    rows = np.zeros((64, 64), np.float32)
    for other in (np.asfortranarray(rows), rows[:, ::2]):
        assert jnp.from_dlpack(other).shape == other.shape
        with pytest.raises(BufferError, match="from_dlpack"):
            jnp.from_dlpack(other, copy=False)


def test_elements_that_lie_in_another_order_are_refused():
    type = ArrayType((4, 1, 3), np.dtype(np.float32))
    for layout, right in (("{2,1,0}", 1), ("{1,2,0}", 1), ("{2,0,1}", 1), ("{0,2,1}", 0)):
        assert capsules._is_row_major(SimpleNamespace(_pjrt_layout=layout), type) == right


def test_streams_wait_for_each_other(monkeypatch):
    calls = []
    x = jnp.arange(64.0)
    fake = SimpleNamespace(
        dlpack_version=(1, 3),
        buffer_to_dlpack_managed_tensor=lambda raw, stream, **_: calls.append(stream),
        dlpack_managed_tensor_to_buffer=lambda capsule, device, stream, copy: (
            calls.append((stream, copy)) or x._raw
        ),
    )
    monkeypatch.setattr(capsules, "xc", fake)
    gpu = SimpleNamespace(platform="gpu", get_stream_for_external_ready_events=lambda: 77)
    theirs = Theirs(np.zeros(64, np.float32))
    theirs.array = SimpleNamespace(__dlpack__=lambda **_: None)
    monkeypatch.setattr(capsules, "assemble", lambda parts, *_: parts[0])
    monkeypatch.setattr(capsules, "Sharding", lambda _: None)
    raw, type = capsules.from_dlpack(theirs, gpu, False)
    assert raw is x._raw and type.shape == (64,)
    assert theirs.asked[0]["stream"] == 77 and calls == [(77, False)]
    calls.clear()
    for stream in (1, -1, None):
        capsules.to_dlpack(x._raw, stream)
    assert calls == [1, None, None]  # -1: nobody has to wait


def test_a_stream_is_for_gpus():
    with pytest.raises(BufferError, match=r"streams on GPUs alone.*stream=3"):
        jnp.ones(3).__dlpack__(stream=3)


def test_names_of_devices():
    def device(platform, version=""):
        client = SimpleNamespace(platform_version=version)
        return SimpleNamespace(platform=platform, client=client, local_hardware_id=3)

    assert capsules.dlpack_device(device("gpu", "cuda 12090")) == (CUDA, 3)
    assert capsules.dlpack_device(device("gpu", "rocm 60000")) == (ROCM, 3)
    assert capsules.dlpack_device(device("tpu")) is None
    assert capsules.dlpack_device(phalanx.devices()[1]) == (1, 0)


def test_devices_without_a_name(monkeypatch):
    monkeypatch.setattr(XlaBackend, "dlpack_device", lambda *_: None)
    x = jnp.ones(3)
    for use in (x.__dlpack_device__, x.__dlpack__):
        with pytest.raises(BufferError, match=r"no devices like cpu:0.*numpy.asarray"):
            use()
    assert backend().dlpack_device(x.device) is None


def test_a_copy_is_made_where_the_array_lies(monkeypatch):
    x = jnp.arange(64.0)
    monkeypatch.setattr("phalanx.run.array.place", None)
    taken = jnp.from_dlpack(Theirs(SimpleNamespace(
        __dlpack__=lambda **_: x.__dlpack__(copy=True), dtype=x.dtype, shape=x.shape
    )), copy=False)  # fmt: skip
    assert taken.tolist() == x.tolist() and pointer(taken) != pointer(x)


def of_ours(**claims):
    """An array of ours behind the protocol, with claims of its own."""
    theirs = Theirs(jnp.arange(6.0).reshape(2, 3))
    vars(theirs).update(claims)
    return theirs


@pytest.mark.parametrize(
    "claims", [{"shape": (5, 7)}, {"shape": (1,)}, {"dtype": np.dtype("float16")}], ids=str
)
@pytest.mark.parametrize("copy", [None, False])
def test_no_memory_is_read_but_what_is_handed_over(claims, copy):
    theirs = of_ours(**claims)
    if copy is None:  # NumPy reads the capsule alone
        assert jnp.from_dlpack(theirs).tolist() == [[0, 1, 2], [3, 4, 5]]
    else:
        with pytest.raises(BufferError, match=r"calls itself .* hands over 24 bytes, where such"):
            jnp.from_dlpack(theirs, copy=False)


def test_a_shape_of_as_many_elements_but_other_dimensions_is_refused():
    with pytest.raises(BufferError, match="lie in another order"):
        jnp.from_dlpack(of_ours(shape=(6,)), copy=False)


@pytest.mark.parametrize("copy", [None, False])
def test_the_protocol_asks_for_two_methods_alone(copy):
    theirs = of_ours()
    del theirs.shape, theirs.dtype
    if copy is False and not VERSIONED_CAPSULES:  # what NumPy gives is not to be written
        with pytest.raises(BufferError, match="readonly"):
            jnp.from_dlpack(theirs, copy=False)
        return
    assert jnp.from_dlpack(theirs, copy=copy).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("device", [None, "cpu", (1,), (1, 0, 0), ("a", "b")])
def test_a_place_that_is_no_pair_of_integers_is_refused(device):
    with pytest.raises(TypeError, match="__dlpack_device__ of a Theirs must give two integers"):
        jnp.from_dlpack(of_ours(device=device))
