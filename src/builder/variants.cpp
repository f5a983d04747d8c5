// SPDX-License-Identifier: Apache-2.0
#include "builder/variants.h"

#include <algorithm>
#include <cmath>

#include "ir/op_def.h"
#include "runtime/engine.h"
#include "tactic/expected_time.h"
#include "tune/candidates.h"
#include "tune/region_key.h"

namespace tw::builder {

namespace {

// Of the best estimate: what lies beyond, no clock will prefer. FP32 pays by what it saves in conversions, so it is tried
// beside the network's inputs and outputs; elsewhere where it is expected to be faster by itself. (Of the 189 kinds of
// convolutions of four CNNs in FP16 on an H200 seven were faster in FP32, by up to 9 %, and no engine had one of them so.)
constexpr double kWithin = 1, kWithinAtEnds = 2;

// What estimates say of a problem in its best formats.
struct Outlook
{
    double microseconds = INFINITY; // the least estimate; infinite: there is none
    bool isPlain = true;            // nothing but the op's plain tactic does it
};

Outlook outlookOf(ops::Problem const& problem, tune::Options const& options)
{
    ir::Node const& node = *problem.node;
    ops::TacticList const own = node.op->tactics(options.backend == ops::Backend::kCuda);
    ops::Tactic const* plain = own.empty() ? nullptr : own.back();
    Outlook out;
    for (ops::Tactic const* t : tune::candidates(node, options)) {
        if (t->source() !=
            ops::Source::kOwn) // libraries estimate nothing, and asking them what they support takes long
            continue;
        for (ops::Formats const& f : t->formats(problem)) {
            ops::Problem in = problem;
            ops::setFormats(in, f);
            if (!t->supports(in).ok)
                continue;
            out.isPlain = out.isPlain && t == plain;
            for (ops::Config const& config : t->configs(in))
                if (double const us = ops::expectedTime(*t, in, config); us > 0)
                    out.microseconds = std::min(out.microseconds, us);
        }
    }
    return out;
}

class Collector
{
public:
    Collector(ir::Graph const& g, runtime::LoadedBlock const& block, runtime::Instance const& opt,
              runtime::Instance const& max, tune::Options const& options, passes::Precisions const& p,
              passes::NarrowWeights& weights)
        : g_(g), block_(block), opt_(opt), max_(max), options_(options), p_(p), weights_(weights)
    {}

    Result<GraphVariants> run()
    {
        for (size_t i = 0; i < block_.steps.size(); ++i)
            if (p_.isNarrow(block_.steps[i].node) && !block_.steps[i].host)
                TW_TRY(consider(i));
        if (open_.empty())
            return std::move(out_);
        spread();
        for (size_t i = 0; i < block_.steps.size(); ++i)
            if (block_.steps[i].regions.empty() && !block_.steps[i].host)
                TW_TRY(add(i));
        return std::move(out_);
    }

private:
    ops::Problem ownProblem(size_t i) const
    {
        return runtime::problemOf(block_.steps[i], opt_, max_, options_.workers->count(), options_.target.cuda);
    }
    Result<ops::Problem> pose(size_t i, DataType type, std::vector<passes::PosedNode>& owner)
    {
        TW_ASSIGN(passes::PosedNode posed, passes::poseNode(g_, *block_.steps[i].node, type, p_, weights_));
        ops::Problem p = ownProblem(i);
        p.node = posed.node;
        auto take = [](ops::TensorSpec& spec, ir::Value const* v) {
            if (!v)
                return;
            spec.type = v->type;
            spec.constant = v->constant ? v->constant->data.get() : nullptr;
        };
        for (size_t k = 0; k < p.inputs.size(); ++k)
            take(p.inputs[k], posed.node->inputs[k]);
        for (size_t k = 0; k < p.outputs.size(); ++k)
            take(p.outputs[k], posed.node->outputs[k]);
        out_.originals[posed.node] = block_.steps[i].node;
        owner.push_back(std::move(posed));
        return p;
    }

    Outlook const& outlook(ops::Problem const& p)
    {
        auto const [at, isNew] = outlooks_.try_emplace(tune::choiceKey(p, options_));
        if (isNew)
            at->second = outlookOf(p, options_);
        return at->second;
    }

