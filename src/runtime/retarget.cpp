// SPDX-License-Identifier: Apache-2.0
#include "runtime/retarget.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "base/round.h"
#include "ir/op_def.h"
#include "tactic/convert_format.h"
#include "tactic/expected_time.h"
#include "tactic/registry.h"

namespace tw::runtime {

namespace {

constexpr std::string_view kIsas[] = {"", "avx2", "avx512"}; // narrow ones first

// The place of a tactic's instruction set in kIsas.
ptrdiff_t width(ops::Tactic const& t)
{
    return std::ranges::find(kIsas, t.traits().isa) - std::begin(kIsas);
}

// The name without the instruction set: what tactics for several of them have in common.
std::string_view algorithmOf(ops::Tactic const& t)
{
    std::string_view const name = t.name(), isa = t.traits().isa;
    return isa.empty() || !name.ends_with(isa) ? name : name.substr(0, name.size() - isa.size());
}

struct Expected
{
    ops::Config config;
    double us = std::numeric_limits<double>::infinity(); // unknown: infinite
};

// The config with the lowest estimate; the first where there are none, since the best come first.
std::optional<Expected> fastest(ops::Tactic const& tactic, ops::Problem const& problem)
{
    std::optional<Expected> best;
    for (ops::Config const& config : tactic.configs(problem)) {
        double const us = ops::expectedTime(tactic, problem, config);
        if (!best || (us > 0 && us < best->us))
            best = Expected{config, us > 0 ? us : Expected().us};
    }
    return best;
}

} // namespace

std::optional<Retargeted> retarget(std::span<ops::Tactic const* const> own, ops::Problem const& problem,
                                   std::string_view planned, ops::Config const& config)
{
    // The last tactic of a list is the plain one: no algorithm that one would want here, too.
    auto const fast = own.first(own.empty() ? 0 : own.size() - 1);
    auto const known = std::ranges::find_if(fast, [&](ops::Tactic const* t) { return t->name() == planned; });
    ops::Tactic const* same = nullptr;
    for (ops::Tactic const* t : known == fast.end() ? fast.first(0) : fast)
        if (algorithmOf(*t) == algorithmOf(**known) && (!same || width(*t) > width(*same)) &&
            ops::supportsFormats(*t, problem).ok)
            same = t;
    if (same && same->name() == planned)
        return Retargeted{same, config, true};
    if (same)
        if (auto expected = fastest(*same, problem))
            return Retargeted{same, std::move(expected->config), true};
    return bestByEstimate(own, problem);
}

std::optional<Retargeted> bestByEstimate(std::span<ops::Tactic const* const> own, ops::Problem const& problem)
{
    std::optional<Retargeted> best;
    double bestUs = 0;
    for (ops::Tactic const* t : own.first(own.empty() ? 0 : own.size() - 1)) {
        // Nothing that rounds in another way than the plan's choice, whatever that was.
        if (t->traits().rounding != ops::Rounding::kPlain || !ops::supportsFormats(*t, problem).ok)
            continue;
        auto expected = fastest(*t, problem);
        if (!expected || (best && expected->us >= bestUs))
            continue;
        bestUs = expected->us;
        best = Retargeted{t, std::move(expected->config), false};
    }
    return best;
}

namespace {

TensorRef linear(TensorRef const& t)
{
    return TensorRef{t.type, t.dims, t.data};
}

class Adapter final : public ops::Kernel
{
public:
    explicit Adapter(std::unique_ptr<ops::Kernel> kernel) : kernel_(std::move(kernel)) {}

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        std::vector<TensorRef> inputs = linears(in), outputs = linears(out);
        return copyBytes(in) + copyBytes(out) + kernel_->workspaceBytes(inputs, outputs);
    }
    Result<std::shared_ptr<ops::Prepared const>> prepare(std::span<TensorRef const> in,
                                                         std::span<TensorRef const> out) const override
    {
        return kernel_->prepare(linears(in), linears(out));
    }
    Result<void> run(ops::RunArgs& args) const override
    {
        std::vector<TensorRef> inputs = linears(args.inputs), outputs = linears(args.outputs);
        auto* at = static_cast<std::byte*>(args.workspace);
        auto place = [&](std::span<TensorRef const> original, std::vector<TensorRef>& copies) {
            for (size_t i = 0; i < copies.size(); ++i)
                if (original[i].format != Format::kLinear && original[i].data) {
                    copies[i].data = at;
                    at += roundUp(copies[i].sizeBytes(), kCacheLine);
                }
        };
        place(args.inputs, inputs);
        place(args.outputs, outputs);
        for (size_t i = 0; i < inputs.size(); ++i)
            if (inputs[i].data != args.inputs[i].data)
                ops::convertFormat(args.inputs[i], inputs[i]);
        ops::RunArgs inner = args;
        inner.inputs = inputs;
        inner.outputs = outputs;
        inner.workspace = at;
        TW_TRY(kernel_->run(inner));
        for (size_t i = 0; i < outputs.size(); ++i) {
            args.outputs[i].dims = outputs[i].dims;
            if (outputs[i].data != args.outputs[i].data)
                ops::convertFormat(outputs[i], args.outputs[i]);
        }
        return {};
    }

private:
    static std::vector<TensorRef> linears(std::span<TensorRef const> list)
    {
        auto out = mapped<TensorRef>(list, [&](TensorRef const& t) { return linear(t); });
        return out;
    }
    static int64_t copyBytes(std::span<TensorRef const> list)
    {
        int64_t bytes = 0;
        for (TensorRef const& t : list)
            if (t.format != Format::kLinear)
                bytes += roundUp(linear(t).sizeBytes(), kCacheLine);
        return bytes;
    }
    std::unique_ptr<ops::Kernel> kernel_;
};

} // namespace

