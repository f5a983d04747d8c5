// SPDX-License-Identifier: Apache-2.0
#include "builder/build.h"
#include "ops/registry.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/hash.h"
#include "builder/compile_ahead.h"
#include "builder/confirm.h"
#include "builder/panels.h"
#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "kernels/jit/emitter.h"
#include "ops/convolution/op.h"
#include "ops/jit_support.h"
#include "runtime/engine.h"
#include "tune/timing_cache.h"

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
                if (!options_.keepRivals)
                    s.choice.rivals.clear();
                if (options_.tune.heuristicOnly)
                    markAsEstimates(s.choice);
                if (options_.tune.selector && !step.node->outputs[0]->host) {
                    ops::Problem problem =
                        runtime::problemOf(step, opt, max, options_.tune.workers->count(), options_.cuda.get());
                    chosen_.push_back(tune::Offer{ops::formatsOf(problem), s.choice.tactic, s.choice.config, 0, 0});
                    layers_.push_back({std::move(problem), {}});
                    layers_.back().minDims = minDimsOf(layers_.back().problem);
                }
            }
            ++done_;
            progress();
            out.steps.push_back(std::move(s));
        }
        return out;
    }

    Result<plan::Choice> choose(ops::Problem const& problem)
    {
        return std::move(chooseEach(problem, {ops::formatsOf(problem)}, false)[0]);
    }
    // Shapes at the minimum of the first profile, for selectors; null: those of the optimum.
    void setMinimum(runtime::Instance const* minimum) { minimum_ = minimum; }
    void report() const
    {
        if (options_.tune.selector)
            options_.tune.selector->report(layers_, chosen_);
    }
    // Equal regions are tuned once, unless options say otherwise. `timeAlways`: also where there is no choice.
    std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                                 bool timeAlways)
    {
        std::vector<Result<plan::Choice>> out;
        std::vector<ops::Formats> missing;
        std::vector<std::string> keys;
        bool const onHost = options_.cuda && !problem.cuda; // shape arithmetic: on the CPU
        // A selector is asked for every layer, not for what reformats would cost.
        bool const isAsked = options_.tune.selector && !problem.node->outputs[0]->host &&
                             !(timeAlways && std::string_view(problem.node->op->name) == "reformat");
        auto find = [&](std::string const& key) {
            auto const it = known_.find(key);
            bool const fits = it != known_.end() &&
                              (it->second.ok() ? it->second->microseconds > 0 || !timeAlways : formats.size() > 1);
            return fits ? it : known_.end();
        };
        for (ops::Formats const& f : formats) {
            ops::Problem in = problem;
            ops::setFormats(in, f);
            keys.push_back((onHost ? "host|" : "") +
                           std::string(isAsked || !options_.shareTimings ? problem.node->name + "|" : "") +
                           tune::regionKey(in, options_.fingerprint));
            if (find(keys.back()) == known_.end())
                missing.push_back(f);
        }
        if (!missing.empty()) {
            tune::Options tuneOptions = options_.tune;
            tuneOptions.timeAlways = timeAlways || isAsked;
            tuneOptions.backend = problem.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
            if (onHost) {
                tuneOptions.cache = nullptr;
                tuneOptions.heuristicOnly = true;
            }
            if (isAsked)
                tuneOptions.minDims = minDimsOf(problem);
            else
                tuneOptions.selector = nullptr;
            if (options_.tuningSeconds > 0) { // an equal share for each layer that may still come
                double const left = std::max(0.0, options_.tuningSeconds - secondsSince(begin_));
                size_t const layers = total_ > known_.size() ? total_ - known_.size() : 1;
                tuneOptions.regionMilliseconds = std::min(tuneOptions.regionMilliseconds, 1000 * left / double(layers));
            }
            auto chosen = tune::chooseEach(problem, missing, tuneOptions);
            for (size_t g = 0, m = 0; g < formats.size(); ++g)
                if (m < missing.size() && formats[g] == missing[m])
                    known_.insert_or_assign(keys[g], std::move(chosen[m++]));
            progress();
        }
        for (std::string const& key : keys)
            out.push_back(known_.at(key));
        return out;
    }

