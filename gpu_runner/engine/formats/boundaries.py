"""How far a gradient may jump because a value lies too close to where its function has a kink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_KINK_AT_ZERO = {"relu", "relu_", "leaky_relu", "leaky_relu_", "abs"}
_MAXIMA = {"max_pool1d", "max_pool2d", "max_pool3d", "_max_pool1d", "_max_pool2d", "_max_pool3d"}
_SEED = 0x5EED  # any: the same draw each time


class Contrary(TorchFunctionMode):
    """Makes rectifiers and pools decide the other way wherever rounding could have decided.

    That is where a rectifier's argument, or the distance of a pool's winner from the next, is
    below `margin * rms`. `half`: None for all such places; else a random half (0) of them, the
    same in every run, or the rest (1). `places` counts them; gradients flow as if nothing
    happened.
    """

    def __init__(self, margin: float, half: int | None = None) -> None:
        super().__init__()
        self._margin = margin
        self._half = half
        self._generators: dict[torch.device, torch.Generator] = {}
        self.places = 0

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        keywords = kwargs or {}
        name = getattr(func, "__name__", "")
        value = args[0] if args else None
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return func(*args, **keywords)
        if name in _KINK_AT_ZERO:
            return func(self._mirrored(value), *args[1:], **keywords)
        if name in _MAXIMA:
            return self._pool(func, value, args[1:], keywords)
        return func(*args, **keywords)

    def _mirrored(self, value: Tensor) -> Tensor:
        with torch.no_grad():
            change = torch.where(value.abs() < self._tolerance(value), -2 * value, 0)
            change = self._part(change)
            self.places += int(torch.count_nonzero(change))
        return value + change

    def _pool(
        self, func: Callable[..., Any], value: Tensor, args: Any, keywords: dict[str, Any]
    ) -> object:
        with torch.no_grad():
            wins = _wins(func, value, args, keywords)
            change = self._part(torch.where(wins > 0, -self._tolerance(value), 0))
            self.places += int((_wins(func, value + change, args, keywords) != wins).sum())
        return func(value + change, *args, **keywords)

    def _tolerance(self, value: Tensor) -> Tensor:
        return self._margin * value.square().mean().sqrt()

    def _part(self, change: Tensor) -> Tensor:
        if self._half is None:
            return change
        generator = self._generators.get(change.device)
        if generator is None:
            generator = torch.Generator(device=change.device).manual_seed(_SEED)
            self._generators[change.device] = generator
        coin = torch.randint(2, change.shape, generator=generator, device=change.device)
        return torch.where(coin == self._half, change, 0)


def _wins(func: Callable[..., Any], value: Tensor, args: Any, keywords: dict[str, Any]) -> Tensor:
    """How many windows of the pool each element wins."""
    with torch.enable_grad():
        leaf = value.detach().requires_grad_()
        result = func(leaf, *args, **keywords)
        pooled = result[0] if isinstance(result, tuple) else result
        (wins,) = torch.autograd.grad(pooled.sum(), leaf)
    return wins


def jumps(
    gradients: Callable[[], tuple[Tensor, ...]], usual: tuple[Tensor, ...], margin: float
) -> tuple[Tensor, ...] | None:
    """How far gradients may be off because of kinks; None where no value is near any.

    `gradients` computes in float64 what `usual` holds; `margin` is the relative rounding error of
    a value that meets a kink. Two places whose jumps cancel are told apart by halves.
    """
    found: tuple[Tensor, ...] | None = None
    for half in (None, 0, 1):
        contrary = Contrary(margin, half)
        with contrary:
            other = gradients()
        if contrary.places == 0 and half is None:
            return None
        steps = tuple((a - b).abs_() for a, b in zip(other, usual, strict=True))
        found = steps if found is None else tuple(map(Tensor.add_, found, steps))
    return found
