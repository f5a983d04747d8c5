// SPDX-License-Identifier: Apache-2.0
#include "builder/build.h"
#include "ops/registry.h"

#include <algorithm>
#include <chrono>

#include "ir/shape_values.h"
#include "runtime/engine.h"

namespace tw::builder {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point t)
{
    return std::chrono::duration<double>(Clock::now() - t).count();
}

// A symbol that stands alone in an input's shape gets the range that the profiles give that dimension; where several
// inputs share it, the profiles must agree.
Result<void> bindRanges(plan::Contents& c)
{
    ir::Graph& g = *c.graph;
    std::map<std::string, ir::Range> ranges;
    for (ir::Value* v : g.inputs) {
        for (size_t p = 0; p < c.profiles.size(); ++p) {
            auto it = c.profiles[p].inputs.find(v->name);
            if (it == c.profiles[p].inputs.end())
                continue;
            plan::ProfileRange const& r = it->second;
            auto widen = [&](ir::Dim const& d, int64_t lo, int64_t hi) {
                std::vector<std::string> names;
                d.collectSymbols(names);
                if (names.size() != 1 || !(d == ir::Dim::symbol(names[0])))
                    return;
                auto [at, isNew] = ranges.try_emplace(names[0], ir::Range{lo, hi});
                at->second.lo = std::min(at->second.lo, lo);
                at->second.hi = std::max(at->second.hi, hi);
            };
            if (r.hasShape && r.min.rank == v->rank())
                for (int d = 0; d < v->rank(); ++d)
                    widen(v->shape[size_t(d)], r.min[d], r.max[d]);
            if (v->content && r.minValues.size() == v->content->size() && r.maxValues.size() == v->content->size())
                for (size_t k = 0; k < v->content->size(); ++k)
                    widen((*v->content)[k], std::min(r.minValues[k], r.maxValues[k]),
                          std::max(r.minValues[k], r.maxValues[k]));
        }
    }
    for (auto const& [name, range] : ranges)
        g.symbols[name].range = range;
    return g.inferAll();
}

class Chooser
{
public:
    Chooser(Options const& o, size_t total) : options_(o), total_(total) {}

    Result<plan::Block> choose(runtime::LoadedBlock& block, runtime::Instance const& opt, runtime::Instance const& max)
    {
        plan::Block out;
        for (size_t i = 0; i < block.steps.size(); ++i) {
            runtime::LoadedStep const& step = block.steps[i];
            plan::Step s;
            s.node = int32_t(i);
            for (size_t r = 0; r < step.regions.size(); ++r) {
                if (r >= opt.regions[i].size() || r >= max.regions[i].size())
                    return unsupported("layer '" + step.node->name +
                                       "': the shapes inside its regions depend on data, which is not possible yet");
                TW_ASSIGN(plan::Block region, choose(*step.regions[r], *opt.regions[i][r], *max.regions[i][r]));
                s.regions.push_back(std::move(region));
            }
            if (step.regions.empty()) {
                TW_ASSIGN(s.choice, choose(runtime::problemOf(step, opt, max, options_.tune.workers->count(),
                                                              options_.cuda.get())));
            }
            progress();
            out.steps.push_back(std::move(s));
        }
        return out;
    }

