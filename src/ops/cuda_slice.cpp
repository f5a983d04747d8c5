// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_slice.h"

#include <algorithm>

namespace tw::ops {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const *x = nullptr, *fill = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div dim[kMaxRank]; // of y, the last running fastest
    int64_t size[kMaxRank] = {}, start[kMaxRank] = {}, step[kMaxRank] = {}, stride[kMaxRank] = {}; // in x
    int64_t yGap = 0; // behind the last dimension of y, where y is a part of a wider tensor
};

constexpr char const* kText = R"(
struct Params {
    void const *x, *fill; void* y; u64 count; Div dim[8]; i64 size[8], start[8], step[8], stride[8], yGap;
};
TW_INLINE i64 modulo(i64 p, i64 n) { i64 const r = p % n; return r < 0 ? r + n : r; }
TW_INLINE i64 source(i64 p, i64 size)
{
    if (p >= 0 && p < size) return p;
    $outside$
}
template <class U> TW_INLINE void slice(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx i = threadIndex();
    if (i >= p.count) return;
    U* const y = static_cast<U*>(p.y) + i + (p.yGap ? i64(divide(i, p.dim[7])) * p.yGap : 0);
    i64 from = 0;
    bool inside = true;
#pragma unroll
    for (int r = 7; r >= 8 - $rank$; --r) {
        idx const q = r > 8 - $rank$ ? divide(i, p.dim[r]) : 0;
        i64 const at = source(p.start[r] + i64(i - q * idx(p.dim[r].d)) * p.step[r], p.size[r]);
        inside = inside && at >= 0;
        from += at * p.stride[r];
        i = q;
    }
    U v = {};
    if (inside) v = static_cast<U const*>(p.x)[from];
    else if (p.fill) v = *static_cast<U const*>(p.fill);
    *y = v;
}
TW_KERNEL slice_elements(const __grid_constant__ Params p) { slice<$unit$>(p); }
TW_KERNEL slice_packs(const __grid_constant__ Params p) { slice<unit16>(p); }
)";

char const* outside(slice::Mode mode)
{
    switch (mode) {
    case slice::Mode::kWrap:
        return "return modulo(p, size);";
    case slice::Mode::kClamp:
        return "return p < 0 ? 0 : size - 1;";
    case slice::Mode::kReflect:
        return "i64 const period = size > 1 ? 2 * (size - 1) : 1, r = modulo(p, period); return r < size ? r : period "
               "- "
               "r;";
    default:
        return "return -1;";
    }
}

} // namespace

CudaKernels sliceKernels(Problem const& problem, slice::Mode mode, int fillInput, StepsOfRun stepsOf)
{
    CudaKernels out;
    TensorSpec const& largest = problem.outputs[0];
    out.wide = isWide(problem) || storageCount(largest.format, largest.type, largest.maxDims) >= INT32_MAX;
    out.isDependent = true;
    out.names = {"slice_elements", "slice_packs"};
    out.source = cuda::expand(kText, {{"outside", outside(mode)},
                                      {"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))},
                                      {"rank", std::to_string(std::max(problem.outputs[0].dims.rank, 1))}}) +
                 cuda::sizeCheck<Params>();
    out.run = [node = problem.node, fillInput, stepsOf](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        slice::Steps steps = stepsOf(*node, args);
        Extents xDims = x.dims, yDims = y.dims, strides = stridesOf(x.dims);
        int64_t yGap = 0;
        if (y.format == Format::kHWC8) { // [..., h, w, c], gaps behind the channels with them
            int const c = yDims.rank - 3;
            xDims[c] = pixelStrideOf(Format::kHWC8, x.type, x.dims[c]);
            yDims[c] = pixelStrideOf(Format::kHWC8, y.type, y.dims[c]);
            yGap = y.pixelStride() - yDims[c];
            auto turn = [c](int64_t* list) { std::rotate(list + c, list + c + 1, list + c + 3); };
            turn(xDims.d.data());
            turn(yDims.d.data());
            turn(&steps.start[0]);
            turn(&steps.stride[0]);
            for (int64_t d = strides.rank - 1, step = 1; d >= 0; --d) {
                strides[int(d)] = step;
                step *= d == strides.rank - 1 ? x.pixelStride() : xDims[int(d)];
            }
        }
        Params p;
        p.x = x.data;
        p.y = y.data;
        if (fillInput >= 0 && fillInput < int(args.inputs.size()))
            p.fill = args.inputs[size_t(fillInput)].data;
        // Packs, where rows are cut at their borders and nothing but zeros fills.
        int const last = y.dims.rank - 1;
        int64_t const pack = 16 / sizeOf(y.type);
        bool const packs = last >= 0 && !p.fill && steps.stride[last] == 1 && steps.start[last] >= 0 &&
                           steps.start[last] + yDims[last] <= xDims[last] &&
                           (steps.start[last] | yDims[last] | xDims[last]) % pack == 0 && yGap % pack == 0 &&
                           (cuda::addressOf(x.data) | cuda::addressOf(y.data)) % 16 == 0;
        for (int d = 0; d < kMaxRank; ++d)
            p.size[d] = 1;
        for (int d = 0, to = kMaxRank - y.dims.rank; d < y.dims.rank; ++d, ++to) {
            int64_t const by = packs && d == last ? pack : 1, whole = packs && d != last ? pack : 1;
            p.dim[to] = cuda::divBy(yDims[d] / by);
            p.size[to] = xDims[d] / by;
            p.start[to] = steps.start[d] / by;
            p.step[to] = steps.stride[d];
            p.stride[to] = strides[d] / whole;
        }
        p.yGap = packs ? yGap / pack : yGap;
        p.count = uint64_t(packs ? yDims.volume() / pack : yDims.volume());
        return launch(packs ? 1 : 0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
    };
    return out;
}

} // namespace tw::ops
