// CUDA's eight-bit floats for C++ kernels on a CPU: the same bits, names, rounding and saturation.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace kbench_fp8 {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// To nearest, ties to even; what is too large becomes the largest finite number, a NaN stays one.
template <int kMantissa, int kBias, int kLargest, int kNan>
inline uint8_t encoded(float value) {
  constexpr int kDropped = 23 - kMantissa;
  constexpr uint32_t kSmallestNormal = uint32_t(128 - kBias) << 23;
  const uint32_t bits = bits_of(value), sign = bits >> 24 & 0x80u;
  uint32_t size = bits & 0x7fffffffu, code;
  if (size > 0x7f800000u) return uint8_t(kNan);
  if (size < kSmallestNormal) {
    code = uint32_t(lrintf(ldexpf(float_of(size), kBias - 1 + kMantissa)));
  } else {
    size += (1u << (kDropped - 1)) - 1u + (size >> kDropped & 1u);
    code = (size >> kDropped) - (uint32_t(127 - kBias) << kMantissa);
    if (code > uint32_t(kLargest)) code = kLargest;
  }
  return uint8_t(sign | code);
}

template <int kMantissa, int kBias>
inline float decoded(uint8_t code) {
  const uint32_t size = code & 0x7fu, sign = uint32_t(code & 0x80u) << 24;
  const float unit = float_of(uint32_t(128 - kBias - kMantissa) << 23);  // of subnormal numbers
  const float small = float(size) * unit;
  const float normal = float_of((size << (23 - kMantissa)) + (uint32_t(127 - kBias) << 23));
  return float_of(bits_of(size >> kMantissa ? normal : small) | sign);
}

}  // namespace kbench_fp8

struct __nv_fp8_e4m3 {
  uint8_t __x;
  __nv_fp8_e4m3() = default;
  explicit __nv_fp8_e4m3(float value) : __x(kbench_fp8::encoded<3, 7, 0x7e, 0x7f>(value)) {}
  explicit operator float() const {
    const float value = kbench_fp8::decoded<3, 7>(__x);
    return (__x & 0x7f) == 0x7f ? kbench_fp8::float_of(0x7fffffffu) : value;
  }
};

struct __nv_fp8_e5m2 {
  uint8_t __x;
  __nv_fp8_e5m2() = default;
  explicit __nv_fp8_e5m2(float value) : __x(kbench_fp8::encoded<2, 15, 0x7b, 0x7f>(value)) {}
  explicit operator float() const {
    const float value = kbench_fp8::decoded<2, 15>(__x);
    const uint32_t special = 0x7f800000u | uint32_t(__x & 3u) << 21 | uint32_t(__x & 0x80u) << 24;
    return (__x & 0x7f) >= 0x7c ? kbench_fp8::float_of(special) : value;
  }
};
