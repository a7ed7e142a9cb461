// The names of namespace torch. Its functions that make tensors take `requires_grad`, which those of namespace at refuse.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

namespace torch {
using namespace at;
using std::nullopt;
using std::optional;
using at::NoGradGuard;

using Dtype = at::ScalarType;

constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kUInt16 = at::kUInt16;
constexpr auto kUInt32 = at::kUInt32;
constexpr auto kUInt64 = at::kUInt64;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;

constexpr auto kU8 = kUInt8;
constexpr auto kU16 = kUInt16;
constexpr auto kU32 = kUInt32;
constexpr auto kU64 = kUInt64;
constexpr auto kI8 = kInt8;
constexpr auto kI16 = kInt16;
constexpr auto kI32 = kInt32;
constexpr auto kI64 = kInt64;
constexpr auto kF16 = kFloat16;
constexpr auto kF32 = kFloat32;
constexpr auto kF64 = kFloat64;

namespace kbench {
using Format = std::optional<at::MemoryFormat>;

// Makes a tensor as torch's factories do: below autograd, which then hears whether it needs a gradient.
template <typename Make>
inline at::Tensor variable(const at::TensorOptions& options, Make make) {
    at::AutoDispatchBelowADInplaceOrView guard;
    at::Tensor made = make(at::TensorOptions(options).requires_grad(std::nullopt));
    if (options.requires_grad()) made.set_requires_grad(true);
    return made;
}
}  // namespace kbench

inline at::Tensor empty(at::IntArrayRef size, at::TensorOptions options = {}, kbench::Format format = std::nullopt) {
    return kbench::variable(options, [&](auto plain) { return at::empty(size, plain, format); });
}
inline at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::empty_strided(size, stride, plain); });
}
inline at::Tensor zeros(at::IntArrayRef size, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::zeros(size, plain); });
}
inline at::Tensor ones(at::IntArrayRef size, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::ones(size, plain); });
}
inline at::Tensor full(at::IntArrayRef size, const at::Scalar& value, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::full(size, value, plain); });
}
inline at::Tensor arange(const at::Scalar& end, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::arange(end, plain); });
}
inline at::Tensor arange(const at::Scalar& start, const at::Scalar& end, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::arange(start, end, plain); });
}
inline at::Tensor arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::TensorOptions options = {}) {
    return kbench::variable(options, [&](auto plain) { return at::arange(start, end, step, plain); });
}
inline at::Tensor empty_like(const at::Tensor& self, at::TensorOptions options = {}, kbench::Format format = std::nullopt) {
    return kbench::variable(options, [&](auto plain) { return at::empty_like(self, plain, format); });
}
inline at::Tensor zeros_like(const at::Tensor& self, at::TensorOptions options = {}, kbench::Format format = std::nullopt) {
    return kbench::variable(options, [&](auto plain) { return at::zeros_like(self, plain, format); });
}
inline at::Tensor ones_like(const at::Tensor& self, at::TensorOptions options = {}, kbench::Format format = std::nullopt) {
    return kbench::variable(options, [&](auto plain) { return at::ones_like(self, plain, format); });
}
inline at::Tensor full_like(const at::Tensor& self, const at::Scalar& value, at::TensorOptions options = {}, kbench::Format format = std::nullopt) {
    return kbench::variable(options, [&](auto plain) { return at::full_like(self, value, plain, format); });
}
}  // namespace torch
