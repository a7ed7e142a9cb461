"""Types reach the page: few lines of the product say that a value may be anything."""

from __future__ import annotations

import re

from tests.architecture.test_sizes import ROOT, sources

PRODUCT = {"gpu_runner", "kbench_client", "kbench_web", "leaderboard_app", "runs_app", "tasks_app"}
LINES_WITH_ANY = 500
_ANY = re.compile(r"\bAny\b")


def test_few_lines_say_any() -> None:
    product = [path.relative_to(ROOT) for path in sources()]
    lines = [
        f"{path}:{number}"
        for path in product
        if path.parts[0] in PRODUCT and "catalog" not in path.parts
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if _ANY.search(line) and "import" not in line
    ]
    assert 0 < len(lines) < LINES_WITH_ANY
