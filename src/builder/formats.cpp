// SPDX-License-Identifier: Apache-2.0
#include "builder/formats.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "builder/carriers.h"
#include "builder/reformats.h"
#include "passes/precision/precision.h"
#include "runtime/engine.h"
#include "tune/pbqp.h"

namespace tw::builder {

namespace {

using tune::pbqp::kImpossible;

// What another type than the preferred one must gain in a layer by itself. HRNet-W18 on an H200: 54 layers in FP32 that
// gained up to 10 % each, 3 % in all, made an engine 3 % slower: what lies between them is twice as large.
constexpr double kMargin = 1.05;

// Assignments beside the best that whole engines are made of: of small networks, which take no time to build and are made of
// layers of a few microseconds, whose times err most.
constexpr double kNearly = 1.15, kMostMicroseconds = 2000;
constexpr int kMostNear = 6, kMostNodes = 64;

// Of a conversion by its bytes alone, more than the fastest takes.
double guessCast(Extents const& dims)
{
    constexpr double kBytesPerMicrosecond = 1e6;
    return double(dims.volume() * (sizeOf(DataType::kFloat) + sizeOf(DataType::kHalf))) / kBytesPerMicrosecond;
}

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
        auto list = mapped(formats->allowed, [&](Format f) { return Carrier{value->type, f}; });
        return list;
    }
};

