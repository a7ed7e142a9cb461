// Stands for torch's header of this name, which takes four fifths of a build for what no kernel uses: neural networks,
// optimisers, data loaders, every operator. This one has tensors with all their methods, the functions that make tensors,
// dispatch over dtypes, checks, threads, and the bindings to Python. A source that needs more is compiled with torch's own.
#pragma once

#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>  // the casters of tensors, and all that torch/extension.h has of pybind11

#ifdef TORCH_API_INCLUDE_EXTENSION_H  // set by load_inline, whose bindings translate exceptions
#include <torch/csrc/Exceptions.h>
#endif

// What sources get from torch's own header without asking for it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <numeric>
#include <queue>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_set>
