// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "base/round.h"
#include "families/elementwise/epilogue.h"
#include "families/gemm/tactics.h"
#include "kernels/cpu/gemm_parts.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/blocks.h"

namespace tw::ops {

namespace {

// Whether the operands are swapped.
bool swaps(matrix_multiply::Geometry const& g)
{
    // A transposed matrix times one column is a row times that matrix, whose rows are contiguous.
    return g.n == 1 && g.m > 1 && g.aRow == 1;
}

// All of one floating type.
void multiply(DataType type, matrix_multiply::Geometry const& g, void const* a, void const* b, void const* bias,
              void* y, void* workspace)
{
    auto const at = [&](void const* p, int64_t elements) {
        return static_cast<std::byte const*>(p) + elements * sizeOf(type);
    };
    bool const swap = swaps(g);
    kernels::GemmShape s{g.m, g.n, g.k, g.aRow, g.aColumn, g.bRow, g.bColumn};
    if (swap)
        s = {1, g.m, g.k, 0, g.bRow, g.aColumn, g.aRow};
    Counter c(g.batch);
    do {
        auto const *pa = at(a, c.offset(g.aBatch)), *pb = at(b, c.offset(g.bBatch));
        kernels::gemmPlain(type, s, swap ? pb : pa, swap ? pa : pb, bias, y, workspace);
        y = static_cast<std::byte*>(y) + g.m * g.n * sizeOf(type);
    } while (c.next());
}

// Rows of y, a block at a time: bias, residual and activation while the block is in cache.
void finish(TensorRef const& y, TensorRef const& bias, TensorRef const& residual, FusedActivation const& f)
{
    int64_t const count = y.count(), n = bias.data ? bias.count() : count;
    float yBuffer[kBlock], otherBuffer[kBlock];
    for (int64_t row = 0; row < count; row += n)
        for (int64_t at = 0; at < n; at += kBlock) {
            int64_t const m = std::min(kBlock, n - at);
            if (bias.data || residual.data) {
                float const* from = loadFloats(y.type, y.data, row + at, 1, m, yBuffer);
                float* to = floatsAt(y.type, y.data, row + at, yBuffer);
                if (bias.data) {
                    float const* add = loadFloats(bias.type, bias.data, at, 1, m, otherBuffer);
                    for (int64_t i = 0; i < m; ++i)
                        to[i] = from[i] + add[i];
                    from = to;
                }
                if (residual.data) {
                    float const* add = loadFloats(residual.type, residual.data, row + at, 1, m, otherBuffer);
                    for (int64_t i = 0; i < m; ++i)
                        to[i] = from[i] + add[i];
                }
                if (f.any())
                    activate(f, to, to, m);
                storeFloats(y.type, y.data, row + at, m, to);
            } else {
                activateElements(f, y.type, static_cast<std::byte*>(y.data) + (row + at) * sizeOf(y.type), m);
            }
        }
}

// Products of i8, a part of a row of y at a time.
void multiplyIntegers(matrix_multiply::Geometry const& g, Epilogue const& epilogue, RunArgs& args)
{
    auto const *a = args.inputs[0].as<int8_t>(), *b = args.inputs[1].as<int8_t>();
    IntegerEnd const end(epilogue, args.inputs, args.outputs[0]);
    int32_t sums[kBlock];
    Counter c(g.batch);
    int64_t at = 0;
    do {
        int8_t const *pa = a + c.offset(g.aBatch), *pb = b + c.offset(g.bBatch);
        for (int64_t i = 0; i < g.m; ++i, at += g.n)
            for (int64_t first = 0; first < g.n; first += kBlock) {
                int64_t const columns = std::min(kBlock, g.n - first);
                std::fill(sums, sums + columns, 0);
                for (int64_t p = 0; p < g.k; ++p) {
                    int32_t const factor = pa[i * g.aRow + p * g.aColumn];
                    int8_t const* const row = pb + p * g.bRow + first * g.bColumn;
                    for (int64_t j = 0; j < columns; ++j)
                        sums[j] += factor * row[j * g.bColumn];
                }
                end.store(sums, columns, at + first, first, 1);
            }
    } while (c.next());
}

// LayerNorm of a row of floats, which is rounded once.
void normalize(TensorRef const& y, int64_t at, float const* x, int64_t n, double epsilon, TensorRef const& gamma,
               TensorRef const& beta)
{
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < n; ++j)
        mean += double(x[j]) / double(n);
    for (int64_t j = 0; j < n; ++j)
        variance += (x[j] - mean) * (x[j] - mean) / double(n);
    double const deviation = std::sqrt(variance + epsilon);
    for (int64_t j = 0; j < n; ++j)
        y.set(at + j, (x[j] - mean) / deviation * gamma.get(j) + beta.get(j));
}

// norm(f(y + bias + residual)) of the rows of y; x: one of them.
void finishRows(TensorRef const& y, std::span<TensorRef const> in, Epilogue const& e, float* x)
{
    int64_t const n = y.dims[y.dims.rank - 1];
    for (int64_t at = 0; at < y.count(); at += n) {
        for (int64_t j = 0; j < n; ++j)
            x[j] = float(y.get(at + j) + in[Epilogue::kBias].get(j) + in[Epilogue::kResidual].get(at + j));
        if (e.activation.any())
            activate(e.activation, x, x, n);
        normalize(y, at, x, n, e.epsilon, in[Epilogue::kGamma], in[Epilogue::kBeta]);
    }
}

// y = f(x[.., 0 .. n]) * x[.., n .. 2 n].
void gate(TensorRef const& x, TensorRef const& y, FusedActivation const& f)
{
    int64_t const n = y.dims[y.dims.rank - 1];
    float gates[kBlock], through[kBlock], yBuffer[kBlock];
    for (int64_t row = 0; row * n < y.count(); ++row)
        for (int64_t at = 0; at < n; at += kBlock) {
            int64_t const m = std::min(kBlock, n - at), from = row * 2 * n + at;
            float const* g = loadFloats(x.type, x.data, from, 1, m, gates);
            float const* const u = loadFloats(x.type, x.data, from + n, 1, m, through);
            if (f.any()) {
                activate(f, g, gates, m);
                g = gates;
            }
            float* const to = floatsAt(y.type, y.data, row * n + at, yBuffer);
            for (int64_t i = 0; i < m; ++i)
                to[i] = g[i] * u[i];
            storeFloats(y.type, y.data, row * n + at, m, to);
        }
}

int64_t floatBytes(int64_t count)
{
    return roundUp(count * int64_t(sizeof(float)), 64);
}

// All columns of a gated product lie in front of the workspace, and FP16 operands behind them, all as FP32: a sum that
// FP16 cannot hold has a gate all the same.
int64_t gatedBytes(matrix_multiply::Geometry const& g, std::span<TensorRef const> in)
{
    bool const isHalf = isNarrowFloat(in[0].type);
    return floatBytes(g.batch.volume() * g.m * g.n) +
           (isHalf ? floatBytes(in[0].dims.volume()) + floatBytes(in[1].dims.volume()) : 0);
}

float const* asFloats(TensorRef const& t, std::byte*& workspace)
{
    if (isFullFloat(t.type))
        return t.as<float>();
    auto* const out = reinterpret_cast<float*>(workspace);
    workspace += floatBytes(t.count());
    for (int64_t at = 0; at < t.count(); at += kBlock)
        loadFloats(t.type, t.data, at, 1, std::min(kBlock, t.count() - at), out + at);
    return out;
}

void multiplyGated(matrix_multiply::Attrs const& attrs, matrix_multiply::Geometry const& g, RunArgs& args,
                   TensorRef const& bias)
{
    auto* workspace = static_cast<std::byte*>(args.workspace);
    TensorRef columns{DataType::kFloat, args.outputs[0].dims, workspace};
    columns.dims[columns.dims.rank - 1] = g.n;
    workspace += floatBytes(columns.count());
    float const* const a = asFloats(args.inputs[0], workspace);
    float const* const b = asFloats(args.inputs[1], workspace);
    multiply(DataType::kFloat, g, a, b, nullptr, columns.data, workspace);
    finish(columns, bias, {}, {});
    gate(columns, args.outputs[0], attrs.epilogue.activation);
}

} // namespace

