"""What GCC says of its own headers is left out, and nothing else."""

from __future__ import annotations

from gpu_runner.supervisor.build.compiler_log import without_header_warnings

OWN = """\
In file included from /usr/lib/gcc/x86_64-linux-gnu/12/include/immintrin.h:49,
                 from kernel.cpp:3:
In function '__m512 _mm512_max_ps(__m512, __m512)',
    inlined from 'void softmax(float*)' at kernel.cpp:52:37:
/usr/lib/gcc/x86_64-linux-gnu/12/include/avx512fintrin.h:13033:10: warning: '__Y' may be used
13033 |   return (__m512) __builtin_ia32_maxps512_mask ((__v16sf) __A,
""".replace("13033 |", " 13033 |")
NOTE = """\
/usr/lib/gcc/x86_64-linux-gnu/12/include/avx512fintrin.h: In function 'void softmax(float*)':
/usr/lib/gcc/x86_64-linux-gnu/12/include/avx512fintrin.h:188:10: note: '__Y' was declared here
  188 |   __m512 __Y = __Y;
"""
THEIRS = """\
kernel.cpp: In function 'void softmax(float*)':
kernel.cpp:7:9: warning: unused variable 'a' [-Wunused-variable]
    7 |   float a;
/usr/lib/gcc/x86_64-linux-gnu/12/include/math.h:1:1: note: declared here
ptxas info    : Used 12 registers
    0 bytes stack frame
"""
ERROR = "In file included from kernel.cpp:1:\n/usr/lib/gcc/a.h:3:1: error: no\n    3 | x\n"


def test_only_warnings_of_its_own_headers_are_left_out() -> None:
    for kept in (THEIRS, ERROR, "", "nvcc fatal   : no\n", "In function 'a':\n"):
        assert without_header_warnings(kept) == kept
        assert without_header_warnings(OWN + NOTE + OWN + kept) == kept
