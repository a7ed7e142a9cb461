"""Rules for torch extensions: the library's own kernels, its global state, and Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.static.tokens import Kind, Token, text_at
from gpu_runner.data.verdict import Abi

OPERATIONS = re.compile(
    r"""matmul|mm|bmm|addmm|addbmm|baddbmm|addmv|mv|dot|vdot|inner|outer|ger|addr|einsum|tensordot
    |chain_matmul|kron|_?scaled_mm|_int_mm|linear|bilinear|_?convolution\w*|conv(?:_transpose)?[123]d
    |(?:cudnn|mkldnn|miopen)_\w+|_?(?:log_)?softmax|softmin|_?softplus|relu6?|prelu|rrelu|gelu|silu|mish
    |selu|celu|elu|glu|leaky_relu|hard(?:tanh|sigmoid|swish)|sigmoid|tanh|threshold|normalize
    |(?:native_)?(?:layer|batch|group)_norm|instance_norm|(?:_fused_)?rms_norm|local_response_norm
    |(?:fractional_)?(?:max|avg|lp)_pool[123]d\w*|adaptive_\w+_pool[123]d|cross_entropy(?:_loss)?
    |nll_loss\w*|\w+_loss|dropout|feature_dropout|embedding(?:_bag)?|scaled_dot_product_attention
    |_(?:flash|efficient)_attention\w*|lstm\w*|gru\w*|sum|nansum|mean|var|var_mean|std|std_mean|prod
    |cumsum|cumprod|logsumexp|norm|max|min|amax|amin|aminmax|argmax|argmin|any|all|sort|argsort|topk|kthvalue
    |exp2?|expm1|log|log2|log10|log1p|sqrt|rsqrt|pow|square|abs|neg|reciprocal|sin|cos|erf|erfc|add|sub
    |mul|div|rsub|addcmul|addcdiv|where|clamp|clamp_min|clamp_max|maximum|minimum|fmax|fmin|floor
    |ceil|round|sign|lerp|cat|concat|concatenate|stack|hstack|vstack|gather|scatter\w*|index_\w+|take
    |masked_\w+|triu|tril|flip|roll|im2col|col2im|unfold|_?sparse_mm|_?sparse_\w+|bincount|histc
    |nonzero|unique\w*|cdist|pdist|upsample_\w+|interpolate|pad|\w+_backward|\w+_out""",
    re.VERBOSE,
)
"""Functions of `at` and `torch` that compute; those that allocate, view or copy are not here."""

METHODS = re.compile(
    r"matmul|mm|bmm|addmm_?|addbmm_?|baddbmm_?|addmv_?|mv|log_softmax|softmax|relu_?|sigmoid_?|tanh_?"
    r"|einsum|cumsum|logsumexp|layer_norm|addcmul_?|addcdiv_?|index_select|index_add_?|masked_fill_?"
    r"|scatter_add_?|rsqrt_?|clamp_min_?|clamp_max_?"
)
"""Methods of a tensor that hardly any other class has; the rest shows in the built library."""

_HARMLESS = re.compile(
    r"(?:new_)?(?:empty|zeros|ones|full)\w*|zero_?|fill_?\w*|copy_?|clone|contiguous|_?to_\w+|view\w*|_view\w*"
    r"|_?reshape\w*|transpose\w*|t|numpy_T|m?[TH]|permute|select_\w+|slice_\w+|narrow\w*|(?:un)?squeeze\w*"
    r"|expand\w*|(?:un)?flatten\w*|as_strided\w*|chunk|split\w*|unbind\w*|detach_?|alias|item"
    r"|_local_scalar_dense|resize\w*|set_\w*|is_\w+|_?size\w*|stride\w*|numel|storage_offset|arange\w*"
    r"|scalar_tensor|movedim\w*|swap\w+|diagonal|broadcast_to|_unsafe_view|record_stream|_?pin_memory"
    r"|requires_grad_|result_type\w*|_has_\w+|_is_\w+|from_blob|lift\w*|type_as"
    r"|resolve_\w+|set_data|data|_version|tensor_data|variable_data|requires_grad|retain_grad"
)
"""Operations that allocate, view, copy or describe."""

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

_NAMESPACES = {"nn", "linalg", "fft", "special", "jit", "_ops", "inductor", "sparse", "nested"}
_PYTHON = re.compile(
    r"PyRun_\w+|PyImport_\w+|PyEval_\w+|PyGILState_\w+|PyObject_(?:Call|Get|Set|Vector)\w*|PySys_\w+"
    r"|PyDict_\w+|PyInterpreter\w*|PyThreadState\w*|PyFrame\w*|PyCode\w*|PyMarshal_\w+|PyGC_\w+"
    r"|Py_(?:Initialize|Finalize|Compile|Add|AtExit|Main|RunMain|BytesMain)\w*|_Py\w+|scoped_interpreter"
)
_PYBIND = {"exec", "eval", "eval_file", "globals", "initialize_interpreter"}
_STATE = re.compile(
    r"globalContext|setAllowTF32\w*|setBenchmark\w*|setDeterministic\w*|setFloat32\w*|set_num_threads"
    r"|set_num_interop_threads|manual_seed\w*|getDefaultCUDAGenerator|setCurrentCUDAStream"
    r"|TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?|RegisterOperators|Dispatcher|SetAllocator|setAllocator"
    r"|changeCurrentAllocator|setMemoryFraction|CUDAPluggableAllocator"
)


def _library(case: Case) -> Iterable[Finding]:
    if case.abi is not Abi.TORCH or case.task.libraries:
        return
    for stream in case.streams:
        for i, token in enumerate(stream):
            if token.kind is not Kind.WORD:
                continue
            if name := _torch_function(stream, i):
                sentence = f"calls torch's own {name!r}, which this task does not allow"
                yield Finding(name, token.line, sentence)


def _torch_function(stream: Sequence[Token], i: int) -> str:
    """The qualified name if the word at `i` is a function of torch that computes, else empty."""
    word, before = stream[i].text, text_at(stream, i - 1)
    called = text_at(stream, i + 1) == "("
    if before in (".", "->"):
        return f"Tensor::{word}" if called and METHODS.fullmatch(word) else ""
    if before != "::":
        return ""
    namespace = text_at(stream, i - 2)
    if namespace in ("at", "torch") and text_at(stream, i - 3) != "::":
        inner = text_at(stream, i + 1) == "::" and word in _NAMESPACES
        computes = called and OPERATIONS.fullmatch(word)
        return f"{namespace}::{word}" if inner or computes else ""
    if namespace == "native" and called and text_at(stream, i - 4) == "at":
        return f"at::native::{word}"
    return ""


def _python(case: Case) -> Iterator[Finding]:
    for stream in case.streams:
        for i, token in enumerate(stream):
            if token.kind is Kind.WORD and (name := _python_name(stream, i)):
                yield Finding(name, token.line, f"calls into Python by {name!r}")


def _python_name(stream: Sequence[Token], i: int) -> str:
    word = stream[i].text
    if _PYTHON.fullmatch(word):
        return word
    if text_at(stream, i - 1) != "::":
        return ""
    namespace = text_at(stream, i - 2)
    if word == "import" and namespace in ("module_", "module"):
        return "module_::import"
    if word in _PYBIND and namespace in ("py", "pybind11"):
        return f"{namespace}::{word}"
    return ""


def _state(case: Case) -> Iterator[Finding]:
    if case.abi is not Abi.TORCH:
        return
    for stream, i in case.places({word for word in case.words if _STATE.fullmatch(word)}):
        word = stream[i].text
        sentence = f"{word!r} changes torch for everybody in the process"
        yield Finding(word, stream[i].line, sentence)


def torch_symbol_sentence(symbol: str, *, libraries: bool) -> str:
    """Why an extension should not need a symbol of torch's or Python's; empty if it may."""
    if _PYTHON_SYMBOLS.fullmatch(symbol):
        return f"python: calls into Python by {symbol!r}"
    if _STATE_SYMBOLS.fullmatch(symbol):
        return f"torch-state: {symbol!r} changes torch for everybody in the process"
    if libraries:
        return ""
    if match := _OPERATION_SYMBOL.match(symbol):
        operation = match[2][: int(match[1])] if len(match[1]) < 4 else match[2]
        if _HARMLESS.fullmatch(operation):
            return ""
        return f"torch-library: calls torch's own 'at::{operation}', which this task does not allow"
    if _CLASS_SYMBOLS.fullmatch(symbol):
        return f"torch-library: calls torch's own {symbol!r}, which this task does not allow"
    return ""


TORCH_RULES = (
    Rule(
        "torch-library",
        "operations of ATen and torch that compute (`at::matmul`, `torch::nn`, `x.softmax()`), "
        "unless the task allows libraries; allocations, views, copies and checks are allowed",
        _library,
    ),
    Rule(
        "python",
        "calls into Python from an extension: CPython's functions, `py::exec`, imports",
        _python,
    ),
    Rule(
        "torch-state",
        "torch's global settings, its dispatcher, its generators, the current stream",
        _state,
    ),
)
