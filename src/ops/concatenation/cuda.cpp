// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation/op.h"
#include "ops/cuda_tactic.h"

namespace tw::ops::concatenation {

namespace {

constexpr int kThreads = 256;

// Rows of one input to rows of y; all counts in units.
struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div row; // units of x in a row
    int64_t yRow = 0, yBegin = 0;
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 count; Div row; i64 yRow, yBegin; };
template <class U> TW_INLINE void copyRows(Params const& p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const r = divide(i, p.row);
    static_cast<U*>(p.y)[off(r) * off(p.yRow) + off(p.yBegin) + off(i - r * idx(p.row.d))] =
        static_cast<U const*>(p.x)[i];
}
TW_KERNEL concatenation_1(const __grid_constant__ Params p) { copyRows<unit1>(p); }
TW_KERNEL concatenation_2(const __grid_constant__ Params p) { copyRows<unit2>(p); }
TW_KERNEL concatenation_4(const __grid_constant__ Params p) { copyRows<unit4>(p); }
TW_KERNEL concatenation_8(const __grid_constant__ Params p) { copyRows<unit8>(p); }
TW_KERNEL concatenation_16(const __grid_constant__ Params p) { copyRows<unit16>(p); }
)";

Result<void> run(int axis, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    int64_t const inner = y.dims.volume(axis + 1, y.dims.rank) * sizeOf(y.type), yRow = inner * y.dims[axis];
    int64_t begin = 0;
    for (TensorRef const& x : args.inputs) {
        int64_t const row = inner * x.dims[axis], rows = x.dims.volume(0, axis);
        if (row * rows > 0) {
            // The widest unit that divides everything.
            uint64_t const all =
                cuda::addressOf(x.data) | cuda::addressOf(y.data) | uint64_t(row) | uint64_t(yRow) | uint64_t(begin);
            int kernel = 4;
            while (kernel > 0 && all % (uint64_t(1) << kernel) != 0)
                --kernel;
            Params p;
            p.x = x.data;
            p.y = y.data;
            p.row = cuda::divBy(row >> kernel);
            p.yRow = yRow >> kernel;
            p.yBegin = begin >> kernel;
            p.count = uint64_t(row * rows) >> kernel;
            TW_TRY(launch(kernel, blocksFor(int64_t(p.count), kThreads), kThreads, p));
        }
        begin += row;
    }
    return {};
}

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    // Counted in bytes when nothing is aligned.
    out.wide = problem.outputs[0].maxDims.volume() >= INT32_MAX / sizeOf(problem.outputs[0].type);
    out.names = {"concatenation_1", "concatenation_2", "concatenation_4", "concatenation_8", "concatenation_16"};
    out.source = kText + cuda::sizeCheck<Params>();
    out.run = [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) {
        return run(axis, launch, args);
    };
    return out;
}

constexpr CudaTactic kPlain{"concatenation_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::concatenation
