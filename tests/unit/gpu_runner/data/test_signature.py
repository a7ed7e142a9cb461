"""C signatures of kernels."""

from __future__ import annotations

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.signature import Role, Signature


def test_roles_follow_from_pointers_and_const() -> None:
    signature = Signature.parse("void softmax(float* out, const float* input, int N, int64_t C)")
    assert signature.symbol == "softmax"
    assert [(p.name, p.role, p.dtype) for p in signature.parameters] == [
        ("out", Role.OUTPUT, "float32"),
        ("input", Role.INPUT, "float32"),
        ("N", Role.SCALAR, "int32"),
        ("C", Role.SCALAR, "int64"),
    ]
    assert [p.name for p in signature.outputs] == ["out"]


def test_a_pointer_can_be_marked_as_read_and_written() -> None:
    text = "void step(double* state, const double *force, float* energy)"
    signature = Signature.parse(text, ("state",))
    assert [p.role for p in signature.parameters] == [Role.INOUT, Role.INPUT, Role.OUTPUT]
    assert [p.name for p in signature.outputs] == ["state", "energy"]


@pytest.mark.parametrize(
    "text",
    [
        "void f(float*x,const float *y,int n)",
        "  void   f ( float * x , const float*y ,\n int n ) ; ",
        "void f(float* x, const float* y, int n = 3);",
    ],
)
def test_spacing_defaults_and_the_semicolon_do_not_matter(text: str) -> None:
    signature = Signature.parse(text)
    assert [p.name for p in signature.parameters] == ["x", "y", "n"]
    assert "=" not in signature.text
    assert not signature.text.endswith(";")


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [
        ("__half", "float16"),
        ("__nv_bfloat16", "bfloat16"),
        ("double", "float64"),
        ("int8_t", "int8"),
        ("uint8_t", "uint8"),
        ("bool", "bool"),
        ("__nv_fp8_e4m3", "float8_e4m3fn"),
        ("__nv_fp8_e5m2", "float8_e5m2"),
    ],
)
def test_element_types(ctype: str, dtype: str) -> None:
    assert Signature.parse(f"void f({ctype}* x)").parameters[0].dtype == dtype


@pytest.mark.parametrize(
    ("text", "inout", "field", "reason"),
    [
        ("int f(float* x)", (), "signature", "is not `void NAME(...)`"),
        ("f", (), "signature", "is not `void NAME(...)`"),
        ("void f()", (), "signature", "cannot read the parameter"),
        ("void f(out, const float* x)", (), "signature", "'out' lacks its type or its name"),
        ("void f(float* x, ...)", (), "signature", "cannot read the parameter"),
        ("void f(float** x)", (), "signature", "cannot read the parameter"),
        ("void f(float* x, unsigned int n)", (), "signature", "cannot read the parameter"),
        ("void f(float* x, char n)", (), "signature", "'char' is not one of"),
        ("void f(float* x, __nv_fp8_e4m3 y)", (), "signature", "'y' must be a pointer, or a float"),
        ("void f(float* x, int x)", (), "signature", "two parameters have the same name"),
        ("void f(const float* x, int n)", (), "signature", "has no output"),
        ("void f(float* x)", ("y",), "inout", "'y' is not in the signature"),
    ],
)
def test_a_mistake_is_named(text: str, inout: tuple[str, ...], field: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        Signature.parse(text, inout)
    assert caught.value.field == field
    assert reason in caught.value.reason
