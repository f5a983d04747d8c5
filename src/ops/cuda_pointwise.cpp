// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_pointwise.h"

#include <algorithm>

#include "ops/activate.h"
#include "ops/broadcast.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16;

struct Params
{
    void const* in[kMaxCudaOperands] = {};
    void* out = nullptr;
    uint64_t packs = 0;
    int32_t unit[kMaxCudaOperands] = {}; // step of an operand along a row: 0 or 1
    int32_t tail = 0;                    // elements of the last pack when it is not full; one row only
    int32_t pad = 0;
    cuda::Loop<kMaxCudaOperands> loop; // over packs
};

constexpr char const* kText = R"(
struct Params {
    void const* in[8]; void* out; u64 packs; i32 unit[8]; i32 tail; i32 pad; Loop<8> loop;
};
template <class T, int V, class C> TW_INLINE void fetch(void const* base, off at, int unit, C (&v)[V])
{
    T const* x = static_cast<T const*>(base) + at;
    if (unit) {
        Pack<T, V> const pack = *reinterpret_cast<Pack<T, V> const*>(x);
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = load<C>(pack.v[j]);
    } else {
        C const one = load<C>(*x);
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = one;
    }
}
template <int V> TW_INLINE void compute(Params const& p)
{
    idx const i = threadIndex();
    if (i >= p.packs) return;
    off at[8];
    locate<$rank$>(p.loop, i, at);
    typedef $y$ Y;
    Y* const y = static_cast<Y*>(p.out) + i * V;
    if (V > 1 && p.tail && i == p.packs - 1) {
        for (int j = 0; j < p.tail; ++j) {
$scalars$            y[j] = store<Y>(apply($scalarArguments$));
        }
        return;
    }
$fetches$    Pack<Y, V> pack;
#pragma unroll
    for (int j = 0; j < V; ++j) pack.v[j] = store<Y>(apply($arguments$));
    *reinterpret_cast<Pack<Y, V>*>(y) = pack;
}
TW_KERNEL $name$_vector(const __grid_constant__ Params p) { compute<$pack$>(p); }
TW_KERNEL $name$_scalar(const __grid_constant__ Params p) { compute<1>(p); }
)";

bool isAligned(void const* p, int64_t bytes)
{
    return cuda::addressOf(p) % uint64_t(bytes) == 0;
}

BroadcastLoop loopOf(Extents const& y, Extents const* in, size_t count)
{
    Extents const* list[kMaxCudaOperands] = {};
    for (size_t k = 0; k < count; ++k)
        list[k] = &in[k];
    return broadcastLoop(y, std::span<Extents const* const>(list, count));
}

struct Settled
{
    ir::Node const* node;
    std::vector<int> inputs;
    Pointwise::Views views;
    int64_t pack;
};

Result<void> run(Settled const& s, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& out = args.outputs[0];
    Extents y = out.dims, in[kMaxCudaOperands];
    size_t const count = s.inputs.size();
    for (size_t k = 0; k < count; ++k)
        in[k] = args.inputs[size_t(s.inputs[k])].dims;
    if (s.views)
        s.views(*s.node, args, y, in);
    BroadcastLoop const loop = loopOf(y, in, count);
    Params p;
    p.out = out.data;
    int64_t const last = loop.rank - 1;
    bool const oneRow = loop.rank == 1;
    bool packs =
        s.pack > 1 && (oneRow || loop.extent[last] % s.pack == 0) && isAligned(out.data, s.pack * sizeOf(out.type));
    for (size_t k = 0; k < count; ++k) {
        TensorRef const& t = args.inputs[size_t(s.inputs[k])];
        p.in[k] = t.data;
        p.unit[k] = int32_t(loop.stride[k][last]);
        bool fits = p.unit[k] == 0 || isAligned(t.data, s.pack * sizeOf(t.type));
        for (int64_t d = 0; d < last && fits && p.unit[k] != 0; ++d)
            fits = loop.stride[k][d] % s.pack == 0;
        packs = packs && fits;
    }
    int64_t const width = packs ? s.pack : 1;
    Extents dims;
    for (int d = 0; d < loop.rank; ++d)
        dims.push(d == last ? (loop.extent[d] + width - 1) / width : loop.extent[d]);
    p.loop.set(dims);
    p.tail = oneRow ? int32_t(loop.extent[0] % width) : 0;
    for (size_t k = 0; k < count; ++k) {
        Extents strides;
        for (int d = 0; d < loop.rank; ++d)
            strides.push(d == last ? loop.stride[k][d] * width : loop.stride[k][d]);
        p.loop.setStrides(int(k), strides);
    }
    p.packs = uint64_t(dims.volume());
    return launch(packs ? 0 : 1, blocksFor(dims.volume(), kThreads), kThreads, p);
}

} // namespace

bool isStatic(Problem const& problem)
{
    for (ir::Value const* v : problem.node->inputs)
        if (v && !tw::ir::isStatic(v->shape))
            return false;
    for (ir::Value const* v : problem.node->outputs)
        if (!tw::ir::isStatic(v->shape))
            return false;
    return true;
}