    // Equal regions are tuned once. `timeAlways`: also where there is no choice.
    Result<plan::Choice> choose(ops::Problem const& problem, bool timeAlways = false)
    {
        bool const onHost = options_.cuda && !problem.cuda; // shape arithmetic: on the CPU
        std::string const key = (onHost ? "host|" : "") + tune::regionKey(problem, options_.fingerprint);
        if (auto it = known_.find(key); it != known_.end() && (it->second.microseconds > 0 || !timeAlways))
            return it->second;
        tune::Options tuneOptions = options_.tune;
        tuneOptions.timeAlways = timeAlways;
        tuneOptions.backend = problem.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
        if (onHost) {
            tuneOptions.cache = nullptr;
            tuneOptions.heuristicOnly = true;
        }
        auto chosen = tune::choose(problem, tuneOptions);
        if (!chosen.ok())
            return chosen;
        if (options_.log)
            options_.log->verbose(
                "layer '" + problem.node->name + "': " + chosen->name +
                (chosen->microseconds > 0 ? ", " + std::to_string(chosen->microseconds) + " us" : ""));
        known_[key] = *chosen;
        return chosen;
    }

private:
    // At least one line a second on long builds.
    void progress()
    {
        ++done_;
        if (!options_.log || secondsSince(lastLine_) < 0.9)
            return;
        lastLine_ = Clock::now();
        options_.log->info("Building: " + std::to_string(done_) + " of " + std::to_string(total_) + " layers, " +
                           std::to_string(int(secondsSince(begin_))) + " s");
    }
    Options const& options_;
    size_t total_, done_ = 0;
    std::map<std::string, plan::Choice> known_;
    Clock::time_point begin_ = Clock::now(), lastLine_ = Clock::now();
};

size_t countNodes(ir::Graph const& g)
{
    size_t n = g.nodes.size();
    for (auto const& node : g.nodes)
        for (auto const& r : node->regions)
            n += countNodes(*r);
    return n;
}

std::string mebibytes(int64_t bytes)
{
    return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

// Tuning holds a layer's inputs and its outputs twice (the kernel's and the reference's). What cannot fit is refused
// here, where layer and tensor have names.
Result<void> checkTuningMemory(runtime::LoadedBlock const& block, runtime::Instance const& inst, int64_t limit)
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        ir::Node const& node = *block.steps[i].node;
        int64_t bytes = 0, most = -1;
        ir::Value const* largest = nullptr;
        auto count = [&](ir::Value const* v, int64_t copies) {
            if (!v || v->isConstant())
                return;
            runtime::ValueState const& s = inst.values[size_t(block.indexOf(v))];
            int64_t const size = s.known ? TensorRef{v->type, s.dims, nullptr}.sizeBytes() : 0;
            bytes = ir::addSat(bytes, ir::mulSat(copies, size));
            if (size > most) {
                most = size;
                largest = v;
            }
        };
        for (ir::Value const* v : node.inputs)
            count(v, 1);
        for (ir::Value const* v : node.outputs)
            count(v, 2);
        if (bytes > limit)
            return Error{ErrorCode::kFailedAllocation,
                         "layer '" + node.name + "': building it takes " + mebibytes(bytes) + " (tensor '" +
                             largest->name + "' has " + mebibytes(most) + "), the limit is " + mebibytes(limit) +
                             "; make the optimum shapes of the optimization profile smaller, or build on a machine "
                             "with more memory"};
        for (size_t r = 0; r < inst.regions[i].size(); ++r)
            TW_TRY(checkTuningMemory(*block.steps[i].regions[r], *inst.regions[i][r], limit));
    }
    return {};
}

// Shapes at the minimum, optimum and maximum of a profile.
struct ProfileShapes
{
    std::vector<Tensor> storage;
    std::unique_ptr<runtime::Instance> at[3]; // by runtime::Select
};

Result<ProfileShapes> resolveProfile(plan::Contents const& contents, runtime::LoadedBlock const& block, size_t p)
{
    ProfileShapes shapes;
    for (runtime::Select s : {runtime::Select::kMin, runtime::Select::kOpt, runtime::Select::kMax}) {
        TW_ASSIGN(auto inputs, runtime::profileInputs(contents, p, s, shapes.storage));
        auto resolved = runtime::resolve(block, inputs);
        if (!resolved.ok())
            return std::move(resolved).error().in("optimization profile " + std::to_string(p) +
                                                  (s == runtime::Select::kMin   ? ", minimum shapes"
                                                   : s == runtime::Select::kOpt ? ", optimum shapes"
                                                                                : ", maximum shapes"));
        shapes.at[int(s)] = std::move(*resolved);
    }
    return shapes;
}

