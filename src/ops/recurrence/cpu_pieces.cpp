// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cpu_pieces.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/round.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::recurrence {

namespace {

using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemmShape;

constexpr int64_t kLeastRows = 64; // of a product of x; w is read once for so many

bool isKnown(Problem const& p, int i)
{
    return int(p.inputs.size()) <= i || !p.inputs[size_t(i)].present || p.inputs[size_t(i)].constant;
}
bool runsFunctions(Attrs const& a)
{
    if (hasDefaultFunctions(a))
        return true;
    for (int d = 0; d < directionsOf(a); ++d)
        if (activationOf(a, d, 0).function != Function::kRelu)
            return false;
    return a.cell == Cell::kRnn;
}

GemmShape shapeOf(int64_t m, int64_t n, int64_t k, int64_t aRow)
{
    return {m, n, k, aRow, 1, 1, k};
}

device::PackedFloats packedOf(Layer const& l, Units const& u, float const* matrix, int64_t k, int firstGate, int count)
{
    int64_t const n = count * u.width;
    std::vector<float> rows(size_t(n * k), 0.0F);
    l.copyRows(u.direction, u.first, u.width, matrix, k, firstGate, count, rows.data());
    device::PackedFloats to(GemmJit::packedFloats(l.product, n, k));
    if (to.data())
        GemmJit::packB(l.product, shapeOf(1, n, k, k), rows.data(), to.data());
    return to;
}

Result<void> pack(Layer const& l, Units& u, Problem const& p)
{
    u.bias = device::PackedFloats(l.gates() * u.width);
    u.stateBias = device::PackedFloats(u.width);
    bool hasMemory = u.bias.data() && u.stateBias.data();
    if (l.hasW) {
        u.w = packedOf(l, u, blobOf(p, kW)->as<float>(), l.inputs, 0, l.gates());
        hasMemory = hasMemory && u.w.data();
    }
    for (int phase = 0, gate = 0; phase < l.phases(); gate += l.gatesIn(phase++)) {
        u.recurrent[phase] = packedOf(l, u, blobOf(p, kR)->as<float>(), l.attrs.hidden, gate, l.gatesIn(phase));
        hasMemory = hasMemory && u.recurrent[phase].data();
    }
    Blob const* const peepholes = blobOf(p, kPeepholes);
    if (peepholes) {
        u.peepholes = device::PackedFloats(3 * u.width);
        hasMemory = hasMemory && u.peepholes.data();
    }
    if (!hasMemory)
        return failedAllocation("no memory for packed recurrent weights");
    if (Blob const* bias = blobOf(p, kBias))
        l.copyBias(u.direction, u.first, u.width, bias->as<float>(), u.bias.data(), u.stateBias.data());
    if (peepholes)
        l.copyPeepholes(u.direction, u.first, u.width, peepholes->as<float>(), u.peepholes.data());
    return {};
}

} // namespace

Blob const* blobOf(Problem const& p, int i)
{
    return i < int(p.inputs.size()) ? p.inputs[size_t(i)].constant : nullptr;
}

GemmJitOptions Layer::optionsOf(int64_t rowStride, bool bias) const
{
    GemmJitOptions o = product;
    o.bias = bias;
    o.packA = kernels::thrashesL1(4 * rowStride, kernels::jit::gemmMaxRows(o.isa, o.vectors), l1Bytes);
    return o;
}

void Layer::copyRows(int d, int64_t first, int64_t width, float const* matrix, int64_t k, int firstGate, int count,
                     float* to) const
{
    int64_t const h = attrs.hidden;
    for (int g = 0; g < count; ++g)
        std::copy_n(matrix + ((int64_t(d) * gates() + firstGate + g) * h + first) * k, std::min(width, h - first) * k,
                    to + g * width * k);
}

// [2 * gates * hidden] of each direction: of w, then of the recurrent weights.
void Layer::copyBias(int d, int64_t first, int64_t width, float const* bias, float* to, float* stateBias) const
{
    int64_t const h = attrs.hidden, all = gates() * h;
    for (int g = 0; g < gates(); ++g)
        for (int64_t j = 0; j < std::min(width, h - first); ++j) {
            float const* const b = bias + 2 * d * all + g * h + first + j;
            bool const apart = attrs.cell == Cell::kGru && attrs.linearBeforeReset && g == 2;
            to[g * width + j] = apart ? b[0] : b[0] + b[all];
            if (apart)
                stateBias[j] = b[all];
        }
}

void Layer::copyPeepholes(int d, int64_t first, int64_t width, float const* peepholes, float* to) const
{
    for (int i = 0; i < 3; ++i)
        std::copy_n(peepholes + (3 * d + i) * attrs.hidden + first, std::min(width, attrs.hidden - first),
                    to + i * width);
}

void LayerRun::loadStates(int i, float* to) const
{
    TensorRef const* from = input(i);
    for (int64_t row = 0; row < s.directions * s.batch; ++row, to += stride) {
        std::fill_n(to, stride, 0.0F);
        if (from)
            std::copy_n(from->as<float>() + row / s.batch * s.stateDir + row % s.batch * s.stateRow, s.hidden, to);
    }
}

