// SPDX-License-Identifier: Apache-2.0
// A 2-D convolution with what follows it, y = f(conv(x, w) + bias + residual), as an operation graph of cuDNN.
#pragma once

#include "device/cuda/cudnn_graph.h"

namespace tw::cuda {

struct CudnnConvolution
{
    // Names of tensors; those from kInner on stay within the kernel.
    enum Id : int64_t
    {
        kX = 1,
        kW,
        kBias,
        kResidual,
        kY,
        kInner,
    };

    int type = kDnnHalf;                              // of x, w, residual, y; bias and what follows are in float
    int64_t n = 0, c = 0, k = 0;                      // x [n, c, in] and y [n, k, out], stored by pixels without gaps
    std::array<int64_t, 2> in{}, out{}, windowSize{}; // rows, columns; w [k, windowSize, c]
    CudnnWindow window;
    bool residual = false;
    bool activates = false;
    CudnnPointwise activation;

    std::string text() const; // all of it
    Result<CudnnGraph> graph(Cudnn const& cudnn, CudnnHandle* handle) const;
};

} // namespace tw::cuda
