"""A file is followed as torch runs it: the same shapes, and no yes where torch fails."""

from __future__ import annotations

import ast
import functools
import itertools
import textwrap
import time
from types import ModuleType
from typing import Any

import pytest
import torch

from gpu_runner.data.formats.follow import Followed, Unfollowed

FILE = """
import math
from collections import OrderedDict
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, H, W = {sizes}

class Model(nn.Module):
    def __init__(self, *given):
        super(Model, self).__init__()
{init}

    def forward(self, x, *more):
{forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
IMAGE = "torch.rand(B, C, H, W)"
ROWS = "torch.rand(B, C)"
SEQUENCE = "torch.rand(B, H, C)"


def file(init: str, forward: str, inputs: str, sizes: tuple[int, ...]) -> str:
    indented = [textwrap.indent(textwrap.dedent(part), " " * 8) for part in (init, forward)]
    return FILE.format(init=indented[0], forward=indented[1], inputs=inputs, sizes=sizes)


def shapes(value: Any) -> list[tuple[int, ...]]:
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape)]
    if isinstance(value, tuple | list):
        return [shape for each in value for shape in shapes(each)]
    return []


@functools.cache
def run(text: str) -> list[tuple[int, ...]] | None:
    """What torch makes of a file's inputs; None where it fails."""
    module = ModuleType("problem")
    with torch.no_grad():
        exec(compile(text, "problem.py", "exec"), module.__dict__)
        try:
            return shapes(module.Model(*module.get_init_inputs())(*module.get_inputs()))
        except (RuntimeError, ValueError, AssertionError, IndexError, TypeError):
            return None


def follow(text: str) -> list[tuple[int, ...]] | None:
    try:
        return Followed(ast.parse(text)).outputs({})
    except Unfollowed:
        return None


