"""Rounding up: every row in one block, all blocks of one length, no more padding than it takes."""

import itertools
import math

from phalanx.core.blocks import Blocks, blocks_of, fewest_blocks

EVERY = [Blocks(*pair) for pair in itertools.product(range(25), range(1, 10))]


def held(b, blocks):
    """The rows of these blocks, in order."""
    return [row for block in blocks for row in b.rows(block)]


def test_blocks_hold_every_row_once():
    for b in EVERY:
        assert held(b, range(b.count)) == list(range(b.size))
        assert all(len(b.rows(i)) <= b.length for i in range(b.count))
        assert b.padded == b.count * b.length == b.size + b.padding
        assert (b.length - 1) * b.count < max(b.size, 1)  # blocks a row shorter would not do


def test_a_row_is_found_where_it_is_held():
    for b in EVERY:
        for row in range(b.size):
            block, place = b.find(row)
            assert b.rows(block)[place] == row


def test_covering_blocks_hold_these_rows_and_no_others():
    for b in EVERY:
        starts = {b.rows(i).start for i in range(b.count)}
        stops = {b.rows(i).stop for i in range(b.count)}
        for start, stop in itertools.combinations_with_replacement(range(b.size + 1), 2):
            whole = start < stop and start in starts and stop in stops
            expected = list(range(start, stop)) if whole else []
            assert held(b, b.covering(start, stop)) == expected


def test_fewest_blocks_are_smallest_and_waste_no_device():
    for size, room in itertools.product(range(1, 40), range(1, 10)):
        b = fewest_blocks(size, room)
        assert b.length == math.ceil(size / room)
        assert b.count <= room and b == Blocks(size, b.count)
        assert len(b.rows(b.count - 1)) > 0  # every block has a row
        assert 0 <= b.padding < b.length


def test_blocks_of_a_shape():
    assert blocks_of((13, 2), (4,)) == (Blocks(13, 4), Blocks(2, 1))
    assert blocks_of((), ()) == ()
