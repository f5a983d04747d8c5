// SPDX-License-Identifier: Apache-2.0
// IRNNv2Layer: a stack of recurrences, batch first. Level i of both directions has the layer indices 2 i and 2 i + 1.
#include <algorithm>
#include <map>
#include <tuple>

#include "api/network/setter.h"
#include "ops/concatenation/op.h"
#include "ops/gather/op.h"
#include "ops/recurrence/op.h"
#include "ops/shuffle/op.h"

using namespace tw;
using namespace tw::api;

namespace {

using nvinfer1::RNNGateType;
using nvinfer1::RNNOperation;
using ops::recurrence::Cell;

constexpr int32_t kMostLevels = 1024;
constexpr char const* kGateNames[] = {"kINPUT", "kOUTPUT", "kFORGET", "kUPDATE", "kRESET", "kCELL", "kHIDDEN"};

// In the order of ops/recurrence/op.h.
std::vector<RNNGateType> gatesOf(RNNOperation op)
{
    if (op == RNNOperation::kLSTM)
        return {RNNGateType::kINPUT, RNNGateType::kOUTPUT, RNNGateType::kFORGET, RNNGateType::kCELL};
    if (op == RNNOperation::kGRU)
        return {RNNGateType::kUPDATE, RNNGateType::kRESET, RNNGateType::kHIDDEN};
    return {RNNGateType::kINPUT};
}

enum InputSlot : int32_t // of the layer
{
    kData = 0,
    kHidden = 1,
    kCellState = 2,
    kLengths = 3,
    kSlots = 4,
};

struct RecurrentLayer final : LayerObject<nvinfer1::IRNNv2Layer>
{
    using Key = std::tuple<int32_t, RNNGateType, bool>;
    int32_t levels = 1, hidden = 1, maxSteps = 1;
    RNNOperation operation{};
    nvinfer1::RNNInputMode inputMode = nvinfer1::RNNInputMode::kLINEAR;
    nvinfer1::RNNDirection direction = nvinfer1::RNNDirection::kUNIDIRECTION;
    std::map<Key, nvinfer1::Weights> matrices, biases;

