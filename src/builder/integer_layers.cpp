// SPDX-License-Identifier: Apache-2.0
#include "builder/integer_layers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "builder/carriers.h"
#include "ops/attention/op.h"
#include "ops/convolution/op.h"
#include "ops/expanded_depthwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/registry.h"
#include "tune/pbqp.h"

namespace tw::builder {

namespace {

using tune::pbqp::kImpossible;

constexpr int kBitsEach = 62;

// What quantize_ranges may turn into sums of integers, perhaps as a part of the node.
bool isSum(ir::Node const& n)
{
    return n.op == &ops::convolution::def() || n.op == &ops::matrix_multiply::def() ||
           n.op == &ops::expanded_depthwise::def();
}

// The kernels of one layer in an engine. Where a kernel does several layers, the first has its time.
struct InEngine
{
    double microseconds = 0;
    bool isKnown = false;
    bool onIntegers = false;
};
using ByLayer = std::map<std::string, InEngine>;

bool isInteger(ir::Value const* v)
{
    return v && isQuantized(v->type);
}

void collect(ir::Graph const& g, plan::Block const& block, ByLayer& out)
{
    for (plan::Step const& step : block.steps) {
        ir::Node const& n = *g.nodes[size_t(step.node)];
        for (size_t r = 0; r < step.regions.size() && r < n.regions.size(); ++r)
            collect(*n.regions[r], step.regions[r], out);
        bool const onIntegers = std::ranges::any_of(n.inputs, isInteger) || std::ranges::any_of(n.outputs, isInteger);
        for (std::string const& layer : n.layers) {
            InEngine& e = out[layer];
            e.isKnown = true;
            e.onIntegers = e.onIntegers || onIntegers;
            e.microseconds += &layer == &n.layers.front() ? std::abs(step.choice.microseconds) : 0;
        }
    }
}

InEngine ofNode(ir::Node const& n, ByLayer const& layers)
{
    InEngine all;
    for (std::string const& layer : n.layers)
        if (auto const at = layers.find(layer); at != layers.end()) {
            all.microseconds += at->second.microseconds;
            all.isKnown = true;
            all.onIntegers = all.onIntegers || at->second.onIntegers;
        }
    return all;
}

void forSums(ir::Graph const& g, std::function<void(ir::Node const&)> const& f)
{
    for (auto const& n : g.nodes) {
        for (auto const& r : n->regions)
            forSums(*r, f);
        if (isSum(*n) && !n->layers.empty())
            f(*n);
    }
}

class Mixing
{
public:
    Mixing(ByLayer const& integers, ByLayer const& floats, ConversionCost const& cost)
        : integers_(integers), floats_(floats), cost_(cost)
    {}

    Result<void> run(ir::Graph const& g, runtime::Instance const& opt)
    {
        for (size_t i = 0; i < g.nodes.size(); ++i)
            for (size_t r = 0; r < g.nodes[i]->regions.size() && r < opt.regions[i].size(); ++r)
                if (opt.regions[i][r])
                    TW_TRY(run(*g.nodes[i]->regions[r], *opt.regions[i][r]));
        return solve(g, opt);
    }
    std::set<std::string> take()
    {
        // Where nothing stays INT8 there is no mixture.
        return stay_ > 0 ? std::move(layers_) : std::set<std::string>();
    }

private:
    enum : size_t
    {
        kFloats,
        kIntegers
    };
    static constexpr Carrier kFloat{DataType::kFloat}, kInt8{DataType::kInt8};