CudaKernels pointwiseKernels(Problem const& problem, Pointwise const& what)
{
    DataType const y = problem.outputs[0].type;
    int64_t widest = sizeOf(y);
    for (int i : what.inputs)
        widest = std::max(widest, sizeOf(problem.inputs[size_t(i)].type));
    int64_t const pack = kPackBytes / widest;
    std::string fetches, scalars, arguments, scalarArguments;
    for (size_t k = 0; k < what.inputs.size(); ++k) {
        DataType const t = problem.inputs[size_t(what.inputs[k])].type;
        std::string const n = std::to_string(k), compute = cuda::computeOf(t), storage = cuda::storageOf(t);
        fetches += "    " + compute + " v" + n + "[V]; fetch<" + storage + ">(p.in[" + n + "], at[" + n + "], p.unit[" +
                   n + "], v" + n + ");\n";
        scalars += "            " + compute + " const s" + n + " = load<" + compute + ">(static_cast<" + storage +
                   " const*>(p.in[" + n + "])[at[" + n + "] + j * p.unit[" + n + "]]);\n";
        arguments += (k ? ", v" : "v") + n + "[j]";
        scalarArguments += (k ? ", s" : "s") + n;
    }
    int rank = kMaxRank;
    if (!what.views && isStatic(problem)) {
        Extents in[kMaxCudaOperands];
        for (size_t k = 0; k < what.inputs.size(); ++k)
            in[k] = problem.inputs[size_t(what.inputs[k])].dims;
        rank = loopOf(problem.outputs[0].dims, in, what.inputs.size()).rank;
    } else {
        rank = std::max(problem.outputs[0].dims.rank, what.views ? 3 : 1);
    }
    CudaKernels out;
    out.wide = isWide(problem);
    std::string const name = what.name;
    out.names = {name + "_vector", name + "_scalar"};
    out.source = what.text +
                 cuda::expand(kText, {{"rank", std::to_string(rank)},
                                      {"y", cuda::storageOf(y)},
                                      {"pack", std::to_string(pack)},
                                      {"name", name},
                                      {"fetches", fetches},
                                      {"scalars", scalars},
                                      {"arguments", arguments},
                                      {"scalarArguments", scalarArguments}}) +
                 cuda::sizeCheck<Params>();
    Settled const settled{problem.node, what.inputs, what.views, pack};
    out.run = [settled](CudaLaunch const& launch, RunArgs& args) { return run(settled, launch, args); };
    return out;
}

std::string activationText(char const* name, int kind, float alpha, float beta)
{
    // Comparisons are turned so that NaN goes through.
    std::string body;
    switch (FusedKind(kind)) {
    case FusedKind::kSwish:
        body = "x / (1 + exp(-x))";
        break;
    case FusedKind::kHardSwish:
        body = "x * ((alpha * x + beta > 1 ? T(1) : alpha * x + beta) < 0 ? T(0) : "
               "(alpha * x + beta > 1 ? T(1) : alpha * x + beta))";
        break;
    case FusedKind::kGeluErf:
        body = "T(0.5) * x * (1 + erf(x * T(0.70710678118654752)))";
        break;
    case FusedKind::kGeluTanh:
        body = "T(0.5) * x * (1 + tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x)))";
        break;
    default:
        break;
    }
    switch (activation::Kind(kind)) {
    case activation::Kind::kRelu:
        body = "x < 0 ? T(0) : x";
        break;
    case activation::Kind::kSigmoid:
        body = "1 / (1 + exp(-x))";
        break;
    case activation::Kind::kTanh:
        body = "tanh(x)";
        break;
    case activation::Kind::kLeakyRelu:
        body = "x >= 0 ? x : alpha * x";
        break;
    case activation::Kind::kElu:
        body = "x >= 0 ? x : alpha * expm1(x)";
        break;
    case activation::Kind::kSelu:
        body = "x > 0 ? beta * x : beta * (alpha * expm1(x))";
        break;
    case activation::Kind::kSoftsign:
        body = "x / (1 + fabs(x))";
        break;
    case activation::Kind::kSoftplus:
        body = "alpha * ((beta * x < 0 ? T(0) : beta * x) + log1p(exp(-fabs(beta * x))))";
        break;
    case activation::Kind::kClip:
        body = "(x > beta ? beta : x) < alpha ? alpha : (x > beta ? beta : x)";
        break;
    case activation::Kind::kHardSigmoid:
        body = "(alpha * x + beta > 1 ? T(1) : alpha * x + beta) < 0 ? T(0) : "
               "(alpha * x + beta > 1 ? T(1) : alpha * x + beta)";
        break;
    case activation::Kind::kScaledTanh:
        body = "alpha * tanh(beta * x)";
        break;
    case activation::Kind::kThresholdedRelu:
        body = "x > alpha ? x : T(0)";
        break;
    default:
        body = body.empty() ? "x" : body;
    }
    return std::string("template <class T> TW_INLINE T ") + name +
           "(T x)\n{\n    T const alpha = " + cuda::literal(alpha) + ", beta = " + cuda::literal(beta) +
           ";\n    (void)alpha; (void)beta;\n    return " + body + ";\n}\n";
}

} // namespace tw::ops
