"""Whose work it was: the places of a process's threads, as the names of those who did it."""

from __future__ import annotations

import functools
import mmap
import re
import struct
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Protocol

from gpu_runner.data.rounding import three_digits
from gpu_runner.data.task import Workload
from gpu_runner.data.torch_operations import computes
from gpu_runner.supervisor.build.elf import Library, NotALibrary
from gpu_runner.supervisor.host import maps
from gpu_runner.supervisor.work.mapped import INSTALLED
from gpu_runner.supervisor.work.onlooker import Place

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_FULL, _DYNAMIC, _LOAD = 2, 11, 1  # SHT_SYMTAB, SHT_DYNSYM and PT_LOAD of elf.h
_X86_64 = 62  # EM_X86_64 of elf.h
_CALL, _CALL_THROUGH, _NEAR = 0xE8, 0xFF, 2  # opcodes of x86, and what makes the latter a call
_SYMBOL_BYTES = 24  # three words: name, type and section; address; size


class Symbols:
    """The functions of one file of this host, which nobody but its administrator writes."""

    def __init__(self, path: Path) -> None:
        """Read the table that debuggers read, else the one that loaders do.

        Raises `OSError`, or `ValueError` or `struct.error` for what is no ELF file.
        """
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        header = struct.unpack_from("<4sBB10xHHIQQQIHHHHHH", self._data)
        if header[0] != b"\x7fELF":
            raise ValueError("not an ELF file")
        self._machine = header[4]
        self._segments = [
            _SEGMENT.unpack_from(self._data, header[7] + i * _SEGMENT.size)
            for i in range(header[12])
        ]
        sections = [
            _SECTION.unpack_from(self._data, header[8] + i * _SECTION.size)
            for i in range(header[14])
        ]
        tables = [s for kind in (_FULL, _DYNAMIC) for s in sections if s[1] == kind]
        words = array("Q")
        self._names = 0
        if tables:
            begin, size = tables[0][4], tables[0][5]
            words.frombytes(self._data[begin : begin + size // _SYMBOL_BYTES * _SYMBOL_BYTES])
            self._names = sections[tables[0][6]][4]
        # Half a million of them: slices are quick, and a loop is not.
        self._heads, values, self._sizes = words[0::3], words[1::3], words[2::3]
        self._order = sorted(
            (i for i, size in enumerate(self._sizes) if size), key=values.__getitem__
        )
        self._values = array("Q", map(values.__getitem__, self._order))

    def name(self, offset: int) -> str:
        """The function around a place of the file; empty where none is known."""
        address = self._address(offset)
        at = bisect_right(self._values, address) - 1
        if at < 0 or address >= self._values[at] + self._sizes[self._order[at]]:
            return ""
        start = self._names + (self._heads[self._order[at]] & 0xFFFFFFFF)
        return self._data[start : self._data.find(b"\0", start)].decode(errors="replace")

    def follows_call(self, offset: int) -> bool:
        """Whether a call's instruction ends there, so that it may return to this place."""
        if self._machine != _X86_64:
            return True
        before = self._data[max(offset - 7, 0) : offset]
        return len(before) == 7 and (
            before[2] == _CALL or any(_is_indirect(before[at:]) for at in (0, 1, 4, 5))
        )

    def _address(self, offset: int) -> int:
        for kind, _, place, address, _, size, _, _ in self._segments:
            if kind == _LOAD and place <= offset < place + size:
                return int(offset - place + address)
        return 0


def _is_indirect(code: bytes) -> bool:
    """Whether it begins as a call through a register or memory does."""
    return code[0] == _CALL_THROUGH and (code[1] >> 3) & 7 == _NEAR


@functools.lru_cache(maxsize=16)
def symbols_of(path: Path) -> Symbols | None:
    """The functions of a file; None where it cannot be read."""
    try:
        return Symbols(path)
    except (OSError, ValueError, IndexError, struct.error):
        return None


def name_of(path: str, offset: int) -> str:
    """The function at a place of a file; empty where none is known."""
    symbols = symbols_of(Path(path))
    return symbols.name(offset) if symbols else ""


def may_return_to(path: str, offset: int) -> bool:
    """Whether a frame's return address may be that place of a file; also where it is not known."""
    symbols = symbols_of(Path(path))
    return symbols is None or symbols.follows_call(offset)


_NOBODY, _OWN, _TORCH = "", "own", "torch"
_SERVES_ALL = re.compile(
    r"(?:bwrap|ld-linux|libc10|libtorch_(?:python|global_deps)|libtorch\.so|libshm|libpython|python\d|libtbb"
    r"|lib(?:c|m|mvec|dl|rt|pthread|stdc\+\+|gcc_s|atomic|gomp|i?omp5?|z|lzma|ffi|cuda|cudart|cupti)[.-]).*"
)
"""Files of the host that work for whoever calls them, and so for nobody in particular."""
_SERVES_ITS_CALLER = re.compile(r"lib(?:c|m|mvec|stdc\+\+|atomic|gomp|i?omp5?|tbb\w*)[.-].*")
"""Of these: copies, functions of mathematics, and a team that waits for its last thread."""
_SERVES_COMPILERS = re.compile(
    r"/(?:numba|llvmlite|triton|lib-dynload|cupy|cupy_backends|nvidia_cutlass_dsl|tilelang|tvm_ffi)/"
    r"|/cuda/(?:bindings|core|tile)/|/_cffi_backend\.|/libnvrtc|/libnvJitLink"
)
_INDUCTOR = (b"_TORCHINDUCTOR_", b"AOTInductor")
"""Words in the libraries that `torch.compile` makes, in whatever folder a module keeps these."""
_LIBTORCH = re.compile(r"libtorch_\w+\.so.*")
_NUMPY, _NUMPY_CORE = "/numpy/", "_multiarray_umath."
_DIGEST = re.compile(r"-[0-9a-f]{6,}")

_OPERATION = re.compile(r"_ZN2at4_ops(\d+)(\w+)")
_COPIES = re.compile(
    r"direct_copy_kernel|reduced_float_(?:type_)?copy_kernel|\d+copy_kernel|copy_same_type_transpose"
    r"|6fbgemm\d+B?[Ff]loat\w*To\w*[Ff]loat|\d(?:fill|cat_serial|stack_serial)_kernel|CatKernel"
    r"|\d(?:arange|random|bitwise_or)_kernel"
)
_MATHEMATICS = re.compile(r"(?:_ZGV\w+_)?Sleef_\w+")
"""Functions like those of libm that torch's library has, also for extensions."""
_LOOP = re.compile(r"_kernel|ectorized|loop_2d_from_1d|parallel_for")
"""What a loop's name has; others of the same library describe tensors."""
_NUMPY_COPIES = re.compile(
    r"(?i)^(?!.*sum_of_products).*(?:strided|contig|copy|cast|fill|alloc|clear)"
)
_LIBRARIES_WITHIN = {
    "MKL": re.compile(
        r"_?mkl_\w+|MKL_\w+|vm[ls]\w+|[sdcz]gem[mv]_\w*|own\w*DFT\w*|compute_(?:col|row)\w+|Dfti\w+"
    ),
    "oneDNN": re.compile(r"_ZN?K?(?:St\w+)?.*4dnnl4impl\w*"),
    "FBGEMM": re.compile(r"_ZNK?6fbgemm\w*"),
    "XNNPACK": re.compile(r"xnn_\w+|nnp_\w+|pytorch_q8\w+"),
    "Gloo": re.compile(r"_ZNK?4gloo\w*"),
}
"""What torch's library has of other libraries, which it calls for arithmetic alone."""
_ARITHMETIC = re.compile(r"\w*6native\w*|\w*Vectorized\w*|_ZN2at7cpublas\w*")
"""A loop in an iterator's function is named after both: there, `at` is only referred to."""
_VENDORS = re.compile(
    r"\w*(?:cblas|LAPACKE|openblas)_\w+|mkl_\w+|dnnl_\w+|[sdcz]gemm_|cublas\w+|cudnn\w+|_ZN2at4_ops\w+"
)
"""Functions that a file offers which is a library, whatever it is called."""


class Code(Protocol):
    """What is mapped in a process: see `CodeMap`."""

    def find(self, address: int) -> maps.Mapping | None:
        """The code at an address."""

    def of_files(self, names: re.Pattern[str]) -> list[maps.Mapping]:
        """The code of files whose names match."""

    def content(self, path: str) -> bytes:
        """A mapped file's bytes."""


_UNLISTED = "unlisted sizes"


def told_name(workload: Workload) -> str:
    """What a workload is called where an author may read it."""
    return _UNLISTED if workload.hidden else workload.name


@dataclass
class Worked:
    """How often threads were seen at the kernel's own work, and at each library's.

    What only prepares memory, waits, or runs Python is neither. is_sampled: the numbers count
    chance looks; else they are a device's ns, and exact. slower: how much longer calls took than
    those that were timed, once the process could know that it is watched.
    """

    is_sampled: bool = True
    own: int = 0
    libraries: Counter[str] = field(default_factory=Counter)
    workload: str = ""
    slower: float = 1.0

    @property
    def seen(self) -> int:
        """How often any work was seen."""
        return self.own + self.libraries.total()

    def told(self) -> Worked:
        """The part its author may read. Names and exact counts could leak unlisted sizes."""
        if self.workload != _UNLISTED:
            return self
        theirs = Counter(libraries=int(three_digits(self.libraries.total())))
        return replace(self, own=int(three_digits(self.own)), libraries=+theirs)

    def with_more(self, other: Worked) -> Worked:
        """Both together, as of two processes."""
        return Worked(
            own=self.own + other.own,
            libraries=self.libraries + other.libraries,
            workload=other.workload,
            slower=max(self.slower, other.slower),
        )


class Attribution:
    """Attributes places to whoever works there."""

    def __init__(self, codes: Mapping[int, Code], ours: Collection[str] = ()) -> None:
        """`codes` as places name them; `ours` are files of ours, whose work is nobody's."""
        self._codes, self._ours = codes, frozenset(ours)
        self._torch = {number: code.of_files(_LIBTORCH) for number, code in codes.items()}
        self._workers: dict[tuple[str, int, str], str] = {}

    def of(self, looks: Iterable[Sequence[Place]]) -> Worked:
        """Count each place of each look."""
        found = Worked()
        for look in looks:
            called = list(dict.fromkeys(name for place in look for name in self._called(place)))
            for place in look:
                worker = self._worker(place, called)
                if worker == _OWN:
                    found.own += 1
                elif worker:
                    found.libraries[worker] += 1
        return found

    def _worker(self, place: Place, called: Sequence[str]) -> str:
        """Whose work a thread does; `called` are torch's operations on the stacks of the look."""
        mapping = self._codes[place.code].find(place.at)
        if mapping is None:
            return _NOBODY
        if place.is_idle:  # of a pool, or in an operation that waits for its team
            return _computed(list(self._called(place)))
        is_mathematics = self._is_mathematics(place, mapping)
        if not mapping.path or is_mathematics or _serves_its_caller(mapping.path):
            caller = self._caller(place, is_compiled=not mapping.path)
            within = caller if caller in _LIBRARIES_WITHIN else _NOBODY
            if is_mathematics and caller == _TORCH:
                within = "libtorch"
            return _computed(called) or within if within or caller == _TORCH else caller
        worker = self._worker_of(place.code, mapping)
        if worker == _TORCH:
            return _within_torch(_name(mapping, place.at), called)
        if _NUMPY_CORE in mapping.path and _NUMPY_COPIES.search(_name(mapping, place.at)):
            return _NOBODY
        return worker

    def _is_mathematics(self, place: Place, mapping: maps.Mapping) -> bool:
        is_torchs = bool(mapping.path) and self._worker_of(place.code, mapping) == _TORCH
        return is_torchs and bool(_MATHEMATICS.match(_name(mapping, place.at)))

    def _caller(self, place: Place, *, is_compiled: bool) -> str:
        """For whom a thread works, by the first frame on its stack that is somebody's.

        is_compiled: it works in what was compiled in this process, which its own compiler or a
        library's may have done.
        """
        for word in place.stack:
            mapping = self._codes[place.code].find(word - 1)
            if mapping is None or _serves_its_caller(mapping.path):
                continue
            if not self._is_frame(mapping, word):
                continue
            if mapping.path:
                worker = self._worker_of(place.code, mapping)
                if worker == _TORCH and is_compiled:
                    return _library_within(_name(mapping, word - 1)) or worker
                return worker or (_OWN if is_compiled else _NOBODY)
            if not is_compiled:
                return _OWN
        return _OWN if is_compiled else _NOBODY

    def _called(self, place: Place) -> Iterator[str]:
        """Operations of torch whose frames are on a thread's stack, the innermost first."""
        for mapping in self._torch[place.code]:
            for word in [w for w in place.stack if mapping.low < w <= mapping.high]:
                match = _OPERATION.match(_name(mapping, word - 1))
                if match and self._is_frame(mapping, word):
                    yield match[2][: int(match[1])]

    def _is_frame(self, mapping: maps.Mapping, word: int) -> bool:
        """Whether a word on a stack may be a return address, as far as the file is the host's."""
        is_ours = mapping.path.startswith(INSTALLED)
        return not is_ours or may_return_to(mapping.path, _offset(mapping, word))

    def _worker_of(self, code: int, mapping: maps.Mapping) -> str:
        """Whose a file is: nobody's, a library's, torch's, which does many things, or its own."""
        key = mapping.device, mapping.inode, mapping.path
        known = self._workers.get(key)
        if known is None:
            known = self._workers[key] = self._told(code, mapping.path)
        return known

    def _told(self, code: int, path: str) -> str:
        name = PurePath(path).name
        if path in self._ours or path.startswith("["):  # such as [vdso]
            return _NOBODY
        if not path.startswith(INSTALLED):
            content = self._codes[code].content(path)
            if any(word in content for word in _INDUCTOR):
                return "torch.compile"
            return _copied(content) or _OWN
        if _LIBTORCH.fullmatch(name) and not _SERVES_ALL.fullmatch(name):
            return _TORCH
        if _SERVES_ALL.fullmatch(name) or _SERVES_COMPILERS.search(path):
            return _NOBODY
        return "numpy" if _NUMPY in path else _DIGEST.sub("", name.partition(".")[0]).strip("_-")


def _name(mapping: maps.Mapping, address: int) -> str:
    return name_of(mapping.path, _offset(mapping, address))


def _offset(mapping: maps.Mapping, address: int) -> int:
    return address - mapping.low + mapping.offset


def _within_torch(name: str, called: Sequence[str]) -> str:
    """Whose work a function of torch's library is; `name` is empty where the file does not tell.

    A stack may hold what was called before, or what a kernel has put there, so that what copies by
    its own name is no arithmetic, and a loop that does not is not the work of what only copies.
    """
    if _COPIES.search(name):
        return _NOBODY
    if library := _library_within(name):
        return _computed(called) or library
    if name and not _ARITHMETIC.match(name):
        if not name.startswith("_Z"):  # in C: of another library that torch's has, see above
            return _computed(called)
        return _NOBODY  # it allocates, looks for the right function, or starts threads
    is_plumbing = bool(called) and not _LOOP.search(name)
    return _computed(called) or (_NOBODY if is_plumbing else "libtorch")


def _library_within(name: str) -> str:
    """Which library a function of torch's library belongs to; empty where that is torch itself."""
    return next((of for of, pattern in _LIBRARIES_WITHIN.items() if pattern.match(name)), "")


def _serves_its_caller(path: str) -> bool:
    """Whether what a file of the host does is its caller's work; others' names say nothing."""
    return path.startswith(INSTALLED) and bool(_SERVES_ITS_CALLER.fullmatch(PurePath(path).name))


def _computed(called: Sequence[str]) -> str:
    """The outermost operation that computes, as its users know it; nobody's if there is none."""
    outermost = next((name for name in reversed(called) if computes(name)), "")
    return f"aten::{outermost}" if outermost else _NOBODY


def _copied(content: bytes) -> str:
    """What a file is that offers a library's functions; empty if it is none."""
    try:
        symbols = Library(content).symbols if content else []
    except NotALibrary:
        return ""
    name = next((s.name for s in symbols if s.defined and _VENDORS.fullmatch(s.name)), "")
    return f"a copy of a library (it has {name[:60]!r})" if name else ""
