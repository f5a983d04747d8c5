// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "families/copy/cpu_column.h"
#include "ops/gather/kernels.h"
#include "ops/gather/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::gather {

namespace {

// Where index i of a dimension of `size` elements points; negative: nowhere.
int64_t resolve(int32_t i, int64_t size)
{
    int64_t const p = i < 0 ? i + size : i;
    return p < size ? p : -1;
}

// Without branches, which random indices out of range would mislead.
template <class T>
void oneByOne(T const* x, int32_t const* j, int64_t count, int64_t size, int64_t step, int64_t along, T* y)
{
    if (size == 0)
        return std::fill_n(y, count, T(0)), void();
    for (int64_t i = 0; i < count; ++i) {
        int64_t const p = j[i] + (j[i] < 0 ? size : 0);
        bool const inside = uint64_t(p) < uint64_t(size);
        T const v = x[(inside ? p : 0) * step + i * along];
        y[i] = inside ? v : T(0);
    }
}

constexpr int64_t kFew = 4; // indices that are gone through one after the other, each for all rows

// Work is a range of blocks of y (single elements where blocks are no more), cut anywhere. Blocks come in runs that
// read from one place in x, with indices one after the other.
struct Gathering
{
    Kernels const& kernels;
    bool vectors; // elements by the vector's own gather
    Attrs const& a;
    TensorRef const &x, &j, &y;
    int64_t const bytes = sizeOf(x.type);

    void elements(int64_t xAt, int32_t const* index, int64_t count, int64_t size, int64_t step, int64_t along,
                  int64_t yAt) const
    {
        if (bytes == 4 && vectors)
            kernels.words(x.as<uint32_t>() + xAt, index, count, size, step, along, y.as<uint32_t>() + yAt);
        else if (bytes == 4)
            oneByOne(x.as<uint32_t>() + xAt, index, count, size, step, along, y.as<uint32_t>() + yAt);
        else if (bytes == 2)
            oneByOne(x.as<uint16_t>() + xAt, index, count, size, step, along, y.as<uint16_t>() + yAt);
        else
            oneByOne(x.as<uint8_t>() + xAt, index, count, size, step, along, y.as<uint8_t>() + yAt);
    }
    void blocks(int64_t xAt, int32_t const* index, int64_t count, int64_t size, int64_t block, int64_t yAt) const
    {
        if (block == 1)
            elements(xAt, index, count, size, 1, 0, yAt);
        else
            kernels.blocks(x.as<std::byte>() + xAt * bytes, index, count, size, block * bytes,
                           y.as<std::byte>() + yAt * bytes);
    }

    // Index i of `rows` rows of x.
    void column(int64_t xAt, int32_t i, int64_t size, int64_t rows, int64_t step, int64_t yAt) const
    {
        static constexpr char kZeros[8] = {};
        int64_t const p = resolve(i, size);
        copyColumn(p < 0 ? kZeros : x.as<char>() + (xAt + p) * bytes, p < 0 ? 0 : size * bytes,
                   y.as<char>() + yAt * bytes, step * bytes, bytes, rows);
    }

    // run(r, first, count) for the pieces of [begin, end) that lie in runs of `length`.
    template <class F>
    static void inRuns(int64_t length, int64_t begin, int64_t end, F const& run)
    {
        for (int64_t at = begin; at < end;) {
            int64_t const first = at % length, count = std::min(length - first, end - at);
            run(at / length, first, count);
            at += count;
        }
    }

    void alongAxis(Workers& workers) const
    {
        int const n = int(a.elementWiseDims), axis = int(a.axis);
        int64_t const outer = x.dims.volume(n, axis), size = x.dims[axis];
        int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), count = j.dims.volume(n, j.dims.rank);
        int64_t const xStep = x.dims.volume(0, n) == 1 ? 0 : outer * size * inner;
        int64_t const jStep = j.dims.volume(0, n) == 1 ? 0 : count;
        if (inner == 1 && count <= kFew) {
            inPieces(workers, y.count() / count, y.count() * bytes, [&](int64_t begin, int64_t end) {
                inRuns(outer, begin, end, [&](int64_t b, int64_t first, int64_t rows) {
                    for (int64_t k = 0; k < count; ++k)
                        column(b * xStep + first * size, j.as<int32_t>()[b * jStep + k], size, rows, count,
                               (b * outer + first) * count + k);
                });
            });
            return;
        }
        inPieces(workers, y.count() / inner, y.count() * bytes, [&](int64_t begin, int64_t end) {
            inRuns(count, begin, end, [&](int64_t r, int64_t first, int64_t some) {
                int64_t const b = r / outer;
                blocks(b * xStep + r % outer * size * inner, j.as<int32_t>() + b * jStep + first, some, size, inner,
                       (r * count + first) * inner);
            });
        });
    }

