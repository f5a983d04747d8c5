// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/concatenation/op.h"
#include "ops/cuda_tactic.h"

namespace tw::ops::concatenation {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kStoreBytes = 8;
constexpr int kFirstOdd = 5, kOddKernels = 3; // of units of 1, 2 and 4 bytes
constexpr int64_t kShortRow = 8;              // units: shorter rows are all ends

// Rows of one input to rows of y; all counts in units.
struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div row;                                      // units of x in a row
    int64_t xRow = 0, yRow = 0, yBegin = 0, length = 0; // length: of a row of x
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 count; Div row; i64 xRow, yRow, yBegin, length; };
template <class U> TW_INLINE void copyRows(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const r = divide(i, p.row);
    off const at = off(i - r * idx(p.row.d));
    static_cast<U*>(p.y)[off(r) * off(p.yRow) + off(p.yBegin) + at] =
        static_cast<U const*>(p.x)[off(r) * off(p.xRow) + at];
}
// Rows that begin anywhere: aligned stores of 8 bytes, units at the ends of rows. p.row: stores of a row.
template <class U> TW_INLINE void copyOddRows(Params const& p)
{
    constexpr int kPerStore = 8 / sizeof(U);
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const r = divide(i, p.row);
    U const* const x = static_cast<U const*>(p.x) + off(r) * off(p.xRow);
    U* const y = static_cast<U*>(p.y) + off(r) * off(p.yRow) + off(p.yBegin);
    off const at = off(i - r * idx(p.row.d)) * kPerStore - off(reinterpret_cast<u64>(y) / sizeof(U) % kPerStore),
              length = off(p.length);
    if (at >= 0 && at + kPerStore <= length) {
        Pack<U, kPerStore> v;
#pragma unroll
        for (int e = 0; e < kPerStore; ++e) v.v[e] = x[at + e];
        *reinterpret_cast<Pack<U, kPerStore>*>(y + at) = v;
    } else {
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            if (at + e >= 0 && at + e < length) y[at + e] = x[at + e];
    }
}
TW_KERNEL concatenation_odd_1(const __grid_constant__ Params p) { copyOddRows<unit1>(p); }
TW_KERNEL concatenation_odd_2(const __grid_constant__ Params p) { copyOddRows<unit2>(p); }
TW_KERNEL concatenation_odd_4(const __grid_constant__ Params p) { copyOddRows<unit4>(p); }
TW_KERNEL concatenation_1(const __grid_constant__ Params p) { copyRows<unit1>(p); }
TW_KERNEL concatenation_2(const __grid_constant__ Params p) { copyRows<unit2>(p); }
TW_KERNEL concatenation_4(const __grid_constant__ Params p) { copyRows<unit4>(p); }
TW_KERNEL concatenation_8(const __grid_constant__ Params p) { copyRows<unit8>(p); }
TW_KERNEL concatenation_16(const __grid_constant__ Params p) { copyRows<unit16>(p); }
)";

// Bytes of a row, from row to row, and rows.
struct Rows
{
    int64_t bytes, step, count;
};

Rows rowsOf(TensorRef const& t, int axis)
{
    int64_t const size = sizeOf(t.type);
    if (t.format == Format::kHWC8) // channels of a pixel
        return {t.dims[axis] * size, t.pixelStride() * size,
                t.dims.volume(0, axis) * t.dims.volume(axis + 1, t.dims.rank)};
    int64_t const bytes = t.dims.volume(axis, t.dims.rank) * size;
    return {bytes, bytes, t.dims.volume(0, axis)};
}

// Inputs that lie in their place already (aliases) are left alone.
Result<void> run(int axis, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    Rows const whole = rowsOf(y, axis);
    int64_t begin = 0;
    for (TensorRef const& x : args.inputs) {
        Rows const rows = rowsOf(x, axis);
        char const* const place = y.as<char>() + begin;
        if (rows.bytes * rows.count > 0 && (x.as<char>() != place || rows.step != whole.step)) {
            // The widest unit that divides everything.
            uint64_t const all = cuda::addressOf(x.data) | cuda::addressOf(y.data) |
                                 uint64_t(rows.bytes | rows.step | whole.step | begin);
            int kernel = 4;
            while (kernel > 0 && all % (uint64_t(1) << kernel) != 0)
                --kernel;
            Params p;
            p.x = x.data;
            p.y = y.data;
            p.row = cuda::divBy(rows.bytes >> kernel);
            p.length = rows.bytes >> kernel;
            p.xRow = rows.step >> kernel;
            p.yRow = whole.step >> kernel;
            p.yBegin = begin >> kernel;
            p.count = uint64_t(rows.bytes * rows.count) >> kernel;
            if (kernel < kOddKernels && p.length > kShortRow) {
                int64_t const each = kStoreBytes >> kernel, stores = (p.length + each - 2) / each + 1;
                p.row = cuda::divBy(stores);
                p.count = uint64_t(stores * rows.count);
                kernel += kFirstOdd;
            }
            TW_TRY(launch(kernel, blocksFor(int64_t(p.count), kThreads), kThreads, p));
        }
        begin += rows.bytes;
    }
    return {};
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    int const rank = p.outputs[0].dims.rank;
    bool const anyConstant =
        std::any_of(p.inputs.begin(), p.inputs.end(), [](TensorSpec const& t) { return t.constant != nullptr; });
    if (isFloating(p.outputs[0].type) && rank >= 3 && !anyConstant &&
        p.node->attrsAs<Attrs>().axis == channelAxis(Format::kHWC8, rank))
        list.push_back(channelsLastFormats(p, Format::kHWC8));
    return list;
}

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    // Counted in bytes when nothing is aligned.
    TensorSpec const& y = problem.outputs[0];
    out.wide = storageCount(y.format, y.type, y.maxDims) >= INT32_MAX / sizeOf(y.type);
    out.isDependent = true;
    out.names = {"concatenation_1",  "concatenation_2",     "concatenation_4",     "concatenation_8",
                 "concatenation_16", "concatenation_odd_1", "concatenation_odd_2", "concatenation_odd_4"};
    out.source = kText + cuda::sizeCheck<Params>();
    out.run = [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) {
        return run(axis, launch, args);
    };
    return out;
}

constexpr CudaTactic kPlain{"concatenation_plain_cuda", 3, generate, nullptr, nullptr, formats};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::concatenation