void LayerRun::storeStates(int output, float const* from) const
{
    float* const to = args.outputs[size_t(output)].as<float>();
    for (int64_t row = 0; row < s.directions * s.batch; ++row, from += stride)
        std::copy_n(from, s.hidden, to + row / s.batch * s.stateDir + row % s.batch * s.stateRow);
}

int Layer::splits() const
{
    return std::max(std::min(threads, kMostParts) / directionsOf(attrs), 1);
}

Support supportsKnownFloats(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TW_SUPPORTS(takesOnly(DataType::kFloat, p));
    if (p.inputs[kX].dims.rank < 2)
        return Support::no("needs an input whose sizes are known before the run");
    if (!isKnown(p, kR) || !isKnown(p, kW) || !isKnown(p, kBias) || !isKnown(p, kPeepholes))
        return Support::no("weights, bias and peepholes must be known");
    if (!runsFunctions(a))
        return Support::no("has the default functions (or relu in RNN)");
    return Support::yes();
}

double estimateOf(Problem const& p, kernels::jit::Isa isa, double share)
{
    constexpr double kMegahertz = 3000; // about
    Sizes const s = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].dims);
    double const products = double(s.steps * s.batch) * double(s.directions * s.gates * s.hidden) *
                            double(s.hidden + (blobOf(p, kW) ? s.inputs : 0));
    return (products + 1) / (2 * kernels::jit::vectorWidth(isa) * kMegahertz * share * std::max(p.threads, 1));
}

StepKind stepKindOf(Attrs const& a, int phase)
{
    if (a.cell == Cell::kLstm)
        return kStepLstm;
    if (a.cell == Cell::kRnn)
        return activationOf(a, 0, 0).function == Function::kRelu ? kStepRelu : kStepTanh;
    return a.linearBeforeReset ? kStepGruLinear : phase == 0 ? kStepGruGates : kStepGruState;
}

bool hasOptions(Attrs const& a, bool peepholes)
{
    return a.clip > 0 || (a.cell == Cell::kLstm && (a.inputForget || peepholes));
}

Result<Layer> layerOf(CpuTactic const& tactic, Problem const& p, int vectors)
{
    Layer l;
    if (!blobOf(p, kR))
        return invalidArgument(std::string(tactic.name()) + ": the recurrent weights are not known");
    l.attrs = p.node->attrsAs<Attrs>();
    kernels::jit::Isa const isa = tactic.isa();
    l.kernels = isa == kernels::jit::Isa::kAvx512 ? &avx512::kSteps : &avx2::kSteps;
    Extents const& x = p.inputs[kX].dims;
    l.inputs = x[x.rank - 1];
    l.stride = roundUp(l.attrs.hidden, l.kernels->floats);
    l.skips = !blobOf(p, kW);
    l.hasW = !l.skips && l.inputs > 0;
    l.options = hasOptions(l.attrs, blobOf(p, kPeepholes));
    l.threads = std::max(p.threads, 1);
    l.l1Bytes = p.target.cpu->l1DataBytes;
    l.product.isa = isa;
    l.product.vectors = vectors;
    l.product.b = GemmJitOptions::kPackedBefore;
    l.product.l2Bytes = p.target.cpu->l2Bytes;
    return l;
}

Result<Layer> dividedLayerOf(CpuTactic const& tactic, Problem const& p, int vectors, bool sharesRows)
{
    TW_ASSIGN(Layer l, layerOf(tactic, p, vectors));
    l.sharesRows = sharesRows;
    int64_t const v = l.kernels->floats, blocks = l.stride / v;
    int64_t const parts = sharesRows ? 1 : std::min<int64_t>(l.splits(), blocks);
    for (int d = 0; d < directionsOf(l.attrs); ++d)
        for (int64_t i = 0; i < parts; ++i) {
            Units u;
            u.direction = d;
            u.first = i * blocks / parts * v;
            u.width = (i + 1) * blocks / parts * v - u.first;
            TW_TRY(pack(l, u, p));
            l.units.push_back(std::move(u));
        }
    return l;
}