    // Rows of y.
    void ofElements(Workers& workers) const
    {
        int const axis = int(a.axis), last = x.dims.rank - 1;
        Extents const strides = stridesOf(x.dims);
        int64_t const n = y.dims[last], along = axis == last ? 0 : 1;
        inPieces(workers, y.count(), y.count() * bytes, [&](int64_t begin, int64_t end) {
            inRuns(n, begin, end, [&](int64_t r, int64_t first, int64_t count) {
                int64_t xAt = first * along;
                for (int64_t d = last, rest = r; d-- > 0; rest /= y.dims[int(d)])
                    xAt += d == axis ? 0 : rest % y.dims[int(d)] * strides[int(d)];
                int64_t const yAt = r * n + first;
                elements(xAt, j.as<int32_t>() + yAt, count, x.dims[axis], strides[axis], along, yAt);
            });
        });
    }

    void byCoordinates(Workers& workers) const
    {
        int const n = int(a.elementWiseDims), k = int(j.dims[j.dims.rank - 1]);
        int64_t const positions = x.dims.volume(n, n + k), block = x.dims.volume(n + k, x.dims.rank);
        int64_t const count = j.dims.volume(n, j.dims.rank - 1);
        bool const isFar = positions > INT32_MAX; // then one by one, each from where it lies
        inPieces(workers, y.count() / block, y.count() * bytes, [&](int64_t begin, int64_t end) {
            constexpr int64_t kMost = 256;
            int32_t at[kMost];
            inRuns(count, begin, end, [&](int64_t b, int64_t first, int64_t whole) {
                for (int64_t done = 0, some; done < whole; done += some) {
                    int64_t const i = b * count + first + done;
                    int64_t from = b * positions;
                    some = isFar ? 1 : std::min(kMost, whole - done);
                    int32_t const* index = j.as<int32_t>() + i * k;
                    for (int64_t s = 0; s < some; ++s, index += k) {
                        int64_t p = 0;
                        bool inside = true;
                        for (int d = 0; d < k; ++d) {
                            int64_t const q = resolve(index[d], x.dims[n + d]);
                            inside = inside && q >= 0;
                            p = p * x.dims[n + d] + q;
                        }
                        if (isFar && inside)
                            from += std::exchange(p, 0);
                        at[s] = inside ? int32_t(p) : INT32_MIN; // outside for every size below 2^31
                    }
                    blocks(from * block, at, some, isFar ? 1 : positions, block, i * block);
                }
            });
        });
    }
};

Result<void> gather(ir::Node const& node, RunArgs& args, Kernels const& kernels, bool vectors)
{
    auto const& a = node.attrsAs<Attrs>();
    if (args.outputs[0].count() == 0)
        return {};
    Gathering const g{kernels, vectors, a, args.inputs[0], args.inputs[1], args.outputs[0]};
    switch (a.mode) {
    case Mode::kDefault:
        g.alongAxis(*args.workers);
        break;
    case Mode::kElement:
        g.ofElements(*args.workers);
        break;
    case Mode::kNd:
        g.byCoordinates(*args.workers);
        break;
    }
    return {};
}

Result<void> runPlain(ir::Node const& node, RunArgs& args)
{
    return gather(node, args, baseline::kGather, false);
}

constexpr PlainTactic kPlain{"gather_any_plain_cpu", 1, runPlain};

class VectorGather final : public Kernel
{
public:
    VectorGather(ir::Node const& node, Kernels const& kernels, bool vectors)
        : node_(node), kernels_(kernels), vectors_(vectors)
    {}
    Result<void> run(RunArgs& args) const override
    {
        bool const fits = args.inputs[0].count() <= INT32_MAX; // else in a profile of larger shapes
        return gather(node_, args, kernels_, vectors_ && fits);
    }

private:
    ir::Node const& node_;
    Kernels const& kernels_;
    bool vectors_;
};

// Config: {1: elements by the vector's own gather, which not every CPU does faster than one by one}.
constexpr CpuFunctions kVectors{
    .supports = supportsPositions,
    .configs =
        [](CpuTactic const&, Problem const& p) {
            return sizeOf(p.inputs[0].type) == 4 ? std::vector<Config>{{1}, {0}} : std::vector<Config>{{0}};
        },
    .load = [](CpuTactic const& t, Problem const& p, Config const& config, PackedConstants&) -> CpuFunctions::Loaded {
        if (config.size() != 1 || config[0] < 0 || config[0] > 1)
            return t.wrongConfig("{0} or {1}");
        bool const wide = t.isa() == kernels::jit::Isa::kAvx512;
        return makeKernel<VectorGather>(*p.node, wide ? avx512::kGather : avx2::kGather, config[0] == 1);
    }};
constexpr CpuTactic kAvx512{"gather_any_vectors_avx512", 1, kernels::jit::Isa::kAvx512, kVectors};
constexpr CpuTactic kAvx2{"gather_any_vectors_avx2", 1, kernels::jit::Isa::kAvx2, kVectors};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::gather
