// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/scatter/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::scatter {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostUnit = 16, kEach = 4; // bytes; units of the copy for a thread, in flight together

// A tuple of indices names a slot of y: a slice (nd) or an element. Three kernels: y = x; each slot keeps the number of
// the last tuple that names it; that tuple's updates are written.
struct Params
{
    void const *x = nullptr, *j = nullptr, *u = nullptr;
    void *y = nullptr, *last = nullptr;        // last: of each slot, 1 + the tuple, or 0; null: every tuple counts
    uint64_t units = 0, tail = 0;              // of the copy; elements behind its units
    uint64_t slots = 0, tuples = 0, count = 0; // count: units of u
    cuda::Loop<1> loop;                        // element: over u, what its coordinates say of the slot
    int64_t size[kMaxRank] = {}, stride[kMaxRank] = {}; // of what the indices step over, in slots
    cuda::Div block;                                    // units of a slice
    int32_t indices = 1, isElement = 0;
};

constexpr char const* kText = R"(
struct Params {
    void const *x, *j, *u; void *y, *last; u64 units, tail, slots, tuples, count; Loop<1> loop; i64 size[8], stride[8];
    Div block; i32 indices, isElement;
};
typedef $unit$ Element;
// Negative: outside.
TW_INLINE i64 slotOf(Params const& p, idx t)
{
    off at[1] = {0};
    if (p.isElement) locate<8>(p.loop, t, at);
    i64 slot = at[0];
    i32 const* const j = static_cast<i32 const*>(p.j) + t * idx(p.indices);
    for (int k = 0; k < p.indices; ++k) {
        i64 const index = j[k], c = index < 0 ? index + p.size[k] : index;
        if (c < 0 || c >= p.size[k]) return -1;
        slot += c * p.stride[k];
    }
    return slot;
}
template <class U> TW_INLINE void copy(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const begin = idx(blockIdx.x) * 256 * $each$ + threadIdx.x;
    U v[$each$];
#pragma unroll
    for (int k = 0; k < $each$; ++k)
        if (begin + k * 256 < p.units) v[k] = static_cast<U const*>(p.x)[begin + k * 256];
#pragma unroll
    for (int k = 0; k < $each$; ++k) {
        idx const i = begin + k * 256;
        if (i < p.units) static_cast<U*>(p.y)[i] = v[k];
        if (i < p.slots && p.last) static_cast<idx*>(p.last)[i] = 0;
    }
    if (begin >= p.tail) return;
    idx const i = idx(p.units) * (sizeof(U) / sizeof(Element)) + begin;
    static_cast<Element*>(p.y)[i] = static_cast<Element const*>(p.x)[i];
}
TW_KERNEL __launch_bounds__(256) scatter_choose(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const t = threadIndex();
    if (t >= p.tuples) return;
    i64 const slot = slotOf(p, t);
    if (slot >= 0) atomicMax(static_cast<idx*>(p.last) + slot, t + 1);
}
template <class U> TW_INLINE void write(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const t = divide(i, p.block), column = i - t * idx(p.block.d);
    i64 const slot = slotOf(p, t);
    if (slot >= 0 && (!p.last || static_cast<idx const*>(p.last)[slot] == t + 1))
        static_cast<U*>(p.y)[idx(slot) * idx(p.block.d) + column] = static_cast<U const*>(p.u)[i];
}
)";

// The largest unit, in bytes, that everything is a multiple of.
int64_t unitOf(int64_t bytes, uint64_t all)
{
    int64_t unit = bytes;
    while (unit < kMostUnit && all % uint64_t(2 * unit) == 0)
        unit *= 2;
    return unit;
}

// Number of the kernel for units of so many bytes, of those that begin with the one for elements.
int kernelOf(int first, int64_t bytes, int64_t unit)
{
    for (; bytes < unit; bytes *= 2)
        ++first;
    return first;
}

