"""The client of the runtime that libraries for JAX ask for, over processes."""

import pytest

from tests.stories.test_processes import launch  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow


def test_libraries_store_values_and_meet(launch):  # noqa: F811
    ended = launch(
        2,
        """
        from phalanx.compat.private.distributed import global_state
        client = global_state.client
        client.key_value_set(f"a/{me}", f"of {me}")
        client.key_value_set_bytes(f"b/{me}", bytes([me]))
        client.wait_at_barrier("stored", 60_000)
        tell(sorted(client.key_value_dir_get("a/")), client.blocking_key_value_get_bytes("b/1", 9))
        try:
            client.blocking_key_value_get("nothing", 100)
        except phalanx.errors.JaxRuntimeError as e:
            tell("DEADLINE_EXCEEDED" in str(e))
        try:
            client.shutdown()
        except AttributeError as e:
            tell(e)
        """,
    )
    assert ended.status == 0, ended.output
    for process in (0, 1):
        stored, late, refused = ended.told[process]
        assert stored == r"[('a/0', 'of 0'), ('a/1', 'of 1')] b'\x01'"
        assert late == "True"
        assert refused.startswith("the client of other processes has blocking_key_value_get")


def test_who_meets_there_hears_of_a_loss(launch):  # noqa: F811
    """Where the runtime's service lets all others wait for their whole time."""
    ended = launch(
        3,
        """
        from phalanx.compat.private.distributed import global_state
        client = global_state.client
        client.wait_at_barrier("first", 60_000)
        if me == 1:
            time.sleep(0.3)  # the others wait
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            client.wait_at_barrier("second", 600_000)
        except phalanx.errors.PeerLost as e:
            tell(e.process, e)
        try:
            client.key_value_set("a", "b")
        except phalanx.errors.PeerLost as e:
            tell(e.process)
        """,
    )
    assert ended.status == 137, ended.output
    for process in (0, 2):
        waited, asked = ended.told[process]
        assert waited.startswith("1 wait_at_barrier (before the first launch")
        assert "it was killed by SIGKILL" in waited
        assert asked == "1"
