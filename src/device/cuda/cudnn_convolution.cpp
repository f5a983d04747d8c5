// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cudnn_convolution.h"

#include <bit>

namespace tw::cuda {

std::string CudnnConvolution::text() const
{
    std::string s = "convolution ";
    auto add = [&](int64_t v) { s += std::to_string(v) + ","; };
    for (int64_t v : {int64_t(type), n, c, k, int64_t(residual), activates ? int64_t(activation.mode) : int64_t(-1)})
        add(v);
    for (auto const* pair : {&in, &out, &windowSize, &window.stride, &window.dilation, &window.before, &window.after})
        for (int64_t v : *pair)
            add(v);
    add(std::bit_cast<int64_t>(activation.lower)); // decimals would make bounds equal that are not
    add(std::bit_cast<int64_t>(activation.upper));
    return s;
}

Result<CudnnGraph> CudnnConvolution::graph(Cudnn const& cudnn, CudnnHandle* handle) const
{
    CudnnGraph graph(cudnn, handle);
    // Channels lie together.
    auto tensor = [&](int64_t id, int elements, std::array<int64_t, 4> const& dims) {
        CudnnTensor t{id, elements, dims, {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]}};
        t.isInner = id >= kInner;
        return graph.tensor(t);
    };
    std::array<int64_t, 4> const y{n, k, out[0], out[1]};
    TW_ASSIGN(void* const xAt, tensor(kX, type, {n, c, in[0], in[1]}));
    TW_ASSIGN(void* const wAt, tensor(kW, type, {k, c, windowSize[0], windowSize[1]}));
    TW_ASSIGN(void* const biasAt, tensor(kBias, kDnnFloat, {1, k, 1, 1}));
    int const links = 1 + (residual ? 1 : 0) + (activates ? 1 : 0); // after the convolution
    int link = 0;
    auto next = [&] {
        bool const isLast = link++ == links;
        return tensor(isLast ? int64_t(kY) : kInner + link, isLast ? type : int(kDnnFloat), y);
    };
    TW_ASSIGN(void* const products, next());
    TW_TRY(graph.convolve(window, xAt, wAt, products));
    TW_ASSIGN(void* value, next());
    TW_TRY(graph.pointwise({}, products, biasAt, value));
    if (residual) {
        TW_ASSIGN(void* const residualAt, tensor(kResidual, type, y));
        TW_ASSIGN(void* const sum, next());
        TW_TRY(graph.pointwise({}, value, residualAt, sum));
        value = sum;
    }
    if (activates) {
        TW_ASSIGN(void* const result, next());
        TW_TRY(graph.pointwise(activation, value, nullptr, result));
    }
    return graph;
}

} // namespace tw::cuda
