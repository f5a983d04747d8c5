// SPDX-License-Identifier: Apache-2.0
// Loop, Scan.
#include <algorithm>

#include "importers/common/loops.h"
#include "onnx/integers.h"

namespace tw::onnx {

namespace {

using nvinfer1::ILoop;
using nvinfer1::TripLimit;

void checkCount(ImportContext const& ctx, char const* what, int have, int want)
{
    if (have != want)
        ctx.invalid(fmt::format("graph 'body' has {} {}, the node needs {}", have, what, want));
}

// ---- Loop

bool isConstant(Value const& v, bool value)
{
    return v.isConstant() && v.constant().count == 1 && (v.constant().intAt(0) != 0) == value;
}

// The number of the trip, from 0.
ITensor& addTripNumber(ImportContext& ctx, Carried& carried, size_t at)
{
    ITensor& number = carried.add(ctx.asTensor(Value(ctx.intScalar(0))));
    ITensor& one = ctx.asTensor(Value(ctx.intScalar(1)));
    carried.setNext(at, ctx.elementwise(number, one, nvinfer1::ElementWiseOperation::kSUM), "the number of the trip");
    return number;
}

// Bodies that work on sequences, which are lists of the importer: as many copies of the body as there are trips.
bool isOfSequences(ImportContext& ctx)
{
    for (int i = 2; i < ctx.nbInputs(); ++i)
        if (Value const v = ctx.optionalInput(i); v.isSequence() || v.isMissing())
            return true;
    return ctx.graphHasOp("body", "Sequence");
}

// `why` it has to be so: a sentence.
void importUnrolled(ImportContext& ctx, int nbCarried, std::string const& why)
{
    auto isOne = [](Value const& v) { return v.isConstant() && v.constant().count == 1; };
    ctx.check(!ctx.hasInput(0) || isOne(ctx.input(0)), "its number of trips must be an initializer! (" + why + ")");
    ctx.check(!ctx.hasInput(1) || isOne(ctx.input(1)), "its condition must be an initializer! (" + why + ")");
    bool const hasCondition = ctx.hasInput(1);
    int64_t const most = ctx.hasInput(0) ? ctx.input(0).constant().intAt(0) : INT64_MAX;
    bool goesOn = !hasCondition || ctx.input(1).constant().intAt(0) != 0;
    std::vector<Value> carried;
    for (int i = 0; i < nbCarried; ++i)
        carried.push_back(ctx.input(2 + i));
    std::vector<std::vector<ITensor*>> stacks(size_t(ctx.nbOutputs() - nbCarried));
    for (int64_t trip = 0; goesOn && trip < most; ++trip) {
        std::vector<Value> inputs{Value(ctx.intScalar(trip)), Value(ctx.filled(1, DataType::kBOOL, Dims{0, {}}))};
        inputs.insert(inputs.end(), carried.begin(), carried.end());
        std::vector<Value> const outputs = ctx.importGraph("body", inputs);
        carried.assign(outputs.begin() + 1, outputs.begin() + 1 + nbCarried);
        for (size_t i = 0; i < stacks.size(); ++i)
            stacks[i].push_back(&ctx.unsqueeze(plainTensor(ctx, outputs[size_t(1 + nbCarried) + i]), {0}));
        ctx.check(!hasCondition || isOne(outputs[0]), "its condition must be known at import! (" + why + ")");
        goesOn = !hasCondition || outputs[0].constant().intAt(0) != 0;
    }
    for (int i = 0; i < nbCarried; ++i)
        ctx.setOutput(i, carried[size_t(i)]);
    for (size_t i = 0; i < stacks.size(); ++i)
        if (ctx.wantsOutput(nbCarried + int(i))) {
            ctx.check(!stacks[i].empty(), "it has no trip, so that the shape of what it stacks is not known");
            ITensor& y = ctx.concat(stacks[i], 0);
            ctx.setOutput(nbCarried + int(i), y);
        }
}

// A value to which each trip appends.
struct Grown
{
    ITensor& first;
    int axis;

