"""Selects the GPUs of a host by `CUDA_VISIBLE_DEVICES`, as CUDA's own programs do."""

from __future__ import annotations

from collections.abc import Sequence

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(uuids: Sequence[str], chosen: str | None) -> list[int]:
    """Indices of the GPUs that a list such as `0,2` or `GPU-8932f937` names; None names all.

    uuids: of all GPUs, in nvidia-smi's order. As in CUDA, an invalid name ends the list.
    """
    if chosen is None:
        return list(range(len(uuids)))
    found: list[int] = []
    for word in map(str.strip, chosen.split(",")):
        is_name = word.startswith("GPU-")
        meant = [
            index
            for index, uuid in enumerate(uuids)
            if (uuid.startswith(word) if is_name else str(index) == word)
        ]
        if len(meant) != 1 or meant[0] in found:
            break
        found += meant
    return sorted(found)