    int maxInputs() const override { return kSlots; }
    int outputCount() const override { return operation == RNNOperation::kLSTM ? 3 : 2; }
    std::vector<nvinfer1::Weights> heldWeights() const override
    {
        std::vector<nvinfer1::Weights> all;
        for (auto const* some : {&matrices, &biases})
            for (auto const& [key, w] : *some)
                all.push_back(w);
        return all;
    }
    Result<void> onSetInput(int index, TensorObject&) override
    {
        if (index == kCellState && operation != RNNOperation::kLSTM)
            return error("only LSTM cells have a cell state");
        return {};
    }
    int directions() const { return direction == nvinfer1::RNNDirection::kBIDIRECTION ? 2 : 1; }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(kData);
        std::vector<ir::Value*> in{x, ctx.in(kHidden), ctx.in(kCellState), ctx.in(kLengths)};
        TW_TRY(ctx.shareBatch(in));
        TW_TRY(checkData(*x));
        x = in[kData];
        std::vector<std::vector<ir::Value*>> states(2);
        for (int32_t level = 0; level < levels; ++level) {
            TW_ASSIGN(ir::Node * node, lowerLevel(ctx, x, level, in));
            x = node->outputs[0];
            for (size_t i = 1; i < node->outputs.size(); ++i)
                states[i - 1].push_back(node->outputs[i]);
        }
        ctx.output(0, x);
        for (int i = 1; i < int(outputs.size()); ++i) {
            TW_ASSIGN(ir::Value * joined, joinedStates(ctx, states[size_t(i) - 1], i == 1 ? "hidden" : "cell"));
            ctx.output(i, joined);
        }
        return {};
    }

private:
    Result<void> checkData(ir::Value const& x) const
    {
        if (x.rank() < 2)
            return error("input '" + x.name + "' must have at least 2 dimensions, those of steps and of data");
        ir::Dim const steps = x.shape[x.shape.size() - 2], data = x.shape.back();
        if (steps.isConst() && steps.value() > maxSteps)
            return error("input '{}' has {} steps, more than the longest sequence of {}", x.name, steps.str(),
                         maxSteps);
        if (!data.isConst())
            return error("the data length of input '" + x.name + "' must not be a wildcard");
        if (inputMode == nvinfer1::RNNInputMode::kSKIP && data.value() != hidden)
            return error("with kSKIP the data length {} must be the hidden size {}", data.str(), hidden);
        return {};
    }
    Result<ir::Node*> lowerLevel(LowerContext& ctx, ir::Value* x, int32_t level, std::vector<ir::Value*> const& in)
    {
        ops::recurrence::Attrs a;
        a.cell = operation == RNNOperation::kLSTM  ? Cell::kLstm
                 : operation == RNNOperation::kGRU ? Cell::kGru
                                                   : Cell::kRnn;
        a.direction = directions() == 2 ? ops::recurrence::Direction::kBoth : ops::recurrence::Direction::kForward;
        a.hidden = hidden;
        a.linearBeforeReset = a.cell == Cell::kGru;
        a.batchFirst = true;
        if (operation == RNNOperation::kRELU) {
            a.functions.assign(size_t(directions()), int64_t(ops::recurrence::Function::kRelu));
            a.alpha.assign(size_t(directions()), 0.0);
            a.beta = a.alpha;
        }
        bool const skips = level == 0 && inputMode == nvinfer1::RNNInputMode::kSKIP;
        ir::Value* w = nullptr;
        if (!skips) {
            TW_ASSIGN(w, matrix(ctx, x->type, level, true, x->shape.back().value()));
        }
        TW_ASSIGN(ir::Value * r, matrix(ctx, x->type, level, false, hidden));
        TW_ASSIGN(ir::Value * b, bias(ctx, x->type, level));
        TW_ASSIGN(ir::Value * h, stateOf(ctx, in[kHidden], level, "hidden"));
        TW_ASSIGN(ir::Value * c, stateOf(ctx, in[kCellState], level, "cell"));
        std::vector<ir::Value*> inputs{x, r, w, b, in[kLengths], h};
        if (c)
            inputs.push_back(c);
        return ctx.add(ops::recurrence::def(), std::move(a), std::move(inputs),
                       levels > 1 ? std::to_string(level) : "");
    }
    // The elements of all of `list`, one after the other, as `type`.
    static Tensor copyOf(std::vector<nvinfer1::Weights> const& list, tw::DataType type, Extents const& dims)
    {
        Tensor all(type, dims);
        int64_t at = 0;
        for (nvinfer1::Weights const& w : list) {
            TensorRef const from{toCore(w.type), {w.count}, const_cast<void*>(w.values)};
            for (int64_t i = 0; i < w.count; ++i)
                all.ref().set(at++, from.get(i));
        }
        return all;
    }
    // Numbers of all gates and directions of a level, one after the other: parts(layer index, gate) gives some of each. Where
    // the client has named some, a node joins them, so that a refit takes each by its name.
    template <class Parts>
    Result<ir::Value*> constant(LowerContext& ctx, tw::DataType type, Extents const& dims, int32_t level,
                                ir::WeightsRole role, Parts const& parts)
    {
        std::vector<nvinfer1::Weights> list;
        for (int32_t d = 0; d < directions(); ++d)
            TW_TRY(parts(level * directions() + d, [&](nvinfer1::Weights const& w) { list.push_back(w); }));
        auto const hasName = [&](nvinfer1::Weights const& w) { return !ctx.weightsNameOf(w).empty(); };
        if (std::any_of(list.begin(), list.end(), hasName))
            return joined(ctx, list, type, dims, role);
        Tensor const all = copyOf(list, type, dims);
        auto c = std::make_shared<ir::Constant>();
        c->layer = name;
        c->role = role;
        c->data = Blob::copy(all.data(), size_t(all.ref().sizeBytes()));
        char const* const what = role == ir::WeightsRole::kBias ? ".bias" : ".kernel";
        return ctx.graph().addConstant(name + what, type, dims, std::move(c));
    }
    Result<ir::Value*> joined(LowerContext& ctx, std::vector<nvinfer1::Weights> const& list, tw::DataType type,
                              Extents const& dims, ir::WeightsRole role)
    {
        std::vector<ir::Value*> flat;
        for (nvinfer1::Weights const& w : list) {
            if (!ctx.weightsNameOf(w).empty()) {
                TW_ASSIGN(ir::Value * v, ctx.weights(w, {w.count}, type, role));
                flat.push_back(v);
                continue;
            }
            // Nothing tells it from the layer's others: no refit reaches it.
            Tensor const copy = copyOf({w}, type, {w.count});
            flat.push_back(ctx.graph().addConstant(name + ".rest", type, {w.count}, copy.data()));
        }
        char const* const what = role == ir::WeightsRole::kBias ? "bias" : "kernel";
        TW_ASSIGN(ir::Value * all, ctx.value(ops::concatenation::def(), ops::concatenation::Attrs(0), flat, what));
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.zeroIsPlaceholder = false;
        a.reshape.assign(dims.begin(), dims.end());
        return ctx.value(ops::shuffle::def(), std::move(a), {all}, std::string(what) + ".shape");
    }
    Result<ir::Value*> matrix(LowerContext& ctx, tw::DataType type, int32_t level, bool isW, int64_t columns)
    {
        auto const gates = gatesOf(operation);
        Extents const dims{directions(), int64_t(gates.size()) * hidden, columns};
        return constant(ctx, type, dims, level, ir::WeightsRole::kKernel, [&](int32_t index, auto const& put) {
            for (RNNGateType gate : gates) {
                auto const found = matrices.find({index, gate, isW});
                int64_t const count = found == matrices.end() ? 0 : found->second.count;
                if (count != hidden * columns)
                    return wrongCount("weights", index, gate, isW, count, hidden * columns);
                put(found->second);
            }
            return Result<void>();
        });
    }
    Result<ir::Value*> bias(LowerContext& ctx, tw::DataType type, int32_t level)
    {
        auto const gates = gatesOf(operation);
        Extents const dims{directions(), 2 * int64_t(gates.size()) * hidden};
        std::vector<float> const zeros(size_t(hidden), 0.0F);
        nvinfer1::Weights const none{nvinfer1::DataType::kFLOAT, zeros.data(), hidden};
        return constant(ctx, type, dims, level, ir::WeightsRole::kBias, [&](int32_t index, auto const& put) {
            for (bool isW : {true, false})
                for (RNNGateType gate : gates) {
                    auto const found = biases.find({index, gate, isW});
                    bool const given = found != biases.end() && found->second.count != 0;
                    if (given && found->second.count != hidden)
                        return wrongCount("bias", index, gate, isW, found->second.count, hidden);
                    put(given ? found->second : none);
                }
            return Result<void>();
        });
    }
    Result<void> wrongCount(char const* what, int32_t index, RNNGateType gate, bool isW, int64_t count,
                            int64_t wanted) const
    {
        return error("{}{} of gate {} of layer index {} has count {}, but {} was expected",
                     isW ? "input " : "recurrent ", what, kGateNames[int(gate)], index, count, wanted);
    }
    // The level's part of [N..., levels * directions, H].
    Result<ir::Value*> stateOf(LowerContext& ctx, ir::Value* all, int32_t level, std::string const& what)
    {
        if (!all || levels == 1)
            return all;
        if (all->rank() < 2)
            return error("the " + what + " state '" + all->name + "' must have at least 2 dimensions");
        ir::Dim const given = all->shape[all->shape.size() - 2];
        if (given.isConst() && given.value() != levels * directions())
            return error("the {} state '{}' has {} levels, but {} were expected", what, all->name, given.str(),
                         levels * directions());
        int32_t const picked[] = {level * directions(), level * directions() + 1};
        ir::Value* indices = ctx.graph().addConstant(name + ".levels", tw::DataType::kInt32, {directions()}, picked);
        ops::gather::Attrs a;
        a.axis = all->rank() - 2;
        return ctx.value(ops::gather::def(), std::move(a), {all, indices}, fmt::format("{}{}", what, level));
    }
    static Result<ir::Value*> joinedStates(LowerContext& ctx, std::vector<ir::Value*> const& states,
                                           std::string const& what)
    {
        if (states.size() == 1)
            return states[0];
        return ctx.value(ops::concatenation::def(), ops::concatenation::Attrs(states[0]->rank() - 2), states, what);
    }
};

