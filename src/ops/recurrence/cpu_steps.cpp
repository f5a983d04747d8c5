// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/round.h"
#include "device/large_pages.h"
#include "kernels/cpu/gemm_jit.h"
#include "kernels/cpu/gemv_jit.h"
#include "ops/recurrence/cpu_pieces.h"
#include "ops/recurrence/op.h"
#include "ops/recurrence/steps.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

namespace steps {
namespace {

using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemmOffsets;
using kernels::GemmShape;
using kernels::GemvJit;
using kernels::GemvJitOptions;
using kernels::jit::Isa;

constexpr int64_t kLeastShared = 20000; // products of a step that gain from a second worker: some 500 ns of them

// All directions and gates are one product of x.
struct Plan : Layer
{
    explicit Plan(Layer layer) : Layer(std::move(layer))
    {
        product = optionsOf(inputs, true);
        product.threads = threads;
    }
    int directions() const { return directionsOf(attrs); }
    int64_t blocks() const { return stride / kernels->floats; }
    int64_t columns() const { return directions() * gates() * stride; } // of the product
    int64_t panelFloats(int gateCount) const { return gateCount * stride * attrs.hidden; }
    GemmShape shape(int64_t rows) const { return {rows, columns(), inputs, inputs, 1, 1, inputs}; }
};

struct Packed
{
    device::PackedFloats w, bias, recurrent, recurrentBias, peepholes; // peepholes: [direction][3][stride]
};

// Column of the product, or row of the weights: gate g of direction d of hidden unit j.
int64_t columnOf(Plan const& p, int d, int g, int64_t j)
{
    return (int64_t(d) * p.gates() + g) * p.stride + j;
}
int64_t weightsRow(Plan const& p, int d, int g, int64_t j)
{
    return (int64_t(d) * p.gates() + g) * p.attrs.hidden + j;
}

void packInputs(Plan const& p, float const* w, Packed& to)
{
    std::vector<float> rows(size_t(p.columns() * p.inputs), 0.0F);
    for (int d = 0; d < p.directions(); ++d)
        p.copyRows(d, 0, p.stride, w, p.inputs, 0, p.gates(), rows.data() + columnOf(p, d, 0, 0) * p.inputs);
    GemmJit::packB(p.product, p.shape(1), rows.data(), to.w.data());
}

// Panels of gates [first, first + count) of direction d.
void packPanels(Plan const& p, float const* r, int d, int first, int count, float* to)
{
    int64_t const width = p.kernels->floats, h = p.attrs.hidden;
    for (int64_t j = 0; j < h; ++j)
        for (int g = 0; g < count; ++g) {
            float const* const row = r + weightsRow(p, d, first + g, j) * h;
            float* const column = to + j / width * h * count * width + g * width + j % width;
            for (int64_t k = 0; k < h; ++k)
                column[k * count * width] = row[k];
        }
}

void packRecurrent(Plan const& p, float const* r, Packed& to)
{
    for (int d = 0; d < p.directions(); ++d) {
        float* const at = to.recurrent.data() + d * p.panelFloats(p.gates());
        int const first = p.isTwoPhase() ? 2 : p.gates();
        packPanels(p, r, d, 0, first, at);
        packPanels(p, r, d, first, p.gates() - first, at + p.panelFloats(first));
    }
}

// The workspace, in floats; each part begins at a whole vector.
struct Layout
{
    int64_t product = 0, states = 0, cells = 0, updates = 0, resets = 0, pointers = 0, scratch = 0, total = 0;
};
Layout layoutOf(Plan const& p, Sizes const& s)
{
    Layout l;
    int64_t at = 0;
    auto take = [&](int64_t floats) {
        int64_t const begin = at;
        at += roundUp(floats, 16);
        return begin;
    };
    int64_t const states = p.directions() * s.batch * p.stride;
    l.product = take(s.steps * s.batch * p.columns());
    l.states = take(2 * states);
    l.cells = take(states);
    l.updates = take(p.isTwoPhase() ? states : 0);
    l.resets = take(p.isTwoPhase() ? states : 0);
    l.pointers = take(int64_t(p.threads) * s.batch * 4); // two pointers for each row, of each part
    l.scratch =
        take(p.hasW ? divideUp(GemmJit::workspaceBytes(p.product, s.steps * s.batch, p.columns(), p.inputs), 4) : 0);
    l.total = at;
    return l;
}

struct StepsPrepared final : Prepared
{
    std::optional<GemmJit> gemm;
    std::optional<GemvJit> gemv;
};

// One run of a layer.
class StepsRun : LayerRun
{
public:
    StepsRun(Plan const& plan, Packed const& packed, RunArgs& args)
        : LayerRun(plan, args), p_(plan), packed_(packed), layout_(layoutOf(plan, s))
    {}
    void run()
    {
        multiplyInputs();
        loadStates(kH0, floats + layout_.states);
        if (p_.attrs.cell == Cell::kLstm)
            loadStates(kC0, floats + layout_.cells);
        parts_ = partsOf();
        runPhases(*args.workers, s.steps * p_.phases(), parts_, [&](int64_t phase, int part) { runPart(phase, part); });
        storeStates(1, floats + layout_.states + (s.steps % 2) * stateFloats());
        if (p_.attrs.cell == Cell::kLstm)
            storeStates(2, floats + layout_.cells);
    }

private:
    // Of direction d; states of even and odd steps.
    float* states(int d, int64_t step) const
    {
        return floats + layout_.states + step % 2 * stateFloats() + d * s.batch * p_.stride;
    }
    float* ofDirection(int64_t begin, int d) const { return floats + begin + d * s.batch * p_.stride; }