LAYERS = [
    ("nn.Linear(8, 5)", "self.a(x)", ROWS),
    ("nn.Linear(8, 5, bias=False)", "self.a(x)", SEQUENCE),
    ("nn.Linear(8, 5)", "self.a(x)", "torch.rand(C)"),
    ("nn.BatchNorm1d(8)", "self.a(x)", ROWS),
    ("nn.BatchNorm1d(6)", "self.a(x)", SEQUENCE),
    ("nn.BatchNorm2d(8)", "self.a(x)", IMAGE),
    ("nn.BatchNorm2d(8)", "self.a(x)", SEQUENCE),
    ("nn.InstanceNorm2d(8)", "self.a(x)", IMAGE),
    ("nn.InstanceNorm2d(8, affine=True)", "self.a(x)", IMAGE),
    ("nn.GroupNorm(2, 8)", "self.a(x)", IMAGE),
    ("nn.GroupNorm(4, 8)", "self.a(x)", ROWS),
    ("nn.LayerNorm(8)", "self.a(x)", SEQUENCE),
    ("nn.LayerNorm((8, 6, 9))", "self.a(x)", IMAGE),
    ("nn.Conv1d(6, 4, 3)", "self.a(x)", SEQUENCE),
    ("nn.Conv2d(8, 4, 3, stride=2, padding=1)", "self.a(x)", IMAGE),
    ("nn.Conv2d(8, 4, (3, 1), dilation=2, groups=2)", "self.a(x)", IMAGE),
    ("nn.Conv2d(8, 4, 3, padding='same')", "self.a(x)", IMAGE),
    ("nn.Conv2d(8, 4, 3, padding=4, padding_mode='reflect')", "self.a(x)", IMAGE),
    ("nn.Conv2d(B, 4, 3)", "self.a(x)", "torch.rand(B, H, W)"),
    ("nn.Conv3d(8, 4, 3)", "self.a(x.unsqueeze(2))", IMAGE),
    ("nn.ConvTranspose1d(6, 4, 3, 2, 1, 1)", "self.a(x)", SEQUENCE),
    ("nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1)", "self.a(x)", IMAGE),
    ("nn.MaxPool2d(3)", "self.a(x)", IMAGE),
    ("nn.MaxPool2d(3, 2, 1, ceil_mode=True)", "self.a(x)", IMAGE),
    ("nn.MaxPool2d(2, return_indices=True)", "self.a(x)", IMAGE),
    ("nn.AvgPool1d(4)", "self.a(x)", SEQUENCE),
    ("nn.AvgPool2d(7)", "self.a(x)", IMAGE),
    ("nn.AdaptiveAvgPool2d((1, None))", "self.a(x)", IMAGE),
    ("nn.AdaptiveMaxPool2d(2)", "self.a(x)", IMAGE),
    ("nn.ReflectionPad2d(6)", "self.a(x)", IMAGE),
    ("nn.ZeroPad2d((1, 2, 3, 4))", "self.a(x)", IMAGE),
    ("nn.Embedding(8, 4)", "self.a(x)", "torch.randint(0, C, (B, H))"),
    ("nn.Embedding(8, 4)", "self.a(x)", "torch.randint(0, 8, (B, H))"),
    ("nn.PReLU(8)", "self.a(x)", IMAGE),
    ("nn.PReLU()", "self.a(x)", IMAGE),
    ("nn.Softmax(dim=2)", "self.a(x)", IMAGE),
    ("nn.Softmax(dim=2)", "self.a(x)", ROWS),
    ("nn.Flatten()", "self.a(x)", IMAGE),
    ("nn.GRU(8, 5)", "self.a(x)", SEQUENCE),
    ("nn.LSTM(8, 5, 2, batch_first=True, bidirectional=True)", "self.a(x)", SEQUENCE),
    ("nn.GRU(8, 5)", "self.a(x, torch.zeros(1, 6, 5))", SEQUENCE),
    ("nn.LSTM(8, 5)", "self.a(x, (torch.zeros(1, H, 5), torch.zeros(1, H, 5)))", SEQUENCE),
    ("nn.MultiheadAttention(8, 2)", "self.a(x, x, x)", SEQUENCE),
    ("nn.TransformerEncoderLayer(8, 4, 16)", "self.a(x)", SEQUENCE),
    ("nn.Sequential(nn.Linear(8, 9), nn.ReLU(), nn.Linear(9, 2))", "self.a(x)", ROWS),
    ("nn.Sequential(OrderedDict([('one', nn.Linear(8, 9))]))", "self.a.one(x)", ROWS),
    ("nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])", "self.a[1:][0](x)", ROWS),
    ("nn.ModuleDict({'one': nn.Linear(8, 3)})", "self.a['one'](x)", ROWS),
    ("nn.Parameter(torch.randn(4, 8))", "x * self.a", ROWS),
    ("nn.Parameter(torch.randn(8, 3))", "x @ self.a", ROWS),
    ("nn.CrossEntropyLoss()", "self.a(x, *more)", f"{ROWS}, torch.randint(0, C, (B,))"),
    ("nn.CrossEntropyLoss()", "self.a(x, *more)", f"{ROWS}, torch.randint(0, 8, (B,))"),
    ("nn.MSELoss(reduction='none')", "self.a(x, *more)", f"{ROWS}, {ROWS}"),
    ("nn.TripletMarginLoss()", "self.a(x, *more)", f"{ROWS}, {ROWS}, {ROWS}"),
]
"""A layer, what forward() does with it, and inputs; 4, 8, 6, 9 fits most."""
OPERATIONS = [
    ("x.view(4, -1)", IMAGE),
    ("x.view(-1, 8 * 6 * 9)", IMAGE),
    ("x.view(x.size(0), -1)", IMAGE),
    ("x.reshape(B, C * H, W)", IMAGE),
    ("torch.flatten(x, 1)", IMAGE),
    ("x.flatten(1, 2).transpose(1, 2)", IMAGE),
    ("x.permute(0, 2, 3, 1)", IMAGE),
    ("x.mean(dim=(2, 3), keepdim=True)", IMAGE),
    ("x.sum(-1) + x.mean()", IMAGE),
    ("torch.max(x, dim=1)", IMAGE),
    ("torch.max(x, 1, keepdim=True).values.squeeze(1)", IMAGE),
    ("torch.min(x, dim=2)[0]", IMAGE),
    ("torch.norm(x, p=2, dim=1)", IMAGE),
    ("torch.std(x, dim=0, unbiased=False)", IMAGE),
    ("torch.logsumexp(x, dim=1)", IMAGE),
    ("x / x.norm(p='fro')", IMAGE),
    ("F.normalize(x, dim=1)", IMAGE),
    ("x + x.transpose(2, 3)", IMAGE),
    ("x[:, :4] + x[:, 4:]", ROWS),
    ("x[..., None] * x[:, None]", ROWS),
    ("x[0, ::2]", IMAGE),
    ("x[:, -1]", IMAGE),
    ("x[5]", IMAGE),
    ("torch.cat([x, x * 2], dim=1)", IMAGE),
    ("torch.stack((x, x), 0)", IMAGE),
    ("torch.cat([x, torch.zeros(4, 1)], 1)", ROWS),
    ("x.split(4, dim=1)", IMAGE),
    ("x.split([3, 5], dim=1)[1]", IMAGE),
    ("x.chunk(3, dim=1)", IMAGE),
    ("x.expand(4, 4, 8)", ROWS),
    ("x.unsqueeze(1).expand(-1, 3, -1)", ROWS),
    ("x.repeat(2, 1)", ROWS),
    ("x.squeeze()", "torch.rand(B, 1, C)"),
    ("F.pad(x, (1, 2, 3, 4))", IMAGE),
    ("F.max_pool2d(x, 2)", IMAGE),
    ("F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)", IMAGE),
    ("F.adaptive_avg_pool2d(x, (1, 1))", IMAGE),
    ("F.layer_norm(x, (8,))", ROWS),
    ("F.softmax(x, dim=-1)", IMAGE),
    ("torch.cumsum(x, dim=3)", IMAGE),
    ("x.unfold(1, 3, 2)", ROWS),
    ("x.narrow(1, 2, 4)", ROWS),
    ("x.select(1, 3)", ROWS),
    ("torch.tril(x)", ROWS),
    ("torch.where(x > 0, x, torch.zeros_like(x))", IMAGE),
    ("x.masked_fill(x == 0, float('-inf'))", IMAGE),
    ("x.clamp(min=0.1) ** 2", IMAGE),
    ("-x.relu_() * math.sqrt(x.size(-1))", IMAGE),
    ("torch.einsum('bc,bd->cd', x, x)", ROWS),
    ("torch.einsum('bhc,dc->bhd', x, torch.rand(3, 8))", SEQUENCE),
    ("torch.matmul(x, x.t())", ROWS),
    ("x @ more[0]", f"{ROWS}, torch.rand(C, H)"),
    ("x @ more[0]", f"{ROWS}, torch.rand(8, H)"),
    ("torch.bmm(x, x.transpose(1, 2))", SEQUENCE),
    ("torch.mm(x, x)", ROWS),
    ("torch.addmm(more[0], x, more[1])", f"{ROWS}, torch.rand(H), torch.rand(C, H)"),
    ("F.scaled_dot_product_attention(x, x, x)", SEQUENCE),
    ("x + more[0]", f"{ROWS}, torch.rand(C)"),
    ("x + more[0]", f"{ROWS}, torch.rand(8)"),
    ("x + more[0]", f"{ROWS}, torch.rand(B)"),
    ("x + torch.arange(x.shape[1])", ROWS),
    ("x + torch.full((8,), 2.0)", ROWS),
    ("F.cross_entropy(x, more[0])", f"{ROWS}, torch.randint(C, (B,))"),
    ("F.kl_div(x, more[0], reduction='batchmean')", f"{ROWS}, {ROWS}"),
]
"""What forward() returns, and inputs."""
OWN = (4, 8, 6, 9)
OTHERS = [OWN, (2, 8, 6, 9), (4, 4, 6, 9), (4, 8, 3, 9), (4, 8, 6, 5), (1, 8, 1, 1), (3, 7, 5, 11)]


