// SPDX-License-Identifier: Apache-2.0
#include "builder/formats.h"

#include <algorithm>
#include <map>

#include "builder/carriers.h"
#include "builder/reformats.h"
#include "ir/op_def.h"
#include "passes/precision.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/pbqp.h"

namespace tw::builder {

namespace {

using tune::pbqp::kImpossible;

// A node in one of its variants, in a combination of formats that a tactic offers.
struct Label
{
    size_t variant = 0;
    ops::Formats formats;
};
struct Labels
{
    std::vector<ops::Problem> variants; // the node as it is, or posed in each of the types that it may have
    std::vector<Label> list;            // linear first
    std::vector<double> costs;
    int chosen = 0;

    Label const& choice() const { return list[size_t(chosen)]; }
    Carrier input(size_t label, size_t i) const
    {
        Label const& l = list[label];
        return {variants[l.variant].inputs[i].type, l.formats.inputs[i]};
    }
    Carrier output(size_t label, size_t i) const
    {
        Label const& l = list[label];
        return {variants[l.variant].outputs[i].type, l.formats.outputs[i]};
    }
};

// A network input or output with the formats that the client allows.
struct Boundary
{
    ir::Value* value;
    IoFormat const* formats;
    bool isInput;
    int node = -1; // of the problem
    int chosen = 0;

    Format format() const { return formats->allowed[size_t(chosen)]; }
    std::vector<Carrier> carriers() const
    {
        std::vector<Carrier> list;
        for (Format f : formats->allowed)
            list.push_back({value->type, f});
        return list;
    }
};

bool has(std::vector<Format> const& list, Format f)
{
    return std::find(list.begin(), list.end(), f) != list.end();
}

// Whether values of this kind may be in the formats; the verifier demands it.
bool isAllowed(ir::Node const& node, ops::Formats const& f)
{
    auto fits = [](ir::Value const* v, Format format) {
        return format == Format::kLinear || (v && v->rank() >= 3 && !v->host && !v->isConstant());
    };
    for (size_t i = 0; i < node.inputs.size(); ++i)
        if (!fits(node.inputs[i], f.inputs[i]))
            return false;
    for (size_t i = 0; i < node.outputs.size(); ++i)
        if (!fits(node.outputs[i], f.outputs[i]))
            return false;
    return true;
}

class Assignment
{
public:
    Assignment(ir::Graph& g, runtime::LoadedBlock const& block, runtime::Instance const& opt,
               runtime::Instance const& max, tune::Options const& options, TimesOf const& timesOf, IoFormats const& io,
               Variants const* variants = nullptr)
        : g_(g), block_(block), opt_(opt), max_(max), options_(options), timesOf_(timesOf), variants_(variants)
    {
        static IoFormat const kLinearOnly;
        auto add = [&](ir::Value* v, bool isInput) {
            auto const it = io.find(v->name);
            boundaries_.push_back(Boundary{v, it == io.end() || v->host ? &kLinearOnly : &it->second, isInput});
        };
        for (ir::Value* v : g.inputs)
            add(v, true);
        for (ir::Value* v : g.outputs)
            add(v, false);
    }

    Result<FormatSummary> run(FormatPolicy policy)
    {
        collectLabels();
        bool const isFixed = std::all_of(boundaries_.begin(), boundaries_.end(), [](Boundary const& b) {
            return b.formats->allowed.size() == 1 && !b.formats->isDirect;
        });
        takeDefaults();
        if ((summary_.nodes == 0 && isFixed) || policy == FormatPolicy::kLinear) {
            apply();
            return summary_;
        }
        if (policy == FormatPolicy::kChannelsLast) {
            auto notLinear = [](ops::Formats const& f) {
                return f.inputs.size() + f.outputs.size() -
                       size_t(std::count(f.inputs.begin(), f.inputs.end(), Format::kLinear) +
                              std::count(f.outputs.begin(), f.outputs.end(), Format::kLinear));
            };
            for (Labels& l : labels_)
                l.chosen = int(std::max_element(l.list.begin(), l.list.end(),
                                                [&](Label const& a, Label const& b) {
                                                    return notLinear(a.formats) < notLinear(b.formats);
                                                }) -
                               l.list.begin());
        } else {
            TW_TRY(solve());
        }
        apply();
        return summary_;
    }

