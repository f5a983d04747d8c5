// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors and optional values. A network has neither: here a sequence is a list of the importer, whose length is
// known, and so is whether an optional value is there. The operators take lists apart and put them together; what they give
// becomes layers where it is a tensor.
#include <algorithm>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

constexpr int64_t kMostElements = 4096;

std::vector<Value> const& sequence(ImportContext& ctx, int i)
{
    Value const& v = ctx.input(i);
    if (!v.isSequence())
        ctx.invalid(fmt::format("input {} is {}, not a sequence", i,
                                v.isMissing() ? "an optional value that is not there" : "a tensor"));
    return v.elements();
}

// A place in a list of `count`; from the end where it is negative.
size_t place(ImportContext& ctx, int i, int64_t count, int64_t absent)
{
    int64_t at = absent;
    if (ctx.hasInput(i)) {
        Constant const& c = ctx.constant(i, "position");
        if (c.count != 1 || isFloating(c.type))
            ctx.invalid("the position is " + std::string(typeName(c.type)) + describe(c.dims) +
                        ", it must be one integer");
        ctx.decideBy(ctx.input(i));
        at = c.intAt(0);
    }
    if (at < -count || at >= count)
        ctx.invalid(fmt::format("position {} is out of range for {} places", at, count));
    return size_t(at < 0 ? at + count : at);
}

void checkTensor(ImportContext const& ctx, Value const& v)
{
    if (!v.isOneTensor())
        ctx.fail("a sequence of sequences, or of optional values, cannot be imported");
}

void importConstruct(ImportContext& ctx)
{
    std::vector<Value> list;
    for (int i = 0; i < ctx.nbInputs(); ++i)
        checkTensor(ctx, list.emplace_back(ctx.input(i)));
    ctx.setOutput(0, Value::sequence(std::move(list)));
}

void importInsert(ImportContext& ctx)
{
    std::vector<Value> list = sequence(ctx, 0);
    checkTensor(ctx, ctx.input(1));
    int64_t const length = int64_t(list.size());
    ctx.check(length < kMostElements, fmt::format("the sequence has more than {} elements", kMostElements));
    // Behind the last element is a place, too; -1 is in front of the last element.
    int64_t at = length;
    if (ctx.hasInput(2)) {
        size_t const given = place(ctx, 2, length + 1, length);
        bool const isFromEnd = ctx.input(2).constant().intAt(0) < 0;
        at = int64_t(given) - (isFromEnd ? 1 : 0);
        if (at < 0)
            ctx.invalid(
                fmt::format("position {} is out of range for {} elements", ctx.input(2).constant().intAt(0), length));
    }
    list.insert(list.begin() + at, ctx.input(1));
    ctx.setOutput(0, Value::sequence(std::move(list)));
}

void importErase(ImportContext& ctx)
{
    std::vector<Value> list = sequence(ctx, 0);
    size_t const at = place(ctx, 1, int64_t(list.size()), int64_t(list.size()) - 1);
    list.erase(list.begin() + int64_t(at));
    ctx.setOutput(0, Value::sequence(std::move(list)));
}

void importAt(ImportContext& ctx)
{
    std::vector<Value> const& list = sequence(ctx, 0);
    Value const v = list[place(ctx, 1, int64_t(list.size()), 0)];
    ctx.setOutput(0, v.isTensor() ? Value(ctx.identity(v.tensor()), v.integers()) : v);
}

void importConcatFromSequence(ImportContext& ctx)
{
    std::vector<Value> const& list = sequence(ctx, 0);
    if (list.empty())
        ctx.invalid("the sequence has no elements");
    bool const isNew = ctx.attrInt("new_axis", 0) != 0;
    int const axis = ctx.axis(ctx.requireInt("axis"), list[0].rank() + isNew);
    std::vector<ITensor*> parts;
    for (Value const& v : list) {
        if (v.rank() != list[0].rank())
            ctx.invalid("the sequence has tensors of ranks " + fmt::format("{} and {}", list[0].rank(), v.rank()));
        ITensor& t = ctx.asTensor(v);
        parts.push_back(isNew ? &ctx.unsqueeze(t, {axis}) : &t);
    }
    ITensor& y = ctx.concat(parts, axis);
    ctx.setOutput(0, parts.size() == 1 ? Value(ctx.identity(y)) : Value(y));
}

