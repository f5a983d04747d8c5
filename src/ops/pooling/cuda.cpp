// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/pooling/cuda_bands.h"
#include "ops/pooling/cuda_pixels.h"
#include "ops/pooling/cuda_planes.h"
#include "ops/pooling/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kWideWindow = int64_t(1) << 29;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div out[3];
    int64_t in[3] = {}, window[3] = {}, stride[3] = {}, before[3] = {}, after[3] = {};
};

// One thread for each element of y.
constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; u64 count; Div out[3]; i64 in[3], window[3], stride[3], before[3], after[3];
};
typedef $number$ C;
TW_KERNEL pooling(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx rest = i;
    off begin[3], end[3];
    C inside = 1, padded = 1;
#pragma unroll
    for (int a = 2; a >= 0; --a) {
        idx const q = divide(rest, p.out[a]);
        off const in = off(p.in[a]);
        off const start = off(rest - q * idx(p.out[a].d)) * off(p.stride[a]) - off(p.before[a]);
        off const stop = start + off(p.window[a]);
        begin[a] = max(start, off(0));
        end[a] = max(min(stop, in), begin[a]);
        inside *= C(end[a] - begin[a]);
        padded *= C(min(stop, in + off(p.after[a])) - start);
        rest = q;
    }
    $t$ const* const x = static_cast<$t$ const*>(p.x) + i64(rest) * p.in[0] * p.in[1] * p.in[2];
    C largest = $lowest$, sum = 0;
    for (off i0 = begin[0]; i0 < end[0]; ++i0)
        for (off i1 = begin[1]; i1 < end[1]; ++i1)
            for (off i2 = begin[2]; i2 < end[2]; ++i2) {
                C const v = load<C>(x[(i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2]);
                sum += v;
                if (v > largest || v != v) largest = v;
            }
    C const average = inside == 0 ? C(0) : sum / ($count$);
    (void)average;
    static_cast<$t$*>(p.y)[i] = store<$t$>(C($result$));
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isSmall = t == DataType::kInt8;
    std::string const blend = cuda::literal(double(a.blend));
    CudaKernels out;
    Geometry const largest = geometryOf(a, problem.inputs[0].maxDims, problem.outputs[0].maxDims);
    out.wide = isWide(problem);
    for (int i = 0; i < 3; ++i) // windows that reach far out of x
        out.wide = out.wide ||
                   std::max({largest.window[i], largest.stride[i], largest.before[i], largest.after[i]}) >= kWideWindow;
    out.names = {"pooling"};
    out.source = cuda::expand(kText, {{"number", cuda::computeOf(t)},
                                      {"t", cuda::storageOf(t)},
                                      {"lowest", isSmall ? "-128" : "-__int_as_float(0x7f800000)"},
                                      {"count", a.excludePadding ? "inside" : "padded"},
                                      {"result", a.kind == Kind::kMax ? "largest"
                                                 : a.kind == Kind::kAverage
                                                     ? "average"
                                                     : "(1 - " + blend + ") * largest + " + blend + " * average"}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(a, x.dims, y.dims);
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        for (int i = 0; i < 3; ++i) {
            p.out[i] = cuda::divBy(g.out[i]);
            p.in[i] = g.in[i];
            p.window[i] = g.window[i];
            p.stride[i] = g.stride[i];
            p.before[i] = g.before[i];
            p.after[i] = g.after[i];
        }
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPixels{"pooling_f16_pixels", 2, generatePixels, supportsPixelsOnCuda, configsOfPixels,
                             formatsOfPixels};
constexpr CudaTactic kPixels32{"pooling_f32_pixels", 2, generatePixels, supportsPixels32OnCuda, configsOfPixels,
                               formatsOfPixels};
constexpr CudaTactic kPlanes{"pooling_planes_cuda", 1, generatePlanes, supportsPlanesOnCuda, configsOfPlanes};
constexpr CudaTactic kBands{"pooling_bands_cuda", 2, generateBands, supportsBandsOnCuda, configsOfBands};
constexpr CudaTactic kPlain{"pooling_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPixels, &kPixels32, &kPlanes, &kBands, &kPlain};
    return kList;
}

} // namespace tw::ops::pooling
