// Tensors with their methods and C++ operators, dispatch over dtypes, and of 2,000 functions those that make tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <ATen/Dispatch.h>
#include <ATen/Formatting.h>
#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#define KBENCH_OPERATORS  // they name headers that their declarations do not need: see ATen/Context.h here
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#ifdef AT_PER_OPERATOR_HEADERS
#include <ATen/TensorOperators.h>
#else
#define AT_PER_OPERATOR_HEADERS  // only while this is read: else it asks for all functions
#include <ATen/TensorOperators.h>
#undef AT_PER_OPERATOR_HEADERS
#endif
#undef KBENCH_OPERATORS
