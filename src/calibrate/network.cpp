// SPDX-License-Identifier: Apache-2.0
#include "calibrate/network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/concatenation/op.h"
#include "ops/pooling/op.h"
#include "passes/pass.h"
#include "runtime/engine.h"
#include "runtime/profile_shapes.h"
#include "tactic/registry.h"
#include "tune/candidates.h"

namespace tw::calibrate {

namespace {

// Before fusion, tensors are those of the network; what depends on nothing but constants is a constant all the same,
// and shapes are as simple as they can be.
bool keepsTensors(std::string const& pass)
{
    return pass == "remove_dead" || pass == "fold_constants" || pass == "constants_into_regions" ||
           pass == "simplify_shapes";
}

// Every dimension of the inputs becomes that of the optimum.
Result<void> fixShapes(ir::Graph& g, plan::Profile const& profile)
{
    for (ir::Value* v : g.inputs)
        if (auto const at = profile.inputs.find(v->name); at != profile.inputs.end() && at->second.hasShape)
            v->shape = ir::shapeOf(at->second.opt);
    for (ir::Value const* v : g.inputs)
        if (!ir::isStatic(v->shape))
            return invalidState("calibration: the profile gives network input '{}' no dimensions", v->name);
    return g.inferAll();
}

Result<void> lower(ir::Graph& g, NetworkOptions const& options)
{
    passes::Options list;
    for (passes::Pass const& p : passes::pipeline())
        if (!options.isFused && !keepsTensors(p.name))
            list.disabled.push_back(p.name);
    NullLog quiet;
    TW_TRY(passes::run(g, {{.target = options.target}, quiet}, list));
    for (ir::Value const* v : ir::hostValues(g))
        const_cast<ir::Value*>(v)->host = true;
    g.form = ir::Form::kScheduled;
    return ir::verify(g);
}

bool isObserved(ir::Value const& v)
{
    return isFloating(v.type) && !v.isConstant() && !v.host && !v.name.empty();
}

// Of the network's own tensors; reformats make others.
std::set<std::string> observedNames(ir::Graph const& g)
{
    std::set<std::string> names;
    auto add = [&](ir::Value const* v) {
        if (isObserved(*v))
            names.insert(v->name);
    };
    std::ranges::for_each(g.inputs, add);
    for (auto const& node : g.nodes)
        std::ranges::for_each(node->outputs, add);
    return names;
}

// Between two steps that run, everything that earlier ones have made is there, parts of other values too.
class Steps final : public runtime::StepObserver
{
public:
    Steps(runtime::Instance const& instance, std::map<int, size_t> const& wanted, ValueObserver& observer)
        : instance_(instance), wanted_(wanted), observer_(observer)
    {}
    void before(runtime::LoadedStep const& step) override
    {
        observeUpTo(size_t(&step - instance_.block->steps.data()));
    }
    void after(runtime::LoadedStep const&) override {}
    void observeUpTo(size_t end)
    {
        for (; next_ < end; ++next_)
            for (int v : instance_.block->steps[next_].outputs)
                if (auto const at = wanted_.find(v); at != wanted_.end())
                    observer_.observe(at->second, instance_.refs[size_t(v)]);
    }

private:
    runtime::Instance const& instance_;
    std::map<int, size_t> const& wanted_;
    ValueObserver& observer_;
    size_t next_ = 0;
};

} // namespace

Result<std::unique_ptr<Network>> Network::make(ir::Graph const& graph, plan::Profile const& profile,
                                               NetworkOptions const& options)
{
    std::unique_ptr<Network> n(new Network);
    n->workers_ = options.workers;
    n->contents_.graph = graph.clone();
    ir::Graph& g = *n->contents_.graph;
    TW_TRY(fixShapes(g, profile));
    TW_TRY(lower(g, options));
    plan::Profile fixed = profile;
    for (auto& [name, range] : fixed.inputs) {
        range.min = range.max = range.opt;
        range.minValues = range.maxValues = range.optValues;
    }
    n->contents_.profiles.push_back(std::move(fixed));
    n->graph_ = g.clone();
    std::set<std::string> const names = observedNames(g);
    n->block_ = runtime::outlineBlock(g);
    TW_ASSIGN(runtime::NetworkShapes shapes, runtime::resolveProfiles(n->contents_, *n->block_));
    TW_ASSIGN(auto const formats, assignFixedFormats(g, *n->block_, shapes.opt(), options.providers));
    if (formats.changed()) {
        TW_TRY(ir::verify(g));
        n->block_ = runtime::outlineBlock(g);
        TW_ASSIGN(shapes, runtime::resolveProfiles(n->contents_, *n->block_));
    }
    plan::Block const chosen = chooseFixed(*n->block_, shapes.opt(), options.providers);
    runtime::LoadOptions load;
    load.providers = options.providers;
    load.threads = options.workers->count();
    load.workers = options.workers;
    TW_TRY(runtime::loadKernels(*n->block_, &chosen, shapes.opt(), shapes.max(), load));
    if (options.log)
        for (size_t i = 0; i < n->block_->steps.size(); ++i)
            if (runtime::LoadedStep const& s = n->block_->steps[i]; s.tactic && !s.host)
                options.log->verbose("Calibration runs layer '{}' by {}", s.node->name, s.tactic->name());
    n->instance_ = std::move(shapes.profiles[0].opt);
    TW_TRY(runtime::placeInArena(*n->instance_, {.workers = options.workers}));
    auto add = [&](ir::Value const* v) {
        if (names.contains(v->name) && isObserved(*v))
            n->observed_.push_back(v);
    };
    std::ranges::for_each(g.inputs, add);
    for (auto const& node : g.nodes) {
        n->hasRegions_ = n->hasRegions_ || !node->regions.empty();
        std::ranges::for_each(node->outputs, add);
    }
    TW_TRY(n->allocate(options));
    return n;
}

Result<void> Network::allocate(NetworkOptions const& options)
{
    Error const noMemory{
        ErrorCode::kFailedAllocation,
        fmt::format("calibration: the activations take {} MiB at these shapes; calibrate with smaller batches",
                    instance_->arenaBytes >> 20)};
    if (options.maxMemoryBytes > 0 && instance_->arenaBytes > options.maxMemoryBytes)
        return noMemory;
    arena_ = Tensor(DataType::kInt8, {instance_->arenaBytes});
    bool isThere = arena_.data() != nullptr;
    std::vector<Tensor> storage;
    TW_ASSIGN(auto const states, runtime::profileInputs(contents_, 0, runtime::Select::kOpt, storage));
    for (size_t i = 0; i < contents_.graph->inputs.size(); ++i) {
        ir::Value const& v = *contents_.graph->inputs[i];
        inputs_.push_back({v.name, v.host, Tensor(v.type, states[i].dims)});
        isThere = isThere && inputs_.back().memory.data();
        if (isThere && v.host && states[i].contents.data)
            std::copy_n(static_cast<std::byte const*>(states[i].contents.data), states[i].contents.sizeBytes(),
                        static_cast<std::byte*>(inputs_.back().memory.data()));
    }
    for (ir::Value const* v : contents_.graph->outputs) {
        runtime::ValueState const& s = instance_->values[size_t(block_->indexOf(v))];
        outputs_.push_back(s.known ? Tensor(v->type, s.dims) : Tensor());
        isThere = isThere && (!s.known || outputs_.back().data());
    }
    return isThere ? Result<void>() : noMemory;
}

Result<void> Network::run(ValueObserver& observer)
{
    std::map<int, size_t> wanted;
    for (size_t i = 0; i < observed_.size(); ++i)
        if (observed_[i]->producer)
            wanted.emplace(block_->indexOf(observed_[i]), i);
    std::vector<TensorRef> given, results;
    for (Input const& in : inputs_)
        given.push_back(in.memory.ref());
    for (size_t i = 0; i < observed_.size() && !observed_[i]->producer; ++i)
        for (size_t k = 0; k < inputs_.size(); ++k)
            if (contents_.graph->inputs[k] == observed_[i])
                observer.observe(i, given[k]);
    for (Tensor const& t : outputs_)
        results.push_back(t.ref());
    Steps steps(*instance_, wanted, observer);
    runtime::ExecuteArgs args;
    args.arena = arena_.data();
    args.inputs = given;
    args.outputs = results;
    args.randomState = &randomState_;
    args.observer = &steps;
    args.workers = workers_;
    TW_TRY(runtime::execute(*instance_, args));
    steps.observeUpTo(block_->steps.size());
    return {};
}

namespace {

// Sets of tensors that become larger.
class Groups
{
public:
    explicit Groups(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), size_t(0)); }
    size_t of(size_t i)
    {
        while (parent_[i] != i)
            i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    void join(size_t a, size_t b) { parent_[of(a)] = of(b); }

private:
    std::vector<size_t> parent_;
};

} // namespace

