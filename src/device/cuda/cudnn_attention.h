// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention, y = softmax(scale q k' + mask) v, as an operation graph of cuDNN.
#pragma once

#include "device/cuda/cudnn_graph.h"

namespace tw::cuda {

struct CudnnAttention
{
    // Names of tensors; those from kInner on stay within the kernel.
    enum Id : int64_t
    {
        kQ = 1,
        kK,
        kV,
        kMask,
        kScale, // a number
        kY,
        kLowest, // a number: the score of keys after the query, where it is causal
        kInner,
    };
    using Four = std::array<int64_t, 4>;

    // All in FP16: q, y [batch, heads, rows, size], k, v [batch, heads, columns, size], with these strides.
    int64_t batch = 0, heads = 0, rows = 0, columns = 0, size = 0;
    Four q{}, k{}, v{}, y{};
    bool mask = false;
    Four maskDims{}, maskStrides{}; // [batch or 1, heads or 1, rows or 1, columns]
    bool causal = false;            // each query sees the keys up to its own place

    std::string text() const; // all of it
    Result<CudnnGraph> graph(Cudnn const& cudnn, CudnnHandle* handle) const;
};

} // namespace tw::cuda