    // Changes nothing in the graph.
    Result<VariantChoices> chooseVariants()
    {
        collectLabels();
        takeDefaults();
        TW_TRY(solve());
        VariantChoices out{{}, summary_.microseconds};
        for (Labels const& l : labels_) {
            VariantChoice c{l.choice().variant, std::vector<double>(l.variants.size(), kImpossible)};
            for (size_t k = 0; k < l.list.size(); ++k)
                c.microseconds[l.list[k].variant] = std::min(c.microseconds[l.list[k].variant], l.costs[k]);
            out.nodes.push_back(std::move(c));
        }
        return out;
    }

private:
    void collectLabels()
    {
        for (size_t i = 0; i < block_.steps.size(); ++i) {
            runtime::LoadedStep const& step = block_.steps[i];
            ir::Node const& node = *step.node;
            Labels l;
            auto known = [&](ir::Value const* v) { return !v || opt_.values[size_t(block_.indexOf(v))].known; };
            bool const canChoose = !step.host && step.regions.empty() && !opt_.skipped[i] &&
                                   std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
                                   std::all_of(node.outputs.begin(), node.outputs.end(), known);
            auto const posed = variants_ ? variants_->find(&node) : Variants::const_iterator();
            if (variants_ && posed != variants_->end())
                l.variants = posed->second;
            else
                l.variants.push_back(runtime::problemOf(step, opt_, max_, options_.workers->count(), options_.cuda));
            for (size_t v = 0; v < l.variants.size(); ++v) {
                l.list.push_back({v, ops::linearFormats(l.variants[v])});
                if (canChoose)
                    addLabels(node, v, l);
            }
            l.costs.assign(l.list.size(), 0);
            summary_.nodes += l.list.size() > 1;
            labels_.push_back(std::move(l));
        }
    }
    void addLabels(ir::Node const& node, size_t variant, Labels& l)
    {
        ops::Problem const& problem = l.variants[variant];
        auto isKnown = [&](ops::Formats const& f) {
            return std::any_of(l.list.begin(), l.list.end(),
                               [&](Label const& other) { return other.variant == variant && other.formats == f; });
        };
        for (ops::Tactic const* t : tune::candidates(*problem.node, options_))
            for (ops::Formats const& f : t->formats(problem)) {
                if (isKnown(f) || !isAllowed(node, f))
                    continue;
                ops::Problem in = problem;
                ops::setFormats(in, f);
                if (t->supports(in).ok)
                    l.list.push_back({variant, f});
            }
    }

    // A region without work in these formats: its output is a part of its input, or the other way round.
    bool isAliased(ir::Node const& node, ops::Problem const& problem, ops::Formats const& formats) const
    {
        if (!node.op->aliases || node.outputs.size() != 1)
            return false;
        auto refOf = [&](ir::Value const* v, ops::TensorSpec const& spec, Format format) {
            TensorRef r = v ? opt_.shapeOf(block_.indexOf(v)) : TensorRef{};
            r.type = spec.type;
            r.format = format;
            if (v && v->isConstant())
                r.data = const_cast<void*>(spec.constant->data());
            else if (v && opt_.values[size_t(block_.indexOf(v))].hasContents)
                r.data = opt_.values[size_t(block_.indexOf(v))].contents.data();
            return r;
        };
        std::vector<TensorRef> in, out{refOf(node.outputs[0], problem.outputs[0], formats.outputs[0])};
        for (size_t i = 0; i < node.inputs.size(); ++i)
            in.push_back(refOf(node.inputs[i], problem.inputs[i], formats.inputs[i]));
        return !node.op->aliases(*problem.node, in, out).empty();
    }

    Result<void> solve()
    {
        tune::pbqp::Problem p;
        for (size_t n = 0; n < labels_.size(); ++n) {
            Labels& l = labels_[n];
            for (size_t v = 0; l.list.size() > 1 && v < l.variants.size(); ++v)
                timeLabels(*g_.nodes[n], v, l);
            if (options_.heuristicOnly)
                guessUnknown(l);
            summary_.linearMicroseconds += l.costs[0];
            // With nothing possible the ordinary choice will say why.
            if (std::all_of(l.costs.begin(), l.costs.end(), [](double c) { return c == kImpossible; }))
                l.costs.assign(l.list.size(), 0);
            p.addNode(l.costs);
        }
        for (Boundary& b : boundaries_)
            b.node = p.addNode(std::vector<double>(b.formats->allowed.size(), 0.0));
        auto const uses = collectUses();
        for (auto const& v : g_.values()) { // in the order of the graph, not of addresses
            auto it = uses.find(v.get());
            if (it == uses.end() || v->isConstant())
                continue;
            int const producer = v->producer ? positions_.at(v->producer) : inputBoundary(*v).node;
            TW_TRY(addValue(p, producer, producedCarriers(*v), it->second,
                            [&](Carrier const& from, Carrier const& to) { return copyTime(*v, from, to); }));
        }
        if (!variants_)
            addDirect(p);
        tune::pbqp::Solution const s = tune::pbqp::solve(p);
        summary_.isExact = s.isExact;
        if (s.cost == kImpossible)
            return checkDirect(); // linear throughout
        for (size_t i = 0; i < labels_.size(); ++i)
            labels_[i].chosen = s.labels[i];
        for (Boundary& b : boundaries_)
            b.chosen = s.labels[size_t(b.node)];
        summary_.microseconds = s.cost;
        return {};
    }

