// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention_guard/attention_guard_params.h"
#include "ops/attention_guard/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::attention_guard {

namespace {

constexpr int kThreads = 256;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const type = problem.outputs[0].type;
    CudaSource source{
        .text = cuda::flag("kRowsFirst", a.rowsFirst) +
                fmt::format("constexpr unsigned kExponent = {}u, kNan = {}u;\n", exponentOf(type), nanOf(type)) +
                cuda::include("ops/attention_guard/attention_guard.cuh"),
        .wide = isWide(problem),
        .isDependent = true};
    std::string const bits = sizeOf(type) == 4 ? "tw::cuda::u32" : "tw::cuda::u16";
    source.add("attention_guard", "tw::ops::attention_guard::guard<" + bits + ">", "tw::ops::attention_guard::Params",
               kThreads);
    return kernelsOf(std::move(source), [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(a, args.inputs);
        TensorRef const &y = args.inputs[0], &v = args.inputs[1];
        if (y.count() == 0)
            return {};
        Params p{.y = y.data, .v = v.type == y.type ? v.data : nullptr, .z = args.outputs[0].data};
        p.lengths = attention::elementsOf<int32_t>(args.inputs, g.lengthsInput);
        p.pages = attention::elementsOf<int32_t>(args.inputs, g.pagesInput);
        p.count = uint64_t(y.count());
        p.columns = g.columns;
        p.pageCount = g.columns / attention::kPageRows;
        p.blocks = g.blocks;
        p.offset = g.v.offset;
        p.batchStride = g.v.batch;
        p.headStride = g.v.head;
        p.rowStride = g.v.row;
        p.width = cuda::divBy(a.heads * a.valueSize);
        p.size = cuda::divBy(a.valueSize);
        p.perKey = cuda::divBy(a.headsPerKey);
        p.images = cuda::divBy(a.rowsFirst ? g.batch : g.rows);
        return launch(0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"attention_guard_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::attention_guard
