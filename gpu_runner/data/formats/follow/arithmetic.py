"""What torch's arithmetic does to shapes: one by one, along dimensions, in products and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_runner.data.formats.follow.given import Given, Rule
from gpu_runner.data.formats.follow.making import kind_of
from gpu_runner.data.formats.follow.values import (
    Shape,
    Tensor,
    Unfollowed,
    Unknown,
    axis,
    broadcast,
    same,
    tensor,
    whole,
    wholes,
)

_TRUTHS = (
    "eq ge greater greater_equal gt isfinite isinf isnan le less less_equal logical_and"
    " logical_not logical_or logical_xor lt ne not_equal"
)
_ONE_BY_ONE = (
    "abs absolute acos acosh add addcdiv addcmul arccos arcsin arctan asin asinh atan atan2"
    " atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min"
    " clip copysign cos cosh deg2rad div divide elu erf erfc exp exp2 expm1 fix floor"
    " floor_divide fmax fmin fmod frac gelu hardshrink hardsigmoid hardswish hardtanh hypot"
    " leaky_relu lerp lgamma log log10 log1p log2 logaddexp logit logsigmoid maximum masked_fill"
    " minimum mish mul multiply nan_to_num neg negative pow positive rad2deg reciprocal relu"
    " relu6 remainder round rrelu rsqrt rsub selu sgn sigmoid sign silu sin sinc sinh softplus"
    " softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold true_divide"
    " trunc xlogy"
)
_DRAWN = "bernoulli_ exponential_ fill_ normal_ random_ uniform_ zero_ copy_"
_REDUCED = "all amax amin any argmax argmin logsumexp max mean median min nansum prod std sum var"
_WITH_PLACES = frozenset({"max", "median", "min", "mode", "kthvalue"})
_ALONG = "cumprod cumsum log_softmax logcumsumexp softmax softmin"


def _one_by_one(given: Given) -> Tensor:
    tensors = [value for value in given.values() if isinstance(value, Tensor)]
    if not tensors:
        raise Unfollowed("no tensor that is known")
    if any(isinstance(value, tuple | list | Unknown) for value in given.values()):
        raise Unfollowed("a part that is not known")
    kinds = {each.kind for each in tensors}
    numbers = [v for v in given.values() if isinstance(v, float)]
    kind = "int" if kinds <= {"int", "bool"} and not numbers else "float"
    return Tensor(broadcast(*(each.shape for each in tensors)), kind)


def _truth(given: Given) -> Tensor:
    return Tensor(_one_by_one(given).shape, "bool")


def _where(given: Given) -> Tensor:
    if len(given.args) + len(given.kwargs) < 3:
        raise Unfollowed("places that depend on values")
    return _one_by_one(given)


def _in_place(rule: Rule) -> Rule:
    def change(given: Given) -> Tensor:
        own = given.tensor()
        if rule(given).shape != own.shape:
            raise Unfollowed("a result that does not fit where it is to go")
        return Tensor(own.shape, own.kind)

    return change


def reduced(shape: Shape, dims: Any, keepdim: Any) -> Shape:
    """A shape without these dimensions, or with one element along each; all if there are none."""
    if dims is None or (isinstance(dims, tuple | list) and not dims):
        dims = tuple(range(len(shape)))
    chosen = {
        axis(d, len(shape)) for d in (wholes(dims) if isinstance(dims, tuple | list) else [dims])
    }
    if keepdim:
        return tuple(1 if i in chosen else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in chosen)


def _reduction(name: str) -> Rule:
    def reduce(given: Given) -> Any:
        own = given.tensor()
        dims = given.get(1, "dim", given.kwargs.get("axis"))
        if isinstance(dims, Tensor):  # the larger of two, element by element
            return _one_by_one(given)
        if isinstance(dims, bool):  # whether a deviation is unbiased
            dims = None
        keepdim_at = 3 if name in ("std", "var") else 2
        shape = reduced(own.shape, dims, given.get(keepdim_at, "keepdim", False))
        kind = {"argmax": "int", "argmin": "int", "all": "bool", "any": "bool"}.get(name, own.kind)
        found = Tensor(shape, kind)
        is_pair = name in _WITH_PLACES and dims is not None
        return (
            (found, Tensor(shape, "int", own.shape[axis(dims, len(own.shape))]))
            if is_pair
            else found
        )

    return reduce


def _norm(given: Given) -> Tensor:
    own = given.tensor()
    return Tensor(reduced(own.shape, given.get(2, "dim", None), given.get(3, "keepdim", False)))


def _along(given: Given) -> Any:
    """What keeps the shape, and must have the dimension."""
    own = given.tensor()
    given.axis(1, "dim", len(own.shape))
    return Tensor(own.shape)


def _normalize(given: Given) -> Tensor:
    own = given.tensor()
    given.axis(2, "dim", len(own.shape), 1)
    return Tensor(own.shape)


def multiplied(a: Shape, b: Shape) -> Shape:
    """Shape of a matrix product as `torch.matmul` has it."""
    if not a or not b:
        raise Unfollowed("a product with a number")
    same(a[-1], b[-2] if len(b) > 1 else b[-1])
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    return (*broadcast(a[:-2], b[:-2]), *rows, *columns)


def _product(*ranks: int) -> Rule:
    """A product of two tensors, of these ranks if there are any."""

    def multiply(given: Given) -> Tensor:
        a, b = given.tensor(0, "input"), tensor(given.get(1, "mat2", given.kwargs.get("other")))
        if ranks and (len(a.shape), len(b.shape)) != ranks:
            raise Unfollowed("a product of other ranks")
        if ranks == (3, 3):
            same(a.shape[0], b.shape[0])
        return Tensor(multiplied(a.shape, b.shape))

    return multiply


def _added_product(given: Given) -> Tensor:
    own = given.tensor()
    product = multiplied(tensor(given.get(1, "mat1")).shape, tensor(given.get(2, "mat2")).shape)
    if broadcast(own.shape, product) != product:
        raise Unfollowed("a sum that is larger than the product")
    return Tensor(product)


def _einsum(given: Given) -> Tensor:
    equation = str(given.get(0, "equation")).replace(" ", "")
    operands = given.args[1:]
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = tuple(operands[0])
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if not arrow or "." in equation or len(terms) != len(operands):
        raise Unfollowed(f"einsum {equation!r}")
    sizes: dict[str, int] = {}
    for term, operand in zip(terms, operands, strict=True):
        shape = tensor(operand).shape
        same(len(term), len(shape))
        for letter, size in zip(term, shape, strict=True):
            same(sizes.setdefault(letter, size), size)
    if not set(output) <= sizes.keys():
        raise Unfollowed(f"einsum {equation!r}")
    return Tensor(tuple(sizes[letter] for letter in output))


def _attention(given: Given) -> Tensor:
    query, key, value = (given.tensor(i, n) for i, n in enumerate(("query", "key", "value")))
    scores = multiplied(query.shape, (*key.shape[:-2], key.shape[-1], key.shape[-2]))
    mask = given.get(3, "attn_mask", None)
    if mask is not None and broadcast(tensor(mask).shape, scores) != scores:
        raise Unfollowed("a mask that does not fit")
    return Tensor(multiplied(scores, value.shape))


def one_loss(reduction: Any, shape: Shape) -> Tensor:
    """A loss: a number, or one for each element."""
    return Tensor(shape if reduction == "none" else ())


def _loss(given: Given) -> Tensor:
    """Of two tensors of one shape; torch takes others with a warning."""
    a, b = given.tensor(), given.tensor(1, "target")
    if a.shape != b.shape:
        raise Unfollowed("a loss of shapes that differ")
    return one_loss(given.kwargs.get("reduction", "mean"), a.shape)


def _cross_entropy(given: Given) -> Tensor:
    own, target = given.tensor(), given.tensor(1, "target")
    reduction = given.kwargs.get("reduction", "mean")
    if own.shape == target.shape and target.kind == "float":
        return one_loss(reduction, own.shape[:1] + own.shape[2:])
    at = 1 if len(own.shape) > 1 else 0
    if target.shape != own.shape[:at] + own.shape[at + 1 :] or target.kind != "int":
        raise Unfollowed("classes that do not fit")
    check_places(target, own.shape[at])
    return one_loss(reduction, target.shape)


def _of_rows(given: Given) -> Tensor:
    """A number for each row of several tensors, such as a triplet's loss."""
    tensors = [value for value in given.values() if isinstance(value, Tensor)]
    shapes = {each.shape for each in tensors}
    if len(shapes) != 1 or not tensors[0].shape:
        raise Unfollowed("rows that differ")
    return one_loss(given.kwargs.get("reduction", "mean"), tensors[0].shape[:-1])