    // Whether a node in f16 may be in f32, what its neighbours are in aside.
    Result<void> consider(size_t i)
    {
        ir::Node const& n = *block_.steps[i].node;
        if (p_.bound.contains(&n)) {
            out_.whyNotFloat[&n] = std::string("the network asks for ") + name_;
            return {};
        }
        auto known = [&](ir::Value const* v) { return !v || opt_.values[size_t(block_.indexOf(v))].known; };
        if (!std::ranges::all_of(n.inputs, known) || !std::ranges::all_of(n.outputs, known)) {
            out_.whyNotFloat[&n] = "its shapes depend on data: there is nothing to time";
            return {};
        }
        std::vector<passes::PosedNode> owner;
        TW_ASSIGN(ops::Problem const inHalf, pose(i, p_.type, owner));
        TW_ASSIGN(ops::Problem const inFloat, pose(i, DataType::kFloat, owner));
        Outlook const half = outlook(inHalf), single = outlook(inFloat);
        if (passes::isCheap(n) && half.isPlain == single.isPlain) {
            between_.insert(&n);
            out_.whyNotFloat[&n] = std::string("it costs little and stands between layers in ") + name_;
        } else if (single.isPlain && !half.isPlain) {
            out_.whyNotFloat[&n] = std::string("only ") + name_ + " has generated kernels for it";
        } else if (half.isPlain == single.isPlain && std::isfinite(single.microseconds) &&
                   single.microseconds > (isAtEnd(n) ? kWithinAtEnds : kWithin) * half.microseconds) {
            out_.whyNotFloat[&n] =
                fmt::format("estimated at {} us, {} at {} us", single.microseconds, name_, half.microseconds);
        } else {
            open_.insert(&n);
        }
        return {};
    }

    // Reads or writes what the client gives or takes in FP32.
    bool isAtEnd(ir::Node const& n) const
    {
        auto isInput = [&](ir::Value const* v) { return v && isFullFloat(v->type) && contains(g_.inputs, v); };
        auto isOutput = [&](ir::Value const* v) { return v && isFullFloat(v->type) && g_.isOutput(v); };
        return std::ranges::any_of(n.inputs, isInput) || std::ranges::any_of(n.outputs, isOutput);
    }

    // Cheap nodes that touch an open one, at once or by others of their kind, are open too: conversions may stand at
    // either side.
    void spread()
    {
        auto isOpenMaker = [&](ir::Value const* v) { return v && v->producer && open_.contains(v->producer); };
        for (bool changed = true; changed;) {
            changed = false;
            std::set<ir::Value const*> read;
            for (ir::Node const* n : open_)
                read.insert(n->inputs.begin(), n->inputs.end());
            for (auto n = between_.begin(); n != between_.end();) {
                bool const touches =
                    std::ranges::any_of((*n)->inputs, isOpenMaker) ||
                    std::ranges::any_of((*n)->outputs, [&](ir::Value const* v) { return read.contains(v); });
                changed = changed || touches;
                if (touches) {
                    open_.insert(*n);
                    out_.whyNotFloat.erase(*n);
                }
                n = touches ? between_.erase(n) : std::next(n);
            }
        }
    }

    Result<void> add(size_t i)
    {
        ir::Node const& n = *block_.steps[i].node;
        NodeVariants v;
        std::vector<ops::Problem> problems;
        auto addIn = [&](DataType type) -> Result<void> {
            TW_ASSIGN(ops::Problem p, pose(i, type, v.posed));
            problems.push_back(std::move(p));
            v.types.push_back(type);
            return {};
        };
        if (p_.isNarrow(&n)) {
            TW_TRY(addIn(p_.type));
            if (open_.contains(&n))
                TW_TRY(addIn(DataType::kFloat));
        } else if (passes::readsAnyFloat(n)) {
            TW_TRY(addIn(DataType::kFloat));
        } else {
            problems.push_back(ownProblem(i));
            v.types.push_back(DataType::kFloat);
        }
        out_.open += problems.size() > 1;
        out_.problems.emplace(&n, std::move(problems));
        out_.nodes.emplace(&n, std::move(v));
        return {};
    }

    ir::Graph const& g_;
    runtime::LoadedBlock const& block_;
    runtime::Instance const &opt_, &max_;
    tune::Options const& options_;
    passes::Precisions const& p_;
    char const* const name_ = numberType(p_.type).shown;
    passes::NarrowWeights& weights_;
    std::set<ir::Node const*> open_, between_;
    std::map<std::string, Outlook> outlooks_; // by region: equal layers have equal ones
    GraphVariants out_;
};

} // namespace

Result<GraphVariants> collectVariants(ir::Graph const& graph, runtime::LoadedBlock const& block,
                                      runtime::Instance const& opt, runtime::Instance const& max,
                                      tune::Options const& options, passes::Precisions const& precisions,
                                      passes::NarrowWeights& weights)
{
    return Collector(graph, block, opt, max, options, precisions, weights).run();
}

} // namespace tw::builder
