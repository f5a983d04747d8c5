// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cudnn_graph.h"

#include <algorithm>
#include <bit>

namespace tw::cuda {

namespace {

constexpr int64_t kAlignment = 16; // bytes, of all addresses
constexpr int kMostConfigs = 8;    // that are asked for
constexpr int64_t kMostWorkspace = 64 << 20;

} // namespace

Result<void*> CudnnGraph::keep(CudnnDescriptor d)
{
    TW_TRY(d.finalize());
    parts_.push_back(std::move(d));
    return parts_.back().get();
}

Result<void> CudnnGraph::add(CudnnDescriptor operation, std::initializer_list<std::pair<int, void*>> attributes)
{
    for (auto [attribute, value] : attributes)
        if (value)
            TW_TRY(operation.set(attribute, kDnnTypeDescriptor, 1, &value));
    TW_ASSIGN(void* const at, keep(std::move(operation)));
    operations_.push_back(at);
    return {};
}

Result<void*> CudnnGraph::tensor(CudnnTensor const& t)
{
    TW_ASSIGN(CudnnDescriptor d, CudnnDescriptor::create(cudnn_, kDnnTensor));
    TW_TRY(d.setMode(kDnnTensorType, kDnnTypeDataType, t.type));
    TW_TRY(d.setNumbers(kDnnTensorDims, t.dims));
    TW_TRY(d.setNumbers(kDnnTensorStrides, t.strides));
    TW_TRY(d.setNumber(kDnnTensorId, t.id));
    TW_TRY(d.setNumber(kDnnTensorAlignment, kAlignment));
    TW_TRY(d.set(kDnnTensorIsVirtual, kDnnTypeBoolean, 1, &t.isInner));
    TW_TRY(d.set(kDnnTensorIsByValue, kDnnTypeBoolean, 1, &t.isNumber));
    return keep(std::move(d));
}

Result<void> CudnnGraph::convolve(CudnnWindow const& w, void* x, void* filters, void* y)
{
    TW_ASSIGN(CudnnDescriptor window, CudnnDescriptor::create(cudnn_, kDnnConvolution));
    TW_TRY(window.setMode(kDnnConvolutionCompute, kDnnTypeDataType, kDnnFloat));
    TW_TRY(window.setMode(kDnnConvolutionModeOf, kDnnTypeConvolutionMode, kDnnCrossCorrelation));
    TW_TRY(window.setNumber(kDnnConvolutionRank, 2));
    TW_TRY(window.setNumbers(kDnnConvolutionDilations, w.dilation));
    TW_TRY(window.setNumbers(kDnnConvolutionStrides, w.stride));
    TW_TRY(window.setNumbers(kDnnConvolutionBefore, w.before));
    TW_TRY(window.setNumbers(kDnnConvolutionAfter, w.after));
    TW_ASSIGN(void* const at, keep(std::move(window)));
    TW_ASSIGN(CudnnDescriptor forward, CudnnDescriptor::create(cudnn_, kDnnConvolutionForward));
    float const one = 1, zero = 0;
    TW_TRY(forward.set(kDnnForwardAlpha, kDnnTypeFloat, 1, &one));
    TW_TRY(forward.set(kDnnForwardBeta, kDnnTypeFloat, 1, &zero));
    return add(std::move(forward),
               {{kDnnForwardConvolution, at}, {kDnnForwardX, x}, {kDnnForwardW, filters}, {kDnnForwardY, y}});
}

Result<void> CudnnGraph::multiply(void* a, void* b, void* c)
{
    TW_ASSIGN(CudnnDescriptor what, CudnnDescriptor::create(cudnn_, kDnnProduct));
    TW_TRY(what.setMode(kDnnProductCompute, kDnnTypeDataType, kDnnFloat));
    TW_ASSIGN(void* const at, keep(std::move(what)));
    TW_ASSIGN(CudnnDescriptor operation, CudnnDescriptor::create(cudnn_, kDnnProductOperation));
    return add(std::move(operation), {{kDnnProductOf, at}, {kDnnProductA, a}, {kDnnProductB, b}, {kDnnProductC, c}});
}

Result<void> CudnnGraph::reduce(int mode, void* x, void* y)
{
    TW_ASSIGN(CudnnDescriptor what, CudnnDescriptor::create(cudnn_, kDnnReduction));
    TW_TRY(what.setMode(kDnnReductionMode, kDnnTypeReductionMode, mode));
    TW_TRY(what.setMode(kDnnReductionCompute, kDnnTypeDataType, kDnnFloat));
    TW_ASSIGN(void* const at, keep(std::move(what)));
    TW_ASSIGN(CudnnDescriptor operation, CudnnDescriptor::create(cudnn_, kDnnReductionOperation));
    return add(std::move(operation), {{kDnnReductionOf, at}, {kDnnReductionX, x}, {kDnnReductionY, y}});
}

Result<void> CudnnGraph::pointwise(CudnnPointwise const& p, void* x, void* b, void* y, void* choice)
{
    TW_ASSIGN(CudnnDescriptor what, CudnnDescriptor::create(cudnn_, kDnnPointwise));
    TW_TRY(what.setMode(kDnnPointwiseMode, kDnnTypePointwiseMode, p.mode));
    TW_TRY(what.setMode(kDnnPointwiseCompute, kDnnTypeDataType, p.compute));
    if (p.mode == kDnnRelu && p.lower < p.upper) {
        TW_TRY(what.set(kDnnPointwiseReluLower, kDnnTypeDouble, 1, &p.lower));
        TW_TRY(what.set(kDnnPointwiseReluUpper, kDnnTypeDouble, 1, &p.upper));
    }
    if (p.mode == kDnnIndex)
        TW_TRY(what.setNumber(kDnnPointwiseAxis, p.axis));
    TW_ASSIGN(void* const at, keep(std::move(what)));
    TW_ASSIGN(CudnnDescriptor operation, CudnnDescriptor::create(cudnn_, kDnnPointwiseOperation));
    return add(std::move(operation), {{kDnnPointwiseOf, at},
                                      {kDnnPointwiseX, x},
                                      {kDnnPointwiseB, b},
                                      {kDnnPointwiseY, y},
                                      {kDnnPointwiseChoice, choice}});
}

Result<std::vector<CudnnDescriptor>> CudnnGraph::ask()
{
    TW_ASSIGN(CudnnDescriptor graph, CudnnDescriptor::create(cudnn_, kDnnGraph));
    TW_TRY(graph.set(kDnnGraphHandle, kDnnTypeHandle, 1, &handle_));
    TW_TRY(graph.set(kDnnGraphOperations, kDnnTypeDescriptor, int64_t(operations_.size()), operations_.data()));
    TW_ASSIGN(void* const graphAt, keep(std::move(graph)));
    TW_ASSIGN(CudnnDescriptor heuristic, CudnnDescriptor::create(cudnn_, kDnnHeuristic));
    TW_TRY(heuristic.set(kDnnHeuristicGraph, kDnnTypeDescriptor, 1, &graphAt));
    TW_TRY(heuristic.setMode(kDnnHeuristicMode, kDnnTypeHeuristicMode, kDnnHeuristicA));
    TW_TRY(heuristic.finalize());
    std::vector<void*> results;
    std::vector<CudnnDescriptor> configs;
    for (int i = 0; i < kMostConfigs; ++i) {
        TW_ASSIGN(CudnnDescriptor d, CudnnDescriptor::create(cudnn_, kDnnEngineConfig));
        configs.push_back(std::move(d));
        results.push_back(configs.back().get());
    }
    TW_ASSIGN(int64_t const count,
              heuristic.read(kDnnHeuristicResults, kDnnTypeDescriptor, kMostConfigs, results.data()));
    configs.resize(size_t(std::clamp<int64_t>(count, 0, kMostConfigs)));
    parts_.push_back(std::move(heuristic));
    return configs;
}

Result<int64_t> CudnnGraph::engines()
{
    TW_ASSIGN(auto const configs, ask());
    return int64_t(configs.size());
}

Result<CudnnPlan> CudnnGraph::plan(int rank)
{
    TW_ASSIGN(auto configs, ask());
    if (rank < 0 || size_t(rank) >= configs.size())
        return unsupported("cuDNN's heuristic offers {} engines for this layer", configs.size());
    CudnnPlan plan;
    TW_ASSIGN(plan.plan_, CudnnDescriptor::create(cudnn_, kDnnPlan));
    TW_TRY(plan.plan_.set(kDnnPlanHandle, kDnnTypeHandle, 1, &handle_));
    TW_TRY(plan.plan_.setDescriptor(kDnnPlanConfig, configs[size_t(rank)]));
    TW_TRY(plan.finish());
    plan.parts_ = std::move(parts_);
    plan.parts_.push_back(std::move(configs[size_t(rank)]));
    return plan;
}

Result<CudnnPlan> CudnnPlan::restore(Cudnn const& cudnn, CudnnHandle* handle, std::string const& text)
{
    CudnnPlan plan;
    TW_ASSIGN(plan.plan_, CudnnDescriptor::create(cudnn, kDnnPlan));
    TW_TRY(plan.plan_.set(kDnnPlanHandle, kDnnTypeHandle, 1, &handle));
    TW_TRY(plan.plan_.set(kDnnPlanJson, kDnnTypeChar, int64_t(text.size()), text.data()));
    TW_TRY(plan.finish());
    return plan;
}

Result<void> CudnnPlan::finish()
{
    TW_TRY(plan_.finalize());
    TW_TRY(plan_.read(kDnnPlanWorkspace, kDnnTypeInt64, 1, &workspaceBytes_));
    if (workspaceBytes_ < 0 || workspaceBytes_ > kMostWorkspace)
        return unsupported("cuDNN's plan wants a workspace of {} bytes, {} are allowed", workspaceBytes_,
                           kMostWorkspace);
    return {};
}

Result<std::string> CudnnPlan::text() const
{
    TW_ASSIGN(int64_t const size, plan_.read(kDnnPlanJson, kDnnTypeChar, 0, nullptr));
    std::string out(size_t(std::max<int64_t>(size, 0)), '\0');
    TW_ASSIGN(int64_t const got, plan_.read(kDnnPlanJson, kDnnTypeChar, size, out.data()));
    out.resize(size_t(std::clamp<int64_t>(got, 0, int64_t(out.size()))));
    return out;
}

Result<CudnnDescriptor> makePack(Cudnn const& cudnn, CudnnAddresses const& at)
{
    TW_ASSIGN(CudnnDescriptor pack, CudnnDescriptor::create(cudnn, kDnnPack));
    TW_TRY(pack.set(kDnnPackIds, kDnnTypeInt64, int64_t(at.count), at.ids.data()));
    TW_TRY(pack.set(kDnnPackAddresses, kDnnTypeAddress, int64_t(at.count), at.tensors.data()));
    TW_TRY(pack.set(kDnnPackWorkspace, kDnnTypeAddress, 1, &at.workspace));
    TW_TRY(pack.finalize());
    return pack;
}

std::string CudnnAttention::text() const
{
    std::string s = "attention ";
    auto add = [&](int64_t v) { s += fmt::format("{},", v); };
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

std::string CudnnConvolution::text() const
{
    std::string s = "convolution ";
    auto add = [&](int64_t v) { s += fmt::format("{},", v); };
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
