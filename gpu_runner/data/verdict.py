"""The words for what happened to an evaluation, and for the ways to ask for one."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Outcome of an evaluation. Every value but SYSTEM_ERROR is the author's."""

    CORRECT = "CORRECT"
    COMPILED = "COMPILED"  # mode `compile` only: it built, and nothing was run or verified
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    WRONG_RESULT = "WRONG_RESULT"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIME_LIMIT = "TIME_LIMIT"
    MEMORY_LIMIT = "MEMORY_LIMIT"
    VIOLATION = "VIOLATION"
    TOO_SLOW = "TOO_SLOW"  # of a run's candidate alone: it could not beat the run's best any more
    UNSTABLE = "UNSTABLE"
    SYSTEM_ERROR = "SYSTEM_ERROR"


class Mode(StrEnum):
    """How much of the protocol an evaluation runs."""

    COMPILE = "compile"
    TEST = "test"
    QUICK = "quick"
    RANKED = "ranked"
    PROFILE = "profile"  # as quick, and then a profile: what an optimiser learns from
    AUDIT = "audit"  # as ranked with new seeds, and then sanitizers and a profiler's own clock


class Stage(StrEnum):
    """Steps of an evaluation, in the order in which a page shows them."""

    BUILD = "build"
    DEVICE = "device"  # waiting for the device to be free
    PREPARE = "prepare"  # the oracle reads the task and describes its workloads
    CHECK = "check"  # a few verified calls, before anything is timed
    BASELINES = "baselines"
    MEASURE = "measure"
    VERIFY = "verify"
    PROFILE = "profile"  # mode `profile` only
    AUDIT = "audit"  # mode `audit` only


class Direction(StrEnum):
    """Which function of a task a kernel implements."""

    FORWARD = "forward"
    BACKWARD = "backward"


class Abi(StrEnum):
    """How the runner calls a kernel."""

    TORCH = "torch"
    C = "c"


class Language(StrEnum):
    """Source language of a solution; it decides the kinds of device that can run it."""

    CUDA = "cuda"
    CPP = "cpp"
    PYTHON = "python"

    @property
    def label(self) -> str:
        return {Language.CUDA: "CUDA C++", Language.CPP: "C++", Language.PYTHON: "Python"}[self]

    @property
    def suffix(self) -> str:
        """File name suffix, with the dot."""
        return {Language.CUDA: ".cu", Language.CPP: ".cpp", Language.PYTHON: ".py"}[self]

    @property
    def device_kinds(self) -> tuple[DeviceKind, ...]:
        """The kinds of device on which sources in this language run."""
        compiled = {Language.CUDA: DeviceKind.CUDA, Language.CPP: DeviceKind.CPU}
        return (compiled[self],) if self in compiled else tuple(DeviceKind)


class DeviceKind(StrEnum):
    """Kinds of device that a runner can own."""

    CUDA = "cuda"
    CPU = "cpu"

    @property
    def language(self) -> Language:
        """The language that is compiled for this kind of device: of our own kernels, and most."""
        return Language.CUDA if self is DeviceKind.CUDA else Language.CPP

    @property
    def languages(self) -> tuple[Language, ...]:
        """All languages of kernels for this kind of device, the compiled one first."""
        return (self.language, Language.PYTHON)
