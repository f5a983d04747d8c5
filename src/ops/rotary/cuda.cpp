// SPDX-License-Identifier: Apache-2.0
#include "ops/rotary/op.h"
#include "ops/rotary/rotary_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::rotary {

namespace {

// Elements at once: of 16 bytes at the most, a row and a half of what is turned are whole packs.
int64_t widthOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    Extents const &x = problem.inputs[0].dims, &y = problem.outputs[0].dims;
    int64_t width = 16 / sizeOf(problem.inputs[0].type);
    while (width > 1 && (x[x.rank - 1] % width != 0 || y[y.rank - 1] % width != 0 || a.offset % width != 0 ||
                         (a.interleaved ? a.size : a.size / 2) % width != 0))
        width /= 2;
    return width;
}

CudaSource sourceOf(Problem const& problem, int64_t width)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    auto byPair = [&](size_t i) {
        Extents const& e = problem.inputs[i].maxDims;
        return e[e.rank - 1] * 2 == a.size;
    };
    return {.text = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) + cuda::constant("kSize", a.size) +
                    cuda::constant("kWidth", width) + cuda::flag("kInterleaved", a.interleaved) +
                    cuda::flag("kCosinesByPair", byPair(1)) + cuda::flag("kSinesByPair", byPair(2)) +
                    cuda::flag("kPacked", a.isPacked()) + cuda::include("ops/rotary/rotary.cuh"),
            .names = {"rotary_packs", "rotary_elements"},
            .wide = isWide(problem),
            .isDependent = true};
}

std::unique_ptr<CudaKernels> rotaryKernels(Problem const& problem, int64_t width)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem, width), [&a, width](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &from = args.inputs[0], &x = args.outputs[0]; // x: rows as the result has them
        int const last = x.dims.rank - 1;
        Params p{.x = from.as<char>() + a.offset * sizeOf(from.type),
                 .c = args.inputs[1].data,
                 .s = args.inputs[2].data,
                 .y = args.outputs[0].data};
        uint64_t const bytes = uint64_t(width * sizeOf(x.type));
        int64_t const by =
            x.dims[last] % width == 0 && (cuda::addressOf(p.x) | cuda::addressOf(p.y)) % bytes == 0 ? width : 1;
        p.width = uint64_t(from.dims[from.dims.rank - 1]);
        p.row = uint64_t(x.dims[last]);
        p.heads = cuda::divBy(std::max<int64_t>(a.heads, 1));
        p.packs = uint64_t(x.count() / by);
        p.packsOfRow = cuda::divBy(std::max<int64_t>(x.dims[last] / by, 1));
        Extents rows = x.dims;
        rows[last] = 1;
        p.rows.set(rows);
        for (int k = 0; k < 2; ++k) {
            Extents strides = stridesOf(args.inputs[size_t(1 + k)].dims, true);
            strides[last] = 0;
            p.rows.setStrides(k, strides);
        }
        return launch.each(by == width ? 0 : 1, int64_t(p.packs), p);
    });
}

std::unique_ptr<CudaKernels> generatePacks(Problem const& problem, Config const&)
{
    return rotaryKernels(problem, widthOf(problem));
}
std::unique_ptr<CudaKernels> generatePlain(Problem const& problem, Config const&)
{
    return rotaryKernels(problem, 1);
}

Support supportsPacks(Problem const& problem)
{
    return widthOf(problem) > 1 ? Support::yes() : Support::no("takes rows and halves that are whole packs");
}

constexpr CudaTactic kPacks{"rotary_any_packs_cuda", 2, generatePacks, supportsPacks};
constexpr CudaTactic kPlain{"rotary_any_plain_cuda", 2, generatePlain};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPacks, kPlain>;

} // namespace tw::ops::rotary
