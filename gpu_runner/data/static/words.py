"""Rules about single words: functions and types that a kernel has no use for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.verdict import Abi

NEVER = r"(?!)"


@dataclass(frozen=True)
class Words:
    """Words that no kernel uses with another meaning, and functions that a library must not need.

    named: a word of the source anywhere but behind `.` or `->`, and a symbol. linked: a symbol
    alone, since a source may use the name for its own function: `read`, `signal`. odd: a word of
    the source that `unless` does not follow.
    """

    sentence: str  # with {} for the word
    named: str = NEVER
    linked: str = NEVER
    odd: str = NEVER
    unless: str = NEVER
    only_without_libraries: bool = False
    abi: Abi | None = None  # the only one that it is about

    def matches(self, symbol: str) -> bool:
        """Whether a built library that needs this symbol uses one of the words."""
        return bool(re.fullmatch(f"{self.named}|{self.linked}", symbol))

    def __call__(self, case: Case) -> Iterator[Finding]:
        if self.only_without_libraries and case.task.libraries:
            return
        if self.abi not in (None, case.abi):
            return
        named = re.compile(self.named)
        odd = re.compile(rf"{_NO_MEMBER}(?P<word>{self.odd})(?![\w$])(?!{self.unless})")
        for code in case.passes:
            found = [(word, at) for word, at in code.words.items() if named.fullmatch(word)]
            found += [(match["word"], match.start()) for match in odd.finditer(code.plain)]
            for word, at in found:
                yield code.finding(word, at, self.sentence.format(word))


_NO_MEMBER = r"(?<![\w$.])(?<!->)(?:(?<!\w::)|(?<=\breturn::)|(?<=\belse::)|(?<=\bthrow::))"
_NESTED = r"[(\[][^()\[\];]*+[)\]]"
for _ in range(2):
    _NESTED = rf"[(\[](?:[^()\[\];]|{_NESTED})*+[)\]]"
_ARGUMENT = rf"(?:[^(),\[\];]|{_NESTED})*+"
_RIGHT = r"(?:0x)?0*[0-3]"
"""PROT_READ and PROT_WRITE, of what `mmap` may ask; the numbers are Linux's."""
_FLAG = r"(?:0x0*(?:2|20|22|4000|8000|20000|40000)|(?:21|30)[uU]?\s*<<\s*26)"
"""MAP_PRIVATE, _ANONYMOUS, _NORESERVE, _POPULATE, _STACK, _HUGETLB, _HUGE_2MB and _HUGE_1GB."""


def _joined(number: str) -> str:
    """Numbers joined by `|`, in brackets or not."""
    return rf"[\s()]*{number}(?:[\s()]*\|[\s()]*{number})*[\s()]*"


_PRIVATE_MEMORY = (
    rf"\s*\({_ARGUMENT},{_ARGUMENT},{_joined(_RIGHT)},{_joined(_FLAG)},{_ARGUMENT},{_ARGUMENT}\)"
)
_ARCH_PRCTL = r"\s*\(\s*158\s*,"  # its number on x86-64: it gives a process its AMX tiles
_VENDORS = r"(?:cublas|cudnn|cusparse|cufft|cusolver|cutensor)(?:Lt|Xt|Dn|Sp|Mg)?[A-Z]\w*"
_CPU_LIBRARIES = r"cblas_\w+|mkl_\w+|dnnl_\w+|LAPACKE_\w+"
_HANDED_OVER = (
    r"cudaEvent(?:ElapsedTime|Record|Synchronize)(?:WithFlags|_v2)?|clock_gettime|gettimeofday"
    r"|cudaDeviceSynchronize|cudaStreamSynchronize|cuEvent(?:ElapsedTime|Record)(?:_v2)?"
)


def symbol_sentence(symbol: str, *, libraries: bool) -> str:
    """Why a built library should not need a C symbol: a rule's name and sentence, or empty.

    Fortified and large-file variants count as what they stand for: `__read_chk`, `fopen64`.
    """
    plain = re.sub(r"^_+(?=\w+_(?:chk|2)$)", "", symbol)
    plain = re.sub(r"(?:_chk|64_2|_2|64)$", "", plain)
    for rule in WORD_RULES:
        words = rule.find
        if not isinstance(words, Words) or (words.only_without_libraries and libraries):
            continue
        if words.matches(symbol) or words.matches(plain):
            return f"{rule.name}: {words.sentence.format(symbol)}"
    return ""