namespace {

// The rows of a, normalized, lie in front of what the product works in.
int64_t firstBytes(ir::Node const& node, TensorRef const& a)
{
    return matrix_multiply::hasFirstNorm(node) ? roundUp(a.sizeBytes(), 64) : 0;
}

void normalizeFirst(matrix_multiply::Attrs const& attrs, TensorRef const& a, TensorRef const& to)
{
    int64_t const k = a.dims[a.dims.rank - 1];
    bool const isRms = attrs.firstNorm == matrix_multiply::FirstNorm::kRms;
    for (int64_t row = 0; row < a.count(); row += k) {
        double mean = 0, variance = 0;
        for (int64_t p = 0; p < k && !isRms; ++p)
            mean += a.get(row + p) / double(k);
        for (int64_t p = 0; p < k; ++p)
            variance += (a.get(row + p) - mean) * (a.get(row + p) - mean) / double(k);
        double const deviation = std::sqrt(variance + attrs.firstEpsilon);
        for (int64_t p = 0; p < k; ++p)
            to.set(row + p, (a.get(row + p) - mean) / deviation);
    }
}

} // namespace

int64_t multiplyPlainWorkspaceBytes(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    if (sumsIntegers(node))
        return 0;
    matrix_multiply::Geometry const g = matrix_multiply::geometryOf(node, in[0].dims, in[1].dims);
    Extents const& y = out[0].dims;
    int64_t const row = matrix_multiply::hasNorm(node) ? y[y.rank - 1] * int64_t(sizeof(float)) : 0;
    int64_t const gated = matrix_multiply::isGated(node) ? gatedBytes(g, in) : 0;
    return firstBytes(node, in[0]) + gated + std::max(row, kernels::gemmPlainWorkspaceBytes(g.m, g.n, g.k));
}

