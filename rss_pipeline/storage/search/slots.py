"""Slots by arrival numbers: both grow together, so one is searched by halves and needs no index of its own.

An index would be a tenth of the whole for short items.
"""

from collections.abc import Callable

Look = Callable[[int], tuple[int, int] | None]
"""The first row at or behind a slot: its slot and its arrival number; None where there is none."""


def first_slot(look: Look, highest: int | None, arrived: int) -> int:
    """A slot such that all rows from it on have at least this arrival number, and those before it have less.

    `highest` is the last slot there is; None for no rows.
    """
    low, high = 0, -1 if highest is None else highest + 1
    while low < high:
        middle = (low + high) // 2
        row = look(middle)
        if row is None or row[1] >= arrived:
            high = middle
        else:
            low = row[0] + 1
    return low