    Result<void> solve(ir::Graph const& g, runtime::Instance const& opt)
    {
        tune::pbqp::Problem p;
        std::map<ir::Value const*, std::vector<Use>> uses;
        std::vector<bool> isOpen, isInteger;
        for (size_t i = 0; i < g.nodes.size(); ++i) {
            ir::Node const& n = *g.nodes[i];
            InEngine const i8 = ofNode(n, integers_), f32 = ofNode(n, floats_);
            // What has no kernel among integers has become a part of its neighbours.
            isOpen.push_back(n.regions.empty() && (i8.onIntegers || !i8.isKnown));
            isInteger.push_back(i8.onIntegers);
            p.addNode(isOpen[i] ? std::vector<double>{f32.microseconds, i8.microseconds}
                                : std::vector<double>{f32.microseconds});
            for (ir::Value const* v : n.inputs) {
                if (!v || v->host || v->isConstant() || !isFloating(v->type))
                    continue;
                auto& list = uses[v];
                if (!list.empty() && list.back().node == int(i))
                    continue;
                list.push_back({int(i), {{Wanted{kFloat}}}});
                if (isOpen[i])
                    list.back().wanted.push_back({Wanted{kInt8}});
            }
        }
        for (auto const& v : g.values()) {
            auto const at = uses.find(v.get());
            if (at == uses.end() || !v->producer)
                continue;
            int const producer = g.positionOf(v->producer);
            std::vector<Carrier> produced{kFloat};
            if (isOpen[size_t(producer)])
                produced.push_back(kInt8);
            int const index = opt.block->indexOf(v.get());
            double const elements = opt.values[size_t(index)].known ? double(opt.shapeOf(index).dims.volume()) : 0;
            TW_TRY(addValue(p, producer, produced, at->second, [&](Carrier const& from, Carrier const&) {
                return conversion(*v->producer, from == kInt8, elements);
            }));
        }
        tune::pbqp::Solution const s = tune::pbqp::solve(p);
        for (size_t i = 0; i < g.nodes.size() && s.cost != kImpossible; ++i) {
            ir::Node const& n = *g.nodes[i];
            if (!isSum(n) || n.layers.empty() || !isInteger[i])
                continue;
            if (s.labels[i] == kIntegers)
                ++stay_;
            else
                layers_.insert(n.layers.begin(), n.layers.end());
        }
        return {};
    }
    // Sums of integers write floats where that is asked, norms and attention integers: that takes the bytes alone.
    Result<double> conversion(ir::Node const& producer, bool fromIntegers, double elements) const
    {
        double const f = sizeOf(DataType::kFloat), i = sizeOf(DataType::kInt8);
        if (fromIntegers && isSum(producer))
            return elements * (f - i) / cost_.bytesPerMicrosecond;
        if (!fromIntegers && (producer.op == &ops::layer_norm::def() || producer.op == &ops::attention::def()))
            return elements * i / cost_.bytesPerMicrosecond;
        return cost_.perLaunch + elements * (f + i) / cost_.bytesPerMicrosecond;
    }

    ByLayer const &integers_, &floats_;
    ConversionCost cost_;
    std::set<std::string> layers_;
    int stay_ = 0; // layers of sums that are INT8
};

} // namespace

std::set<std::string> layersInFloat(ir::Graph const& graph, runtime::Instance const& opt, Attempt const& integers,
                                    Attempt const& floats, ConversionCost const& cost)
{
    ByLayer i8, f32;
    collect(*integers.graph, integers.root, i8);
    collect(*floats.graph, floats.root, f32);
    Mixing mixing(i8, f32, cost);
    if (!mixing.run(graph, opt).ok())
        return {};
    return mixing.take();
}

std::vector<int64_t> asBits(ir::Graph const& graph, std::set<std::string> const& layers)
{
    std::vector<int64_t> bits;
    int at = 0;
    forSums(graph, [&](ir::Node const& n) {
        bits.resize(size_t(at / kBitsEach) + 1);
        bits.back() |= int64_t(layers.contains(n.layers[0])) << at % kBitsEach;
        ++at;
    });
    return bits;
}

std::set<std::string> fromBits(ir::Graph const& graph, std::span<int64_t const> bits)
{
    std::set<std::string> layers;
    int at = 0;
    forSums(graph, [&](ir::Node const& n) {
        size_t const word = size_t(at / kBitsEach);
        if (word < bits.size() && bits[word] >> at % kBitsEach & 1)
            layers.insert(n.layers.begin(), n.layers.end());
        ++at;
    });
    return layers;
}

} // namespace tw::builder