Result<void> multiplyPlain(ir::Node const& node, RunArgs& given)
{
    if (given.outputs[0].count() == 0)
        return {};
    auto const& attrs = node.attrsAs<matrix_multiply::Attrs>();
    RunArgs args = given;
    std::array<TensorRef, matrix_multiply::kInputs> inputs;
    if (matrix_multiply::hasFirstNorm(node)) {
        std::ranges::copy(given.inputs, inputs.begin());
        args.inputs = {inputs.data(), given.inputs.size()};
        args.workspace = static_cast<std::byte*>(given.workspace) + firstBytes(node, inputs[0]);
        inputs[0].data = given.workspace;
        normalizeFirst(attrs, given.inputs[0], inputs[0]);
    }
    TensorRef const &a = args.inputs[0], &b = args.inputs[1];
    matrix_multiply::Geometry const g = matrix_multiply::geometryOf(attrs, a.dims, b.dims);
    if (sumsIntegers(node)) {
        multiplyIntegers(g, attrs.epilogue, args);
        return {};
    }
    TensorRef const& y = args.outputs[0];
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    TensorRef const bias = optional(Epilogue::kBias), none;
    if (attrs.gated) {
        multiplyGated(attrs, g, args, bias);
        return {};
    }
    // A fully connected layer's bias joins the sum before it is rounded.
    bool const joins = attrs.connected && !swaps(g);
    TensorRef const first = joins ? bias : none;
    multiply(a.type, g, a.data, b.data, first.data, y.data, args.workspace);
    if (matrix_multiply::hasNorm(node))
        finishRows(y, args.inputs, attrs.epilogue, static_cast<float*>(args.workspace));
    else if (attrs.epilogue.hasSteps()) {
        finish(y, joins ? none : bias, none, {});
        return finishSteps(attrs.epilogue, y, optional(Epilogue::kResidual));
    } else
        finish(y, joins ? none : bias, optional(Epilogue::kResidual), attrs.epilogue.activation);
    return {};
}

} // namespace tw::ops
