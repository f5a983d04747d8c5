// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/wgmma_f16.h"

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::attention_wgmma_f16 {

int64_t Spec::sharedBytes() const
{
    return 1024 + int64_t(groups * 64 + 2 * stages * keys) * headDim * 2 + 8 + stages * 32;
}

std::string Spec::name() const
{
    return fmt::format("attention_f16_d{}_{}x{}_s{}{}{}_wgmma_sm90a", headDim, groups * 64, keys, stages, masks.name(),
                       integers ? "_y8" : "");
}

char const* unsupported(Spec const& s)
{
    if (s.masks.segments && (s.masks.mask || s.masks.keep || s.masks.causal))
        return "sequences one behind the other have no masks";
    if (s.headDim != 64 && s.headDim != 128)
        return "a head has 64 or 128 elements";
    if (s.groups < 1 || s.groups > 3 || s.keys < 16 || s.keys > 256 || s.keys % 16 || s.stages < 1 || s.stages > 4)
        return "1 to 3 groups of warps, 16 to 256 keys a step in steps of 16, 1 to 4 stages";
    // A thread's scores, their exponentials in FP16, and results; and what else it holds.
    if (s.keys / 2 + s.keys / 4 + s.headDim / 2 + 40 + s.masks.registers(s.keys) > (s.groups == 3 ? 160 : 240))
        return "the tiles do not fit into registers";
    if (s.sharedBytes() > kSharedLimit)
        return "the tiles do not fit into shared memory";
    return nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/hopper.cuh") + wgmmaSource(s.keys, false, false) +
           wgmmaRegistersSource(s.headDim, true) + constant("D", s.headDim) + constant("GROUPS", s.groups) +
           constant("KEYS", s.keys) + constant("STAGES", s.stages) + constant("THREADS", s.threads()) +
           flag("INTEGERS", s.integers) + attentionSource(s.masks) + include("kernels/cuda/attention/wgmma_f16.cuh");
}

Maps maps(Spec const& spec, attention_f16::Shape const& g, attention_f16::Args const& args)
{
    auto map = [&](attention_f16::Strides const& s, int64_t rows, int64_t heads, int boxRows) {
        TensorMapSpec m;
        m.rank = 4;
        uint64_t const dims[4] = {uint64_t(spec.headDim), uint64_t(rows), uint64_t(heads), uint64_t(g.batch)};
        int64_t const strides[3] = {s.row, s.head, s.batch};
        for (int i = 0; i < 4; ++i)
            m.dims[i] = dims[i];
        for (int i = 0; i < 3; ++i)
            m.strides[i] = uint64_t(strides[i]) * 2;
        m.box[0] = 64;
        m.box[1] = uint32_t(boxRows);
        return m;
    };
    int64_t const keyHeads = g.heads / args.headsPerKey;
    return {map(args.qStride, g.sq, g.heads, spec.groups * 64), map(args.kStride, g.sk, keyHeads, spec.keys),
            map(args.vStride, g.sk, keyHeads, spec.keys)};
}

} // namespace tw::cuda::attention_wgmma_f16
