// SPDX-License-Identifier: Apache-2.0
// Tactics around the vector kernels of kernels/cpu/channels_last.h: one function of node, kernels and arguments, in the
// variants of both instruction sets. They take f32 alone, or another type if they say so, or any.
#pragma once

#include <optional>

#include "kernels/cpu/channels_last.h"
#include "tactic/cpu_tactic.h"
#include "tactic/tactic.h"

namespace tw::ops {

class VectorTactic final : public IsaTactic
{
public:
    using Run = Result<void> (*)(ir::Node const&, kernels::ChannelsLastKernels const&, RunArgs&);
    using Supports = Support (*)(Problem const&);
    using FormatsOf = std::vector<Formats> (*)(Problem const&);
    using Workspace = int64_t (*)(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out);

    // `isa` is that of the name.
    constexpr VectorTactic(char const* name, int version, kernels::jit::Isa isa, Run run, Supports supports,
                           FormatsOf formats, Workspace workspace = nullptr,
                           std::optional<DataType> type = DataType::kFloat)
        : IsaTactic(name, version, isa), run_(run), supports_(supports), formats_(formats), workspace_(workspace),
          type_(type)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override { return formats_(problem); }
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    Run run_;
    Supports supports_;
    FormatsOf formats_;
    Workspace workspace_;
    std::optional<DataType> type_; // of input 0 and all outputs; none: any
};

// Channels-last for everything that can be; nothing when output 0 cannot.
std::vector<Formats> onlyChannelsLast(Problem const& problem);
std::vector<Formats> onlyLinear(Problem const& problem);

// Calls body(begin, end) for pieces of [0, count), in parallel when all of it is `bytes` large enough to gain from
// that.
void inPieces(Workers& workers, int64_t count, int64_t bytes, FunctionRef<void(int64_t begin, int64_t end)> body);
// The same, body(i) for each.
template <class Body>
void eachInPieces(Workers& workers, int64_t count, int64_t bytes, Body const& body)
{
    inPieces(workers, count, bytes, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            body(i);
    });
}

// The first pixel of image n, and pixels of an image; of channels-last tensors.
inline float* imageOf(TensorRef const& t, int64_t n)
{
    return t.as<float>() + n * t.dims.volume(2, t.dims.rank) * t.pixelStride();
}
inline int8_t* int8ImageOf(TensorRef const& t, int64_t n)
{
    return t.as<int8_t>() + n * t.dims.volume(2, t.dims.rank) * t.pixelStride();
}
inline int64_t pixelsOf(TensorRef const& t)
{
    return t.dims.volume(2, t.dims.rank);
}

} // namespace tw::ops