WORD_RULES = (
    Rule(
        "vendor-library",
        "calls to cuBLAS, cuDNN, cuSPARSE, cuFFT, cuSOLVER, cuTENSOR, cuRAND's host side, NCCL, "
        "NPP, CBLAS, MKL, oneDNN, unless the task allows libraries. CUB, Thrust and CUTLASS are "
        "allowed: their source is compiled into the kernel",
        Words(
            "uses {!r} of a vendor's library, which this task does not allow",
            named=rf"{_VENDORS}|{_CPU_LIBRARIES}|CUBLAS_\w+|CUDNN_\w+|CUSPARSE_\w+|CUFFT_\w+"
            r"|curand(?:Create|Generate|Set)[A-Z]?\w*|nccl[A-Z]\w*|npp[is]?[A-Z]\w*"
            r"|getCurrentCUDA(?:Blas|Sparse|Solver)\w*|getCudnnHandle",
            linked=r"[sdcz](?:gemm|gemv|syrk|trsm|axpy|dot)_",
            only_without_libraries=True,
        ),
    ),
    Rule(
        "code-at-run-time",
        "NVRTC, nvJitLink, the PTX compiler, and modules and libraries loaded from data",
        Words(
            "loads or compiles device code at run time with {!r}",
            named=r"nvrtc\w+|nvJitLink\w+|nvPTXCompiler\w+|cuModule(?:Load|GetFunction)\w*"
            r"|cuLibrary(?:Load|Get)\w*|cudaLibrary(?:Load|Get)\w*|cuLink(?:Create|Add)\w*",
        ),
    ),
    Rule(
        "dynamic-loading",
        "dlopen and similar functions, walks over loaded objects, and the linker's tables",
        Words(
            "{!r} finds or loads code behind the linker's back",
            named=r"dlopen|dlmopen|dlsym|dlvsym|dladdr1?|dlinfo|dlfunc|dl_iterate_phdr"
            r"|__libc_dl\w+|__libc_stack_end|_rtld_global\w*|_dl_\w+|link_map|_r_debug|r_debug|_GLOBAL_OFFSET_TABLE_|_DYNAMIC"
            r"|getauxval|Elf(?:32|64)_\w+|ElfW|R_X86_64_\w+|R_AARCH64_\w+",
        ),
    ),
    Rule(
        "driver-entry-point",
        "driver functions looked up by name, except encoders of tensor maps (cuTensorMap...)",
        Words(
            "looks up a driver function other than an encoder of tensor maps with {!r}",
            odd=r"cudaGetDriverEntryPoint\w*|cuGetProcAddress\w*",
            unless=r'\s*\(\s*"cuTensorMap',
        ),
    ),
    Rule(
        "processes",
        "fork, exec, system, ptrace, signals and their handlers, raw system calls except the one "
        "that asks Linux for AMX",
        Words(
            "{!r} acts on processes or makes raw system calls",
            named=r"vfork|posix_spawnp?|popen|exec(?:l|lp|le|v|ve|vp|vpe|veat)|fexecve|ptrace"
            r"|process_vm_\w+|process_madvise|pidfd_\w+|prctl|seccomp|setns|unshare|chroot"
            r"|pivot_root|sigaction|sigaltstack|tgkill|prlimit(?:64)?|setrlimit(?:64)?"
            r"|sched_setscheduler|setpriority|SYS_(?!arch_prctl\b)[a-z]\w*|__NR_(?!arch_prctl\b)\w+|io_uring_\w+|perf_event_open",
            linked=r"fork|clone3?|system|kill|signal|mount|umount2?|bpf|nice",
            odd="syscall",
            unless=_ARCH_PRCTL,
        ),
    ),
    Rule(
        "memory-rights",
        "mprotect, mremap, mappings other than private read-write memory, memory shared with other "
        "processes",
        Words(
            "{!r} changes how memory may be used, or who shares it",
            named=r"mprotect|pkey_(?:mprotect|alloc|set)|mremap|mseal|PROT_EXEC|PROT_GROWS\w+"
            r"|MAP_FIXED\w*|MREMAP_\w+|READ_IMPLIES_EXEC|memfd_create|memfd_secret"
            r"|shm_open|shmget|shmat|userfaultfd|remap_file_pages|process_mrelease"
            r"|arch_prctl|modify_ldt|cudaIpc\w+|cuIpc\w+"
            r"|cuMem(?:ExportTo|ImportFrom)\w+|cudaImportExternal\w+|cuImportExternal\w+",
            linked=r"personality|iopl|ioperm",
            odd="mmap(?:64)?",
            unless=_PRIVATE_MEMORY,
        ),
    ),
    Rule(
        "files",
        "opening, reading or writing files, and using descriptors by number",
        Words(
            "{!r} reads or writes files or descriptors",
            named=r"fopen(?:64)?|freopen(?:64)?|fdopen|tmpfile|mkstemp|opendir|readlink(?:at)?"
            r"|[io]?fstream|filesystem|openat2?|open64|creat|fstatat|sendfile",
            linked=r"open|read|write|pread(?:64)?|pwrite(?:64)?|readv|writev|fstat|ioctl|fcntl"
            r"|dup[23]?|unlink|rename|mkfifo|fwrite_unlocked",
        ),
    ),
    Rule(
        "network",
        "sockets and name lookups",
        Words(
            "{!r} uses the network",
            named=r"sockaddr\w*|socketpair|getaddrinfo|gethostbyname\w*|inet_(?:pton|ntop|addr|aton)"
            r"|AF_(?:INET6?|UNIX|LOCAL|NETLINK|PACKET|VSOCK|ALG)|SOCK_(?:STREAM|DGRAM|RAW|SEQPACKET)"
            r"|recvmsg|sendmsg|recvfrom|sendto",
            linked=r"socket|connect|send|recv",
        ),
    ),
    Rule(
        "environment",
        "environment variables, the program's name and its stack frames",
        Words(
            "{!r} looks at how the program was started",
            named=r"getenv|secure_getenv|setenv|putenv|unsetenv|clearenv|__?environ|environ"
            r"|program_invocation_\w+|__progname\w*|backtrace_symbols\w*|_Unwind_Backtrace"
            r"|__builtin_(?:frame|return)_address|__builtin_extract_return_addr",
        ),
    ),
    Rule(
        "sleeps",
        "sleeps in host code, which let a device cool down or its clock rise",
        Words(
            "{!r} sleeps",
            named=r"sleep_for|sleep_until|usleep|clock_nanosleep|timer_create|setitimer",
            linked=r"sleep|nanosleep|alarm",
        ),
    ),
    Rule(
        "host-callbacks",
        "host functions that a stream or a graph calls, possibly after the kernel's call has ended",
        Words(
            "{!r} lets the device call the host later",
            named=r"(?:cuda|cu)LaunchHostFunc\w*|(?:cuda|cu)StreamAddCallback"
            r"|(?:cuda|cu)GraphAddHostNode",
        ),
    ),
    Rule(
        "device-state",
        "persisting L2, context limits, resets, device clocks (NVML), CUPTI",
        Words(
            "{!r} changes the device's state beyond a call",
            named=r"\w*[aA]ccessPolicyWindow\w*|cudaLimit\w+|CU_LIMIT_\w+|cudaAccessProperty\w*"
            r"|CU_ACCESS_PROPERTY_\w+|cudaCtxResetPersistingL2Cache|cuCtxResetPersistingL2Cache"
            r"|cudaDeviceSetLimit|cuCtxSetLimit|cudaDeviceReset|cuDevicePrimaryCtx\w+"
            r"|cudaSetDeviceFlags|cuCtx(?:Create|Destroy|SetCurrent|PushCurrent|PopCurrent)\w*"
            r"|nvml[A-Z]\w+|cupti[A-Z]\w+|CUPTI_\w+|cudaProfiler\w+",
        ),
    ),
    Rule(
        "interposition",
        "taking the address of a runtime or clock function, which may only be called",
        Words("uses {!r} without calling it", odd=_HANDED_OVER, unless=r"\s*\("),
    ),
)
