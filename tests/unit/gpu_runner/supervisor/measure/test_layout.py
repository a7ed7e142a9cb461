"""How many bytes a call moves."""

from __future__ import annotations

import pytest

from gpu_runner.supervisor.measure.layout import Sizes


def test_an_argument_that_is_read_and_written_counts_once() -> None:
    sizes = Sizes(read=300, written=100, both=200)
    assert (sizes.tensors, sizes.in_arenas) == (400, 600)


@pytest.mark.parametrize(
    ("moved", "outputs"),
    [
        (None, 300),  # nobody knows: it may write all
        (400, 100),  # it comes back as it was
        (600, 300),  # and here it is written, too
        (500, 200),
        (50, 100),  # a part of a table is read
    ],
)
def test_what_comes_back_as_it_was_is_not_written(moved: float | None, outputs: float) -> None:
    assert Sizes(read=300, written=100, both=200).outputs(moved) == outputs