    void multiplyInputs()
    {
        auto const* prepared = static_cast<StepsPrepared const*>(args.prepared);
        float *to = floats + layout_.product, *bias = packed_.bias.data();
        float const* x = args.inputs[kX].as<float>();
        if (prepared && prepared->gemv)
            prepared->gemv->run(x, packed_.w.data(), bias, nullptr, to, *args.workers);
        else if (prepared && prepared->gemm)
            prepared->gemm->run(x, packed_.w.data(), bias, nullptr, to, floats + layout_.scratch, *args.workers);
        else
            spreadInputs(p_.skips ? x : nullptr, bias, to);
    }
    // x, if any, to each gate.
    void spreadInputs(float const* x, float const* bias, float* to) const
    {
        for (int64_t row = 0; row < s.steps * s.batch; ++row, to += p_.columns()) {
            std::copy_n(bias, p_.columns(), to);
            for (int g = 0; x && g < p_.directions() * p_.gates(); ++g)
                for (int64_t j = 0; j < s.hidden; ++j)
                    to[g * p_.stride + j] += x[row * s.hidden + j];
        }
    }
    int partsOf() const
    {
        int64_t const units = p_.directions() * p_.blocks();
        if (s.batch * p_.directions() * p_.gates() * s.hidden * s.hidden < kLeastShared)
            return 1;
        return int(std::max<int64_t>(std::min<int64_t>({args.workers->count(), p_.threads, units, kMostParts}), 1));
    }
    void runPart(int64_t phase, int part) const
    {
        int64_t const blocks = p_.blocks(), units = p_.directions() * blocks;
        int64_t const begin = part * units / parts_, end = (part + 1) * units / parts_;
        for (int d = 0; d < p_.directions(); ++d) {
            int64_t const first = std::max(begin - d * blocks, int64_t(0)), last = std::min(end - d * blocks, blocks);
            if (first < last)
                runBlocks(phase, d, first, last, part);
        }
    }
    void runBlocks(int64_t phase, int d, int64_t begin, int64_t end, int part) const
    {
        int64_t const i = phase / p_.phases();
        bool const second = phase % p_.phases() != 0;
        auto** const x = reinterpret_cast<float const**>(floats + layout_.pointers) + part * s.batch * 2;
        auto** const y = const_cast<float**>(x + s.batch);
        for (int64_t n = 0; n < s.batch; ++n)
            locate(i, d, n, second ? 2 : 0, x[n], y[n]);
        float const* const panels = packed_.recurrent.data() + d * p_.panelFloats(p_.gates());
        Step step;
        step.hidden = s.hidden;
        step.stride = p_.stride;
        step.gate = p_.stride;
        step.rows = s.batch;
        step.before = states(d, i);
        step.h = second ? ofDirection(layout_.resets, d) : step.before;
        step.to = p_.isTwoPhase() && !second ? ofDirection(layout_.resets, d) : states(d, i + 1);
        step.c = ofDirection(layout_.cells, d);
        step.z = ofDirection(layout_.updates, d);
        step.r = second ? panels + p_.panelFloats(2) : panels;
        step.bias = packed_.recurrentBias.data() + d * p_.stride;
        step.clip = p_.attrs.clip > 0 ? float(p_.attrs.clip) : INFINITY;
        step.inputForget = p_.attrs.inputForget;
        step.peepholes = packed_.peepholes.data() ? packed_.peepholes.data() + 3 * d * p_.stride : nullptr;
        step.peepholeRow = p_.stride;
        step.x = x;
        step.y = y;
        step.begin = begin;
        step.end = end;
        step.backwards = i % 2 != 0; // what the step before read last is still in the cache
        p_.kernels->step[p_.options][stepKindOf(p_.attrs, second)](step);
    }
    // Row n in step i of direction d: what its gates from `gate` on get of the input, and where it writes.
    void locate(int64_t i, int d, int64_t n, int gate, float const*& x, float*& y) const
    {
        TensorRef const* const lengths = input(kLengths);
        int64_t const length = lengths ? std::clamp<int64_t>(lengths->as<int32_t>()[n], 0, s.steps) : s.steps;
        int64_t const t = i < length && s.isReverse(p_.attrs, d) ? length - 1 - i : i;
        int64_t const row = p_.attrs.batchFirst ? n * s.steps + t : t * s.batch + n;
        x = i < length ? floats + layout_.product + row * p_.columns() + columnOf(p_, d, gate, 0) : nullptr;
        y = args.outputs[0].as<float>() + t * s.yStep + n * s.yRow + d * s.hidden;
    }
    Plan const& p_;
    Packed const& packed_;
    Layout const layout_;
    int parts_ = 1;
};

class StepsKernel final : public Kernel
{
public:
    StepsKernel(Plan plan, Packed packed) : plan_(std::move(plan)), packed_(std::move(packed)) {}
    bool readsConstant(size_t i) const override { return i != kR && i != kW && i != kBias && i != kPeepholes; }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        return layoutOf(plan_, sizesOf(plan_.attrs, in[kX].dims)).total * int64_t(sizeof(float));
    }
    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        auto prepared = std::make_shared<StepsPrepared>();
        Sizes const s = sizesOf(plan_.attrs, in[kX].dims);
        int64_t const rows = s.steps * s.batch;
        GemmJitOptions const& o = plan_.product;
        if (!plan_.hasW || rows == 0)
            return std::shared_ptr<Prepared const>();
        bool const few = rows <= kernels::jit::kGemvMaxRows &&
                         kernels::jit::gemvFits(o.isa, int(rows), o.vectors, 2, false) &&
                         kernels::jit::gemvFits(o.isa, int(rows), o.vectors, 1, true);
        if (few) {
            GemvJitOptions v;
            v.isa = o.isa;
            v.vectors = o.vectors;
            v.threads = o.threads;
            v.bias = true;
            TW_ASSIGN(prepared->gemv, GemvJit::make(v, plan_.shape(rows), std::vector<GemmOffsets>(1)));
        } else {
            TW_ASSIGN(prepared->gemm, GemmJit::make(o, plan_.shape(rows), std::vector<GemmOffsets>(1)));
        }
        return std::shared_ptr<Prepared const>(std::move(prepared));
    }
    Result<void> run(RunArgs& args) const override
    {
        StepsRun(plan_, packed_, args).run();
        return {};
    }

private:
    Plan plan_;
    Packed packed_;
};

