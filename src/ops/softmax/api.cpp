// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <optional>

#include "api/network/network.h"
#include "api/network/setter.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/select/op.h"
#include "ops/shape/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct SoftMaxLayer final : LayerObject<nvinfer1::ISoftMaxLayer>
{
    std::optional<uint32_t> axes; // unset: the default, which follows the input's rank

    static uint32_t defaultAxes(int rank) { return 1u << std::max(0, rank - 3); }

    Result<void> lower(LowerContext& ctx) override
    {
        ops::softmax::Attrs a;
        int const rank = ctx.in(0)->rank() - ctx.axisShift();
        int const axis = axisOfMask(axes.value_or(defaultAxes(rank)));
        if (axis >= rank)
            return error("axis {} is out of range for input '{}' of rank {}", axis, inputs[0]->name, rank);
        a.axis = axis + ctx.axisShift();
        return ctx.lowerTo(ops::softmax::def(), std::move(a), {ctx.in(0)});
    }
};

// Ragged softmax: the first elements of each row, as many as its length says, are a softmax; the rest is 0. It becomes
//   inside = i < length, y = inside ? softmax(inside ? x : -inf) : 0
// which holds for lengths of 0 too: what the softmax of nothing gives is not taken.
struct RaggedSoftMaxLayer final : LayerObject<nvinfer1::IRaggedSoftMaxLayer>
{
    Result<void> lower(LowerContext& ctx) override
    {
        std::vector<ir::Value*> in{ctx.in(0), ctx.in(1)};
        TW_TRY(check(ctx, *in[0], *in[1]));
        TW_TRY(ctx.shareBatch(in));
        ir::Value *x = in[0], *lengths = in[1];
        // Lengths [z] and [z, 1] mean the same.
        std::vector<int64_t> row(size_t(x->rank()), 1);
        if (lengths->rank() < x->rank()) {
            ops::shuffle::Attrs column;
            column.hasReshape = true;
            column.reshape.assign(size_t(lengths->rank()), 0);
            column.reshape.push_back(1);
            TW_ASSIGN(lengths, ctx.value(ops::shuffle::def(), std::move(column), {lengths}, "lengths"));
        }
        ops::fill::Attrs count;
        count.outputType = DataType::kInt32;
        std::vector<ir::Value*> size;
        if (x->shape.back().isConst()) {
            count.dims = {x->shape.back().value()};
        } else {
            TW_ASSIGN(ir::Value * shape, ctx.value(ops::shape::def(), ir::NoAttrs(), {x}, "shape"));
            ops::slice::Attrs last;
            last.start = {x->rank() - 1};
            last.size = last.stride = {1};
            size.push_back(nullptr);
            TW_ASSIGN(size[0], ctx.value(ops::slice::def(), std::move(last), {shape}, "row"));
        }
        TW_ASSIGN(ir::Value * at, ctx.value(ops::fill::def(), std::move(count), std::move(size), "positions"));
        row.back() = x->shape.back().isConst() ? x->shape.back().value() : -1;
        ops::shuffle::Attrs asRow;
        asRow.hasReshape = true;
        asRow.zeroIsPlaceholder = false;
        asRow.reshape = row;
        TW_ASSIGN(at, ctx.value(ops::shuffle::def(), std::move(asRow), {at}, "row of positions"));
        ops::elementwise::Attrs const less(ops::elementwise::Operation::kLess);
        TW_ASSIGN(ir::Value * inside, ctx.value(ops::elementwise::def(), less, {at, lengths}, "inside"));
        TW_ASSIGN(ir::Value * y,
                  ctx.value(ops::select::def(), ir::NoAttrs(),
                            {inside, x, number(ctx, *x, -std::numeric_limits<double>::infinity())}, "mask"));
        ops::softmax::Attrs a;
        a.axis = x->rank() - 1;
        TW_ASSIGN(y, ctx.value(ops::softmax::def(), std::move(a), {y}, "softmax"));
        TW_ASSIGN(y, ctx.value(ops::select::def(), ir::NoAttrs(), {inside, y, number(ctx, *x, 0)}, ""));
        ctx.output(0, y);
        return {};
    }

private:
    static ir::Value* number(LowerContext& ctx, ir::Value const& like, double v)
    {
        Extents const ones = Extents::ones(like.rank());
        Tensor t(like.type, ones);
        t.ref().set(0, v);
        return ctx.graph().addConstant("number", like.type, ones, t.data());
    }

    Result<void> check(LowerContext& ctx, ir::Value const& x, ir::Value const& lengths) const
    {
        int const rank = x.rank() - ctx.axisShift(), given = lengths.rank() - ctx.axisShift();
        std::string const data = "data '" + inputs[0]->name + "' with shape " + ir::str(x.shape);
        std::string const bounds = "lengths '" + inputs[1]->name + "' with shape " + ir::str(lengths.shape);
        if (!isFloating(x.type))
            return error(data + " must be f32 or f16");
        if (lengths.type != DataType::kInt32)
            return error(bounds + " must be i32");
        if (rank < 1 || (given != rank && given != rank - 1))
            return error(bounds + " must have the dimensions of " + data + ", the last one 1 or left out");
        if (given == rank && !lengths.shape.back().is(1))
            return error("the last dimension of " + bounds + " must be 1, and known when the engine is built");
        return {};
    }
};

TW_OBJECT(nvinfer1::ISoftMaxLayer, SoftMaxLayer)

} // namespace

namespace nvinfer1 {

ISoftMaxLayer* INetworkDefinition::addSoftMax(ITensor& input) noexcept
{
    return addLayer<SoftMaxLayer>(*this, LayerType::kSOFTMAX, "SoftMax", {&input});
}

TW_FIELD_SETTER(ISoftMaxLayer, uint32_t, setAxes, axes, checkOneAxis(value))
TW_GETTER(ISoftMaxLayer, uint32_t, getAxes,
          self.axes.value_or(self.defaultAxes(self.inputs[0]->getDimensions().nbDims)))

IRaggedSoftMaxLayer* INetworkDefinition::addRaggedSoftMax(ITensor& input, ITensor& bounds) noexcept
{
    return addLayer<RaggedSoftMaxLayer>(*this, LayerType::kRAGGED_SOFTMAX, "RaggedSoftMax", {&input, &bounds});
}

} // namespace nvinfer1
