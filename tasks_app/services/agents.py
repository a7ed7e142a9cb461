"""Names under which the kernels that come with kbench stand on the boards."""

from __future__ import annotations

import re

_KEPT = re.compile(r"kbench-(naive|good|tunable)|mskernelbench-.*|origin|.* \(shipped\)", re.I)


def is_kept_agent(name: str) -> bool:
    """Whether nobody else may write kernels under this name."""
    return _KEPT.fullmatch(name.strip()) is not None
