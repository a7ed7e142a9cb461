"""Names under which the kernels that come with kbench stand on the boards."""

from __future__ import annotations

import re

_KEPT = re.compile(r"kbench-(naive|good|tunable)|mskernelbench-.*|origin|.* \(shipped\)", re.I)
_OWN = re.compile(r"kbench-.*", re.I)  # runs enter theirs under that of their strategy


def is_kept_agent(name: str) -> bool:
    """Whether nobody else may write kernels under this name."""
    return _KEPT.fullmatch(name.strip()) is not None


def is_own_agent(name: str) -> bool:
    """Whether it is a name of kbench's own, which no kernel of somebody's draft may have."""
    return is_kept_agent(name) or _OWN.fullmatch(name.strip()) is not None
