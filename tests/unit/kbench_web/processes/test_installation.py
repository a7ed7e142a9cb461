"""What `make up` says and hands on about the site that it starts."""

from __future__ import annotations

import pytest

from kbench_web.processes.installation import address


@pytest.mark.parametrize(
    ("host", "allowed", "expected"),
    [
        ("127.0.0.1", ["localhost", "127.0.0.1"], "https://localhost:8100"),
        ("0.0.0.0", ["kernels.lab.example"], "https://kernels.lab.example:8100"),
        ("::", [".lab.example", "*"], "https://localhost:8100"),
        ("10.0.0.5", ["kernels.lab.example", "10.0.0.5"], "https://10.0.0.5:8100"),
    ],
)
def test_the_printed_address_is_one_that_the_site_answers_to(
    host: str, allowed: list[str], expected: str
) -> None:
    assert address("https", host, 8100, allowed) == expected