private:
    // Nothing was measured: the inspector says so.
    static void markAsEstimates(plan::Choice& c)
    {
        c.microseconds = -c.microseconds;
        for (plan::Rival& r : c.rivals)
            r.microseconds = -r.microseconds;
    }
    std::vector<Extents> minDimsOf(ops::Problem const& problem) const
    {
        std::vector<Extents> dims;
        auto add = [&](ir::Value const* v, ops::TensorSpec const& spec) {
            auto const at = v && minimum_ ? minimum_->block->valueIndex.find(v)
                                          : decltype(minimum_->block->valueIndex)::const_iterator();
            bool const known = v && minimum_ && at != minimum_->block->valueIndex.end();
            dims.push_back(known ? minimum_->values[size_t(at->second)].dims : spec.dims);
        };
        for (size_t i = 0; i < problem.inputs.size(); ++i)
            add(problem.node->inputs[i], problem.inputs[i]);
        for (size_t i = 0; i < problem.outputs.size(); ++i)
            add(problem.node->outputs[i], problem.outputs[i]);
        return dims;
    }
    // At least one line a second on long builds.
    void progress()
    {
        if (!options_.log || secondsSince(lastLine_) < 0.9)
            return;
        lastLine_ = Clock::now();
        options_.log->info("Building: " + std::to_string(done_) + " of " + std::to_string(total_) + " layers done, " +
                           std::to_string(known_.size()) + " kinds of work timed, " +
                           std::to_string(int(secondsSince(begin_))) + " s");
    }
    Options const& options_;
    size_t total_, done_ = 0;
    std::map<std::string, Result<plan::Choice>> known_;
    runtime::Instance const* minimum_ = nullptr;
    std::vector<tune::SelectorLayer> layers_; // chosen for, in execution order
    std::vector<tune::Offer> chosen_;
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

// Chooses formats and tactics for a copy of the contents' graph and loads its kernels.
class AttemptMaker
{
public:
    // `apart`: the contents' graph without bands; null: it has none.
    AttemptMaker(plan::Contents const& contents, ir::Graph const* apart, Options const& options, Chooser& chooser)
        : contents_(contents), apart_(apart), options_(options), chooser_(chooser)
    {}

    Result<Attempt> make(FormatPolicy policy, ir::Graph const& graph)
    {
        Attempt a;
        a.policy = policy;
        a.graph = graph.clone();
        a.block = runtime::outlineBlock(*a.graph);
        TW_ASSIGN(ProfileShapes shapes, resolveProfile(contents_, *a.block, 0));
        if (options_.maxMemoryBytes > 0)
            TW_TRY(checkTuningMemory(*a.block, *shapes.at[1], options_.maxMemoryBytes));
        chooser_.setMinimum(shapes.at[0].get());
        auto timesOf = [&](ops::Problem const& problem, std::vector<ops::Formats> const& formats) {
            std::vector<Result<double>> times;
            for (Result<plan::Choice> const& c : chooser_.chooseEach(problem, formats, true))
                times.push_back(c.ok() ? Result<double>(c->microseconds) : c.error());
            return times;
        };
        if (options_.cuda)
            compileAhead(*a.block, *shapes.at[1], *shapes.at[2], options_);
        TW_ASSIGN(a.summary, assignFormats(*a.graph, *a.block, *shapes.at[1], *shapes.at[2], options_.tune, policy,
                                           timesOf, options_.io));
        if (a.summary.changed()) {
            TW_TRY(ir::verify(*a.graph));
            a.block = runtime::outlineBlock(*a.graph);
            TW_ASSIGN(shapes, resolveProfile(contents_, *a.block, 0));
            chooser_.setMinimum(shapes.at[0].get());
        }
        if (options_.cuda && a.summary.changed()) // reformats
            compileAhead(*a.block, *shapes.at[1], *shapes.at[2], options_);
        TW_ASSIGN(a.root, chooser_.choose(*a.block, *shapes.at[1], *shapes.at[2]));
        chooser_.setMinimum(nullptr);
        // Kernels tell their workspaces: load them as the runtime will.
        runtime::LoadOptions load{options_.tune.providers, options_.fingerprint};
        load.threads = options_.tune.workers->count();
        load.workers = options_.tune.buildWorkers;
        load.cuda = options_.cuda;
        TW_TRY(runtime::loadKernels(*a.block, &a.root, *shapes.at[1], *shapes.at[2], load));
        return a;
    }