    void timeLabels(ir::Node const& node, size_t variant, Labels& l)
    {
        ops::Problem const& problem = l.variants[variant];
        std::vector<ops::Formats> timed;
        std::vector<size_t> places;
        for (size_t k = 0; k < l.list.size(); ++k)
            if (l.list[k].variant == variant && !isAliased(node, problem, l.list[k].formats)) {
                timed.push_back(l.list[k].formats);
                places.push_back(k);
            }
        if (timed.empty())
            return;
        std::vector<Result<double>> const times = timesOf_(problem, timed);
        for (size_t t = 0; t < timed.size(); ++t)
            l.costs[places[t]] = times[t].ok() ? *times[t] : kImpossible;
    }

    // Among estimates, 0 says "unknown": the tactics that have none are the plain ones.
    static void guessUnknown(Labels& l)
    {
        constexpr double kSlower = 10;
        double most = 0;
        for (double c : l.costs)
            most = c == kImpossible ? most : std::max(most, c);
        for (double& c : l.costs)
            c = c > 0 ? c : kSlower * most;
    }

    std::map<ir::Value const*, std::vector<Use>> collectUses() const
    {
        std::map<ir::Value const*, std::vector<Use>> uses;
        for (size_t n = 0; n < labels_.size(); ++n) {
            ir::Node const& node = *g_.nodes[n];
            bool const isFree = variants_ && passes::readsAnyFloat(node);
            for (size_t i = 0; i < node.inputs.size(); ++i) {
                ir::Value const* v = node.inputs[i];
                if (!v)
                    continue;
                std::vector<Use>& list = uses[v];
                if (list.empty() || list.back().node != int(n))
                    list.push_back(Use{int(n), std::vector<std::vector<Wanted>>(labels_[n].list.size())});
                for (size_t k = 0; k < labels_[n].list.size(); ++k) {
                    Wanted const w{labels_[n].input(k, i), isFree && isFloating(v->type)};
                    auto& wanted = list.back().wanted[k];
                    if (std::find(wanted.begin(), wanted.end(), w) == wanted.end())
                        wanted.push_back(w);
                }
            }
        }
        for (Boundary const& b : boundaries_)
            if (!b.isInput) {
                Use use{b.node, {}};
                for (Carrier const& c : b.carriers())
                    use.wanted.push_back({Wanted{c}});
                uses[b.value].push_back(std::move(use));
            }
        return uses;
    }

    std::vector<Carrier> producedCarriers(ir::Value const& v) const
    {
        if (!v.producer)
            return inputBoundary(v).carriers();
        Labels const& l = labels_[size_t(positions_.at(v.producer))];
        std::vector<Carrier> list;
        for (size_t k = 0; k < l.list.size(); ++k)
            list.push_back(l.output(k, size_t(v.producerIndex)));
        return list;
    }
    static std::vector<Format> formatsOf(std::vector<Carrier> const& carriers)
    {
        std::vector<Format> list;
        for (Carrier const& c : carriers)
            list.push_back(c.format);
        return list;
    }
    Boundary const& inputBoundary(ir::Value const& v) const
    {
        return *std::find_if(boundaries_.begin(), boundaries_.end(),
                             [&](Boundary const& b) { return b.isInput && b.value == &v; });
    }

    // Linear where that is allowed.
    void takeDefaults()
    {
        for (Boundary& b : boundaries_) {
            auto const& list = b.formats->allowed;
            auto const at = std::find(list.begin(), list.end(), Format::kLinear);
            b.chosen = at == list.end() ? 0 : int(at - list.begin());
        }
    }