int64_t slotsOf(Attrs const& a, Extents const& indices, Extents const& y)
{
    return a.mode == Mode::kNd ? y.volume(0, int(indices[indices.rank - 1])) : y.volume();
}

Result<void> run(Attrs const& a, CudaLaunch const& launch, RunArgs& args, int kernelsOfUnits)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &u = args.inputs[2], &y = args.outputs[0];
    int64_t const bytes = sizeOf(y.type);
    if (y.count() == 0)
        return {};
    Params p;
    p.x = x.data;
    p.j = j.data;
    p.u = u.data;
    p.y = y.data;
    p.slots = uint64_t(slotsOf(a, j.dims, y.dims));
    int64_t slice = 1; // elements
    if (a.mode == Mode::kNd) {
        p.indices = int32_t(j.dims[j.dims.rank - 1]);
        for (int k = 0; k < p.indices; ++k) {
            p.size[k] = y.dims[k];
            p.stride[k] = y.dims.volume(k + 1, p.indices);
        }
        slice = y.dims.volume(p.indices, y.dims.rank);
    } else {
        Extents strides = stridesOf(y.dims);
        p.isElement = 1;
        p.size[0] = y.dims[int(a.axis)];
        p.stride[0] = strides[int(a.axis)];
        strides[int(a.axis)] = 0;
        p.loop.set(u.dims);
        p.loop.setStrides(0, strides);
    }
    p.tuples = uint64_t(u.count() / slice);
    p.last = p.tuples > 1 ? args.workspace : nullptr;
    int64_t const copied = unitOf(bytes, cuda::addressOf(x.data) | cuda::addressOf(y.data));
    p.units = uint64_t(y.count() * bytes / copied);
    p.tail = uint64_t(y.count() * bytes % copied / bytes);
    int64_t const threads = std::max<int64_t>(int64_t(p.units), p.last ? int64_t(p.slots) : 1);
    TW_TRY(launch(kernelOf(1, bytes, copied), blocksFor(threads, kThreads * kEach), kThreads, p));
    if (p.last)
        TW_TRY(launch(0, blocksFor(int64_t(p.tuples), kThreads), kThreads, p));
    int64_t const unit =
        unitOf(bytes, cuda::addressOf(u.data) | cuda::addressOf(y.data) | uint64_t(slice) * uint64_t(bytes));
    p.block = cuda::divBy(slice * bytes / unit);
    p.count = uint64_t(u.count() * bytes / unit);
    return launch(kernelOf(1 + kernelsOfUnits, bytes, unit), blocksFor(int64_t(p.count), kThreads), kThreads, p);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    int64_t const bytes = sizeOf(problem.outputs[0].type);
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"scatter_choose"};
    out.source = cuda::expand(kText, {{"unit", cuda::unitOf(bytes)}, {"each", std::to_string(kEach)}}) +
                 cuda::sizeCheck<Params>();
    for (char const* what : {"copy", "write"})
        for (int64_t unit = bytes; unit <= kMostUnit; unit *= 2) {
            std::string const n = std::to_string(unit);
            out.names.push_back(std::string("scatter_") + what + "_" + n);
            out.source += "TW_KERNEL __launch_bounds__(256) " + out.names.back() +
                          "(const __grid_constant__ Params p) { " + what + "<unit" + n + ">(p); }\n";
        }
    auto const& a = problem.node->attrsAs<Attrs>();
    int const kernelsOfUnits = int(out.names.size() - 1) / 2;
    out.run = [&a, kernelsOfUnits](CudaLaunch const& launch, RunArgs& args) {
        return run(a, launch, args, kernelsOfUnits);
    };
    out.workspace = [&a, wide = out.wide](std::span<TensorRef const> in, std::span<TensorRef const> outputs) {
        return slotsOf(a, in[1].dims, outputs[0].dims) * int64_t(wide ? sizeof(uint64_t) : sizeof(uint32_t));
    };
    return out;
}

constexpr CudaTactic kPlain{"scatter_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::scatter
