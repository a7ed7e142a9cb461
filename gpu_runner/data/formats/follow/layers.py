"""The layers of torch.nn: their arguments, and what each makes of a tensor's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_runner.data.formats.follow import windows
from gpu_runner.data.formats.follow.arithmetic import ARITHMETIC, linear
from gpu_runner.data.formats.follow.given import Given
from gpu_runner.data.formats.follow.moves import flattened, looked_up, padded
from gpu_runner.data.formats.follow.values import (
    Layer,
    Tensor,
    Unfollowed,
    same,
    tensor,
    whole,
)

Apply = Callable[[Layer, Given], Any]
"""What a layer does; raises `Unfollowed` where it cannot be told."""

_CONV = "in_channels out_channels kernel_size stride padding dilation groups bias padding_mode"
_DECONV = (
    "in_channels out_channels kernel_size stride padding output_padding groups bias dilation"
    " padding_mode"
)
_RNN = "input_size hidden_size num_layers bias batch_first dropout bidirectional"
_PARAMETERS = {
    "Linear": "in_features out_features bias",
    "Embedding": "num_embeddings embedding_dim padding_idx",
    "LayerNorm": "normalized_shape eps elementwise_affine bias",
    "RMSNorm": "normalized_shape eps elementwise_affine",
    "GroupNorm": "num_groups num_channels eps affine",
    "Flatten": "start_dim end_dim",
    "PReLU": "num_parameters init",
    "MultiheadAttention": (
        "embed_dim num_heads dropout bias add_bias_kv add_zero_attn kdim vdim batch_first"
    ),
    "TransformerEncoderLayer": (
        "d_model nhead dim_feedforward dropout activation layer_norm_eps batch_first norm_first"
    ),
    "TransformerEncoder": "encoder_layer num_layers norm",
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _RNN),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin"), "dim"),
    **{f"Conv{rank}d": _CONV for rank in (1, 2, 3)},
    **{f"ConvTranspose{rank}d": _DECONV for rank in (1, 2, 3)},
    **{f"BatchNorm{rank}d": "num_features eps momentum affine" for rank in (1, 2, 3)},
    **{f"InstanceNorm{rank}d": "num_features eps momentum affine" for rank in (1, 2, 3)},
    **{
        f"MaxPool{rank}d": "kernel_size stride padding dilation return_indices ceil_mode"
        for rank in (1, 2, 3)
    },
    **{f"AvgPool{rank}d": "kernel_size stride padding ceil_mode" for rank in (1, 2, 3)},
    **{
        f"Adaptive{kind}Pool{rank}d": "output_size" for rank in (1, 2, 3) for kind in ("Avg", "Max")
    },
    **{
        f"{kind}Pad{rank}d": "padding"
        for rank in (1, 2, 3)
        for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular")
    },
}
"""Names of the arguments of each layer, in order."""
_ONE_BY_ONE = (
    "AlphaDropout CELU Dropout Dropout1d Dropout2d Dropout3d ELU GELU Hardshrink Hardsigmoid"
    " Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish RReLU ReLU ReLU6 SELU SiLU Sigmoid"
    " Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
)
_LOSSES = {
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CrossEntropyLoss": "cross_entropy",
    "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div",
    "L1Loss": "l1_loss",
    "MSELoss": "mse_loss",
    "NLLLoss": "nll_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "TripletMarginLoss": "triplet_margin_loss",
}


def make_layer(kind: str, given: Given) -> Layer:
    """A layer from its arguments; raises `Unfollowed` for one that is not known here."""
    if kind in ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"):
        return Layer(kind, {}, _parts(kind, given))
    if kind not in _APPLY:
        raise Unfollowed(f"torch.nn.{kind}")
    names = _PARAMETERS.get(kind, "").split()
    if len(given.args) > len(names) and names:
        raise Unfollowed(f"torch.nn.{kind} with so many arguments")
    return Layer(kind, {**dict(zip(names, given.args, strict=False)), **given.kwargs})


def _parts(kind: str, given: Given) -> dict[str, Any]:
    """The parts of a container by their names."""
    if kind == "Sequential" and not (len(given.args) == 1 and isinstance(given.args[0], dict)):
        return {str(at): part for at, part in enumerate(given.args)}
    parts = given.args[0] if given.args else ()
    if isinstance(parts, dict):
        return dict(parts)
    if not isinstance(parts, tuple | list):
        raise Unfollowed("layers that are not known")
    return {str(at): part for at, part in enumerate(parts)}


def apply_layer(layer: Layer, given: Given) -> Any:
    """The result of a layer that is no container."""
    if layer.kind not in _APPLY:
        raise Unfollowed(f"a call of torch.nn.{layer.kind}")
    return _APPLY[layer.kind](layer, given)


def weight_of(layer: Layer, name: str) -> Tensor:
    """The weight or the bias of a layer; raises `Unfollowed` where it is not known here."""
    if layer.kind == "Linear":
        shape = (whole(_need(layer, "out_features")), whole(_need(layer, "in_features")))
        return Tensor(shape if name == "weight" else shape[:1])
    if layer.kind == "Embedding" and name == "weight":
        return Tensor(_table(layer))
    if layer.kind.startswith("BatchNorm"):
        return Tensor((whole(_need(layer, "num_features")),))
    if layer.kind.startswith("Conv") and "Transpose" not in layer.kind:
        channels, out, kernel = _channels(layer)
        inner = channels // whole(layer.settings.get("groups", 1))
        window = windows.each(kernel, _rank(layer))
        return Tensor((out, inner, *window) if name == "weight" else (out,))
    raise Unfollowed(f"the {name} of torch.nn.{layer.kind}")


def _need(layer: Layer, name: str) -> Any:
    if name not in layer.settings:
        raise Unfollowed(f"torch.nn.{layer.kind} without {name}")
    return layer.settings[name]


def _rank(layer: Layer) -> int:
    return int(layer.kind[-2])


def _same(layer: Layer, given: Given) -> Tensor:
    return given.tensor()


def _by_name(name: str) -> Apply:
    """What torch.nn.functional has under that name, with the layer's settings."""
    return lambda layer, given: ARITHMETIC[name](
        Given(given.args, {**layer.settings, **given.kwargs})
    )


