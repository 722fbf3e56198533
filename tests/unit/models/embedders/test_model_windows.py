from __future__ import annotations

import pytest

from rag_harness.models.embedders import windows


@pytest.mark.parametrize(
    ("borders", "cuts"),
    [
        ([0, 20, 50, 80], [range(0, 2), range(2, 5), range(5, 8), range(8, 10)]),
        ([], [range(0, 4), range(4, 8), range(8, 10)]),
        ([0, 45], [range(0, 4), range(4, 5), range(5, 9), range(9, 10)]),
        ([0, 90], [range(0, 4), range(4, 8), range(8, 10)]),
    ],
)
def test_windows_end_at_a_border_where_one_is_in_reach(borders: list[int], cuts: list[range]) -> None:
    assert list(windows([0, 10, 20, 30, 40, 50, 60, 70, 80, 90], borders, 4)) == cuts


def test_no_pieces_no_windows() -> None:
    assert list(windows([], [0], 4)) == []
