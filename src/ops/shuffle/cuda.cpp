// SPDX-License-Identifier: Apache-2.0

#include "families/copy/cuda_strided_copy.h"
#include "ops/shuffle/op.h"
#include "ops/shuffle/shuffle_params.h"

namespace tw::ops::shuffle {

namespace {

// Walks a tensor of `dims` in the order of its permutation.
void setLoop(cuda::Loop<1>& loop, Extents const& dims, std::vector<int64_t> const& permutation)
{
    if (isIdentity(permutation)) {
        loop.set(Extents{dims.volume()});
        loop.setStrides(0, Extents{1});
        return;
    }
    Extents const strides = stridesOf(dims);
    Extents from;
    for (int64_t p : permutation)
        from.push(strides[int(p)]);
    loop.set(permuted(dims, permutation));
    loop.setStrides(0, from);
}

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    auto rank = [](std::vector<int64_t> const& permutation) {
        return isIdentity(permutation) ? 1 : int64_t(permutation.size());
    };
    return {.text = cuda::type("Element", cuda::unitOf(sizeOf(problem.outputs[0].type))) +
                    cuda::constant("kFirstRank", rank(a.firstTranspose)) +
                    cuda::constant("kSecondRank", rank(a.secondTranspose)) + cuda::include("ops/shuffle/shuffle.cuh"),
            .names = {"shuffle"},
            .wide = isWide(problem)};
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Params p{.x = x.data, .y = y.data, .count = uint64_t(y.count())};
        setLoop(p.second, unpermuted(y.dims, attrs.secondTranspose), attrs.secondTranspose);
        setLoop(p.first, x.dims, attrs.firstTranspose);
        return launch.each(0, y.count(), p);
    });
}

CudaSource stridedSourceOf(Problem const& problem)
{
    CudaSource out = stridedCopySource(sizeOf(problem.outputs[0].type), StridedCopies::kTiled);
    out.wide = isWide(problem);
    return out;
}

std::unique_ptr<CudaKernels> stridedCopyKernels(Problem const& problem, Config const& config)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(stridedSourceOf(problem),
                     [&attrs, shape = tileShapeOf(config)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
                         TensorRef const &x = args.inputs[0], &y = args.outputs[0];
                         bool const isSecond = isIdentity(attrs.firstTranspose);
                         std::vector<int64_t> const& permutation =
                             isSecond ? attrs.secondTranspose : attrs.firstTranspose;
                         Extents const from = isSecond ? unpermuted(y.dims, attrs.secondTranspose) : x.dims,
                                       to = permuted(from, permutation),
                                       xSteps = permuted(stridesOf(from), permutation), ySteps = stridesOf(to);
                         Box box;
                         box.elementBytes = sizeOf(y.type);
                         box.x = x.data;
                         box.y = y.data;
                         for (int d = 0; d < to.rank; ++d)
                             box.add(to[d], xSteps[d], ySteps[d]);
                         return stridedCopy(launch, box, &shape);
                     });
}

Support supportsStridedCopy(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    if (!isIdentity(a.firstTranspose) && !isIdentity(a.secondTranspose))
        return Support::no("takes one transpose, not two");
    return Support::yes();
}

constexpr CudaTactic kStridedCopy{"shuffle_any_strided_copy_cuda", 4, stridedCopyKernels, supportsStridedCopy,
                                  configsOfTiles};
constexpr CudaTactic kPlain{"shuffle_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kStridedCopy, kPlain>;

} // namespace tw::ops::shuffle
