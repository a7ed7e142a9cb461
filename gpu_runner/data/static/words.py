"""Rules about single words: functions and types that a kernel has no use for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpu_runner.data.static import names
from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.static.mappings import odd_mappings
from gpu_runner.data.static.scopes import MEMBER
from gpu_runner.data.static.tokens import Kind, Token, text_at

_BEHIND_VALUES = {";", ",", ")", "}", "]"}
_SYSTEM_NAMESPACES = {"std", "cuda"}


@dataclass(frozen=True)
class _Words:
    """Words that no kernel uses by another meaning, and words that count only where called.

    named: a match anywhere but behind `.` or `->`. called: a match before `(`, or without it where
    nothing else can be meant, unless the name is the source's own or another namespace's.
    """

    sentence: str  # with {} for the word
    named: str = r"(?!)"
    called: str = r"(?!)"
    only_without_libraries: bool = False
    beside: Callable[[Case], Iterable[Finding]] | None = None  # of the same rule

    def matches(self, symbol: str) -> bool:
        """Whether a built library that needs this symbol uses one of the words."""
        return bool(re.fullmatch(f"{self.named}|{self.called}", symbol))

    def __call__(self, case: Case) -> Iterator[Finding]:
        if self.only_without_libraries and case.task.libraries:
            return
        yield from self.beside(case) if self.beside else ()
        named = {word for word in case.words if re.fullmatch(self.named, word)}
        called = {word for word in case.words if re.fullmatch(self.called, word)}
        for stream, i in case.places(named | called):
            word = stream[i].text
            if text_at(stream, i - 1) not in MEMBER and (
                word in named or _is_call(case, stream, i) or _is_handed_over(case, stream, i)
            ):
                yield Finding(word, stream[i].line, self.sentence.format(word))


def _is_call(case: Case, stream: Sequence[Token], i: int) -> bool:
    if text_at(stream, i + 1) != "(" or names.initialises_member(stream, i):
        return False
    return _is_of_the_system(case, stream, i)


def _is_handed_over(case: Case, stream: Sequence[Token], i: int) -> bool:
    """Whether a function is used without a call of it here: `auto f = system;`, `run(&system)`."""
    if text_at(stream, i + 1) not in _BEHIND_VALUES or stream is case.unit.written:
        return False  # as written, macros take names apart from their arguments
    qualified = text_at(stream, i - 1) == "::"
    return (qualified or not case.perhaps_its_own(stream, i)) and _is_of_the_system(case, stream, i)


def _is_of_the_system(case: Case, stream: Sequence[Token], i: int) -> bool:
    """Whether the name at `i` can be the C library's: neither the source's own nor qualified."""
    name = stream[i].text
    if text_at(stream, i - 1) != "::":
        return not case.calls_its_own(stream, i)
    before = text_at(stream, i - 2)
    if not names.is_namespace(before):
        return name not in case.defined  # of the global namespace, which has no lambdas
    return before in _SYSTEM_NAMESPACES


_VENDORS = r"(?:cublas|cudnn|cusparse|cufft|cusolver|cutensor)(?:Lt|Xt|Dn|Sp|Mg)?[A-Z]\w*"
_CPU_LIBRARIES = r"cblas_\w+|mkl_\w+|dnnl_\w+|LAPACKE_\w+"
_CLOCKS = (
    r"cudaEvent(?:ElapsedTime|Record|Synchronize|Query|Create|Destroy)(?:WithFlags|_v2)?"
    r"|cudaStream(?:Synchronize|WaitEvent|Query)|cudaDeviceSynchronize|cudaLaunch\w+"
    r"|cudaMemcpy(?:Async)?|cudaMalloc(?:Async)?|cudaFree(?:Async)?|cudaGetLastError"
    r"|cu(?:Event|Launch|Stream)[A-Z]\w+|clock_gettime|gettimeofday|pthread_create|__cxa_\w+"
)
_HANDED_OVER = (
    r"cudaEvent(?:ElapsedTime|Record|Synchronize)(?:WithFlags|_v2)?|clock_gettime|gettimeofday"
    r"|cudaDeviceSynchronize|cudaStreamSynchronize|cuEvent(?:ElapsedTime|Record)(?:_v2)?"
)


def _interposed(case: Case) -> Iterable[Finding]:
    """Definitions of what measures or synchronises, and its address taken."""
    for name, line in case.defined.items():
        if re.fullmatch(_CLOCKS, name):
            yield Finding(name, line, f"defines {name!r}, which the clock or the runtime calls")
    handed_over = {word for word in case.words if re.fullmatch(_HANDED_OVER, word)}
    for stream, i in case.places(handed_over):
        if stream is case.unit.written:  # there, macros take names apart from their arguments
            continue
        if text_at(stream, i + 1) != "(" and text_at(stream, i - 1) not in MEMBER:
            word = stream[i].text
            yield Finding(word, stream[i].line, f"takes {word!r} without calling it")


def _entry_points(case: Case) -> Iterable[Finding]:
    """Driver functions looked up by name; encoders of tensor maps are found in no other way."""
    pattern = r"cudaGetDriverEntryPoint\w*|cuGetProcAddress\w*"
    for stream, i in case.places({word for word in case.words if re.fullmatch(pattern, word)}):
        wanted = [token.text for token in stream[i + 1 : i + 3] if token.kind is Kind.STRING]
        if not wanted or not wanted[0].startswith("cuTensorMap"):
            what = f"looks up {wanted[0]!r}" if wanted else "looks up a computed name"
            yield Finding(stream[i].text, stream[i].line, f"{what} in the driver")


def symbol_sentence(symbol: str, *, libraries: bool) -> str:
    """Why a built library should not need a C symbol: a rule's name and sentence, or empty.

    Fortified and large-file variants count as what they stand for: `__read_chk`, `fopen64`.
    """
    plain = re.sub(r"^_+(?=\w+_(?:chk|2)$)", "", symbol)
    plain = re.sub(r"(?:_chk|64_2|_2|64)$", "", plain)
    for rule in WORD_RULES:
        words = rule.find
        if not isinstance(words, _Words) or (words.only_without_libraries and libraries):
            continue
        if words.matches(symbol) or words.matches(plain):
            return f"{rule.name}: {words.sentence.format(symbol)}"
    return ""


WORD_RULES = (
    Rule(
        "vendor-library",
        "calls of cuBLAS, cuDNN, cuSPARSE, cuFFT, cuSOLVER, cuTENSOR, cuRAND's host side, NCCL, "
        "NPP, CBLAS, MKL, oneDNN, unless the task allows libraries; CUB, Thrust and CUTLASS are "
        "source that is compiled into the kernel, and allowed",
        _Words(
            "uses {!r} of a vendor's library, which this task does not allow",
            named=rf"{_VENDORS}|{_CPU_LIBRARIES}|CUBLAS_\w+|CUDNN_\w+|CUSPARSE_\w+|CUFFT_\w+"
            r"|curand(?:Create|Generate|Set)[A-Z]?\w*|nccl[A-Z]\w*|npp[is]?[A-Z]\w*"
            r"|getCurrentCUDA(?:Blas|Sparse|Solver)\w*|getCudnnHandle",
            called=r"[sdcz](?:gemm|gemv|syrk|trsm|axpy|dot)_",
            only_without_libraries=True,
        ),
    ),
    Rule(
        "code-at-run-time",
        "NVRTC, nvJitLink, the PTX compiler, modules and libraries loaded from data",
        _Words(
            "loads or compiles device code at run time by {!r}",
            named=r"nvrtc\w+|nvJitLink\w+|nvPTXCompiler\w+|cuModule(?:Load|GetFunction)\w*"
            r"|cuLibrary(?:Load|Get)\w*|cudaLibrary(?:Load|Get)\w*|cuLink(?:Create|Add)\w*",
        ),
    ),
    Rule(
        "dynamic-loading",
        "dlopen and its kin, walks over loaded objects, the linker's tables",
        _Words(
            "{!r} finds or loads code behind the linker's back",
            named=r"dlopen|dlmopen|dlsym|dlvsym|dladdr1?|dlinfo|dlfunc|dl_iterate_phdr"
            r"|__libc_dl\w+|__libc_stack_end|_rtld_global\w*|_dl_\w+|link_map|_r_debug|r_debug|_GLOBAL_OFFSET_TABLE_|_DYNAMIC"
            r"|getauxval|Elf(?:32|64)_\w+|ElfW|R_X86_64_\w+|R_AARCH64_\w+",
        ),
    ),
    Rule(
        "driver-entry-point",
        "driver functions looked up by name, but for encoders of tensor maps (cuTensorMap...)",
        _entry_points,
    ),
    Rule(
        "processes",
        "fork, exec, system, ptrace, raw system calls, signals and their handlers",
        _Words(
            "{!r} acts on processes or enters the kernel by hand",
            named=r"vfork|posix_spawnp?|popen|exec(?:l|lp|le|v|ve|vp|vpe|veat)|fexecve|ptrace"
            r"|process_vm_\w+|process_madvise|pidfd_\w+|prctl|seccomp|setns|unshare|chroot"
            r"|pivot_root|sigaction|sigaltstack|tgkill|prlimit(?:64)?|setrlimit(?:64)?"
            r"|sched_setscheduler|setpriority|SYS_[a-z]\w*|__NR_\w+|io_uring_\w+|perf_event_open",
            called=r"fork|clone3?|system|syscall|kill|signal|mount|umount2?|bpf|nice",
        ),
    ),
    Rule(
        "memory-rights",
        "mprotect, mremap, mappings but for private memory that is read and written, "
        "memory shared with other processes",
        _Words(
            "{!r} changes what memory may do, or whose it is",
            named=r"mprotect|pkey_(?:mprotect|alloc|set)|mremap|mseal|PROT_EXEC|PROT_GROWS\w+"
            r"|MAP_FIXED\w*|MREMAP_\w+|READ_IMPLIES_EXEC|memfd_create|memfd_secret"
            r"|shm_open|shmget|shmat|userfaultfd|remap_file_pages|process_mrelease"
            r"|arch_prctl|modify_ldt|cudaIpc\w+|cuIpc\w+"
            r"|cuMem(?:ExportTo|ImportFrom)\w+|cudaImportExternal\w+|cuImportExternal\w+",
            called=r"personality|iopl|ioperm",
            beside=odd_mappings,
        ),
    ),
    Rule(
        "files",
        "files opened, read or written, descriptors used by number",
        _Words(
            "{!r} reads or writes files or descriptors",
            named=r"fopen(?:64)?|freopen(?:64)?|fdopen|tmpfile|mkstemp|opendir|readlink(?:at)?"
            r"|[io]?fstream|filesystem|openat2?|open64|creat|fstatat|sendfile",
            called=r"open|read|write|pread(?:64)?|pwrite(?:64)?|readv|writev|fstat|ioctl|fcntl"
            r"|dup[23]?|unlink|rename|mkfifo|fwrite_unlocked",
        ),
    ),
    Rule(
        "network",
        "sockets and name look-ups",
        _Words(
            "{!r} speaks to a network",
            named=r"sockaddr\w*|socketpair|getaddrinfo|gethostbyname\w*|inet_(?:pton|ntop|addr|aton)"
            r"|AF_(?:INET6?|UNIX|LOCAL|NETLINK|PACKET|VSOCK|ALG)|SOCK_(?:STREAM|DGRAM|RAW|SEQPACKET)"
            r"|recvmsg|sendmsg|recvfrom|sendto",
            called=r"socket|connect|send|recv",
        ),
    ),
    Rule(
        "environment",
        "environment variables, the program's name and its stack frames",
        _Words(
            "{!r} looks at how the program was started",
            named=r"getenv|secure_getenv|setenv|putenv|unsetenv|clearenv|__?environ|environ"
            r"|program_invocation_\w+|__progname\w*|backtrace_symbols\w*|_Unwind_Backtrace"
            r"|__builtin_(?:frame|return)_address|__builtin_extract_return_addr",
        ),
    ),
    Rule(
        "sleeps",
        "sleeps in host code, which let a device cool down or a clock rise",
        _Words(
            "{!r} sleeps",
            named=r"sleep_for|sleep_until|usleep|clock_nanosleep|timer_create|setitimer",
            called=r"sleep|nanosleep|alarm",
        ),
    ),
    Rule(
        "host-callbacks",
        "host functions that a stream or a graph calls, maybe after the kernel's call has ended",
        _Words(
            "{!r} lets the device call the host later",
            named=r"(?:cuda|cu)LaunchHostFunc\w*|(?:cuda|cu)StreamAddCallback"
            r"|(?:cuda|cu)GraphAddHostNode",
        ),
    ),
    Rule(
        "device-state",
        "persisting L2, limits of the context, resets, clocks of the device (NVML), CUPTI",
        _Words(
            "{!r} changes the state of the device beyond a call",
            named=r"\w*[aA]ccessPolicyWindow\w*|cudaLimit\w+|CU_LIMIT_\w+|cudaAccessProperty\w*"
            r"|CU_ACCESS_PROPERTY_\w+|cudaCtxResetPersistingL2Cache|cuCtxResetPersistingL2Cache"
            r"|cudaDeviceSetLimit|cuCtxSetLimit|cudaDeviceReset|cuDevicePrimaryCtx\w+"
            r"|cudaSetDeviceFlags|cuCtx(?:Create|Destroy|SetCurrent|PushCurrent|PopCurrent)\w*"
            r"|nvml[A-Z]\w+|cupti[A-Z]\w+|CUPTI_\w+|cudaProfiler\w+",
        ),
    ),
    Rule(
        "interposition",
        "own definitions of the runtime's and the clock's functions, and their addresses",
        _interposed,
    ),
)
