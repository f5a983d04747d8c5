// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM: recurrent layers where these can say it, else the cells in layers of their own (onnx/recurrent.h).
#include "onnx/recurrent.h"

namespace tw::onnx {

namespace {

using nvinfer1::RNNGateType;
using nvinfer1::RNNOperation;

// ONNX's order of gates.
std::vector<RNNGateType> gatesOf(Recurrent const& r)
{
    if (r.cell == Recurrent::Cell::kLstm)
        return {RNNGateType::kINPUT, RNNGateType::kOUTPUT, RNNGateType::kFORGET, RNNGateType::kCELL};
    if (r.cell == Recurrent::Cell::kGru)
        return {RNNGateType::kUPDATE, RNNGateType::kRESET, RNNGateType::kHIDDEN};
    return {RNNGateType::kINPUT};
}

bool hasFunctions(Recurrent const& r, std::vector<std::string> const& names)
{
    for (size_t i = 0; i < r.functions.size(); ++i)
        if (r.functions[i].name != names[i % names.size()])
            return false;
    return true;
}

bool isLayer(ImportContext& ctx, Recurrent const& r)
{
    bool const functions = r.cell == Recurrent::Cell::kLstm  ? hasFunctions(r, {"sigmoid", "tanh", "tanh"})
                           : r.cell == Recurrent::Cell::kGru ? hasFunctions(r, {"sigmoid", "tanh"})
                                                             : hasFunctions(r, {"tanh"}) || hasFunctions(r, {"relu"});
    auto isArray = [&](int i) { return ctx.isConstant(i) && !ctx.input(i).constant().computed; };
    bool const known = isArray(kInW) && isArray(kInR) && (!ctx.hasInput(kInB) || isArray(kInB));
    return functions && known && r.clip == 0 && !ctx.hasInput(kInP) && !r.inputForget && r.x.d[2] > 0 &&
           (r.cell != Recurrent::Cell::kGru || r.linearBeforeReset);
}

// Numbers [at, at + count) of a constant.
nvinfer1::Weights part(Constant const& c, int64_t at, int64_t count)
{
    auto const* bytes = static_cast<char const*>(c.values);
    return {c.type, bytes + at * (c.type == DataType::kHALF ? 2 : 4), count};
}

// Layer index d of the weights' direction `from`; both matrices, both biases. A direction that only fills the place of
// the first one has zeros.
void setWeights(ImportContext& ctx, Recurrent const& r, nvinfer1::IRNNv2Layer& layer, int index, int from)
{
    auto const gates = gatesOf(r);
    DataType const type = ctx.input(kInR).type();
    int64_t const inputs = r.x.d[2], h = r.hidden;
    for (int g = 0; g < r.gates; ++g)
        for (bool isW : {true, false}) {
            int64_t const count = h * (isW ? inputs : h);
            Constant const values =
                from < 0 ? ctx.filled(0, type, makeDims({count})) : ctx.constant(isW ? kInW : kInR, isW ? "W" : "R");
            int64_t const at = from < 0 ? 0 : (int64_t(from) * r.gates + g) * count;
            layer.setWeightsForGate(index, gates[size_t(g)], isW, part(values, at, count));
            ctx.nameWeights(values, at, part(values, at, count));
            if (from < 0 || !ctx.hasInput(kInB))
                continue;
            Constant const& biases = ctx.constant(kInB, "B");
            int64_t const first = ((from * 2 + !isW) * int64_t(r.gates) + g) * h;
            layer.setBiasForGate(index, gates[size_t(g)], isW, part(biases, first, h));
            ctx.nameWeights(biases, first, part(biases, first, h));
        }
}

ITensor& state(ImportContext& ctx, Recurrent const& r, int input, bool second)
{
    ITensor& given = ctx.tensor(input);
    ITensor& ordered = r.batchFirst ? given : ctx.transpose(given, {1, 0, 2}); // [N,D,H]
    return second ? ctx.concat({&ordered, &ordered}, 1) : ordered;
}

// The second half of axis 1 or 2.
ITensor& secondHalf(ImportContext& ctx, ITensor& t, int axis, int64_t size)
{
    Sizes sizes = ctx.sizesOf(t), start(sizes.size(), Size(0));
    sizes[size_t(axis)] = Size(size);
    start[size_t(axis)] = Size(size);
    return ctx.slice(t, start, sizes, Sizes(sizes.size(), Size(1)));
}

void importLayer(ImportContext& ctx, Recurrent const& r)
{
    // A layer runs forward, or both ways: from last to first alone is the second half of both.
    bool const second = r.reverse;
    ITensor& x = r.batchFirst ? ctx.tensor(kInX) : ctx.transpose(ctx.tensor(kInX), {1, 0, 2});
    RNNOperation const op = r.cell == Recurrent::Cell::kLstm  ? RNNOperation::kLSTM
                            : r.cell == Recurrent::Cell::kGru ? RNNOperation::kGRU
                            : r.functions[0].name == "relu"   ? RNNOperation::kRELU
                                                              : RNNOperation::kTANH;
    int const steps = r.steps() > 0 ? r.steps() : INT32_MAX;
    auto& layer = ctx.added(ctx.network().addRNNv2(x, 1, r.hidden, steps, op));
    if (r.directions == 2 || second)
        layer.setDirection(nvinfer1::RNNDirection::kBIDIRECTION);
    if (second)
        setWeights(ctx, r, layer, 0, -1);
    for (int d = 0; d < r.directions; ++d)
        setWeights(ctx, r, layer, d + second, d);
    if (ctx.hasInput(kInLengths))
        layer.setSequenceLengths(ctx.cast(ctx.tensor(kInLengths), DataType::kINT32));
    if (ctx.hasInput(kInH))
        layer.setHiddenState(state(ctx, r, kInH, second));
    if (ctx.hasInput(kInC))
        layer.setCellState(state(ctx, r, kInC, second));
    ITensor *y = &ctx.out(layer, 0), *h = &ctx.out(layer, 1),
            *c = op == RNNOperation::kLSTM ? &ctx.out(layer, 2) : nullptr;
    if (second) {
        y = &secondHalf(ctx, *y, 2, r.hidden);
        h = &secondHalf(ctx, *h, 1, 1);
        c = c ? &secondHalf(ctx, *c, 1, 1) : nullptr;
    }
    setRecurrentOutputs(ctx, r, *y, false, *h, c);
}

void import(ImportContext& ctx, Recurrent::Cell cell)
{
    Recurrent const r = readRecurrent(ctx, cell);
    if (isLayer(ctx, r))
        importLayer(ctx, r);
    else
        importSpelled(ctx, r);
}

} // namespace

void register_recurrence(ImporterMap& map)
{
    map.add("RNN", [](ImportContext& ctx) { import(ctx, Recurrent::Cell::kRnn); });
    map.add("LSTM", [](ImportContext& ctx) { import(ctx, Recurrent::Cell::kLstm); });
    map.add("GRU", [](ImportContext& ctx) { import(ctx, Recurrent::Cell::kGru); });
}

} // namespace tw::onnx
