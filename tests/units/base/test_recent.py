"""Bounded mappings, and tables of unique objects."""

import gc
import threading
import weakref

import hypothesis.strategies as st
import pytest
from hypothesis import given

from phalanx.base.recent import InternTable, Recent, forget_everything, forget_old

KEYS = st.lists(st.integers(0, 12), max_size=80)


class Value:
    def __init__(self, key):
        self.key = key


# ---- what was used last -------------------------------------------------------------------------


@given(st.integers(1, 6), KEYS)
def test_what_was_used_lately_is_there_and_never_more_than_twice_the_limit(limit, keys):
    cache, order = Recent(limit), []
    for key in keys:
        if cache[key] is None:
            cache[key] = Value(key)
        order = [k for k in order if k != key] + [key]
        for lately in order[-limit:][::-1]:
            assert lately in cache
        held = {k for k in range(13) if k in cache}
        assert len(held) <= 2 * limit
    for key in order[-limit:]:
        assert cache[key].key == key


def test_an_entry_that_is_used_stays_however_many_are_made():
    cache = Recent(4)
    cache["kept"] = Value("kept")
    kept = cache["kept"]
    for i in range(100):
        cache[i] = Value(i)
        assert cache["kept"] is kept
    assert 50 not in cache


def test_setting_again_replaces_and_drops_nothing():
    cache = Recent(2)
    cache[1], cache[2] = Value(1), Value(2)
    for i in range(10):
        cache[1] = Value(i)
    assert cache[1].key == 9 and cache[2].key == 2
    assert cache.get(3) is None and cache.get(3, "nothing") == "nothing"
    cache.clear()
    assert 1 not in cache and cache[2] is None


def test_dropped_values_die():
    cache, ref = Recent(3), None
    for i in range(10):
        value = cache[i] = Value(i)
        ref = ref or weakref.ref(value)
        del value
    assert ref() is None


# ---- unique objects -----------------------------------------------------------------------------


@given(KEYS, st.sets(st.integers(0, 12)))
def test_an_object_that_is_held_is_found_again_however_old(keys, held):
    table, mine = InternTable(2), {}
    for key in keys:
        value = table[key]
        if value is None:
            value = table.add(key, Value(key))
        assert value is mine.get(key, value) and value.key == key
        if key in held:
            mine[key] = value


def test_objects_that_nobody_holds_go():
    table = InternTable(4)
    refs = [weakref.ref(table.add(i, Value(i))) for i in range(1000)]
    assert sum(ref() is not None for ref in refs) <= 8
    assert len(table._held) <= 8


def test_the_first_object_added_is_the_one():
    table = InternTable(4)
    first = table.add("k", Value("k"))
    for i in range(20):
        table.add(i, Value(i))
    assert table.add("k", Value("k")) is first is table["k"]


def test_threads_agree_on_one_object():
    table, start = InternTable(8), threading.Barrier(8)
    seen = [[] for _ in range(8)]

    def run(mine):
        start.wait()
        for i in range(3000):
            value = table[i % 24]
            mine.append(table.add(i % 24, Value(i)) if value is None else value)

    threads = [threading.Thread(target=run, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in range(24):
        values = {id(mine[i]) for mine in seen for i in range(place, 3000, 24)}
        assert len(values) == 1


@pytest.mark.parametrize("collect", [False, True])
def test_a_table_may_be_asked_while_garbage_is_collected(collect):
    table = InternTable(2)

    class Asks:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            table.add("inside", Value("inside"))

    for i in range(50):
        Asks()
        table.add(i, Value(i))
        if collect:
            gc.collect()
    assert table["inside"] is not None or not collect


# ---- all of them --------------------------------------------------------------------------------


def test_all_mappings_forget_what_is_old_together():
    caches = [Recent(8), Recent(8)]
    for cache in caches:
        cache["used"], cache["unused"] = Value("used"), Value("unused")
    forget_old()
    assert all([cache["used"] is not None for cache in caches])
    forget_old()
    assert all(["used" in cache and "unused" not in cache for cache in caches])
    table, held = InternTable(8), Value("held")
    table.add("held", held)
    forget_everything()
    assert not any(caches) and table["held"] is held