    // Formats of direct inputs and outputs are those of every layer beside them.
    void addDirect(tune::pbqp::Problem& p) const
    {
        forDirect([&](Boundary const& b, int node, std::vector<Format> const& ofLabels) {
            std::vector<double> costs;
            for (Format f : b.formats->allowed)
                for (Format other : ofLabels)
                    costs.push_back(f == other ? 0 : kImpossible);
            p.addEdge(b.node, node, std::move(costs));
        });
    }
    Result<void> checkDirect() const
    {
        Result<void> result;
        bool isAny = false;
        std::string layers;
        forDirect([&](Boundary const& b, int node, std::vector<Format> const& ofLabels) {
            isAny = true;
            std::string const& name = g_.nodes[size_t(node)]->name;
            layers += (layers.empty() ? "'" : ", '") + name + "'";
            if (!result.ok() || std::any_of(b.formats->allowed.begin(), b.formats->allowed.end(),
                                            [&](Format f) { return has(ofLabels, f); }))
                return;
            result = Error{
                ErrorCode::kUnsupportedState,
                "layer '" + name + "': no tactic " + (b.isInput ? "reads network input '" : "writes network output '") +
                    b.value->name + "' of type " + tw::nameOf(b.value->type) + " in format " +
                    textOf(b.formats->allowed) + " (available: " + textOf(ofLabels) +
                    "), and BuilderFlag::kDIRECT_IO forbids a reformat; allow another format or clear the flag"};
        });
        if (result.ok() && isAny)
            return Error{ErrorCode::kUnsupportedState,
                         "layers " + layers +
                             ": their tactics do not fit together with the allowed formats of the "
                             "network's inputs and outputs, and BuilderFlag::kDIRECT_IO forbids reformats"};
        return result;
    }
    static std::string textOf(std::vector<Format> const& list)
    {
        std::string text;
        for (size_t i = 0; i < list.size(); ++i)
            if (std::find(list.begin(), list.begin() + int64_t(i), list[i]) == list.begin() + int64_t(i))
                text += (text.empty() ? "" : ", ") + std::string(tw::nameOf(list[i]));
        return text;
    }
    // Calls with every layer beside a direct input or output, and the format that each of its labels has there.
    template <class Call>
    void forDirect(Call const& call) const
    {
        for (Boundary const& b : boundaries_) {
            if (!b.formats->isDirect)
                continue;
            if (!b.isInput && b.value->producer)
                call(b, positions_.at(b.value->producer), formatsOf(producedCarriers(*b.value)));
            for (size_t n = 0; b.isInput && n < labels_.size(); ++n) {
                auto const& inputs = g_.nodes[n]->inputs;
                for (size_t i = 0; i < inputs.size(); ++i) {
                    if (inputs[i] != b.value)
                        continue;
                    std::vector<Format> list;
                    for (Label const& l : labels_[n].list)
                        list.push_back(l.formats.inputs[i]);
                    call(b, int(n), list);
                }
            }
        }
    }

    Result<double> copyTime(ir::Value const& v, Carrier const& from, Carrier const& to)
    {
        size_t const at = size_t(block_.indexOf(&v));
        return timeOf({v, opt_.values[at].dims, max_.values[at].dims, from, to}, g_, options_, timesOf_);
    }

    void apply()
    {
        std::vector<ops::Formats> chosen;
        for (Labels const& l : labels_) {
            chosen.push_back(l.choice().formats);
            summary_.nonLinear += l.chosen != 0;
        }
        std::vector<Format> inputs, outputs;
        for (Boundary const& b : boundaries_) {
            summary_.io += b.format() != Format::kLinear;
            (b.isInput ? inputs : outputs).push_back(b.format());
        }
        summary_.reformats += insertReformats(g_, chosen, inputs, outputs);
    }

    std::map<ir::Node const*, int> positionsOf(ir::Graph const& g) const
    {
        std::map<ir::Node const*, int> positions;
        for (auto const& n : g.nodes)
            positions.emplace(n.get(), int(positions.size()));
        return positions;
    }

    ir::Graph& g_;
    runtime::LoadedBlock const& block_;
    runtime::Instance const &opt_, &max_;
    tune::Options const& options_;
    TimesOf const& timesOf_;
    Variants const* variants_; // null: every node as it is
    std::map<ir::Node const*, int> const positions_ = positionsOf(g_);
    std::vector<Labels> labels_;
    std::vector<Boundary> boundaries_;
    FormatSummary summary_;
};

} // namespace

Result<VariantChoices> chooseVariants(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                      runtime::Instance const& max, tune::Options const& options,
                                      TimesOf const& timesOf, IoFormats const& io, Variants const& variants)
{
    return Assignment(graph, block, opt, max, options, timesOf, io, &variants).chooseVariants();
}

Result<FormatSummary> assignFormats(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                    runtime::Instance const& max, tune::Options const& options, FormatPolicy policy,
                                    TimesOf const& timesOf, IoFormats const& io)
{
    FormatSummary sum;
    for (size_t i = 0; i < block.steps.size(); ++i)
        for (size_t r = 0; r < block.steps[i].regions.size(); ++r) {
            if (r >= opt.regions[i].size() || r >= max.regions[i].size())
                continue; // shapes that depend on data: the choice of tactics refuses them
            TW_ASSIGN(FormatSummary inner,
                      assignFormats(*graph.nodes[i]->regions[r], *block.steps[i].regions[r], *opt.regions[i][r],
                                    *max.regions[i][r], options, policy, timesOf, {}));
            sum.add(inner);
        }
    TW_ASSIGN(FormatSummary own, Assignment(graph, block, opt, max, options, timesOf, io).run(policy));
    sum.add(own);
    return sum;
}

} // namespace tw::builder
