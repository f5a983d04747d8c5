// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cudnn_attention.h"

namespace tw::cuda {

std::string CudnnAttention::text() const
{
    std::string s = "attention ";
    auto add = [&](int64_t v) { s += std::to_string(v) + ","; };
    for (int64_t v : {batch, heads, rows, columns, size, int64_t(mask), int64_t(causal)})
        add(v);
    for (auto const* list : {&q, &k, &v, &y, &maskDims, &maskStrides})
        for (int64_t v : *list)
            add(v);
    return s;
}

Result<CudnnGraph> CudnnAttention::graph(Cudnn const& cudnn, CudnnHandle* handle) const
{
    CudnnGraph graph(cudnn, handle);
    auto outer = [&](int64_t id, Four const& dims, Four const& strides) {
        return graph.tensor({id, kDnnHalf, dims, strides});
    };
    auto number = [&](int64_t id) {
        CudnnTensor t{id, kDnnFloat, {1, 1, 1, 1}, {1, 1, 1, 1}};
        t.isNumber = true;
        return graph.tensor(t);
    };
    int64_t next = kInner;
    auto inner = [&](int64_t last, int type = kDnnFloat) {
        CudnnTensor t{next++, type, {batch, heads, rows, last}, {heads * rows * last, rows * last, last, 1}};
        t.isInner = true;
        return graph.tensor(t);
    };
    TW_ASSIGN(void* const qAt, outer(kQ, {batch, heads, rows, size}, q));
    TW_ASSIGN(void* const kAt, outer(kK, {batch, heads, size, columns}, {k[0], k[1], k[3], k[2]})); // transposed
    TW_ASSIGN(void* value, inner(columns));
    TW_TRY(graph.multiply(qAt, kAt, value));
    // Puts the result of an operation in the place of `value`.
    auto then = [&](CudnnPointwise const& what, void* b, void* choice = nullptr) -> Result<void> {
        TW_ASSIGN(void* const result, inner(columns));
        TW_TRY(graph.pointwise(what, value, b, result, choice));
        value = result;
        return {};
    };
    TW_ASSIGN(void* const scaleAt, number(kScale));
    TW_TRY(then({kDnnMultiply}, scaleAt));
    if (mask) {
        TW_ASSIGN(void* const maskAt, outer(kMask, maskDims, maskStrides));
        TW_TRY(then({kDnnAdd}, maskAt));
    }
    if (causal) {
        constexpr int kRows = 2, kColumns = 3; // dimensions
        TW_ASSIGN(void* const row, inner(columns, kDnnInt32));
        TW_TRY(graph.pointwise({kDnnIndex, 0, 0, kRows}, value, nullptr, row));
        TW_ASSIGN(void* const column, inner(columns, kDnnInt32));
        TW_TRY(graph.pointwise({kDnnIndex, 0, 0, kColumns}, value, nullptr, column));
        TW_ASSIGN(void* const seen, inner(columns, kDnnBoolean));
        TW_TRY(graph.pointwise({kDnnGreaterOrEqual, 0, 0, 0, kDnnBoolean}, row, column, seen));
        TW_ASSIGN(void* const lowest, number(kLowest));
        TW_TRY(then({kDnnSelect}, lowest, seen));
    }
    TW_ASSIGN(void* const largest, inner(1));
    TW_TRY(graph.reduce(kDnnReduceMax, value, largest));
    TW_TRY(then({kDnnSubtract}, largest));
    TW_TRY(then({kDnnExp}, nullptr));
    TW_ASSIGN(void* const sums, inner(1));
    TW_TRY(graph.reduce(kDnnReduceAdd, value, sums));
    // Nobody reads these logarithms of sums, but without them the graph is not the one that the library's one-pass
    // engines know: it then offers an older engine, for up to 512 rows of heads of 64, which is slow.
    TW_ASSIGN(void* const logarithm, inner(1));
    TW_TRY(graph.pointwise({kDnnLog}, sums, nullptr, logarithm));
    TW_ASSIGN(void* const statistics, inner(1));
    TW_TRY(graph.pointwise({kDnnAdd}, largest, logarithm, statistics));
    TW_ASSIGN(void* const shares, inner(columns, kDnnHalf));
    TW_TRY(graph.pointwise({kDnnDivide}, value, sums, shares));
    TW_ASSIGN(void* const vAt, outer(kV, {batch, heads, columns, size}, v));
    TW_ASSIGN(void* const yAt, outer(kY, {batch, heads, rows, size}, y));
    TW_TRY(graph.multiply(shares, vAt, yAt));
    return graph;
}

} // namespace tw::cuda