    // The best of the graphs and assignments that are worth a try, by the time of the whole engine.
    Result<Attempt> makeBest(Log& log)
    {
        bool const isDirect =
            std::any_of(options_.io.begin(), options_.io.end(), [](auto const& io) { return io.second.isDirect; });
        bool const isFree = options_.formats == FormatPolicy::kLeastTime && !options_.tune.selector && !options_.cuda &&
                            !isDirect; // which leaves no assignment but by least time
        std::string const key = isFree ? graphKey() : std::string();
        ir::Graph const* graph = contents_.graph.get();
        tune::TimingCache* const cache = options_.tune.heuristicOnly ? nullptr : options_.tune.cache;
        if (auto const hit = cache && isFree ? cache->find(key) : std::nullopt; hit && !hit->config.empty()) {
            FormatPolicy const known = hit->config[0] == int64_t(FormatPolicy::kLinear) ? FormatPolicy::kLinear
                                       : hit->config[0] == int64_t(FormatPolicy::kChannelsLast)
                                           ? FormatPolicy::kChannelsLast
                                           : FormatPolicy::kLeastTime;
            return make(known, apart_ && hit->config.size() > 1 && hit->config[1] ? *apart_ : *graph);
        }
        TW_ASSIGN(Attempt first, make(options_.formats, *graph));
        logSummary(first.summary, log);
        if (!isFree || options_.tune.heuristicOnly || first.summary.nodes == 0 ||
            first.summary.microseconds > kMostMicroseconds)
            return first;
        std::vector<Attempt> attempts;
        attempts.push_back(std::move(first));
        bool isApart = false;
        if (apart_)
            if (auto other = make(options_.formats, *apart_); other.ok()) {
                attempts.push_back(std::move(*other));
                TW_ASSIGN(Confirmation const c, time(attempts));
                isApart = c.fastest == 1;
                if (!c.microseconds.empty())
                    log.info("Expansions and depthwise convolutions in bands: the engine takes " +
                             std::to_string(c.microseconds[0]) + " us, layer by layer " +
                             std::to_string(c.microseconds[1]) + " us" + (isApart ? ", apart" : ", in bands"));
                attempts.erase(attempts.begin() + !isApart);
                graph = isApart ? apart_ : graph;
            }
        FormatSummary const s = attempts[0].summary;
        if (s.nonLinear < s.nodes && s.nonLinear > 0)
            if (auto other = make(FormatPolicy::kChannelsLast, *graph); other.ok())
                attempts.push_back(std::move(*other));
        if (s.nonLinear > 0 && s.linearMicroseconds < kWorthTrying * s.microseconds)
            if (auto other = make(FormatPolicy::kLinear, *graph); other.ok())
                attempts.push_back(std::move(*other));
        TW_ASSIGN(Confirmation const c, time(attempts));
        for (size_t i = 0; i < c.microseconds.size(); ++i)
            log.info(std::string("Formats ") + nameOf(attempts[i].policy) + ": the engine takes " +
                     std::to_string(c.microseconds[i]) + " us" + (int(i) == c.fastest ? ", taken" : ""));
        Attempt& best = attempts[size_t(c.fastest)];
        if (cache)
            cache->insert(key, tune::CacheEntry{0, {int64_t(best.policy), isApart}, 0, {}});
        return std::move(best);
    }

private:
    Result<Confirmation> time(std::vector<Attempt> const& attempts)
    {
        if (attempts.size() < 2)
            return Confirmation{};
        std::vector<Tensor> storage;
        TW_ASSIGN(auto inputs, runtime::profileInputs(contents_, 0, runtime::Select::kOpt, storage));
        return confirm(attempts, inputs, *options_.tune.workers, kBudgetMilliseconds);
    }
    static char const* nameOf(FormatPolicy p)
    {
        return p == FormatPolicy::kLinear         ? "all linear"
               : p == FormatPolicy::kChannelsLast ? "all channels-last"
                                                  : "by least time";
    }
    static void logSummary(FormatSummary const& s, Log& log)
    {
        if (s.nodes == 0)
            return;
        log.info("Formats: " + std::to_string(s.nonLinear) + " of " + std::to_string(s.nodes) +
                 " layers that can work in other than linear formats do, with " + std::to_string(s.reformats) +
                 " reformats: " + std::to_string(s.microseconds) + " us" +
                 (std::isfinite(s.linearMicroseconds) ? ", all linear " + std::to_string(s.linearMicroseconds) + " us"
                                                      : std::string()) +
                 (s.isExact ? "" : " (not searched to the end)"));
    }
    // What the decision depends on: every layer with its shapes.
    std::string graphKey() const
    {
        auto const block = runtime::outlineBlock(*contents_.graph);
        auto const shapes = resolveProfile(contents_, *block, 0);
        Hasher h;
        for (runtime::LoadedStep const& step : block->steps)
            if (shapes.ok())
                h.text(tune::regionKey(
                    runtime::problemOf(step, *shapes->at[1], *shapes->at[2], options_.tune.workers->count()),
                    options_.fingerprint));
        for (auto const& [name, io] : options_.io) {
            h.text(name);
            for (Format f : io.allowed)
                h.text(tw::nameOf(f));
        }
        h.number(uint64_t(options_.tune.workspaceBytes));
        return options_.fingerprint + "|formats of a graph|" + std::to_string(h.value());
    }

    static constexpr double kMostMicroseconds = 300'000; // of one run: more takes too long to time
    static constexpr double kBudgetMilliseconds = 1000;
    static constexpr double kWorthTrying = 1.3;
    plan::Contents const& contents_;
    ir::Graph const* apart_;
    Options const& options_;
    Chooser& chooser_;
};

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

constexpr char const* kBandsPass = "fuse_expanded_depthwise";