Result<Packed> pack(Plan const& plan, Problem const& p)
{
    Packed to;
    to.w = device::PackedFloats(plan.hasW ? GemmJit::packedFloats(plan.product, plan.columns(), plan.inputs) : 16);
    to.bias = device::PackedFloats(plan.columns());
    to.recurrent = device::PackedFloats(plan.directions() * plan.panelFloats(plan.gates()));
    to.recurrentBias = device::PackedFloats(plan.directions() * plan.stride);
    Blob const* const peepholes = blobOf(p, kPeepholes);
    to.peepholes = peepholes ? device::PackedFloats(plan.directions() * 3 * plan.stride) : device::PackedFloats();
    if ((peepholes && !to.peepholes.data()) || !to.w.data() || !to.bias.data() || !to.recurrent.data() ||
        !to.recurrentBias.data())
        return failedAllocation("no memory for packed recurrent weights");
    for (int d = 0; d < plan.directions(); ++d) {
        if (Blob const* bias = blobOf(p, kBias))
            plan.copyBias(d, 0, plan.stride, bias->as<float>(), to.bias.data() + columnOf(plan, d, 0, 0),
                          to.recurrentBias.data() + d * plan.stride);
        if (peepholes)
            plan.copyPeepholes(d, 0, plan.stride, peepholes->as<float>(), to.peepholes.data() + 3 * d * plan.stride);
    }
    if (plan.hasW)
        packInputs(plan, blobOf(p, kW)->as<float>(), to);
    packRecurrent(plan, blobOf(p, kR)->as<float>(), to);
    return to;
}

Support supports(CpuTactic const&, Problem const& p)
{
    return supportsKnownFloats(p);
}

std::vector<Config> configs(CpuTactic const&, Problem const& p)
{
    Extents const& x = p.inputs[kX].maxDims;
    bool const few = x.volume(0, x.rank - 1) <= kernels::jit::kGemvMaxRows;
    return few ? std::vector<Config>{{2}} : std::vector<Config>{{3}};
}

double estimate(CpuTactic const& t, Problem const& p, Config const&)
{
    bool const isRow = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].dims).batch == 1; // weights are read for it alone
    return estimateOf(p, t.isa(), isRow ? 0.2 : 0.7);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants&)
{
    if (config.size() != 1 || config[0] < 1 || config[0] > 4)
        return t.wrongConfig("{1..4}");
    TW_ASSIGN(Layer layer, layerOf(t, p, int(config[0])));
    Plan plan(std::move(layer));
    TW_ASSIGN(Packed packed, pack(plan, p));
    return makeKernel<StepsKernel>(std::move(plan), std::move(packed));
}

} // namespace
} // namespace steps

constexpr CpuFunctions kSteps{
    .supports = steps::supports, .configs = steps::configs, .estimate = steps::estimate, .load = steps::load};

} // namespace tw::ops::recurrence