void shareThresholds(ir::Graph const& g, std::map<std::string, double>& thresholds)
{
    std::map<std::string, size_t> places;
    for (auto const& [name, threshold] : thresholds)
        places.emplace(name, places.size());
    Groups groups(places.size());
    std::vector<bool> follows(places.size(), false);
    auto link = [&](ir::Value const* follower, ir::Value const* leader) {
        auto const f = places.find(follower->name), l = places.find(leader->name);
        if (f == places.end() || l == places.end() || follower->isConstant() || leader->isConstant())
            return;
        groups.join(f->second, l->second);
        follows[f->second] = true;
    };
    for (auto const& n : g.nodes) {
        if (n->op == &ops::concatenation::def())
            for (ir::Value const* in : n->inputs)
                link(in, n->outputs[0]);
        if (n->op == &ops::pooling::def())
            link(n->outputs[0], n->inputs[0]);
    }
    std::vector<double> largest(places.size(), 0);
    for (auto const& [name, i] : places)
        if (!follows[i])
            largest[groups.of(i)] = std::max(largest[groups.of(i)], thresholds[name]);
    for (auto const& [name, i] : places)
        if (largest[groups.of(i)] > 0)
            thresholds[name] = largest[groups.of(i)];
}

namespace {

struct Candidate
{
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    double estimate = INFINITY;
};

// Best first.
std::vector<Candidate> candidatesFor(ops::Problem const& problem, tune::Options const& options)
{
    std::vector<Candidate> list;
    for (ops::Tactic const* t : tune::candidates(*problem.node, options)) {
        if (t->traits().rounding != ops::Rounding::kPlain || !ops::supportsFormats(*t, problem).ok)
            continue;
        for (ops::Config const& config : t->configs(problem)) {
            double const estimate = t->estimate(problem, config);
            list.push_back({t, config, estimate > 0 ? estimate : INFINITY});
        }
    }
    std::ranges::stable_sort(list, [](Candidate const& a, Candidate const& b) { return a.estimate < b.estimate; });
    return list;
}

// No tactic where nothing fits: loading takes the op's plain one then.
plan::Choice choose(ops::Problem const& problem, tune::Options const& options)
{
    for (Candidate const& c : candidatesFor(problem, options))
        if (auto image = c.tactic->build(problem, c.config); image.ok()) {
            plan::Choice out;
            out.tactic = c.tactic->id();
            out.name = c.tactic->name();
            out.version = c.tactic->version();
            out.config = c.config;
            out.image = std::move(*image);
            return out;
        }
    return {};
}

} // namespace