def agrees(text: str) -> bool:
    """Whether what was followed is what torch does; a yes must be right."""
    found, real = follow(text), run(text)
    assert found is None or found == real, text
    return found == real


@pytest.mark.parametrize(("layer", "body", "inputs"), LAYERS)
def test_layers_do_to_shapes_what_torchs_do(layer: str, body: str, inputs: str) -> None:
    torch.manual_seed(0)  # of labels, too, which may be more than there are classes
    texts = [file(f"self.a = {layer}", f"return {body}", inputs, sizes) for sizes in OTHERS]
    same = [agrees(text) for text in texts]
    assert same[0]
    assert sum(same) >= len(same) - 1  # what it cannot tell it calls unknown


@pytest.mark.parametrize(("body", "inputs"), OPERATIONS)
def test_operations_do_to_shapes_what_torchs_do(body: str, inputs: str) -> None:
    texts = [file("pass", f"return {body}", inputs, sizes) for sizes in OTHERS]
    same = [agrees(text) for text in texts]
    assert same[0]
    assert sum(same) >= len(same) - 1


PROGRAMS = {
    "loops and lists": (
        """
        widths, self.blocks = [C, 5, 7], nn.ModuleList()
        for i in range(len(widths) - 1):
            self.blocks.append(nn.Linear(widths[i], widths[i + 1]))
        """,
        """
        for i, block in enumerate(self.blocks):
            x = block(x) if i else F.relu(block(x))
        return x
        """,
    ),
    "methods, properties and branches": (
        """
        self.register_buffer('mask', torch.tril(torch.ones(C, C)).view(1, C, C))
        self.heads = 2
        assert C % self.heads == 0, f"{C} heads"
        """,
        """
        b, c = x.shape
        if hasattr(self, 'missing') or self.heads > 4:
            raise ValueError("never")
        elif self.training and x.dim() == 2:
            x = x[:, None].masked_fill(self.mask[:, :c, :c] == 0, 0.0)
        return x.reshape(b, c, self.heads, -1).sum(dim=-1), {'none': None}
        """,
    ),
    "functions within functions": (
        """
        def double(n, by=2, *rest, **named):
            return n * by + named.get('more', 0)
        self.f = lambda x: self.linear(x)
        self.linear = nn.Linear(C, double(3, more=1))
        """,
        """
        out = self.f(x)
        out += 1
        out[:, 0] = 2.0
        first, *others = [out, out, x]
        while len(others) > 1:
            others.pop()
        return torch.cat([first] + others, 1)
        """,
    ),
    "initialisation": (
        """
        self.conv = nn.Sequential(nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2))
        for m in self.modules():
            if isinstance(m, nn.Conv1d):
                nn.init.kaiming_normal_(m.weight, mode='fan_out')
            elif isinstance(m, nn.BatchNorm1d):
                nn.init.ones_(m.weight)
        """,
        """
        with torch.no_grad():
            return self.conv(x.unsqueeze(1)).size(2) * x
        """,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_followed(name: str) -> None:
    for sizes in OTHERS:
        text = file(*PROGRAMS[name], ROWS, sizes)
        assert agrees(text)


@pytest.mark.parametrize(
    "forward",
    [
        "return x.sum().item()",
        "return x[x > 0]",
        "return x.nonzero()",
        "return x if x.sum() > 0 else -x",
        "return torch.linalg.inv(x)",
        "return unknown(x)",
        "return self.missing(x)",
        "return x[torch.argmax(x)]",
        "return F.embedding(x.long(), torch.rand(8, 2))",
        "try:\n    return x\nfinally:\n    pass",
        "global B\nB = 3\nreturn x",
        "return [x] * (1 << 40)",
        "return x.view(3 - 3, -1)",
        "return x.shape",
    ],
)
def test_what_depends_on_values_or_is_not_known_is_not_followed(forward: str) -> None:
    text = file("pass", forward, ROWS, OWN)
    if forward == "return x.shape":
        assert follow(text) == []
    else:
        assert follow(text) is None


HOSTILE = [
    "while True: pass",
    "for i in range(10**9): pass",
    "x = [0]\n    while True: x = x + x",
    "x = []\n    for i in range(1000):\n        for j in range(1000): x.append([0] * 1000)",
    "x = '1'\n    while True: x = x + x",
    "x = 2\n    while True: x = x ** x",
    "x = 1\n    while True: x = x << 60",
    "return get_inputs()",
    "return (lambda f: f(f))(lambda f: f(f))",
    "x = ()\n    while True: x = (x, x)",
    "x = [1]\n    x.append(x)\n    return [x, torch.tensor(x)]",
    "return [torch.rand(2)] * 10**6",
    f"return {'(' * 60}{'+'.join('1' * 2000)}{')' * 60}",
    "return [i for i in range(900) for j in range(900) for k in range(900)]",
    "return [torch.rand(*[2] * 1000)]",
    "return torch.rand(1 << 62, 1 << 62)",
    "d = {}\n    while True: d.update({len(d): d})",
    "return range(10**18)",
    "return sum([1e308] * 1000) // 0",
    "return int('9' * 10000)",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_nothing_keeps_whoever_follows_busy(body: str) -> None:
    tree = ast.parse(f"import torch\n\ndef get_inputs():\n    {body}\n")
    began = time.process_time()
    with pytest.raises(Unfollowed):
        Followed(tree).shapes({})
    assert time.process_time() - began < 10


def test_a_module_is_followed_as_far_as_it_goes() -> None:
    text = """
raise RuntimeError("this file must never be imported")
import torch, os
shape = [4]
shape.append(8)
rows: int = int(os.environ["ROWS"])
other = [1, 2]
shuffle(other)
for n in range(3):
    columns = 2 ** n
if __name__ == "__main__":
    columns = 7
try:
    import triton
except ImportError:
    triton = None
"""
    names = Followed(ast.parse(text)).names
    assert (names["shape"], names["columns"]) == ([4, 8], 4)
    unknown = {name for name, value in names.items() if type(value).__name__ == "Unknown"}
    assert {"rows", "other", "triton"} <= unknown


def test_globals_are_others_for_get_inputs_alone() -> None:
    text = file("self.a = nn.Linear(C, 3)", "return self.a(x)", ROWS, OWN)
    assert Followed(ast.parse(text)).outputs({"B": 5}) == [(5, 3)]
    with pytest.raises(Unfollowed, match="a size of 7 where 8 is needed"):
        Followed(ast.parse(text)).outputs({"C": 7})


def test_every_case_is_tried_on_sizes_that_torch_refuses() -> None:
    """Else a yes could not be wrong."""
    cases = [(f"self.a = {a}", f"return {b}", inputs) for a, b, inputs in LAYERS]
    cases += [("pass", f"return {body}", inputs) for body, inputs in OPERATIONS]
    refused = [c for c, s in itertools.product(cases, OTHERS[1:]) if run(file(*c, s)) is None]
    assert len(set(refused)) > len(cases) / 3
