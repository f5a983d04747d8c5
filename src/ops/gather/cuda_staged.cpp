// SPDX-License-Identifier: Apache-2.0
#include "ops/gather/cuda_staged.h"

#include <algorithm>

#include "ops/gather/op.h"

namespace tw::ops::gather {

namespace {

constexpr int kThreads = 512;
constexpr int64_t kShared = 96 << 10,
                  kMostShared = 200 << 10; // bytes of a row: two blocks fit a multiprocessor, or one
constexpr int64_t kLeastTaken = 8; // of so many elements one is taken at least: else reading rows whole is a waste

// y[r, i] = x[r, j[i]], rows of `length` and `count` elements.
struct Params
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    int64_t length = 0, count = 0;
};

constexpr char const* kText = R"(
struct Params { void const *x, *j; void* y; i64 length, count; };
typedef $unit$ Element;
constexpr int kPack = 16 / sizeof(Element), kPerStore = 8 / sizeof(Element), kStep = $threads$;
typedef Pack<u32, 4> Whole;
extern __shared__ Whole shared[];
TW_KERNEL __launch_bounds__($threads$) gather_staged(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    Element* const s = reinterpret_cast<Element*>(shared);
    Element const* const x = static_cast<Element const*>(p.x) + i64(blockIdx.x) * p.length;
    Element* const y = static_cast<Element*>(p.y) + i64(blockIdx.x) * p.count;
    i32 const* const j = static_cast<i32 const*>(p.j);
    int const length = int(p.length), count = int(p.count), aligned = reinterpret_cast<u64>(x) % 16 == 0 ? length / kPack : 0;
    for (int begin = threadIdx.x; begin < aligned; begin += 4 * kStep) {
        Whole v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (begin + k * kStep < aligned) v[k] = reinterpret_cast<Whole const*>(x)[begin + k * kStep];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (begin + k * kStep < aligned) shared[begin + k * kStep] = v[k];
    }
#pragma unroll 8
    for (int i = aligned * kPack + threadIdx.x; i < length; i += kStep) s[i] = x[i];
    __syncthreads();
    auto taken = [&](i32 index) {
        index = index < 0 ? index + length : index;
        return index >= 0 && index < length ? s[index] : Element{};
    };
    bool const packs = reinterpret_cast<u64>(y) % 8 == 0;
    int const whole = packs ? count / kPerStore : 0;
    for (int begin = threadIdx.x; begin < whole; begin += 2 * kStep) {
        i32 index[2][kPerStore];
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int e = 0; e < kPerStore; ++e)
                if (begin + k * kStep < whole) index[k][e] = j[(begin + k * kStep) * kPerStore + e];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            if (begin + k * kStep >= whole) break;
            Pack<Element, kPerStore> out;
#pragma unroll
            for (int e = 0; e < kPerStore; ++e) out.v[e] = taken(index[k][e]);
            reinterpret_cast<Pack<Element, kPerStore>*>(y)[begin + k * kStep] = out;
        }
    }
#pragma unroll 4
    for (int i = whole * kPerStore + threadIdx.x; i < count; i += kStep) y[i] = taken(j[i]);
}
)";

} // namespace

Support supportsStaged(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &j = p.inputs[1];
    if (a.mode != Mode::kDefault || a.elementWiseDims != 0 || x.maxDims.rank == 0 || a.axis != x.maxDims.rank - 1)
        return Support::no("gathers along the innermost axis only");
    int64_t const length = x.maxDims[x.maxDims.rank - 1];
    if (length * sizeOf(x.type) > kMostShared)
        return Support::no("holds rows of " + std::to_string(kMostShared) + " bytes at most");
    if (length * sizeOf(x.type) > kShared && (!p.cuda || p.cuda->capability < 90))
        return Support::no("holds so long rows on GPUs of capability 9.0 on");
    if (j.maxDims.volume() >= INT32_MAX / 2)
        return Support::no("counts in 32 bits");
    if (j.maxDims.volume() * kLeastTaken < length)
        return Support::no("takes few elements of a row");
    return Support::yes();
}

CudaKernels generateStaged(Problem const& problem, Config const&)
{
    TensorSpec const& x = problem.inputs[0];
    bool const isLong = x.maxDims[x.maxDims.rank - 1] * sizeOf(x.type) > kShared;
    int const threads = isLong ? 2 * kThreads : kThreads;
    CudaKernels out;
    out.isDependent = true;
    out.names = {"gather_staged"};
    out.sharedBytes = isLong ? kMostShared : kShared;
    out.source = cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(x.type))}, {"threads", std::to_string(threads)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &j = args.inputs[1], &y = args.outputs[0];
        int const last = x.dims.rank - 1;
        Params const p{x.data, j.data, y.data, x.dims[last], j.count()};
        return launch(0, x.dims.volume(0, last), threads, p, (p.length * sizeOf(x.type) + 15) / 16 * 16);
    };
    return out;
}

} // namespace tw::ops::gather
