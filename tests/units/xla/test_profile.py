"""Recording what a program does."""

import gzip
import json

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import profiler
from phalanx.errors import JaxRuntimeError


def test_what_is_recorded_has_the_names_that_were_given(tmp_path):
    @profiler.annotate_function
    def named(x):
        return jnp.sin(x).block_until_ready()

    options = profiler.ProfileOptions()
    options.python_tracer_level = 0

    def step():
        with profiler.StepTraceAnnotation("a step", step_num=3), profiler.TraceAnnotation("a part"):
            named(jnp.ones(3))

    with profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=options):
        step()
    (written,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(written.read_bytes()))["traceEvents"]
    names = {event.get("name") for event in events}
    assert {"a step", "a part"} <= names and any(str(n).endswith("named") for n in names)


def test_there_is_one_recording_at_a_time(tmp_path):
    with pytest.raises(JaxRuntimeError, match="No profile started"):
        profiler.stop_trace()
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    profiler.start_trace(tmp_path, profiler_options=options)
    with pytest.raises(JaxRuntimeError, match="already been started"):
        profiler.start_trace(tmp_path)
    data = profiler.stop_trace()
    assert isinstance(data, profiler.ProfileData) and len(list(data.planes)) > 0
    with pytest.raises(ValueError, match="create_perfetto_trace"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_memory(tmp_path):
    kept = jnp.ones(1000).block_until_ready()
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    # a `profile` of pprof's protocol, of which strings are field 6, with the lines of who made it
    told = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert all(b"\x32" + bytes([len(s)]) + s in told for s in (b"space", b"bytes", b"test_memory"))
    assert kept.shape == (1000,) and phalanx.profiler is profiler