bool has(std::vector<Format> const& list, Format f)
{
    return contains(list, f);
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

    Result<FormatSummary> run(FormatChoice const& choice, std::function<void()> const& settle)
    {
        collectAll();
        bool const isFixed = std::ranges::all_of(
            boundaries_, [](Boundary const& b) { return b.formats->allowed.size() == 1 && !b.formats->isDirect; });
        takeDefaults();
        if ((summary_.nodes == 0 && isFixed) || choice.policy == FormatPolicy::kLinear) {
            settle();
            apply();
            return summary_;
        }
        if (choice.policy == FormatPolicy::kChannelsLast) {
            auto notLinear = [](ops::Formats const& f) {
                return f.inputs.size() + f.outputs.size() -
                       size_t(std::ranges::count(f.inputs, Format::kLinear) +
                              std::ranges::count(f.outputs, Format::kLinear));
            };
            for (Labels& l : labels_)
                l.chosen = int(std::ranges::max_element(l.list,
                                                        [&](Label const& a, Label const& b) {
                                                            return notLinear(a.formats) < notLinear(b.formats);
                                                        }) -
                               l.list.begin());
        } else {
            timeAll(timesOf_);
            TW_ASSIGN(tune::pbqp::Problem problem, solve());
            if (choice.near)
                takeNear(*choice.near, problem);
        }
        settle();
        apply();
        return summary_;
    }

    // Changes nothing in the graph. First with the least that conversions can cost: nodes that stay in their preferred
    // variant even so have no other, and the values between them need no conversions to be timed.
    Result<VariantChoices> chooseVariants(TimesOf const& glance)
    {
        collectAll();
        takeDefaults();
        timeAll(glance);
        VariantChoices out;
        for (Labels& l : labels_) {
            VariantChoice c{0, std::vector<double>(l.variants.size(), kImpossible)};
            for (size_t k = 0; k < l.list.size(); ++k) {
                double& best = c.microseconds[l.list[k].variant];
                best = std::min(best, l.costs[k]);
                l.costs[k] *= l.list[k].variant > 0 ? kMargin : 1;
            }
            out.nodes.push_back(std::move(c));
        }
        TW_ASSIGN(double const leastCast, leastCastTime(g_, options_, timesOf_));
        leastCast_ = leastCast;
        TW_TRY(solve());
        leastCast_.reset();
        bool isAny = false;
        for (Labels& l : labels_) {
            isAny = isAny || l.choice().variant > 0;
            if (l.choice().variant == 0)
                keepFirstVariant(l);
        }
        if (isAny)
            TW_TRY(solve());
        out.microseconds = summary_.microseconds;
        for (size_t i = 0; i < labels_.size(); ++i)
            out.nodes[i].variant = labels_[i].choice().variant;
        return out;
    }

private:
    void collectAll()
    {
        for (size_t i = 0; i < block_.steps.size(); ++i) {
            auto const posed = variants_ ? variants_->find(block_.steps[i].node) : Variants::const_iterator();
            bool const isPosed = variants_ && posed != variants_->end();
            labels_.push_back(collectLabels(block_, i, opt_, max_, options_, isPosed ? &posed->second : nullptr));
            summary_.nodes += labels_.back().list.size() > 1;
        }
    }
    void timeAll(TimesOf const& glance)
    {
        for (Labels& l : labels_) {
            for (size_t v = 0; l.list.size() > 1 && v < l.variants.size(); ++v)
                timeLabels(l, v, block_, opt_, v == 0 ? timesOf_ : glance);
            if (options_.heuristicOnly)
                guessUnknown(l);
            summary_.linearMicroseconds += l.costs[0];
            // With nothing possible the ordinary choice will say why.
            if (std::ranges::all_of(l.costs, [](double c) { return c == kImpossible; }))
                l.costs.assign(l.list.size(), 0);
        }
    }

    Result<tune::pbqp::Problem> pose()
    {
        tune::pbqp::Problem p;
        for (Labels const& l : labels_)
            p.addNode(l.costs);
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
        return p;
    }
    // Takes the solution of the problem that it gives.
    Result<tune::pbqp::Problem> solve()
    {
        TW_ASSIGN(tune::pbqp::Problem p, pose());
        tune::pbqp::Solution const s = tune::pbqp::solve(p);
        summary_.isExact = s.isExact;
        if (s.cost == kImpossible)
            TW_TRY(checkDirect()); // linear throughout
        else
            take(s);
        return p;
    }
    void take(tune::pbqp::Solution const& s)
    {
        for (size_t i = 0; i < labels_.size(); ++i)
            labels_[i].chosen = s.labels[i];
        for (Boundary& b : boundaries_)
            b.chosen = s.labels[size_t(b.node)];
        summary_.microseconds = s.cost;
    }
    // What is best without one of the labels that were taken, for each of these: the nearest of them.
    void takeNear(int near, tune::pbqp::Problem& p)
    {
        if (summary_.nodes > kMostNodes || summary_.microseconds > kMostMicroseconds || summary_.microseconds <= 0)
            return;
        std::vector<tune::pbqp::Solution> found;
        for (size_t i = 0; i < labels_.size(); ++i) {
            if (labels_[i].list.size() < 2)
                continue;
            double& taken = p.nodes[i][size_t(labels_[i].chosen)];
            double const cost = std::exchange(taken, kImpossible);
            tune::pbqp::Solution s = tune::pbqp::solve(p);
            taken = cost;
            bool const isNew = std::ranges::none_of(found, [&](auto const& f) { return f.labels == s.labels; });
            if (isNew && s.cost < kNearly * summary_.microseconds)
                found.push_back(std::move(s));
        }
        std::ranges::stable_sort(found, [](auto const& a, auto const& b) { return a.cost < b.cost; });
        summary_.near = std::min(int(found.size()), kMostNear);
        if (near > 0 && near <= summary_.near)
            take(found[size_t(near - 1)]);
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
                    if (!contains(wanted, w))
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
        auto list = mapped<Format>(carriers, [&](Carrier const& c) { return c.format; });
        return list;
    }
    Boundary const& inputBoundary(ir::Value const& v) const
    {
        return *std::ranges::find_if(boundaries_, [&](Boundary const& b) { return b.isInput && b.value == &v; });
    }

    // Linear where that is allowed.
    void takeDefaults()
    {
        for (Boundary& b : boundaries_) {
            auto const& list = b.formats->allowed;
            auto const at = std::ranges::find(list, Format::kLinear);
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
            if (!result.ok() || std::ranges::any_of(b.formats->allowed, [&](Format f) { return has(ofLabels, f); }))
                return;
            result = Error{
                ErrorCode::kUnsupportedState,
                "layer '" + name + "': no tactic " + (b.isInput ? "reads network input '" : "writes network output '") +
                    b.value->name + "' of type " + tw::nameOf(b.value->type) + " in format " +
                    textOf(b.formats->allowed) + " (available: " + textOf(ofLabels) +
                    "), and BuilderFlag::kDIRECT_IO forbids a reformat; allow another format or clear the flag"};
        });
        if (result.ok() && isAny)
            return unsupported("layers " + layers +
                               ": their tactics do not fit together with the allowed formats of the "
                               "network's inputs and outputs, and BuilderFlag::kDIRECT_IO forbids reformats");
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
                    auto list = mapped<Format>(labels_[n].list, [&](Label const& l) { return l.formats.inputs[i]; });
                    call(b, int(n), list);
                }
            }
        }
    }

    Result<double> copyTime(ir::Value const& v, Carrier const& from, Carrier const& to)
    {
        size_t const at = size_t(block_.indexOf(&v));
        if (leastCast_ && from.type != to.type)
            return *leastCast_ + (hasFixedEnd(v) ? guessCast(opt_.values[at].dims) : 0);
        if (leastCast_ && !isPreferred(v, from.type))
            return 0.0;
        return timeOf({v, opt_.values[at].dims, max_.values[at].dims, from, to}, g_, options_, timesOf_, reformats_);
    }

    // Whether somebody's type is settled, so that the others pay for a conversion or save it.
    bool hasFixedEnd(ir::Value const& v) const
    {
        auto isFixed = [&](ir::Node const* n) { return labels_[size_t(positions_.at(n))].variants.size() == 1; };
        if (!v.producer || g_.isOutput(&v) || isFixed(v.producer))
            return true;
        return std::ranges::any_of(g_.nodes,
                                   [&](auto const& n) { return isFixed(n.get()) && contains(n->inputs, &v); });
    }
    bool isPreferred(ir::Value const& v, DataType type) const
    {
        return v.producer && labels_[size_t(positions_.at(v.producer))].output(0, size_t(v.producerIndex)).type == type;
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
    ReformatTimes reformats_;
    std::optional<double> leastCast_; // set: conversions cost about that, whatever they convert
    std::map<ir::Node const*, int> const positions_ = positionsOf(g_);
    std::vector<Labels> labels_;
    std::vector<Boundary> boundaries_;
    FormatSummary summary_;
};

} // namespace

Result<VariantChoices> chooseVariants(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                      runtime::Instance const& max, tune::Options const& options,
                                      TimesOf const& timesOf, TimesOf const& glance, IoFormats const& io,
                                      Variants const& variants)
{
    return Assignment(graph, block, opt, max, options, timesOf, io, &variants).chooseVariants(glance);
}

Result<FormatSummary> assignFormats(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                    runtime::Instance const& max, tune::Options const& options,
                                    FormatChoice const& choice, TimesOf const& timesOf, IoFormats const& io,
                                    std::function<void()> const& settle)
{
    FormatSummary sum;
    for (size_t i = 0; i < block.steps.size(); ++i)
        for (size_t r = 0; r < block.steps[i].regions.size(); ++r) {
            TW_ASSIGN(FormatSummary inner,
                      assignFormats(*graph.nodes[i]->regions[r], *block.steps[i].regions[r], *opt.regions[i][r],
                                    *max.regions[i][r], options, {choice.policy}, timesOf, {}, settle));
            sum.add(inner);
        }
    TW_ASSIGN(FormatSummary own, Assignment(graph, block, opt, max, options, timesOf, io).run(choice, settle));
    sum.add(own);
    sum.near = own.near;
    return sum;
}

} // namespace tw::builder
