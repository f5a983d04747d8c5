// SPDX-License-Identifier: Apache-2.0
// Q/DQ pairs in random networks. Scales are powers of two from 1 on, so that numbers stay small integers.
#include "fuzz/random_network.h"

namespace tw::fuzz {

using namespace nvinfer1;

// One scale for all, or one for each index along `axis`.
ITensor* RandomNetwork::pair(ITensor* x, int axis, int count)
{
    hasPairs_ = true;
    floats_.emplace_back();
    for (int i = 0; i < count; ++i)
        floats_.back().push_back(float(1 << bytes_->upTo(2)));
    Dims shape{axis < 0 ? 0 : 1, {count}};
    ITensor* scale = out(net_.addConstant(shape, {DataType::kFLOAT, floats_.back().data(), count}));
    IQuantizeLayer* q = net_.addQuantize(*x, *scale);
    IDequantizeLayer* dq = net_.addDequantize(*out(q), *scale);
    if (q && dq) {
        q->setAxis(axis);
        dq->setAxis(axis);
    }
    return out(dq);
}

ITensor* RandomNetwork::quantized(Scope const& scope, int kind)
{
    ITensor* x = pickOfRank(scope, kind == 0 ? 4 : kind == 1 ? 2 : 1);
    Dims const d = x->getDimensions();
    int const maps = 1 + bytes_->upTo(4);
    bool const isSplit = bytes_->flip();
    ITensor* y = nullptr;
    if (kind == 0 && d.nbDims == 4 && d.d[1] > 0) {
        int const columns = 1 + bytes_->upTo(1);
        std::vector<int32_t> const shape{maps, d.d[1], 1, columns};
        ITensor* kernel = pair(constant(shape), isSplit ? 0 : -1, isSplit ? maps : 1);
        Weights const none{DataType::kFLOAT, nullptr, 0};
        IConvolutionLayer* l = net_.addConvolutionNd(*pair(x), maps, Dims2(1, columns), none, none);
        if (l)
            l->setInput(1, *kernel);
        y = out(l);
    } else if (kind == 1 && d.nbDims == 2 && d.d[1] > 0) {
        ITensor* columns = pair(constant({d.d[1], maps}), isSplit ? 1 : -1, isSplit ? maps : 1);
        y = out(net_.addMatrixMultiply(*pair(x), MatrixOperation::kNONE, *columns, MatrixOperation::kNONE));
    } else {
        return pair(x);
    }
    if (bytes_->flip()) // a residual, in floats or integers
        y = binary(y, bytes_->flip() ? pair(y) : y, ElementWiseOperation::kSUM);
    if (bytes_->flip())
        y = out(net_.addActivation(*y, ActivationType::kRELU));
    return clip(bytes_->flip() ? pair(y) : y);
}

} // namespace tw::fuzz