// Puts the formats into the graph; true when that changed it.
Result<bool> applyFormats(ir::Graph& g, runtime::LoadedBlock const& block, ProfileShapes const& shapes,
                          Options const& options, Chooser& chooser, Log& log)
{
    auto timeOf = [&](ops::Problem const& problem) -> Result<double> {
        TW_ASSIGN(plan::Choice chosen, chooser.choose(problem, true));
        return chosen.microseconds;
    };
    TW_ASSIGN(FormatSummary const s,
              assignFormats(g, block, *shapes.at[1], *shapes.at[2], options.tune, options.formats, timeOf));
    if (s.nodes > 0)
        log.info("Formats: " + std::to_string(s.nonLinear) + " of " + std::to_string(s.nodes) +
                 " layers that can work in other than linear formats do, with " + std::to_string(s.reformats) +
                 " reformats: " + std::to_string(s.microseconds) + " us, all linear " +
                 std::to_string(s.linearMicroseconds) + " us" + (s.isExact ? "" : " (not searched to the end)"));
    if (s.changed())
        TW_TRY(ir::verify(g));
    return s.changed();
}

// Problems of all steps that have CUDA tactics, equal ones once.
void collectProblems(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                     Options const& options, std::map<std::string, ops::Problem>& out)
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        for (size_t r = 0; r < step.regions.size() && r < opt.regions[i].size() && r < max.regions[i].size(); ++r)
            collectProblems(*step.regions[r], *opt.regions[i][r], *max.regions[i][r], options, out);
        if (!step.regions.empty())
            continue;
        ops::Problem p = runtime::problemOf(step, opt, max, options.tune.workers->count(), options.cuda.get());
        if (p.cuda)
            out.try_emplace(tune::regionKey(p, options.fingerprint), std::move(p));
    }
}

// Compiles on all workers what the choice of tactics will ask for: the compiler keeps each source. Failures show again
// when the tactic is tried.
void compileAhead(runtime::LoadedBlock const& block, ProfileShapes const& shapes, Options const& options)
{
    std::map<std::string, ops::Problem> problems;
    collectProblems(block, *shapes.at[1], *shapes.at[2], options, problems);
    tune::Options tuneOptions = options.tune;
    tuneOptions.backend = ops::Backend::kCuda;
    std::vector<std::pair<ops::Problem const*, ops::Tactic const*>> parts;
    for (auto const& [key, p] : problems)
        for (ops::Tactic const* t : tune::candidates(*p.node, tuneOptions))
            if (ops::supportsFormats(*t, p).ok)
                parts.emplace_back(&p, t);
    options.tune.workers->run(int64_t(parts.size()), [&](int64_t i, int) {
        auto const [problem, tactic] = parts[size_t(i)];
        for (ops::Config const& config : tactic->configs(*problem))
            (void)tactic->build(*problem, config).ok();
    });
}

// Slots and arena sizes of the block and its regions for one more profile.
void recordMemory(plan::Block& out, runtime::Instance const& inst)
{
    out.slots.push_back(inst.slots());
    out.arenaBytes.push_back(inst.arenaBytes);
    for (size_t i = 0; i < out.steps.size(); ++i)
        for (size_t r = 0; r < out.steps[i].regions.size(); ++r)
            recordMemory(out.steps[i].regions[r], *inst.regions[i][r]);
}

} // namespace

namespace {

// Fusions whose op has no kernel on the device are left out: the parts have one.
passes::Options passesFor(Options const& options)
{
    constexpr std::pair<char const*, char const*> kFusions[] = {
        {"fuse_layer_norm", "layer_norm"}, {"fuse_attention", "attention"}, {"fuse_pointwise", "pointwise"}};
    passes::Options out = options.passes;
    for (auto const& [pass, name] : kFusions)
        if (ir::OpDef const* op = ops::find(name); options.cuda && op && !op->cudaTactics)
            out.disabled.push_back(pass);
    return out;
}

} // namespace