def _linear(layer: Layer, given: Given) -> Tensor:
    features = (whole(_need(layer, "out_features")), whole(_need(layer, "in_features")))
    return linear(given.tensor(), features)


def _embedding(layer: Layer, given: Given) -> Tensor:
    return looked_up(given.tensor(), _table(layer))


def _table(layer: Layer) -> tuple[int, int]:
    return whole(_need(layer, "num_embeddings")), whole(_need(layer, "embedding_dim"))


def _channels(layer: Layer) -> tuple[int, int, Any]:
    channels, out = (whole(_need(layer, name)) for name in ("in_channels", "out_channels"))
    return channels, out, _need(layer, "kernel_size")


def _conv(layer: Layer, given: Given) -> Tensor:
    settings = {**layer.settings, "rank": _rank(layer)}
    return windows.convolved(given.tensor(), *_channels(layer), settings)


def _deconv(layer: Layer, given: Given) -> Tensor:
    if given.has(1, "output_size"):
        raise Unfollowed("a size of the output")
    settings = {**layer.settings, "rank": _rank(layer)}
    return windows.deconvolved(given.tensor(), *_channels(layer), settings)


def _pool(layer: Layer, given: Given) -> Any:
    settings = {**layer.settings, "rank": _rank(layer)}
    return windows.pooled(given.tensor(), _need(layer, "kernel_size"), settings)


def _adaptive(layer: Layer, given: Given) -> Tensor:
    return windows.adapted(given.tensor(), _need(layer, "output_size"), _rank(layer))


def _pad(layer: Layer, given: Given) -> Tensor:
    rank = _rank(layer)
    pad = windows.each(_need(layer, "padding"), 2 * rank)
    mode = {"Reflection": "reflect", "Circular": "circular"}.get(layer.kind.partition("Pad")[0], "")
    windows.split_at(given.tensor(), rank)
    return padded(given.tensor(), pad, mode)


def _batch_norm(layer: Layer, given: Given) -> Tensor:
    own, rank = given.tensor(), _rank(layer)
    if len(own.shape) != rank + 2 and not (rank == 1 and len(own.shape) == 2):
        raise Unfollowed("dimensions that a batch does not have")
    same(whole(_need(layer, "num_features")), own.shape[1])
    windows.check_several(own)
    return Tensor(own.shape)


def _instance_norm(layer: Layer, given: Given) -> Tensor:
    own, rank = given.tensor(), _rank(layer)
    before, _ = windows.split_at(own, rank)
    if layer.settings.get("affine") or layer.settings.get("track_running_stats"):
        same(whole(_need(layer, "num_features")), before[-1])
    windows.check_several(own, rank)
    return Tensor(own.shape)


def _layer_norm(layer: Layer, given: Given) -> Tensor:
    return windows.normalised_layers(given.tensor(), _need(layer, "normalized_shape"))


def _group_norm(layer: Layer, given: Given) -> Tensor:
    own = given.tensor()
    same(whole(_need(layer, "num_channels")), own.shape[1] if len(own.shape) > 1 else 0)
    return windows.normalised_groups(own, _need(layer, "num_groups"))


