// SPDX-License-Identifier: Apache-2.0
#include "builder/build.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "builder/attempts.h"
#include "builder/chooser.h"
#include "builder/finish.h"
#include "builder/lowering.h"
#include "builder/points.h"
#include "device/cpu.h"
#include "ir/op_def.h"
#include "recipe/recipes.h"
#include "runtime/engine.h"
#include "runtime/execute_cuda.h"
#include "runtime/profile_shapes.h"
#include "tune/checkers_ahead.h"
#include "tune/phases.h"

namespace tw::builder {

namespace {

// Whether every profile gives the dimension of every input that is this symbol one and the same size.
bool isFixed(plan::Contents const& c, ir::Dim const& symbol)
{
    for (ir::Value const* v : c.graph->inputs)
        for (int d = 0; d < v->rank(); ++d)
            for (plan::Profile const& p : c.profiles) {
                auto const it = p.inputs.find(v->name);
                bool const isRange = v->shape[size_t(d)] == symbol && it != p.inputs.end() && it->second.hasShape;
                if (isRange && it->second.min[d] != it->second.max[d])
                    return false;
            }
    return true;
}

// Gives a point of a profile the size of a dimension that is static by the name of another input's.
Result<void> narrow(ir::Value const& v, int d, int64_t& size, runtime::Select point, size_t profile, Log& log)
{
    int64_t const known = v.shape[size_t(d)].value();
    if (size == known)
        return {};
    Error const error =
        invalidArgument("dimension {} is {} in input '{}' and {} in another input; equal names mean equal sizes", d,
                        size, v.name, known);
    std::string const text = runtime::violation(point, profile, error);
    if (point == runtime::Select::kOpt)
        return invalidArgument(text);
    log.warning(text);
    size = known;
    return {};
}

Result<void> narrowToStatic(plan::Contents& c, Log& log)
{
    using runtime::Select;
    for (size_t p = 0; p < c.profiles.size(); ++p)
        for (ir::Value const* v : c.graph->inputs) {
            auto const it = c.profiles[p].inputs.find(v->name);
            for (int d = 0; it != c.profiles[p].inputs.end() && it->second.hasShape && d < v->rank(); ++d) {
                if (!v->shape[size_t(d)].isConst())
                    continue;
                TW_TRY(narrow(*v, d, it->second.opt[d], Select::kOpt, p, log));
                TW_TRY(narrow(*v, d, it->second.min[d], Select::kMin, p, log));
                TW_TRY(narrow(*v, d, it->second.max[d], Select::kMax, p, log));
            }
        }
    return {};
}

// Symbols get the ranges that the profiles give them; a dimension is static whose minimum is its maximum everywhere.
Result<void> bindRanges(plan::Contents& c)
{
    ir::Graph& g = *c.graph;
    auto const ranges = runtime::symbolRanges(g, c.profiles);
    for (auto const& [name, symbol] : ranges)
        g.symbols[name].range = symbol.range;
    std::vector<std::pair<ir::Dim*, ir::Dim>> fixed;
    for (ir::Value* v : g.inputs)
        for (ir::Dim& d : v->shape)
            if (ir::Dim const known = runtime::fixedDim(d, ranges); !d.isConst() && known.isConst() && isFixed(c, d))
                fixed.emplace_back(&d, known);
    for (auto const& [dim, known] : fixed)
        *dim = known;
    return g.inferAll();
}

size_t countNodes(ir::Graph const& g)
{
    size_t n = g.nodes.size();
    for (auto const& node : g.nodes)
        for (auto const& r : node->regions)
            n += countNodes(*r);
    return n;
}

// What a context keeps on the host for its shapes: tables of values and steps, and what is computed from shapes there.
int64_t tableBytes(runtime::Instance const& inst)
{
    size_t bytes = sizeof inst + inst.values.size() * (sizeof(runtime::ValueState) + 3 * sizeof(TensorRef)) +
                   inst.workspaceOffset.size() * (sizeof(int64_t) + 3 * sizeof(void*));
    for (runtime::ValueState const& v : inst.values)
        bytes += v.hasContents ? size_t(v.contents.ref().sizeBytes()) : 0;
    int64_t sum = int64_t(bytes);
    for (auto const& regions : inst.regions)
        for (auto const& region : regions)
            sum += tableBytes(*region);
    return sum;
}

void dropRivals(plan::Block& block)
{
    for (plan::Step& step : block.steps) {
        step.choice.rivals.clear();
        std::ranges::for_each(step.regions, dropRivals);
    }
}

// What a clock has said, and what follows from it: the choices of an algorithm selector are the client's, and a build that
// repeats them gives the same bytes.
void dropMeasured(plan::Block& block)
{
    for (plan::Step& step : block.steps) {
        step.choice.microseconds = step.choice.limitMicroseconds = 0;
        step.choice.lack.clear();
        step.choice.rivals.clear(); // in the order of their times, with reasons that name them
        std::ranges::for_each(step.regions, dropMeasured);
    }
}

} // namespace

Result<void> build(plan::Contents& contents, Options const& given)
{
    recipe::Recipes recipes;
    Options options = given;
    options.recipes = given.refittable ? &recipes : nullptr;
    auto const begin = std::chrono::steady_clock::now();
    NullLog quiet;
    Log& log = options.log ? *options.log : quiet;
    ir::Graph& g = *contents.graph;
    if (contents.profiles.empty())
        contents.profiles.emplace_back();
    tune::Phases* const phases = given.tune.phases;
    auto passing = std::make_optional<tune::Phases::Scope>(phases, "passes");
    TW_TRY(narrowToStatic(contents, log));
    TW_TRY(bindRanges(contents));
    options.firstProfile = runtime::symbolRanges(g, contents.profiles[0]);
    TW_TRY(ir::verify(g));
    if (options.refittable)
        TW_TRY(recipes.addSources(g));
    bool const cuda = options.cuda != nullptr;
    passes::Ranges const steps =
        options.tune.permits.has(Permission::kInt8) ? stepsOf(g, options.ranges) : passes::Ranges();
    TW_ASSIGN(std::vector<passes::Alternative> const alternatives, lower(contents, options, log));

    passing.reset();
    TW_TRY(runtime::resolveProfiles(contents, *runtime::outlineBlock(g), {.withMinimum = true, .log = &log}));

    plan::Target target;
    target.backend = options.cuda ? "cuda" : "cpu";
    target.fingerprint = options.fingerprint;
    Options withDevice = options;
    withDevice.tune.device = options.fingerprint;
    withDevice.tune.log = options.log;
    withDevice.tune.target.cuda = options.cuda.get();
    withDevice.tune.backend = options.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
    tune::CheckersAhead checkers;
    withDevice.tune.checkers = cuda ? &checkers : nullptr;
    Chooser chooser(withDevice, countNodes(g));
    TW_ASSIGN(Attempt best, makeBestAttempt(contents, alternatives, withDevice, chooser, log));
    chooser.report();
    target.root = std::move(best.root);
    target.others = std::move(best.others);
    int64_t arena = 0, bound = 0, scratch = 0, onHost = 0, onDevice = 0;
    TW_ASSIGN(runtime::NetworkShapes shapes, runtime::resolveProfiles(contents, *best.block));
    for (size_t p = 0; p < contents.profiles.size(); ++p) {
        runtime::Instance& max = shapes.profiles[p].largest();
        if (p > 0 && !best.otherBlocks.empty())
            runtime::moveTo(*best.otherBlocks[p - 1], max);
        TW_TRY(runtime::placeInArena(max));
        if (options.maxMemoryBytes > 0 && max.arenaBytes > options.maxMemoryBytes)
            return failedAllocation("optimization profile {}: the activations take {} at its maximum shapes, the limit "
                                    "is {}; make its maximum shapes smaller",
                                    p, mebibytes(max.arenaBytes), mebibytes(options.maxMemoryBytes));
        arena = std::max(arena, max.arenaBytes);
        bound = std::max(bound, max.arenaLowerBound);
        scratch = std::max(scratch, max.scratchBytes);
        onHost = std::max(onHost, tableBytes(max));
        onDevice = std::max(onDevice, cuda ? runtime::contentsBytesOnDevice(max) : 0);
    }
    std::string const busy = cuda ? std::string() : device::busyLine();
    {
        tune::Phases::Scope const phase(phases, "limits of layers");
        bool const isByProfile = !target.others.empty();
        addLimits(target.root, *best.block, shapes.opt(), isByProfile ? shapes.max(0) : shapes.max(), withDevice,
                  !busy.empty());
        for (size_t p = 1; p <= target.others.size(); ++p)
            addLimits(target.others[p - 1], *best.block, shapes.opt(p), shapes.max(p), withDevice, !busy.empty());
    }
    if (!options.keepRivals) {
        dropRivals(target.root);
        std::ranges::for_each(target.others, dropRivals);
    }
    if (options.tune.selector)
        dropMeasured(target.root);
    if (!cuda && !options.refittable)
        contents.panels = choosePanels(*best.graph, *best.block, target.root, shapes.opt(), shapes.max(),
                                       options.tune.workers->count());
    best.block.reset();
    contents.graph = std::move(best.graph);
    contents.scales = scalesOf(*contents.graph, steps);
    contents.refittable = options.refittable;
    if (options.refittable) {
        TW_ASSIGN(recipe::Recipes::Finished finished, recipes.finish(*contents.graph));
        contents.recipes = std::move(finished.recipes);
        contents.made = std::move(finished.made);
    }
    contents.targets.push_back(std::move(target));
    int64_t weightBytes = 0;
    for (auto const& v : contents.graph->values())
        if (v->isConstant())
            weightBytes += TensorRef{v->type, ir::extentsOf(v->shape), nullptr}.sizeBytes();
    // Of one execution context. Scripts read these lines.
    log.info("Total Host Persistent Memory: {}", onHost);
    log.info("Total Device Persistent Memory: {}", onDevice);
    log.info("Total Scratch Memory: {}", scratch);
    log.info("Total Activation Memory: {}", arena);
    log.verbose("Lower bound of the activation memory: {}", bound);
    log.info("Total Weights Memory: {}", weightBytes);
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - begin;
    log.info("Engine built in {} seconds.", seconds.count());
    if (!busy.empty())
        log.info(busy);
    return {};
}

} // namespace tw::builder
