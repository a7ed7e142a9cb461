"""Rules for torch extensions: the library's global state, Python, and operations they link."""

from __future__ import annotations

import re

from gpu_runner.data.static.case import Rule
from gpu_runner.data.static.words import Words
from gpu_runner.data.torch_operations import NAMESPACES, computes
from gpu_runner.data.verdict import Abi

_OPERATION_SYMBOL = re.compile(r"_ZN2at4_ops(\d+)(\w+)")
_CLASS_SYMBOLS = re.compile(
    r"_ZNK?2at(?:6native|4cuda4blas|4cuda6solver|4cuda6sparse|3cpu|4meta)\w*"
    r"|_ZNK?5torch(?:2nn|3jit|8inductor|6linalg)\w*|_ZNK?2at4cuda24getCurrentCUDABlasHandle\w*"
)
_STATE_SYMBOLS = re.compile(
    r"_ZNK?2at(?:13globalContext|15set_num_threads|11manual_seed)\w*"
    r"|_ZNK?3c104cuda20setCurrentCUDAStream\w*|_ZNK?3c1010Dispatcher\w*|_ZNK?3c1012SetAllocator\w*"
)
_PYTHON_SYMBOLS = re.compile(
    r"PyRun_\w+|PyImport_\w+|PyEval_(?:Eval|Set)\w+|PySys_\w+|PyMarshal_\w+|PyGC_\w+|PyCode_\w+"
    r"|Py_(?:Initialize|Finalize|Compile|Add|AtExit|Main|RunMain|BytesMain)\w*"
)

_PYTHON = (
    r"PyRun_\w+|PyImport_\w+|PyEval_\w+|PyGILState_\w+|PyObject_(?:Call|Get|Set|Vector)\w*|PySys_\w+"
    r"|PyDict_\w+|PyInterpreter\w*|PyThreadState\w*|PyFrame\w*|PyCode\w*|PyMarshal_\w+|PyGC_\w+"
    r"|Py_(?:Initialize|Finalize|Compile|Add|AtExit|Main|RunMain|BytesMain)\w*|_Py\w+|scoped_interpreter"
)
_STATE = (
    r"globalContext|setAllowTF32\w*|setBenchmark\w*|setDeterministic\w*|setFloat32\w*|set_num_threads"
    r"|set_num_interop_threads|manual_seed\w*|getDefaultCUDAGenerator|setCurrentCUDAStream"
    r"|RegisterOperators|Dispatcher|SetAllocator|setAllocator"
    r"|changeCurrentAllocator|setMemoryFraction|CUDAPluggableAllocator"
)
_TORCHS_OWN = rf"TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?(?:\s*\(\s*|_init_){NAMESPACES}(?=[\s,_])\w*"
"""Before the macro, and after it."""


def torch_symbol_sentence(symbol: str, *, libraries: bool) -> str:
    """Why an extension should not need a symbol of torch's or Python's; empty if it may."""
    if _PYTHON_SYMBOLS.fullmatch(symbol):
        return f"python: calls into Python with {symbol!r}"
    if _STATE_SYMBOLS.fullmatch(symbol):
        return f"torch-state: {symbol!r} changes torch for the whole process"
    if libraries:
        return ""
    if match := _OPERATION_SYMBOL.match(symbol):
        operation = match[2][: int(match[1])] if len(match[1]) < 4 else match[2]
        if not computes(operation):
            return ""
        return f"torch-library: calls torch's own 'at::{operation}', which this task does not allow"
    if _CLASS_SYMBOLS.fullmatch(symbol):
        return f"torch-library: calls torch's own {symbol!r}, which this task does not allow"
    return ""


TORCH_RULES = (
    Rule(
        "python",
        "calls into Python from an extension: CPython's functions, `py::exec`, imports",
        Words(
            "calls into Python with {!r}",
            named=_PYTHON,
            odd=r"(?:py|pybind11)\s*::\s*(?:exec|eval|eval_file|globals|initialize_interpreter)"
            r"|(?:py\s*::\s*)?module_?\s*::\s*import",
        ),
    ),
    Rule(
        "torch-state",
        "torch's global settings, its dispatcher, its generators, the current stream",
        Words(
            "{!r} changes torch for the whole process",
            named=_STATE,
            odd=_TORCHS_OWN,
            abi=Abi.TORCH,
        ),
    ),
)
