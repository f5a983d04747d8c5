// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention/attention_params.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"

namespace tw::ops::attention {

namespace {

constexpr int kThreads = 128;

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaSource out;
    out.wide = isWide(problem);
    out.names = {"attention"};
    out.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) +
               cuda::type("Key", cuda::storageOf(problem.inputs[1].type)) + cuda::flag("kIntegers", a.integers) +
               cuda::constant("kThreads", kThreads) + cuda::number("kScale", float(a.scale)) +
               cuda::number("kFill", float(a.fill)) + cuda::number("kScoreStep", float(a.scoreStep)) +
               cuda::number("kSumStep", float(a.sumStep)) + cuda::number("kWeightStep", float(a.weightStep)) +
               cuda::flag("kKeepInverted", a.keepInverted) + cuda::number("kSoftcap", float(a.softcap)) +
               cuda::flag("kCausal", a.causal) + cuda::flag("kWindow", a.window > 0) + cuda::flag("kTable", a.table) +
               cuda::flag("kPages", a.pages) + cuda::include("ops/attention/attention.cuh");
    return out;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(attrs, args.inputs);
        Params p{.q = args.inputs[0].data,
                 .k = args.inputs[1].data,
                 .v = args.inputs[2].data,
                 .mask = elementsOf(args.inputs, g.maskInput),
                 .keep = elementsOf(args.inputs, g.keepInput),
                 .y = args.outputs[0].data};
        if (attrs.integers)
            p.step = args.inputs[size_t(attrs.scaleInput(args.inputs.size()))].as<float>();
        if (g.beginsInput >= 0) {
            p.begins = args.inputs[size_t(g.beginsInput)].as<int32_t>();
            p.beginCount = args.inputs[size_t(g.beginsInput)].dims[0];
        }
        p.lengths = elementsOf<int32_t>(args.inputs, g.lengthsInput);
        p.sinks = elementsOf(args.inputs, g.sinksInput);
        p.slopes = elementsOf<float>(args.inputs, g.slopesInput);
        p.table = elementsOf<int32_t>(args.inputs, g.tableInput);
        p.sharing = g.sharing;
        p.pages = elementsOf<int32_t>(args.inputs, g.pagesInput);
        p.blocks = g.blocks;
        if (attrs.scales) {
            p.keyScales = elementsOf<float>(args.inputs, g.scalesInput);
            p.valueScales = elementsOf<float>(args.inputs, g.scalesInput + 1);
        }
        p.rows = g.rows;
        p.window = attrs.window;
        Strides const at[] = {g.q, g.k, g.v, g.mask, g.keep, g.y};
        std::transform(std::begin(at), std::end(at), p.at, [](Strides const& from) {
            return OperandPlace{from.offset, from.batch, from.head, from.row};
        });
        p.columns = g.columns;
        p.size = attrs.size;
        p.valueSize = attrs.valueSize;
        p.headsPerKey = attrs.headsPerKey;
        int64_t const chunks = blocksFor(attrs.valueSize, kThreads);
        p.chunks = cuda::divBy(chunks);
        p.rowCount = cuda::divBy(g.rows);
        p.headCount = cuda::divBy(attrs.heads);
        return launch(0, g.batch * attrs.heads * g.rows * chunks, kThreads, p);
    });
}

constexpr CudnnTactic kCudnn{"attention_f16_cudnn_sm90a", 1};
constexpr CudaTactic kPlain{"attention_any_plain_cuda", 7, generate};

} // namespace

extern constinit TacticList const cudaTactics =
    kTactics<kF16Wgmma, kF16Mma, kF16Few, kTf32Mma, kF32Mma, kCudnn, kPlain>;

} // namespace tw::ops::attention