// Whether the pass may find something: a copy of the graph keeps weights that passes replace.
bool hasGroups(ir::Graph const& g)
{
    return std::any_of(g.nodes.begin(), g.nodes.end(), [](auto const& n) {
        return (n->op == &ops::convolution::def() && n->template attrsAs<ops::convolution::Attrs>().groups > 1) ||
               std::any_of(n->regions.begin(), n->regions.end(), [](auto const& r) { return hasGroups(*r); });
    });
}

bool hasBands(ir::Graph const& g)
{
    return std::any_of(g.nodes.begin(), g.nodes.end(), [](auto const& n) {
        return n->op == ops::find("expanded_depthwise") ||
               std::any_of(n->regions.begin(), n->regions.end(), [](auto const& r) { return hasBands(*r); });
    });
}

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
    bool const cuda = options.cuda != nullptr;
    // Tensors of 4.6 times L2 gained 8 to 12 %, of 1.8 times lost 3 to 9 % (Zen 4, 1 MiB of L2, an L3 at 98 GB/s).
    bool const bands = !cuda && kernels::jit::isaOf(ops::thisCpu()).has_value();
    auto lower = [&](ir::Graph& graph, passes::Options const& list, Log& messages) -> Result<void> {
        passes::PassContext const context{messages,
                                          options.refittable,
                                          options.half && cuda,
                                          options.constraints,
                                          cuda,
                                          bands ? 2 * ops::thisCpu().l2Bytes : 0};
        TW_TRY(passes::run(graph, context, list));
        for (ir::Value* v : graph.outputs)
            v->host = v->host || std::any_of(contents.io.begin(), contents.io.end(), [&](plan::IoTensor const& t) {
                          return !t.isInput && t.isShapeTensor && t.name == v->name;
                      });
        for (ir::Value const* v : ir::shapeValues(graph))
            const_cast<ir::Value*>(v)->host = true;
        graph.form = ir::Form::kScheduled;
        return ir::verify(graph);
    };
    passes::Options list = passesFor(options);
    std::unique_ptr<ir::Graph> apart = bands && hasGroups(g) ? g.clone() : nullptr;
    TW_TRY(lower(g, list, log));
    // Whether bands are faster is for the clock to say.
    if (apart && !hasBands(g))
        apart.reset();
    if (apart) {
        list.disabled.push_back(kBandsPass);
        list.dumpFolder = nullptr;
        TW_TRY(lower(*apart, list, quiet));
    }

    plan::Target target;
    target.backend = options.cuda ? "cuda" : "cpu";
    target.fingerprint = options.fingerprint;
    Options withDevice = options;
    withDevice.tune.device = options.fingerprint;
    withDevice.tune.log = options.log;
    withDevice.tune.cuda = options.cuda.get();
    withDevice.tune.backend = options.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
    Chooser chooser(withDevice, countNodes(g));
    TW_ASSIGN(Attempt best, AttemptMaker(contents, apart.get(), withDevice, chooser).makeBest(log));
    chooser.report();
    target.root = std::move(best.root);
    int64_t arena = 0, bound = 0;
    for (size_t p = 0; p < contents.profiles.size(); ++p) {
        TW_ASSIGN(ProfileShapes const shapes, resolveProfile(contents, *best.block, p));
        runtime::Instance& max = *shapes.at[2];
        TW_TRY(runtime::placeInArena(max));
        if (options.maxMemoryBytes > 0 && max.arenaBytes > options.maxMemoryBytes)
            return Error{ErrorCode::kFailedAllocation,
                         "optimization profile " + std::to_string(p) + ": the activations take " +
                             mebibytes(max.arenaBytes) + " at its maximum shapes, the limit is " +
                             mebibytes(options.maxMemoryBytes) + "; make its maximum shapes smaller"};
        recordMemory(target.root, max);
        if (p == 0 && !cuda && !options.refittable)
            contents.panels =
                choosePanels(*best.graph, *best.block, target.root, *shapes.at[1], max, options.tune.workers->count());
        arena = std::max(arena, max.arenaBytes);
        bound = std::max(bound, max.arenaLowerBound);
    }
    best.block.reset();
    contents.graph = std::move(best.graph);
    contents.targets.push_back(std::move(target));
    int64_t weightBytes = 0;
    for (auto const& v : contents.graph->values())
        if (v->isConstant())
            weightBytes += TensorRef{v->type, ir::extentsOf(v->shape), nullptr}.sizeBytes();
    log.info("Total Activation Memory: " + std::to_string(arena) + " (lower bound " + std::to_string(bound) + ")");
    log.info("Total Weights Memory: " + std::to_string(weightBytes));
    log.info("Engine built in " + std::to_string(secondsSince(begin)) + " seconds.");
    return {};
}

} // namespace tw::builder