// The parts' sizes along the axis: those given, or one size for all but the last.
Sizes splitSizes(ImportContext& ctx, Size const& extent)
{
    bool const isGiven = ctx.hasInput(1);
    if (isGiven && ctx.input(1).rank() == 1)
        return ctx.sizesFrom(ctx.input(1));
    ctx.check(extent.known(), "how many parts there are must be known: the extent of its axis is not");
    int64_t const size = isGiven ? ctx.constant(1, "split").intAt(0) : 1;
    if (size < 1)
        ctx.invalid(fmt::format("split is {}", size));
    ctx.check((extent.value + size - 1) / size <= kMostElements,
              fmt::format("it gives more than {} parts", kMostElements));
    Sizes sizes;
    for (int64_t at = 0; at < extent.value; at += size)
        sizes.emplace_back(std::min(size, extent.value - at));
    return sizes;
}

void importSplitToSequence(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Sizes const all = ctx.sizesOf(x);
    int const axis = ctx.axis(ctx.attrInt("axis", 0), int(all.size()));
    bool const squeezes = !ctx.hasInput(1) && ctx.attrInt("keepdims", 1) == 0;
    Sizes start(all.size(), Size(0));
    std::vector<Value> list;
    for (Size const& size : splitSizes(ctx, all[size_t(axis)])) {
        Sizes sizes = all;
        sizes[size_t(axis)] = size;
        ITensor& part = ctx.slice(x, start, sizes, Sizes(all.size(), Size(1)));
        list.emplace_back(squeezes ? ctx.squeeze(part, {axis}) : part, ctx.input(0).integers());
        start[size_t(axis)] = ctx.add(start[size_t(axis)], size);
    }
    if (all[size_t(axis)].known() && start[size_t(axis)].known() &&
        start[size_t(axis)].value != all[size_t(axis)].value)
        ctx.invalid(fmt::format("the parts have {} elements along axis {}, the tensor has {}",
                                start[size_t(axis)].value, axis, all[size_t(axis)].value));
    ctx.setOutput(0, Value::sequence(std::move(list)));
}

// The body once for each element; tensors among the further inputs are the same each time.
void importMap(ImportContext& ctx)
{
    size_t const count = sequence(ctx, 0).size();
    std::vector<std::vector<Value>> results(size_t(ctx.nbOutputs()));
    if (ctx.nbGraphInputs("body") != ctx.nbInputs() || ctx.nbGraphOutputs("body") < ctx.nbOutputs())
        ctx.invalid(fmt::format("graph 'body' has {} inputs and {} outputs, the node {} and {}",
                                ctx.nbGraphInputs("body"), ctx.nbGraphOutputs("body"), ctx.nbInputs(),
                                ctx.nbOutputs()));
    for (size_t k = 0; k < count; ++k) {
        std::vector<Value> inputs;
        for (int i = 0; i < ctx.nbInputs(); ++i) {
            Value const& v = ctx.input(i);
            if (v.isSequence() && v.elements().size() != count)
                ctx.invalid(fmt::format("input {} has {} elements, the first {}", i, v.elements().size(), count));
            inputs.push_back(v.isSequence() ? v.elements()[k] : v);
        }
        std::vector<Value> const outputs = ctx.importGraph("body", inputs);
        for (size_t i = 0; i < results.size(); ++i) {
            checkTensor(ctx, outputs[i]);
            results[i].push_back(outputs[i]);
        }
    }
    for (size_t i = 0; i < results.size(); ++i)
        ctx.setOutput(int(i), Value::sequence(std::move(results[i])));
}

void importOptional(ImportContext& ctx)
{
    ctx.setOutput(0, ctx.hasInput(0) ? ctx.input(0) : Value::missing());
}

void importHasElement(ImportContext& ctx)
{
    bool const has = ctx.hasInput(0) && !ctx.input(0).isMissing();
    ctx.setOutput(0, Value(ctx.filled(has, DataType::kBOOL, Dims{0, {}})));
}

void importGetElement(ImportContext& ctx)
{
    Value const& v = ctx.input(0);
    if (v.isMissing())
        ctx.invalid("the optional value is not there");
    ctx.setOutput(0, v.isTensor() ? Value(ctx.identity(v.tensor()), v.integers()) : v);
}

} // namespace

void register_composites_tensor_sequences(ImporterMap& map)
{
    map.add("SequenceConstruct", importConstruct);
    map.add("SequenceEmpty", [](auto& ctx) { ctx.setOutput(0, Value::sequence({})); });
    map.add("SequenceInsert", importInsert);
    map.add("SequenceErase", importErase);
    map.add("SequenceAt", importAt);
    map.add("SequenceLength",
            [](auto& ctx) { ctx.setOutput(0, Value(ctx.intScalar(int64_t(sequence(ctx, 0).size())))); });
    map.add("SequenceMap", importMap);
    map.add("ConcatFromSequence", importConcatFromSequence);
    map.add("SplitToSequence", importSplitToSequence);
    map.add("Optional", importOptional);
    map.add("OptionalHasElement", importHasElement);
    map.add("OptionalGetElement", importGetElement);
}

} // namespace tw::onnx
