"""Names the optimisation techniques that a source shows, by plain patterns in its code."""

from __future__ import annotations

import re

from runs_app.evolve.cpp_text import without_comments

_PATTERNS: dict[str, str] = {
    "tensor cores": r"\bnvcuda::wmma\b|\bwmma::|\bmma_sync\b|\bwgmma\b|\bmma\.sync\b|\bldmatrix\b",
    "async copy": r"\bcp\.async\b|\b__pipeline_memcpy_async\b|\bmemcpy_async\b|\bcp_async\w*\b"
    r"|\bcuda::pipeline\b|\bcuda::barrier\b",
    "clusters": r"\b__cluster_dims__\b|\bthis_cluster\b|\bmap_shared_rank\b",
    "shared memory": r"\b__shared__\b",
    "warp shuffle": r"\b__shfl_\w+\b|\b__reduce_\w+_sync\b|\b\w+\.shfl(?:_\w+)?\(",
    "cooperative groups": r"\bcooperative_groups\b|\bthis_thread_block\b|\bthis_grid\b",
    "vector loads": r"\breinterpret_cast<\s*(?:const\s+)?(?:float|double|int|uint|half|__half|"
    r"__nv_bfloat16|longlong|uchar|short)\w*[248]\s*(?:const\s*)?[*&]|\b(?:float|int|uint)[24]\s*\*"
    r"|\bld\.global\.v[248]\b",
    "read-only cache": r"\b__ldg\b|\b__ldcs\b|\b__ldcg\b|\bld\.global\.nc\b",
    "constant memory": r"\b__constant__\b",
    "launch bounds": r"\b__launch_bounds__\b",
    "grid stride": r"\+=\s*(?:\(\w+\)\s*)?(?:gridDim\.x\s*\*\s*blockDim\.x"
    r"|blockDim\.x\s*\*\s*gridDim\.x|stride\b)",
    "atomics": r"\batomic(?:Add|Max|Min|CAS|Exch)\w*\b|\bstd::atomic\b|\bomp\s+atomic\b",
    "fast maths": r"\b__expf\b|\b__fdividef\b|\b__frcp_\w+\b|\b__fsqrt_\w+\b|\brsqrtf?\b|\b__logf\b"
    r"|\bex2\.approx\b|\b__builtin_bit_cast\b",
    "unrolling": r"#\s*pragma\s+(?:GCC\s+)?unroll\b|\bUNROLL\w*\b",
    "blocking": r"\b(?:TILE|BLOCK|BLK|MC|NC|KC|MR|NR|BM|BN|BK|TM|TN|tile|block_size)\w*\s*=\s*\w+"
    r"|#\s*define\s+(?:TILE|BLOCK|BM|BN|BK|TM|TN)\w*",
    "openmp": r"#\s*pragma\s+omp\s+parallel\b",
    "simd": r"\bomp\s+(?:\w+\s+)*simd\b|\b_mm(?:256|512)?_\w+\b|\b__m(?:128|256|512)[di]?\b"
    r"|\bvector_size\b|\bstd::experimental::simd\b",
    "prefetch": r"\b__builtin_prefetch\b|\bprefetch\.global\b|\b_mm_prefetch\b",
    "streaming stores": r"\b_mm\w*_stream_\w+\b|\b__stcs\b|\b__stwt\b",
    "restrict": r"\b__restrict(?:__)?\b",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}

NAMES = tuple(_PATTERNS)
"""Every technique that can be named, the rarer and more telling ones first."""


def techniques_in(source: str) -> tuple[str, ...]:
    """Names of the techniques in a source, in the order of `NAMES`; what comments say is no sign.

    A pattern shows that a technique is written there, not that it runs or helps.
    """
    code = without_comments(source)
    return tuple(name for name, pattern in _COMPILED.items() if pattern.search(code))