namespace {

class Maker
{
public:
    Maker(Layer const& l, Extents const& x, bool withProducts)
        : l_(l), s_(sizesOf(l.attrs, x)), withProducts_(withProducts), out_(std::make_shared<Pieces>())
    {}
    Result<std::shared_ptr<Pieces>> make()
    {
        int64_t const states = s_.directions * s_.batch * l_.stride;
        out_->states = take(2 * states);
        out_->cells = take(states);
        out_->updates = take(l_.isTwoPhase() ? states : 0);
        out_->resets = take(l_.isTwoPhase() ? states : 0);
        int64_t const parts = l_.sharesRows ? std::clamp<int64_t>(s_.batch, 1, l_.splits()) : 1;
        for (Units const& u : l_.units)
            for (int64_t i = 0; i < parts; ++i)
                TW_TRY(add(u, i * s_.batch / parts, (i + 1) * s_.batch / parts, divideUp(s_.batch, parts)));
        out_->total = at_;
        return out_;
    }

private:
    int64_t take(int64_t floats) // begins at a cache line
    {
        int64_t const begin = at_;
        at_ += roundUp(floats, 16);
        return begin;
    }
    // `mostRows`: of the largest piece, by which memory grows with each size.
    Result<void> add(Units const& u, int64_t begin, int64_t end, int64_t mostRows)
    {
        int64_t const columns = l_.gates() * u.width, hidden = l_.attrs.hidden;
        // A quarter of L2: what is read again after a step or some stays there.
        int64_t const fit = std::max(kLeastRows, l_.product.l2Bytes / 16 / columns);
        int64_t const mostProducts = std::min(s_.steps * mostRows, fit + mostRows);
        GemmJitOptions const ofX = l_.optionsOf(l_.inputs, true), ofStates = l_.optionsOf(l_.stride, false);
        Piece p;
        p.units = &u;
        p.first = begin;
        p.rows = end - begin;
        int64_t const most = std::clamp<int64_t>(fit / std::max<int64_t>(p.rows, 1), 1, std::max<int64_t>(s_.steps, 1));
        int64_t const chunks = divideUp(s_.steps, most); // of about equal lengths
        p.chunk = chunks ? divideUp(s_.steps, chunks) : 1;
        p.product = take(mostProducts * columns);
        p.sums = take(mostRows * columns);
        p.gathered = take(mostProducts * l_.inputs);
        p.pointers = take(mostRows * 4); // two for each row
        int64_t scratch = GemmJit::workspaceBytes(ofStates, mostRows, columns, hidden);
        if (l_.hasW)
            scratch = std::max(scratch, GemmJit::workspaceBytes(ofX, mostProducts, columns, l_.inputs));
        p.scratch = take(divideUp(scratch, 4));
        if (withProducts_) {
            if (l_.hasW) {
                TW_ASSIGN(p.inputs, product(ofX, p.chunk * p.rows, columns, l_.inputs, l_.inputs));
                int64_t const left = s_.steps % p.chunk;
                TW_ASSIGN(p.lastInputs, product(ofX, left * p.rows, columns, l_.inputs, l_.inputs));
            }
            for (int phase = 0; phase < l_.phases(); ++phase) {
                TW_ASSIGN(p.states[phase], product(ofStates, p.rows, l_.gatesIn(phase) * u.width, hidden, l_.stride));
            }
        }
        out_->list.push_back(std::move(p));
        return {};
    }
    // Pieces of equal sizes share the code.
    Result<std::shared_ptr<GemmJit const>> product(GemmJitOptions const& o, int64_t m, int64_t n, int64_t k,
                                                   int64_t aRow)
    {
        std::array<int64_t, 5> const key{o.bias, m, n, k, aRow};
        for (auto const& [known, gemm] : made_)
            if (known == key)
                return gemm;
        TW_ASSIGN(GemmJit gemm, GemmJit::make(o, shapeOf(m, n, k, aRow), std::vector<kernels::GemmOffsets>(1)));
        made_.emplace_back(key, std::make_shared<GemmJit const>(std::move(gemm)));
        return made_.back().second;
    }

    Layer const& l_;
    Sizes const s_;
    bool const withProducts_;
    std::shared_ptr<Pieces> out_;
    std::vector<std::pair<std::array<int64_t, 5>, std::shared_ptr<GemmJit const>>> made_;
    int64_t at_ = 0;
};

} // namespace

Result<std::shared_ptr<Pieces>> piecesOf(Layer const& layer, Extents const& x, bool withProducts)
{
    return Maker(layer, x, withProducts).make();
}

namespace {

constexpr int kSpins = 4096; // some 50 us; then the system may give the CPU to who is waited for

struct alignas(64) Counter
{
    std::atomic<int64_t> v = 0;
};

void waitFor(std::atomic<int64_t> const& done, int64_t count)
{
    for (int spins = 0; done.load(std::memory_order_acquire) < count; ++spins) {
        if (spins < kSpins)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
    }
}

} // namespace

void runPhases(Workers& workers, int64_t phases, int parts, FunctionRef<void(int64_t phase, int part)> body)
{
    if (parts == 1) {
        for (int64_t phase = 0; phase < phases; ++phase)
            body(phase, 0);
        return;
    }
    Counter begun[kMostParts]; // of each part the next phase
    Counter done;              // parts of all phases
    workers.run(parts, [&](int64_t own, int) {
        for (int64_t phase = 0; phase < phases; ++phase) {
            for (int i = 0; i < parts; ++i) {
                int const part = int(own + i) % parts;
                int64_t next = phase;
                if (begun[part].v.load(std::memory_order_relaxed) != phase ||
                    !begun[part].v.compare_exchange_strong(next, phase + 1, std::memory_order_relaxed))
                    continue;
                body(phase, part);
                done.v.fetch_add(1, std::memory_order_acq_rel);
            }
            waitFor(done.v, (phase + 1) * parts);
        }
    });
}

} // namespace tw::ops::recurrence