def _prelu(layer: Layer, given: Given) -> Tensor:
    own, count = given.tensor(), whole(layer.settings.get("num_parameters", 1))
    if count != 1:
        same(count, own.shape[1] if len(own.shape) > 1 else own.shape[0])
    return own


def _flatten(layer: Layer, given: Given) -> Tensor:
    start, end = layer.settings.get("start_dim", 1), layer.settings.get("end_dim", -1)
    return flattened(given.tensor(), start, end)


def _recurrent(layer: Layer, given: Given) -> Any:
    own, settings = given.tensor(), layer.settings
    if len(own.shape) not in (2, 3) or settings.get("proj_size", 0):
        raise Unfollowed("a sequence that is not known")
    same(whole(_need(layer, "input_size")), own.shape[-1])
    ways = 2 if settings.get("bidirectional", False) else 1
    hidden = whole(_need(layer, "hidden_size"))
    first = 0 if settings.get("batch_first", False) else 1
    batch = (own.shape[first],) if len(own.shape) == 3 else ()
    state = Tensor((whole(settings.get("num_layers", 1)) * ways, *batch, hidden))
    states = given.get(1, "hx", None)
    for each in states if isinstance(states, tuple | list) else [states]:
        if each is not None and tensor(each).shape != state.shape:
            raise Unfollowed("a state that does not fit")
    last = (state, state) if layer.kind == "LSTM" else state
    return Tensor((*own.shape[:-1], hidden * ways)), last


def _heads(size: int, heads: Any) -> None:
    if whole(heads) < 1 or size % whole(heads):
        raise Unfollowed("heads that do not fit")


def _attention(layer: Layer, given: Given) -> Any:
    query, key, value = (given.tensor(i, n) for i, n in enumerate(("query", "key", "value")))
    settings, size = layer.settings, whole(_need(layer, "embed_dim"))
    masks = [given.get(i, n, None) for i, n in ((3, "key_padding_mask"), (5, "attn_mask"))]
    if settings.get("kdim") or settings.get("vdim") or any(mask is not None for mask in masks):
        raise Unfollowed("an attention that is not known")
    _heads(size, _need(layer, "num_heads"))
    if len(query.shape) != 3 or key.shape != value.shape or len(key.shape) != 3:
        raise Unfollowed("an attention of other ranks")
    batch, row = (0, 1) if settings.get("batch_first", False) else (1, 0)
    same(query.shape[batch], key.shape[batch])
    same(size, query.shape[-1])
    same(size, key.shape[-1])
    return query, Tensor((query.shape[batch], query.shape[row], key.shape[row]))


def _encoder_layer(layer: Layer, given: Given) -> Tensor:
    own, size = given.tensor(0, "src"), whole(_need(layer, "d_model"))
    if len(given.values()) > 1 or len(own.shape) != 3:
        raise Unfollowed("an encoder that is not known")
    _heads(size, _need(layer, "nhead"))
    same(size, own.shape[-1])
    return own


def _encoder(layer: Layer, given: Given) -> Tensor:
    inner = _need(layer, "encoder_layer")
    if not isinstance(inner, Layer) or layer.settings.get("norm") is not None:
        raise Unfollowed("an encoder that is not known")
    return _encoder_layer(inner, given)


def _ranked(start: str, apply: Apply) -> dict[str, Apply]:
    return {f"{start}{rank}d": apply for rank in (1, 2, 3)}


_APPLY: dict[str, Apply] = {
    **dict.fromkeys(_ONE_BY_ONE.split(), _same),
    **{kind: _by_name(name) for kind, name in _LOSSES.items()},
    **{kind: _by_name(kind.lower()) for kind in ("Softmax", "Softmin")},
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _recurrent),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), _layer_norm),
    **_ranked("Conv", _conv),
    **_ranked("ConvTranspose", _deconv),
    **_ranked("MaxPool", _pool),
    **_ranked("AvgPool", _pool),
    **_ranked("AdaptiveAvgPool", _adaptive),
    **_ranked("AdaptiveMaxPool", _adaptive),
    **_ranked("BatchNorm", _batch_norm),
    **_ranked("InstanceNorm", _instance_norm),
    **{
        kind: apply
        for start in ("Zero", "Constant", "Reflection", "Replication", "Circular")
        for kind, apply in _ranked(f"{start}Pad", _pad).items()
    },
    "LogSoftmax": _by_name("log_softmax"),
    "Linear": _linear,
    "Embedding": _embedding,
    "GroupNorm": _group_norm,
    "PReLU": _prelu,
    "Flatten": _flatten,
    "MultiheadAttention": _attention,
    "TransformerEncoderLayer": _encoder_layer,
    "TransformerEncoder": _encoder,
}