Result<builder::FormatSummary> assignFixedFormats(ir::Graph& g, runtime::LoadedBlock const& block,
                                                  runtime::Instance const& shapes,
                                                  std::span<ops::TacticProvider const* const> providers)
{
    tune::Options options;
    options.providers = providers;
    options.heuristicOnly = true;
    auto const timesOf = [&](ops::Problem const& problem, std::vector<ops::Formats> const& formats) {
        std::vector<Result<double>> times;
        for (ops::Formats const& f : formats) {
            ops::Problem in = problem;
            ops::setFormats(in, f);
            std::vector<Candidate> const list = candidatesFor(in, options);
            if (list.empty())
                times.push_back(unsupported("no tactic works in these formats"));
            else
                times.push_back(std::isfinite(list[0].estimate) ? list[0].estimate : 0.);
        }
        return times;
    };
    return builder::assignFormats(g, block, shapes, shapes, options, {}, timesOf, {});
}

plan::Block chooseFixed(runtime::LoadedBlock const& block, runtime::Instance const& shapes,
                        std::span<ops::TacticProvider const* const> providers)
{
    tune::Options options;
    options.providers = providers;
    plan::Block out;
    for (size_t i = 0; i < block.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        plan::Step chosen;
        chosen.node = int32_t(i);
        for (size_t r = 0; r < step.regions.size(); ++r)
            chosen.regions.push_back(chooseFixed(*step.regions[r], *shapes.regions[i][r], providers));
        if (step.regions.empty())
            chosen.choice = choose(runtime::problemOf(step, shapes, shapes, 1), options);
        out.steps.push_back(std::move(chosen));
    }
    return out;
}

} // namespace tw::calibrate
