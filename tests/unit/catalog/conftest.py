"""One core, and one task in eight where a report in the repository vouches for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gpu_runner.data.formats import catalog_specifications

EVERY = 8
"""Of so many tasks one is tried again by `make test`; `make test ALL=1` tries all.

A report of soundness names the digest of its task's files, so a task that changes needs a new one.
These tests are then about the engine, for which any sample will do.
"""
SAMPLED = {
    "test_families.py",
    "test_hidden.py",
    "test_honest.py",
    "test_kernels.py",
    "test_precision.py",
    "test_tunable.py",
}
SAMPLED_FUNCTIONS = {
    "test_filters_of_today_flag_nothing_on_a_small_workload",
    "test_inputs_are_the_seed_s_alone",
    "test_mutants_fail_where_the_report_says_so",
    "test_the_work_formula_counts_each_byte_once",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is left to `make test ALL=1`."""
    sample = set(sorted(catalog_specifications())[::EVERY])
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        function = item.name.partition("[")[0]
        if item.path.name in SAMPLED or function in SAMPLED_FUNCTIONS:
            name = _task_of(item)
            if name is not None and name not in sample:
                item.add_marker("thorough")


def _task_of(item: pytest.Item) -> str | None:
    """The task that a test is about, if it is about one."""
    values = getattr(getattr(item, "callspec", None), "params", {})
    name = values.get("name", getattr(values.get("case"), "name", None))
    return name if isinstance(name, str) else None


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """These tensors are small: a team of threads only costs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
