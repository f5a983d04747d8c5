// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/shuffle/op.h"

using namespace tw;
using namespace tw::api;

namespace {

nvinfer1::Permutation identityPermutation()
{
    nvinfer1::Permutation p{};
    for (int32_t i = 0; i < nvinfer1::Dims::MAX_DIMS; ++i)
        p.order[i] = i;
    return p;
}

// The first `rank` entries, after the batch; those after them do not count and may hold anything. (Setters do not know
// the rank: it is the op that refuses what is no permutation.)
std::vector<int64_t> toAttribute(nvinfer1::Permutation const& p, int rank, int shift)
{
    std::vector<int64_t> out;
    bool identity = true;
    for (int i = 0; i < shift; ++i)
        out.push_back(i);
    for (int i = 0; i < rank - shift; ++i) {
        out.push_back(int64_t(p.order[i]) + shift);
        identity = identity && p.order[i] == i;
    }
    return identity ? std::vector<int64_t>() : out;
}

struct ShuffleLayer final : LayerObject<nvinfer1::IShuffleLayer>
{
    nvinfer1::Permutation first = identityPermutation(), second = identityPermutation();
    nvinfer1::Dims reshape{-1, {}}; // nbDims -1: not set
    bool zeroIsPlaceholder = true;

    int maxInputs() const override { return 2; } // data, reshape dimensions
    Result<void> onSetInput(int index, TensorObject&) override
    {
        if (index == 1)
            reshape = nvinfer1::Dims{-1, {}};
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ops::shuffle::Attrs a;
        int const shift = ctx.axisShift();
        ir::Value* x = ctx.in(0);
        ir::Value* dims = ctx.in(1);
        if (dims && shift)
            return error("reshape dimensions from a tensor need an explicit batch dimension");
        a.firstTranspose = toAttribute(first, x->rank(), shift);
        a.zeroIsPlaceholder = zeroIsPlaceholder;
        int rank = x->rank();
        if (dims) {
            if (dims->rank() != 1 || !dims->shape[0].isConst())
                return error("reshape dimensions '" + inputs[1]->name + "' must have one dimension of known size");
            if (dims->shape[0].value() > kMaxRank)
                return error("reshape dimensions '{}' are {} (limit {})", inputs[1]->name, dims->shape[0].str(),
                             kMaxRank);
            rank = int(dims->shape[0].value());
        } else if (reshape.nbDims >= 0) {
            a.hasReshape = true;
            if (shift) {
                // The batch stays, which only a placeholder can say.
                for (int64_t d : toVector(reshape))
                    if (d == 0 && !zeroIsPlaceholder)
                        return error("reshape dimensions " + str(reshape) +
                                     " with a size of zero need an explicit batch dimension");
                if (reshape.nbDims + shift > kMaxRank)
                    return error("reshape dimensions {} are too many beside the batch (limit {})", str(reshape),
                                 kMaxRank);
                a.reshape.push_back(0);
                a.zeroIsPlaceholder = true;
            }
            for (int64_t d : toVector(reshape))
                a.reshape.push_back(d);
            rank = int(a.reshape.size());
        }
        a.secondTranspose = toAttribute(second, rank, shift);
        return ctx.lowerTo(ops::shuffle::def(), std::move(a), {x, dims});
    }
};

TW_OBJECT(nvinfer1::IShuffleLayer, ShuffleLayer)

} // namespace

namespace nvinfer1 {

IShuffleLayer* INetworkDefinition::addShuffle(ITensor& input) noexcept
{
    return addLayer<ShuffleLayer>(*this, LayerType::kSHUFFLE, "Shuffle", {&input});
}

void IShuffleLayer::setReshapeDimensions(Dims dimensions) noexcept
{
    change(objectOf(*this), [&](ShuffleLayer& l) -> Result<void> {
        TW_TRY(checkDims(dimensions, -1, l.where("reshape dimensions")));
        int wildcards = 0;
        for (int64_t d : toVector(dimensions))
            wildcards += d == -1;
        if (wildcards > 1)
            return l.error("reshape dimensions " + str(dimensions) + " have more than one -1");
        while (l.inputs.size() > 1)
            l.inputs.pop_back();
        l.reshape = dimensions;
        return {};
    });
}
TW_GETTER(IShuffleLayer, Dims, getReshapeDimensions, self.reshape)
TW_PROPERTY(IShuffleLayer, Permutation, setFirstTranspose, getFirstTranspose, first)
TW_PROPERTY(IShuffleLayer, Permutation, setSecondTranspose, getSecondTranspose, second)
TW_PROPERTY(IShuffleLayer, bool, setZeroIsPlaceholder, getZeroIsPlaceholder, zeroIsPlaceholder)

} // namespace nvinfer1