std::unique_ptr<ops::Kernel> linearAdapter(std::unique_ptr<ops::Kernel> kernel)
{
    return std::make_unique<Adapter>(std::move(kernel));
}

namespace {

bool isReformat(ir::Node const& n)
{
    return n.op->convertsFormat;
}

void makeAllLinear(ir::Graph& g)
{
    for (auto const& v : g.values())
        v->format = Format::kLinear;
    for (auto const& n : g.nodes)
        for (auto const& r : n->regions)
            makeAllLinear(*r);
}

// Readers other than reformats read a linear copy.
void bringIn(ir::Graph& g, ir::Value& input)
{
    ir::Value* copy = nullptr;
    for (size_t n = 0; n < g.nodes.size(); ++n)
        for (size_t i = 0; i < g.nodes[n]->inputs.size(); ++i) {
            if (g.nodes[n]->inputs[i] != &input || isReformat(*g.nodes[n]))
                continue;
            if (!copy) {
                copy =
                    addReformat(g, input, Format::kLinear, 0, "Reformatting CopyNode for Network Input " + input.name);
                ++n; // stands one place further now
            }
            g.nodes[n]->inputs[i] = copy;
        }
}

// Whoever makes the output makes a linear value, which is what other readers read.
void bringOut(ir::Graph& g, ir::Value& output)
{
    ir::Node* const producer = output.producer;
    if (!producer || isReformat(*producer))
        return;
    ir::Value* const inner = g.newValue(output.name + " (linear)", output.type, output.shape);
    inner->producer = producer;
    inner->producerIndex = output.producerIndex;
    producer->outputs[size_t(output.producerIndex)] = inner;
    for (auto const& n : g.nodes)
        for (ir::Value*& v : n->inputs)
            v = v == &output ? inner : v;
    ir::Node& node = *addReformat(g, *inner, Format::kLinear, g.positionOf(producer) + 1,
                                  "Reformatting CopyNode for Network Output " + output.name)
                          ->producer;
    node.outputs[0]->producer = nullptr;
    node.outputs[0] = &output;
    output.producer = &node;
    output.producerIndex = 0;
}

} // namespace

ir::Value* addReformat(ir::Graph& g, ir::Value& v, Format to, int position, std::string name)
{
    ir::OpDef const& op = ops::reformat::def();
    auto node = g.addNode(op, op.makeAttrs(), {&v}, std::move(name), {}, position);
    TW_CHECK(node.ok()); // the op takes everything
    ir::Value* copy = (*node)->outputs[0];
    copy->name = v.name + " (" + nameOf(to) + ")";
    copy->format = to;
    (*node)->layers.clear();
    return copy;
}

void makeLinear(ir::Graph& graph)
{
    std::vector<std::pair<ir::Value*, Format>> packed;
    for (auto const* list : {&graph.inputs, &graph.outputs})
        for (ir::Value* v : *list)
            if (v->format != Format::kLinear)
                packed.emplace_back(v, v->format);
    makeAllLinear(graph);
    for (auto const& [v, format] : packed) {
        v->format = format;
        if (v->producer)
            bringOut(graph, *v);
        else
            bringIn(graph, *v);
    }
    graph.eraseUnusedValues();
}

} // namespace tw::runtime
