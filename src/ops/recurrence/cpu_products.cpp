// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/recurrence/cpu_pieces.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

namespace products {
namespace {

using kernels::GemmJit;

constexpr int64_t kLeastBatch = 4; // below, a product has too few rows to read weights for

// One run of a layer.
class ProductsRun : LayerRun
{
public:
    ProductsRun(Layer const& layer, Pieces const& pieces, RunArgs& args)
        : LayerRun(layer, args), l_(layer), pieces_(pieces),
          lengths_(input(kLengths) ? input(kLengths)->as<int32_t>() : nullptr)
    {}
    void run()
    {
        loadStates(kH0, floats + pieces_.states);
        if (l_.attrs.cell == Cell::kLstm)
            loadStates(kC0, floats + pieces_.cells);
        int const parts = int(pieces_.list.size());
        if (l_.units.size() == size_t(s.directions)) // a piece has all of its direction's units
            args.workers->run(parts, [&](int64_t part, int) {
                for (int64_t phase = 0; phase < s.steps * l_.phases(); ++phase)
                    runPhase(pieces_.list[size_t(part)], phase);
            });
        else
            runPhases(*args.workers, s.steps * l_.phases(), parts,
                      [&](int64_t phase, int part) { runPhase(pieces_.list[size_t(part)], phase); });
        storeStates(1, floats + pieces_.states + (s.steps % 2) * stateFloats());
        if (l_.attrs.cell == Cell::kLstm)
            storeStates(2, floats + pieces_.cells);
    }

private:
    // A piece's rows of a tensor of states that begins there in the workspace.
    float* rowsOf(Piece const& p, int64_t begin) const
    {
        return floats + begin + (p.units->direction * s.batch + p.first) * l_.stride;
    }
    float* statesOf(Piece const& p, int64_t step) const // those of even and odd steps
    {
        return rowsOf(p, pieces_.states + step % 2 * stateFloats());
    }

    // ---- where step i of sequence n finds things

    int64_t lengthOf(int64_t n) const { return lengths_ ? std::clamp<int64_t>(lengths_[n], 0, s.steps) : s.steps; }
    int64_t timeOf(Piece const& p, int64_t i, int64_t n) const
    {
        int64_t const length = lengthOf(n);
        return i < length && s.isReverse(l_.attrs, p.units->direction) ? length - 1 - i : i;
    }
    // Whether a chunk's rows of x lie one after the other.
    bool isDense(Piece const& p) const
    {
        return p.rows == s.batch && (!l_.attrs.batchFirst || s.batch == 1) &&
               !(lengths_ && s.isReverse(l_.attrs, p.units->direction));
    }
    int64_t chunkAt(Piece const& p, int64_t begin) const { return std::min(p.chunk, s.steps - begin); }
    // Where the products of step i of a chunk stand: dense chunks of a reversed direction begin with the last step.
    int64_t placeOf(Piece const& p, int64_t i) const
    {
        int64_t const begin = i / p.chunk * p.chunk;
        bool const backwards = isDense(p) && s.isReverse(l_.attrs, p.units->direction);
        return backwards ? begin + chunkAt(p, begin) - 1 - i : i - begin;
    }

    void multiplyInputs(Piece const& p, int64_t begin) const
    {
        int64_t const steps = chunkAt(p, begin), columns = l_.gates() * p.units->width;
        float const* x = args.inputs[kX].as<float>();
        if (isDense(p)) {
            x += (s.isReverse(l_.attrs, p.units->direction) ? s.steps - begin - steps : begin) * s.xStep;
        } else {
            float* to = floats + p.gathered;
            for (int64_t i = begin; i < begin + steps; ++i)
                for (int64_t n = p.first; n < p.first + p.rows; ++n, to += l_.inputs)
                    std::copy_n(x + timeOf(p, i, n) * s.xStep + n * s.xRow, l_.inputs, to);
            x = floats + p.gathered;
        }
        float* const to = floats + p.product;
        if (l_.hasW)
            (steps == p.chunk ? p.inputs : p.lastInputs)
                ->run(x, p.units->w.data(), p.units->bias.data(), nullptr, to, floats + p.scratch, serialWorkers());
        else
            spreadInputs(p, l_.skips ? x : nullptr, steps * p.rows, columns, to);
    }
    // x, if any, to each gate.
    void spreadInputs(Piece const& p, float const* x, int64_t rows, int64_t columns, float* to) const
    {
        int64_t const units = std::min(p.units->width, s.hidden - p.units->first);
        for (int64_t row = 0; row < rows; ++row, to += columns) {
            std::copy_n(p.units->bias.data(), columns, to);
            for (int g = 0; x && g < l_.gates(); ++g)
                for (int64_t j = 0; j < units; ++j)
                    to[g * p.units->width + j] += x[row * s.hidden + p.units->first + j];
        }
    }