std::string checkOperation(RecurrentLayer const& l, RNNOperation op)
{
    if (std::string why = checkEnum(op, "recurrent operation"); !why.empty())
        return why;
    if ((op == RNNOperation::kLSTM) != (l.operation == RNNOperation::kLSTM))
        return fmt::format("a layer made for {} has {} outputs: add another layer instead of changing its operation",
                           l.operation == RNNOperation::kLSTM ? "kLSTM" : "another cell", l.outputs.size());
    return {};
}

void setGate(RecurrentLayer& l, std::map<RecurrentLayer::Key, nvinfer1::Weights>& to, char const* method,
             RecurrentLayer::Key const& key, nvinfer1::Weights const& w)
{
    change(l, [&](RecurrentLayer&) -> Result<void> {
        int32_t const index = std::get<0>(key), most = 2 * l.levels;
        if (index < 0 || index >= most)
            return l.error("{}: layer index {} is out of range (allowed: 0..{})", method, index, most - 1);
        if (std::string why = checkEnum(std::get<1>(key), "gate"); !why.empty())
            return l.error(std::string(method) + ": " + why);
        TW_TRY(checkWeights(w, method));
        if (w.type != nvinfer1::DataType::kFLOAT && w.type != nvinfer1::DataType::kHALF)
            return l.error(std::string(method) + ": weights must be kFLOAT or kHALF");
        to[key] = w;
        return {};
    });
}

