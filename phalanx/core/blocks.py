"""Rounding up: sizes in equal blocks; the last one may end in padding."""

from __future__ import annotations

import bisect
import itertools

from msgspec import Struct

from phalanx.base.recent import memoized


class Blocks(Struct, frozen=True):
    """``size`` rows in ``count`` blocks: row ``i`` is row ``i % length`` of block ``i // length``.

    What the blocks hold beyond ``size`` is padding, at the end of the last ones that have rows;
    those after them are padding alone.

    >>> b = Blocks(13, 4)
    >>> b.length, b.padded, b.padding
    (4, 16, 3)
    >>> [list(b.rows(i)) for i in (0, 3)]
    [[0, 1, 2, 3], [12]]
    """

    size: int
    count: int

    @property
    def length(self) -> int:
        """How many rows each block has, padding included."""
        return -(-self.size // self.count)

    @property
    def padded(self) -> int:
        """How many rows all blocks have together, padding included."""
        return self.count * self.length

    @property
    def padding(self) -> int:
        """How many of them are beyond the last row."""
        return self.padded - self.size

    def rows(self, block: int) -> range:
        """The rows that block number ``block`` holds, without padding."""
        start, stop = block * self.length, (block + 1) * self.length
        return range(min(start, self.size), min(stop, self.size))

    def find(self, row: int) -> tuple[int, int]:
        """The block that holds ``row``, and its place in it."""
        return divmod(row, self.length)

    @property
    def held(self) -> tuple[int, ...]:
        """For each place in the blocks its row; padding holds the last row before it.

        >>> Blocks(3, 2).held, UnevenBlocks.of((1, 2)).held
        ((0, 1, 2, 2), (0, 0, 1, 2))
        """
        last = 0
        found: list[int] = []
        for block in map(self.rows, range(self.count)):
            for place in range(self.length):
                last = block[place] if place < len(block) else last
                found.append(last)
        return tuple(found)

    @property
    def places(self) -> tuple[int, ...]:
        """For each row its place in the blocks.

        >>> Blocks(3, 2).places, UnevenBlocks.of((1, 2)).places
        ((0, 1, 2), (0, 2, 3))
        """
        pairs = map(self.find, range(self.size))
        return tuple(block * self.length + place for block, place in pairs)

    def covering(self, start: int, stop: int) -> range:
        """The blocks whose rows are exactly those from ``start`` to ``stop``; none may be.

        >>> b = Blocks(13, 4)
        >>> b.covering(4, 13), b.covering(0, 8), b.covering(1, 4)
        (range(1, 4), range(0, 2), range(0, 0))
        """
        if start >= stop:
            return range(0)
        first, last = start // self.length, (stop - 1) // self.length
        exact = self.rows(first).start == start and self.rows(last).stop == stop
        return range(first, last + 1) if exact else range(0)


class UnevenBlocks(Blocks, frozen=True):
    """Rows dealt out in ``counts``, so many to each block: each may end in padding, none is empty.

    >>> b = UnevenBlocks.of((2, 1, 3))
    >>> b.size, b.length, b.padded, b.padding
    (6, 3, 9, 3)
    >>> [list(b.rows(i)) for i in range(3)], b.find(2)
    ([[0, 1], [2], [3, 4, 5]], (1, 0))
    """

    counts: tuple[int, ...] = ()

    @classmethod
    def of(cls, counts: tuple[int, ...]) -> UnevenBlocks:
        """So many rows in each block."""
        return cls(sum(counts), len(counts), counts)

    @property
    def length(self) -> int:
        return max(self.counts)

    def rows(self, block: int) -> range:
        start = sum(self.counts[:block])
        return range(start, start + self.counts[block])

    def find(self, row: int) -> tuple[int, int]:
        block = bisect.bisect_right(list(itertools.accumulate(self.counts)), row)
        return block, row - self.rows(block).start


def fewest_blocks(size: int, room: int) -> Blocks:
    """The smallest blocks of ``size`` rows for up to ``room`` of them, and no block too many.

    >>> fewest_blocks(13, 4), fewest_blocks(5, 8), fewest_blocks(9, 8)
    (Blocks(size=13, count=4), Blocks(size=5, count=5), Blocks(size=9, count=5))
    """
    return Blocks(size, Blocks(size, Blocks(size, room).length).length)


@memoized(1024)  # programs have many values of few shapes
def blocks_of(shape: tuple[int, ...], counts: tuple[int, ...]) -> tuple[Blocks, ...]:
    """Per dimension of ``shape`` its blocks; the dimensions beyond ``counts`` are one block.

    >>> blocks_of((13, 2), (4,))
    (Blocks(size=13, count=4), Blocks(size=2, count=1))
    """
    counts = (*counts, *(1,) * (len(shape) - len(counts)))
    return tuple(map(Blocks, shape, counts))
