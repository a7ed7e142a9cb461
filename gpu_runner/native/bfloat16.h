// CUDA's bfloat16 for C++ kernels on a CPU: the same bits, names and rounding.
#pragma once

#include <stdint.h>
#include <string.h>

struct __nv_bfloat16 {
  uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 value) {
  const uint32_t wide = (uint32_t)value.bits << 16;
  float result;
  memcpy(&result, &wide, sizeof result);
  return result;
}

// To nearest, ties to even; a NaN stays one.
static inline __nv_bfloat16 __float2bfloat16(float value) {
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  if ((wide & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  wide += 0x7fffu + ((wide >> 16) & 1u);
  return {(uint16_t)(wide >> 16)};
}
