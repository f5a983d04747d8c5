// SPDX-License-Identifier: Apache-2.0
#include "base/element.h"
#include "ops/rotary/kernels.h"
#include "ops/rotary/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::rotary {

namespace {

// Calls f(offset in x, offset in c, offset in s, offset in y) for the rows from `begin` to `end`.
template <class F>
void forRows(Attrs const& a, RunArgs const& args, int64_t begin, int64_t end, F const& f)
{
    TensorRef const &x = args.inputs[0], &c = args.inputs[1], &s = args.inputs[2], &y = args.outputs[0];
    int const last = y.dims.rank - 1;
    for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row, cAt = 0, sAt = 0, cStep = c.dims[last], sStep = s.dims[last];
        for (int k = last - 1; k >= 0; --k) {
            int64_t const at = rest % y.dims[k];
            rest /= y.dims[k];
            cAt += c.dims[k] == 1 ? 0 : at * cStep;
            sAt += s.dims[k] == 1 ? 0 : at * sStep;
            cStep *= c.dims[k];
            sStep *= s.dims[k];
        }
        f(a.rowOfX(row, y.dims[last], x.dims[x.dims.rank - 1]), cAt, sAt, row * y.dims[last]);
    }
}

template <class T>
void turn(Attrs const& a, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &c = args.inputs[1], &s = args.inputs[2], &y = args.outputs[0];
    int const last = y.dims.rank - 1;
    int64_t const n = y.dims[last], half = a.size / 2;
    auto place = [&](TensorRef const& t, int64_t d) {
        return t.dims[last] == a.size ? d : a.interleaved ? d / 2 : d % half;
    };
    forRows(a, args, 0, n == 0 ? 0 : y.count() / n, [&](int64_t at, int64_t cAt, int64_t sAt, int64_t to) {
        T const *xRow = x.as<T>() + at, *cRow = c.as<T>() + cAt, *sRow = s.as<T>() + sAt;
        T* yRow = y.as<T>() + to;
        for (int64_t d = 0; d < half; ++d) {
            int64_t const i = a.interleaved ? 2 * d : d, j = a.interleaved ? i + 1 : i + half;
            float const v = loadElement(xRow[i]), w = loadElement(xRow[j]);
            storeElement(yRow[i], v * loadElement(cRow[place(c, i)]) - w * loadElement(sRow[place(s, i)]));
            storeElement(yRow[j], w * loadElement(cRow[place(c, j)]) + v * loadElement(sRow[place(s, j)]));
        }
        for (int64_t d = a.size; d < n; ++d)
            yRow[d] = xRow[d];
    });
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    withFloat(args.inputs[0].type, [&](auto element) { turn<decltype(element)>(a, args); });
    return {};
}

constexpr PlainTactic kPlain{"rotary_any_plain_cpu", 2, run};

Support supportsVectors(Problem const& p)
{
    auto byPair = [&](int i) {
        Extents const& e = p.inputs[size_t(i)].maxDims;
        return e[e.rank - 1] * 2 == p.node->attrsAs<Attrs>().size;
    };
    return byPair(1) == byPair(2) ? Support::yes() : Support::no("takes cosines and sines that are as many");
}

template <Kernels const& k>
Result<void> runVectors(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &c = args.inputs[1], &s = args.inputs[2], &y = args.outputs[0];
    int64_t const n = y.dims[y.dims.rank - 1];
    bool const byPair = c.dims[c.dims.rank - 1] != a.size;
    auto const row =
        a.interleaved ? (byPair ? k.neighboursByPair : k.neighbours) : (byPair ? k.halvesByPair : k.halves);
    inPieces(*args.workers, y.count() / n, 2 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
        forRows(a, args, begin, end, [&](int64_t at, int64_t cAt, int64_t sAt, int64_t to) {
            row({x.as<float>() + at, c.as<float>() + cAt, s.as<float>() + sAt, y.as<float>() + to, a.size, n});
        });
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{
    "rotary_f32_vectors_avx512", 2, Isa::kAvx512, runVectors<avx512::kRotary>, supportsVectors, onlyLinear};
constexpr VectorTactic kAvx2{"rotary_f32_vectors_avx2", 2,         Isa::kAvx2, runVectors<avx2::kRotary>,
                             supportsVectors,           onlyLinear};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::rotary