    // What the body takes in its place, so that what it gives is what it appends: nothing.
    Value nothing(ImportContext& ctx) const
    {
        Dims dims = first.getDimensions();
        for (int d = 0; d < dims.nbDims; ++d)
            dims.d[d] = d == axis ? 0 : dims.d[d];
        return Value(ctx.filled(0, first.getType(), dims));
    }
    // What all trips have appended, behind the first.
    ITensor& whole(ImportContext& ctx, ILoop& loop, ITensor& appended) const
    {
        ITensor& stack = stacked(ctx, loop, appended, axis, false, nullptr);
        Sizes sizes = ctx.sizesOf(stack);
        sizes[size_t(axis)] = ctx.mul(sizes[size_t(axis)], sizes[size_t(axis) + 1]);
        sizes.erase(sizes.begin() + axis + 1);
        ITensor& all = ctx.reshape(stack, sizes);
        return first.getDimensions().d[axis] == 0 ? all : ctx.concat({&first, &all}, axis);
    }
};

// By carried value, whether and how the body makes it longer.
using Growths = std::vector<std::optional<ImportContext::Growth>>;

// Its other sizes must be known: a constant stands in its place.
std::vector<std::optional<Grown>> grownValues(ImportContext& ctx, Growths const& growths)
{
    std::vector<std::optional<Grown>> grown(growths.size());
    for (size_t i = 0; i < growths.size(); ++i) {
        if (!growths[i] || growths[i]->isRead)
            continue;
        ITensor& first = plainTensor(ctx, ctx.input(2 + int(i)));
        Dims const dims = first.getDimensions();
        int const axis = ctx.axis(growths[i]->axis, dims.nbDims);
        bool isKnown = true;
        for (int d = 0; d < dims.nbDims; ++d)
            isKnown = isKnown && (d == axis || dims.d[d] >= 0);
        if (isKnown)
            grown[i].emplace(Grown{first, axis});
    }
    return grown;
}

// A value that gets longer and is read, too, has another shape in each trip. Trips must be known to be copied.
bool readsWhatGrows(ImportContext& ctx, Growths const& growths)
{
    return ctx.isConstant(0) && (!ctx.hasInput(1) || ctx.isConstant(1)) &&
           std::any_of(growths.begin(), growths.end(), [](auto const& g) { return g && g->isRead; });
}

void importLoop(ImportContext& ctx)
{
    // In the node: M, cond, carried...; in the body: number, cond, carried... -> cond, carried..., stacked...
    int const nbCarried = std::max(ctx.nbInputs() - 2, 0), nbStacked = ctx.nbOutputs() - nbCarried;
    bool const hasCount = ctx.hasInput(0), hasCondition = ctx.hasInput(1);
    if (!hasCount && !hasCondition)
        ctx.fail("a loop without M and without cond never ends");
    checkCount(ctx, "inputs", ctx.nbGraphInputs("body"), 2 + nbCarried);
    if (nbStacked < 0 || ctx.nbGraphOutputs("body") < 1 + nbCarried + nbStacked)
        ctx.invalid(fmt::format("graph 'body' gives {} values, the node needs {}", ctx.nbGraphOutputs("body"),
                                1 + nbCarried + std::max(nbStacked, 0)));
    if (isOfSequences(ctx))
        return importUnrolled(ctx, nbCarried, "The body works on sequences.");
    Growths growths;
    for (int i = 0; i < nbCarried; ++i)
        growths.push_back(ctx.growthOf("body", 2 + i, 1 + i));
    if (readsWhatGrows(ctx, growths))
        return importUnrolled(ctx, nbCarried, "A value that each trip makes longer is read in the body.");
    std::vector<std::optional<Grown>> const grown = grownValues(ctx, growths);
    auto const isGrown = [&](int i) { return grown[size_t(i)].has_value(); };
    std::vector<size_t> places; // among the values that go from trip to trip, of which the first is its number
    ILoop& loop = addLoop(ctx, ctx.name());
    Carried carried(ctx, loop);
    std::vector<Value> inputs;
    inputs.emplace_back(addTripNumber(ctx, carried, 0));
    inputs.emplace_back(ctx.filled(1, DataType::kBOOL, Dims{0, {}}));
    size_t place = 1;
    for (int i = 0; i < nbCarried; ++i) {
        places.push_back(place);
        if (isGrown(i)) {
            inputs.push_back(grown[size_t(i)]->nothing(ctx));
            continue;
        }
        inputs.emplace_back(carried.add(plainTensor(ctx, ctx.input(2 + i))), ctx.input(2 + i).integers());
        ++place;
    }
    auto const outputs = ctx.importGraph("body", inputs);
    if (hasCount)
        ctx.added(loop.addTripLimit(ctx.asScalar(ctx.cast(ctx.tensor(0), DataType::kINT32)), TripLimit::kCOUNT));
    // Without `cond` the body's condition means nothing.
    bool const endsEarly = hasCondition && !(isConstant(ctx.input(1), true) && isConstant(outputs[0], true));
    if (!hasCount && !endsEarly)
        ctx.fail("a loop without M whose condition is always true never ends");
    if (endsEarly) {
        ITensor& goOn = carried.add(ctx.asScalar(ctx.tensor(1)));
        carried.setNext(place, ctx.asScalar(ctx.asTensor(outputs[0])), "the condition");
        ctx.added(loop.addTripLimit(goOn, TripLimit::kWHILE));
    }
    for (int i = 0; i < nbCarried; ++i) {
        ITensor& next = plainTensor(ctx, outputs[size_t(1 + i)]);
        if (!isGrown(i))
            carried.setNext(places[size_t(i)], next, fmt::format("carried value {}", i));
        if (ctx.wantsOutput(i))
            ctx.setOutput(i,
                          Value(isGrown(i) ? grown[size_t(i)]->whole(ctx, loop, next) : carried.last(places[size_t(i)]),
                                ctx.input(2 + i).integers()));
    }
    // As long as the number of trips, which the run decides where the condition may end the loop.
    for (int i = nbCarried; i < ctx.nbOutputs(); ++i)
        if (ctx.wantsOutput(i))
            ctx.setOutput(i, Value(stacked(ctx, loop, plainTensor(ctx, outputs[size_t(1 + i)]), 0, false, nullptr),
                                   outputs[size_t(1 + i)].integers()));
}

// ---- Scan

struct ScanAttrs
{
    int nbStates = 0, nbScanned = 0, nbStacked = 0;
    std::vector<int64_t> inputAxes, inputReverse, stackAxes, stackReverse;
};

std::vector<int64_t> listOf(ImportContext const& ctx, char const* attr, int count)
{
    auto v = ctx.attrInts(attr, std::vector<int64_t>(size_t(count), 0));
    if (int(v.size()) != count)
        ctx.invalid(fmt::format("attribute '{}' has {} entries, {} are needed", attr, v.size(), count));
    return v;
}

// `skipped`: inputs of the node in front of the states.
ScanAttrs readScan(ImportContext const& ctx, int skipped)
{
    ScanAttrs a;
    int64_t const scanned = ctx.requireInt("num_scan_inputs");
    if (scanned < 1 || scanned > ctx.nbInputs() - skipped)
        ctx.invalid(fmt::format("num_scan_inputs {} is out of range for {} inputs", scanned, ctx.nbInputs() - skipped));
    a.nbScanned = int(scanned);
    a.nbStates = ctx.nbInputs() - skipped - a.nbScanned;
    a.nbStacked = ctx.nbGraphOutputs("body") - a.nbStates;
    checkCount(ctx, "inputs", ctx.nbGraphInputs("body"), a.nbStates + a.nbScanned);
    if (a.nbStacked < 0 || ctx.nbOutputs() > a.nbStates + a.nbStacked)
        ctx.invalid(fmt::format("graph 'body' gives {} values, the node has {} states and {} outputs",
                                ctx.nbGraphOutputs("body"), a.nbStates, ctx.nbOutputs()));
    return a;
}

// One scan over `scanned`; the outputs are the last states, then the stacks. `count`: how many trips.
std::vector<ITensor*> scan(ImportContext& ctx, ScanAttrs const& a, std::vector<ITensor*> const& states,
                           std::vector<ITensor*> const& scanned, ITensor& count, ITensor& length)
{
    ILoop& loop = addLoop(ctx, ctx.name());
    ctx.added(loop.addTripLimit(count, TripLimit::kCOUNT));
    Carried carried(ctx, loop);
    std::vector<Value> inputs;
    for (ITensor* t : states)
        inputs.emplace_back(carried.add(*t));
    for (size_t i = 0; i < scanned.size(); ++i)
        inputs.emplace_back(
            ctx.out(ctx.added(loop.addIterator(*scanned[i], int32_t(a.inputAxes[i]), a.inputReverse[i] != 0))));
    auto const outputs = ctx.importGraph("body", inputs);
    std::vector<ITensor*> results;
    for (size_t i = 0; i < states.size(); ++i) {
        carried.setNext(i, plainTensor(ctx, outputs[i]), fmt::format("state {}", i));
        results.push_back(&carried.last(i));
    }
    for (size_t k = 0; k < size_t(a.nbStacked); ++k) {
        ITensor& x = plainTensor(ctx, outputs[states.size() + k]);
        int const axis = ctx.axis(a.stackAxes[k], x.getDimensions().nbDims + 1, "scan_output_axes");
        results.push_back(&stacked(ctx, loop, x, axis, a.stackReverse[k] != 0, &length));
    }
    return results;
}

ITensor& sizeAlong(ImportContext& ctx, ITensor& x, int64_t axis)
{
    return ctx.asScalar(ctx.sizesOf(x)[size_t(axis)]);
}

void importScan(ImportContext& ctx)
{
    ScanAttrs a = readScan(ctx, 0);
    a.inputAxes = listOf(ctx, "scan_input_axes", a.nbScanned);
    a.inputReverse = listOf(ctx, "scan_input_directions", a.nbScanned);
    a.stackAxes = listOf(ctx, "scan_output_axes", a.nbStacked);
    a.stackReverse = listOf(ctx, "scan_output_directions", a.nbStacked);
    std::vector<ITensor*> states, scanned;
    for (int i = 0; i < a.nbStates; ++i)
        states.push_back(&ctx.tensor(i));
    for (int i = 0; i < a.nbScanned; ++i) {
        scanned.push_back(&ctx.tensor(a.nbStates + i));
        a.inputAxes[size_t(i)] =
            ctx.axis(a.inputAxes[size_t(i)], scanned.back()->getDimensions().nbDims, "scan_input_axes");
    }
    ITensor& count = sizeAlong(ctx, *scanned[0], a.inputAxes[0]);
    auto const results = scan(ctx, a, states, scanned, count, count);
    for (int i = 0; i < ctx.nbOutputs(); ++i)
        ctx.setOutput(i, *results[size_t(i)]);
}

// Opset 8: all inputs and outputs have a batch dimension in front, which a loop of its own goes along.
void importBatchedScan(ImportContext& ctx)
{
    ScanAttrs a = readScan(ctx, 1);
    a.inputAxes.assign(size_t(a.nbScanned), 0);
    a.inputReverse = listOf(ctx, "directions", a.nbScanned);
    a.stackAxes.assign(size_t(a.nbStacked), 0);
    a.stackReverse.assign(size_t(a.nbStacked), 0);
    ITensor& first = ctx.tensor(1 + a.nbStates);
    if (first.getDimensions().nbDims < 2)
        ctx.invalid(fmt::format("scanned inputs have a batch and a sequence dimension, and input {} has shape {}",
                                1 + a.nbStates, describe(first.getDimensions())));
    ITensor &batch = sizeAlong(ctx, first, 0), &length = sizeAlong(ctx, first, 1);
    ILoop& loop = addLoop(ctx, ctx.name() + " [batch]");
    ctx.added(loop.addTripLimit(batch, TripLimit::kCOUNT));
    auto slice = [&](int i) { return &ctx.out(ctx.added(loop.addIterator(ctx.tensor(i)))); };
    ITensor* const count = ctx.hasInput(0) ? slice(0) : &length;
    std::vector<ITensor*> states, scanned;
    for (int i = 0; i < a.nbStates; ++i)
        states.push_back(slice(1 + i));
    for (int i = 0; i < a.nbScanned; ++i)
        scanned.push_back(slice(1 + a.nbStates + i));
    auto const results = scan(ctx, a, states, scanned, *count, length);
    for (int i = 0; i < ctx.nbOutputs(); ++i)
        if (ctx.wantsOutput(i))
            ctx.setOutput(i, stacked(ctx, loop, *results[size_t(i)], 0, false, &batch));
}

} // namespace

void register_loop(ImporterMap& map)
{
    map.add("Loop", importLoop);
    map.add("Scan", importBatchedScan, 1, 8);
    map.add("Scan", importScan, 9);
}

} // namespace tw::onnx
