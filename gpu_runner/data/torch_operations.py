"""Which operations of PyTorch only prepare memory, and which ones compute."""

from __future__ import annotations

import re

NAMESPACES = r"(?:aten|prims?|quantized|mkldnn|_)"
"""In which torch's own operations are; an author's have another."""
_PLUMBING = re.compile(
    r"(?:new_)?(?:empty|zeros|ones|full)\w*|zero_?|fill_?\w*|copy_?|clone|contiguous|_?to(?:_\w+)?|view\w*|_view\w*"
    r"|_?reshape\w*|transpose\w*|t|numpy_T|m?[TH]|permute|select\w*|slice\w*|narrow\w*|(?:un)?squeeze\w*"
    r"|expand\w*|(?:un)?flatten\w*|as_strided\w*|chunk|split\w*|unbind\w*|detach\w*|alias\w*|item"
    r"|_local_scalar_dense|resize\w*|set_\w*|is_\w+|_?size\w*|stride\w*|numel|storage_offset|arange\w*"
    r"|scalar_tensor|movedim\w*|swap\w+|diagonal|broadcast_\w+|_unsafe_view|record_stream|_?pin_memory"
    r"|requires_grad_|result_type\w*|_has_\w+|_is_\w+|from_blob|lift\w*|type_as|_?cat(?:_\w+)?|concat\w*"
    r"|[hvd]?stack(?:_\w+)?|atleast_\w+|block_diag|constant_pad_nd|repeat\w*|tile"
    r"|roll|random_|bitwise_or_?_\w+"  # by which the runner itself makes the poison around a call
    r"|finfo|iinfo|promote_types|can_cast|typename|autocast|manual_seed\w*|pad"
    r"|resolve_\w+|set_data|data|_version|tensor_data|variable_data|requires_grad|retain_grad"
)


def computes(operation: str) -> bool:
    """Whether an operation of ATen does arithmetic, rather than allocate, view, copy or describe.

    Packing operands by `cat` and its like is copying.
    """
    return _PLUMBING.fullmatch(operation) is None