def check_places(places: Tensor, size: int) -> None:
    """Raise `Unfollowed` unless whole numbers surely name elements of so many."""
    if places.kind != "int" or places.below is None or places.below > size:
        raise Unfollowed("places that may lie outside")


def linear(own: Tensor, features: Sequence[int]) -> Tensor:
    """A linear layer of (out, in) features, or of (in,): a weight without rows."""
    if not own.shape:
        raise Unfollowed("a linear layer of a number")
    same(whole(features[-1]), own.shape[-1])
    return Tensor((*own.shape[:-1], *features[:-1]))


def _cast(kind: str) -> Rule:
    def cast(given: Given) -> Tensor:
        own = given.tensor()
        is_counted = kind == "int" and own.kind in ("int", "bool")
        below = 2 if own.kind == "bool" else own.below
        return Tensor(own.shape, kind, below if is_counted else None)

    return cast


def _to(given: Given) -> Any:
    own = given.tensor()
    for value in given.values()[1:]:
        try:
            return _cast(kind_of(value, own.kind))(given)
        except Unfollowed:
            continue  # a device
    return own


_LOSSES = (
    "binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss"
    " smooth_l1_loss soft_margin_loss hinge_embedding_loss multilabel_soft_margin_loss"
)
_PLAIN: dict[str, Rule] = {
    **dict.fromkeys(_ONE_BY_ONE.split(), _one_by_one),
    **dict.fromkeys(_TRUTHS.split(), _truth),
    **dict.fromkeys(_ALONG.split(), _along),
}
ARITHMETIC: dict[str, Rule] = {
    **_PLAIN,
    **{f"{name}_": _in_place(rule) for name, rule in _PLAIN.items()},
    **dict.fromkeys(_DRAWN.split(), _in_place(_one_by_one)),
    **{name: _reduction(name) for name in _REDUCED.split()},
    **dict.fromkeys(_LOSSES.split(), _loss),
    **dict.fromkeys(("mm",), _product(2, 2)),
    **dict.fromkeys(("dot", "inner", "vdot"), _product(1, 1)),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added_product),
    **dict.fromkeys(("nll_loss", "cross_entropy"), _cross_entropy),
    **dict.fromkeys(("triplet_margin_loss", "pairwise_distance"), _of_rows),
    **dict.fromkeys(("long", "int"), _cast("int")),
    **dict.fromkeys(("float", "double", "half", "bfloat16"), _cast("float")),
    "bool": _cast("bool"),
    "to": _to,
    "type": _to,
    "bmm": _product(3, 3),
    "mv": _product(2, 1),
    "matmul": _product(),
    "where": _where,
    "norm": _norm,
    "vector_norm": _norm,
    "normalize": _normalize,
    "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
}
"""Rules by the name of a function of torch or torch.nn.functional, or of a tensor's method."""