nvinfer1::Weights getGate(std::map<RecurrentLayer::Key, nvinfer1::Weights> const& from, RecurrentLayer::Key const& key)
{
    auto const found = from.find(key);
    return found == from.end() ? nvinfer1::Weights{nvinfer1::DataType::kFLOAT, nullptr, 0} : found->second;
}

nvinfer1::ITensor* slot(RecurrentLayer const& l, int32_t i)
{
    return i < int32_t(l.inputs.size()) ? l.inputs[size_t(i)] : nullptr;
}

TW_OBJECT(nvinfer1::IRNNv2Layer, RecurrentLayer)

} // namespace

namespace nvinfer1 {

IRNNv2Layer* INetworkDefinition::addRNNv2(ITensor& input, int32_t layerCount, int32_t hiddenSize, int32_t maxSeqLen,
                                          RNNOperation op) noexcept
{
    return addLayer<RecurrentLayer>(*this, LayerType::kRNN_V2, "RNN", {&input}, [&](RecurrentLayer& l) {
        l.operation = op;
        l.levels = layerCount;
        l.hidden = hiddenSize;
        l.maxSteps = maxSeqLen;
        return checkAll("addRNNv2",
                        {checkEnum(op, "recurrent operation"), checkRange(layerCount, 1, kMostLevels, "layer count"),
                         checkRange(hiddenSize, 1, 1 << 20, "hidden size"),
                         checkRange(maxSeqLen, 1, INT32_MAX, "sequence length")});
    });
}

TW_GETTER(IRNNv2Layer, int32_t, getLayerCount, self.levels)
TW_GETTER(IRNNv2Layer, int32_t, getHiddenSize, self.hidden)
TW_GETTER(IRNNv2Layer, int32_t, getMaxSeqLength, self.maxSteps)
int32_t IRNNv2Layer::getDataLength() const noexcept
{
    Dims const d = objectOf(*this).inputs[kData]->getDimensions();
    return d.nbDims > 0 ? d.d[d.nbDims - 1] : -1;
}
TW_PROPERTY(IRNNv2Layer, RNNOperation, setOperation, getOperation, operation, checkOperation(self, value))
TW_PROPERTY(IRNNv2Layer, RNNInputMode, setInputMode, getInputMode, inputMode, checkEnum(value, "input mode"))
TW_PROPERTY(IRNNv2Layer, RNNDirection, setDirection, getDirection, direction, checkEnum(value, "direction"))

void IRNNv2Layer::setWeightsForGate(int32_t layerIndex, RNNGateType gate, bool isW, Weights weights) noexcept
{
    RecurrentLayer& l = objectOf(*this);
    setGate(l, l.matrices, "setWeightsForGate", {layerIndex, gate, isW}, weights);
}
Weights IRNNv2Layer::getWeightsForGate(int32_t layerIndex, RNNGateType gate, bool isW) const noexcept
{
    return getGate(objectOf(*this).matrices, {layerIndex, gate, isW});
}
void IRNNv2Layer::setBiasForGate(int32_t layerIndex, RNNGateType gate, bool isW, Weights bias) noexcept
{
    RecurrentLayer& l = objectOf(*this);
    setGate(l, l.biases, "setBiasForGate", {layerIndex, gate, isW}, bias);
}
Weights IRNNv2Layer::getBiasForGate(int32_t layerIndex, RNNGateType gate, bool isW) const noexcept
{
    return getGate(objectOf(*this).biases, {layerIndex, gate, isW});
}

TW_SETTER(IRNNv2Layer, ITensor&, setSequenceLengths, setInput(kLengths, value))
TW_GETTER(IRNNv2Layer, ITensor*, getSequenceLengths, slot(self, kLengths))
TW_SETTER(IRNNv2Layer, ITensor&, setHiddenState, setInput(kHidden, value))
TW_GETTER(IRNNv2Layer, ITensor*, getHiddenState, slot(self, kHidden))
TW_SETTER(IRNNv2Layer, ITensor&, setCellState, setInput(kCellState, value))
TW_GETTER(IRNNv2Layer, ITensor*, getCellState, slot(self, kCellState))

} // namespace nvinfer1
