// SPDX-License-Identifier: Apache-2.0
#include "builder/formats.h"

#include <algorithm>
#include <map>

#include "builder/reformats.h"
#include "ir/op_def.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/pbqp.h"

namespace tw::builder {

namespace {

using tune::pbqp::kImpossible;

// A node with the combinations of formats that its tactics offer.
struct Labels
{
    ops::Problem problem;
    std::vector<ops::Formats> list; // linear first
    std::vector<double> costs;
    int chosen = 0;
};

// What one node wants of one value: the formats, by label.
struct Use
{
    int node = 0; // of the problem: a position in the graph, or a boundary's
    std::vector<std::vector<Format>> wanted;
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
               runtime::Instance const& max, tune::Options const& options, TimesOf const& timesOf, IoFormats const& io)
        : g_(g), block_(block), opt_(opt), max_(max), options_(options), timesOf_(timesOf)
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
                l.chosen =
                    int(std::max_element(l.list.begin(), l.list.end(),
                                         [&](auto const& a, auto const& b) { return notLinear(a) < notLinear(b); }) -
                        l.list.begin());
        } else {
            TW_TRY(solve());
        }
        apply();
        return summary_;
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
            l.problem = runtime::problemOf(step, opt_, max_, options_.workers->count(), options_.cuda);
            l.list.push_back(ops::linearFormats(l.problem));
            if (canChoose)
                addLabels(node, l);
            l.costs.assign(l.list.size(), 0);
            summary_.nodes += l.list.size() > 1;
            labels_.push_back(std::move(l));
        }
    }
    void addLabels(ir::Node const& node, Labels& l)
    {
        for (ops::Tactic const* t : tune::candidates(node, options_))
            for (ops::Formats const& f : t->formats(l.problem)) {
                if (std::find(l.list.begin(), l.list.end(), f) != l.list.end() || !isAllowed(node, f))
                    continue;
                ops::Problem in = l.problem;
                ops::setFormats(in, f);
                if (t->supports(in).ok)
                    l.list.push_back(f);
            }
    }

    // A region without work in these formats: its output is a part of its input, or the other way round.
    bool isAliased(Labels const& l, ops::Formats const& formats) const
    {
        ir::Node const& node = *l.problem.node;
        if (!node.op->aliases || node.outputs.size() != 1)
            return false;
        auto refOf = [&](ir::Value const* v, Format format) {
            TensorRef r = v ? opt_.shapeOf(block_.indexOf(v)) : TensorRef{};
            r.format = format;
            if (v && v->isConstant())
                r.data = const_cast<void*>(v->constant->data->data());
            else if (v && opt_.values[size_t(block_.indexOf(v))].hasContents)
                r.data = opt_.values[size_t(block_.indexOf(v))].contents.data();
            return r;
        };
        std::vector<TensorRef> in, out{refOf(node.outputs[0], formats.outputs[0])};
        for (size_t i = 0; i < node.inputs.size(); ++i)
            in.push_back(refOf(node.inputs[i], formats.inputs[i]));
        return !node.op->aliases(node, in, out).empty();
    }

    Result<void> solve()
    {
        tune::pbqp::Problem p;
        for (Labels& l : labels_) {
            if (l.list.size() > 1)
                timeLabels(l);
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
        std::map<ir::Value const*, std::vector<Use>> const uses = collectUses();
        for (auto const& v : g_.values()) { // in the order of the graph, not of addresses
            auto it = uses.find(v.get());
            if (it == uses.end() || v->isConstant())
                continue;
            TW_TRY(addValue(p, *v, it->second));
        }
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

    void timeLabels(Labels& l)
    {
        std::vector<ops::Formats> timed;
        for (ops::Formats const& f : l.list)
            if (!isAliased(l, f))
                timed.push_back(f);
        if (timed.empty())
            return;
        std::vector<Result<double>> const times = timesOf_(l.problem, timed);
        for (size_t k = 0, t = 0; k < l.list.size(); ++k)
            if (t < timed.size() && l.list[k] == timed[t]) {
                l.costs[k] = times[t].ok() ? *times[t] : kImpossible;
                ++t;
            }
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
            auto const& inputs = g_.nodes[n]->inputs;
            for (size_t i = 0; i < inputs.size(); ++i) {
                if (!inputs[i])
                    continue;
                std::vector<Use>& list = uses[inputs[i]];
                if (list.empty() || list.back().node != int(n))
                    list.push_back(Use{int(n), std::vector<std::vector<Format>>(labels_[n].list.size())});
                for (size_t k = 0; k < labels_[n].list.size(); ++k) {
                    Format const f = labels_[n].list[k].inputs[i];
                    if (!has(list.back().wanted[k], f))
                        list.back().wanted[k].push_back(f);
                }
            }
        }
        for (Boundary const& b : boundaries_)
            if (!b.isInput) {
                Use use{b.node, {}};
                for (Format f : b.formats->allowed)
                    use.wanted.push_back({f});
                uses[b.value].push_back(std::move(use));
            }
        return uses;
    }

    std::vector<Format> producedFormats(ir::Value const& v) const
    {
        if (!v.producer)
            return inputBoundary(v).formats->allowed;
        std::vector<Format> list;
        for (ops::Formats const& f : labels_[size_t(positions_.at(v.producer))].list)
            list.push_back(f.outputs[size_t(v.producerIndex)]);
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
                call(b, positions_.at(b.value->producer), producedFormats(*b.value));
            for (size_t n = 0; b.isInput && n < labels_.size(); ++n) {
                auto const& inputs = g_.nodes[n]->inputs;
                for (size_t i = 0; i < inputs.size(); ++i) {
                    if (inputs[i] != b.value)
                        continue;
                    std::vector<Format> list;
                    for (ops::Formats const& f : labels_[n].list)
                        list.push_back(f.inputs[i]);
                    call(b, int(n), list);
                }
            }
        }
    }

    Result<void> addValue(tune::pbqp::Problem& p, ir::Value const& v, std::vector<Use> const& uses)
    {
        std::vector<Format> const produced = producedFormats(v);
        int const producer = v.producer ? positions_.at(v.producer) : inputBoundary(v).node;
        std::vector<Format> all; // that anybody produces or wants
        auto note = [&](Format f) {
            if (!has(all, f))
                all.push_back(f);
        };
        std::for_each(produced.begin(), produced.end(), note);
        for (Use const& u : uses)
            for (auto const& wanted : u.wanted)
                std::for_each(wanted.begin(), wanted.end(), note);
        if (all.size() == 1)
            return {};
        std::sort(all.begin(), all.end());
        auto copies = [&](Format from, std::vector<Format> const& to) -> Result<double> {
            double sum = 0;
            for (Format f : to) {
                if (f == from)
                    continue;
                TW_ASSIGN(double us, reformatTime(v, from, f));
                sum += us;
            }
            return sum;
        };
        if (uses.size() == 1) {
            std::vector<double> costs;
            for (Format from : produced)
                for (auto const& wanted : uses[0].wanted) {
                    TW_ASSIGN(double us, copies(from, wanted));
                    costs.push_back(us);
                }
            p.addEdge(producer, uses[0].node, std::move(costs));
            return {};
        }
        // Several readers share copies: a node of its own says in which formats the value exists.
        std::vector<std::vector<Format>> sets;
        for (unsigned mask = 1; mask < 1u << all.size(); ++mask) {
            sets.emplace_back();
            for (size_t f = 0; f < all.size(); ++f)
                if (mask >> f & 1)
                    sets.back().push_back(all[f]);
        }
        int const available = p.addNode(std::vector<double>(sets.size(), 0.0));
        std::vector<double> made;
        for (Format from : produced)
            for (auto const& set : sets) {
                made.push_back(kImpossible);
                if (has(set, from)) {
                    TW_ASSIGN(made.back(), copies(from, set));
                }
            }
        p.addEdge(producer, available, std::move(made));
        for (Use const& u : uses) {
            std::vector<double> costs;
            for (auto const& set : sets)
                for (auto const& wanted : u.wanted)
                    costs.push_back(std::all_of(wanted.begin(), wanted.end(), [&](Format f) { return has(set, f); })
                                        ? 0
                                        : kImpossible);
            p.addEdge(available, u.node, std::move(costs));
        }
        return {};
    }

    Result<double> reformatTime(ir::Value const& v, Format from, Format to)
    {
        size_t const at = size_t(block_.indexOf(&v));
        return timeOf({v, opt_.values[at].dims, max_.values[at].dims, from, to}, g_, options_, timesOf_);
    }

    void apply()
    {
        std::vector<ops::Formats> chosen;
        for (Labels const& l : labels_) {
            chosen.push_back(l.list[size_t(l.chosen)]);
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
    std::map<ir::Node const*, int> const positions_ = positionsOf(g_);
    std::vector<Labels> labels_;
    std::vector<Boundary> boundaries_;
    FormatSummary summary_;
};

} // namespace

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