    void runPhase(Piece const& p, int64_t phase) const
    {
        int64_t const i = phase / l_.phases(), first = p.units->first, width = p.units->width;
        int const part = int(phase % l_.phases()), gate = part == 0 ? 0 : 2;
        if (part == 0 && i % p.chunk == 0)
            multiplyInputs(p, i);
        float const* const h = part == 0 ? statesOf(p, i) : rowsOf(p, pieces_.resets);
        float* const sums = floats + p.sums;
        p.states[part]->run(h, p.units->recurrent[part].data(), nullptr, nullptr, sums, floats + p.scratch,
                            serialWorkers());
        auto** const x = reinterpret_cast<float const**>(floats + p.pointers);
        auto** const y = const_cast<float**>(x + p.rows);
        for (int64_t row = 0; row < p.rows; ++row) {
            int64_t const n = p.first + row, place = placeOf(p, i) * p.rows + row;
            x[row] = i < lengthOf(n) ? floats + p.product + (place * l_.gates() + gate) * width : nullptr;
            y[row] = args.outputs[0].as<float>() + timeOf(p, i, n) * s.yStep + n * s.yRow +
                     p.units->direction * s.hidden + first;
        }
        Step step;
        step.hidden = s.hidden - first;
        step.stride = l_.stride;
        step.rows = p.rows;
        step.gate = width;
        step.before = statesOf(p, i) + first;
        step.to = (l_.isTwoPhase() && part == 0 ? rowsOf(p, pieces_.resets) : statesOf(p, i + 1)) + first;
        step.c = rowsOf(p, pieces_.cells) + first;
        step.z = rowsOf(p, pieces_.updates) + first;
        step.sums = sums;
        step.sumsRow = l_.gatesIn(part) * width;
        step.bias = p.units->stateBias.data();
        step.clip = l_.attrs.clip > 0 ? float(l_.attrs.clip) : INFINITY;
        step.inputForget = l_.attrs.inputForget;
        step.peepholes = p.units->peepholes.data();
        step.peepholeRow = width;
        step.x = x;
        step.y = y;
        step.end = width / l_.kernels->floats;
        l_.kernels->cells[l_.options][stepKindOf(l_.attrs, part)](step);
    }
    Layer const& l_;
    Pieces const& pieces_;
    int32_t const* const lengths_;
};

class ProductsKernel final : public Kernel
{
public:
    explicit ProductsKernel(Layer layer) : layer_(std::move(layer)) {}
    bool readsConstant(size_t i) const override { return i != kR && i != kW && i != kBias && i != kPeepholes; }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        auto const pieces = piecesOf(layer_, in[kX].dims, false);
        return pieces.ok() ? (*pieces)->total * int64_t(sizeof(float)) : 0;
    }
    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override
    {
        TW_ASSIGN(auto pieces, piecesOf(layer_, in[kX].dims, true));
        return std::shared_ptr<Prepared const>(std::move(pieces));
    }
    Result<void> run(RunArgs& args) const override
    {
        ProductsRun(layer_, *static_cast<Pieces const*>(args.prepared), args).run();
        return {};
    }

private:
    Layer layer_;
};

Support supports(CpuTactic const&, Problem const& p)
{
    Extents const& x = p.inputs[kX].dims;
    TW_SUPPORTS(supportsKnownFloats(p));
    if (sizesOf(p.node->attrsAs<Attrs>(), x).batch < kLeastBatch)
        return Support::no(fmt::format("takes a batch of at least {} sequences", kLeastBatch));
    return Support::yes();
}

std::vector<Config> configs(CpuTactic const&, Problem const& p)
{
    // Tiles of 2 to 4 vectors are within 2 % of each other.
    if (p.threads / directionsOf(p.node->attrsAs<Attrs>()) < 2)
        return {{3, 0}};
    return {{3, 1}, {3, 0}};
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    Blob const* const r = p.inputs[kR].constant;
    bool const fits = r && int64_t(r->sizeBytes()) < p.target.cpu->l2Bytes; // of weights that every worker reads
    return estimateOf(p, t.isa(), config.size() == 2 && (config[1] != 0) == fits ? 0.8 : 0.75);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants&)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 4 || config[1] < 0 || config[1] > 1)
        return t.wrongConfig("{1..4, 0..1}");
    TW_ASSIGN(Layer layer, dividedLayerOf(t, p, int(config[0]), config[1] != 0));
    return makeKernel<ProductsKernel>(std::move(layer));
}

} // namespace
} // namespace products

constexpr CpuFunctions kProducts{.supports = products::supports,
                                 .configs = products::configs,
                                 .estimate = products::estimate,
                                 .load = products::load};

} // namespace tw::ops::recurrence