Result<void> build(plan::Contents& contents, Options const& options)
{
    auto const begin = Clock::now();
    NullLog quiet;
    Log& log = options.log ? *options.log : quiet;
    ir::Graph& g = *contents.graph;
    if (contents.profiles.empty())
        contents.profiles.emplace_back();
    TW_TRY(bindRanges(contents));
    TW_TRY(ir::verify(g));
    TW_TRY(passes::run(g, passes::PassContext{log, options.refittable}, passesFor(options)));
    for (ir::Value* v : g.outputs)
        v->host = v->host || std::any_of(contents.io.begin(), contents.io.end(), [&](plan::IoTensor const& t) {
                      return !t.isInput && t.isShapeTensor && t.name == v->name;
                  });
    for (ir::Value const* v : ir::shapeValues(g))
        const_cast<ir::Value*>(v)->host = true;
    g.form = ir::Form::kScheduled;
    TW_TRY(ir::verify(g));

    auto block = runtime::outlineBlock(g);
    plan::Target target;
    target.backend = options.cuda ? "cuda" : "cpu";
    target.fingerprint = options.fingerprint;
    tune::Options tuneOptions = options.tune;
    tuneOptions.device = options.fingerprint;
    tuneOptions.log = options.log;
    tuneOptions.cuda = options.cuda.get();
    tuneOptions.backend = options.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
    Options withDevice = options;
    withDevice.tune = tuneOptions;
    Chooser chooser(withDevice, countNodes(g));
    int64_t arena = 0, bound = 0;
    for (size_t p = 0; p < contents.profiles.size(); ++p) {
        TW_ASSIGN(ProfileShapes shapes, resolveProfile(contents, *block, p));
        if (p == 0 && options.maxMemoryBytes > 0)
            TW_TRY(checkTuningMemory(*block, *shapes.at[1], options.maxMemoryBytes));
        if (p == 0) {
            TW_ASSIGN(bool const changed, applyFormats(g, *block, shapes, withDevice, chooser, log));
            if (changed) {
                block = runtime::outlineBlock(g);
                TW_ASSIGN(shapes, resolveProfile(contents, *block, p));
            }
            if (options.cuda)
                compileAhead(*block, shapes, withDevice);
            TW_ASSIGN(target.root, chooser.choose(*block, *shapes.at[1], *shapes.at[2]));
            // Kernels tell their workspaces: load them as the runtime will.
            runtime::LoadOptions load;
            load.providers = options.tune.providers;
            load.fingerprint = options.fingerprint;
            load.threads = options.tune.workers->count();
            load.cuda = options.cuda;
            TW_TRY(runtime::loadKernels(*block, &target.root, *shapes.at[1], *shapes.at[2], load));
        }
        std::unique_ptr<runtime::Instance>& max = shapes.at[2];
        TW_TRY(runtime::placeInArena(*max));
        if (options.maxMemoryBytes > 0 && max->arenaBytes > options.maxMemoryBytes)
            return Error{ErrorCode::kFailedAllocation,
                         "optimization profile " + std::to_string(p) + ": the activations take " +
                             mebibytes(max->arenaBytes) + " at its maximum shapes, the limit is " +
                             mebibytes(options.maxMemoryBytes) + "; make its maximum shapes smaller"};
        recordMemory(target.root, *max);
        arena = std::max(arena, max->arenaBytes);
        bound = std::max(bound, max->arenaLowerBound);
    }
    contents.targets.push_back(std::move(target));
    int64_t weightBytes = 0;
    for (auto const& v : g.values())
        if (v->isConstant())
            weightBytes += TensorRef{v->type, ir::extentsOf(v->shape), nullptr}.sizeBytes();
    log.info("Total Activation Memory: " + std::to_string(arena) + " (lower bound " + std::to_string(bound) + ")");
    log.info("Total Weights Memory: " + std::to_string(weightBytes));
    log.info("Engine built in " + std::to_string(secondsSince(begin)) + " seconds.");
    return {};
}

} // namespace tw::builder
