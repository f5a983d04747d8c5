// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernels/cpu/rows.h"
#include "ops/reduce/op.h"
#include "tactic/element.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::reduce {

namespace {

template <class T>
constexpr bool kReal = std::is_same_v<T, float> || std::is_same_v<T, uint16_t>;

void storeWhole(int8_t& to, int64_t v)
{
    to = int8_t(std::clamp<int64_t>(v, -128, 127));
}
void storeWhole(int32_t& to, int64_t v)
{
    to = int32_t(uint32_t(uint64_t(v)));
}

// What differs between operations: the accumulator, its first value, how values and accumulators join, the result.
template <class T>
struct Sum
{
    using Acc = std::conditional_t<kReal<T>, double, int64_t>; // below 2^31 elements: int64 cannot overflow
    static Acc first() { return 0; }
    static Acc join(Acc a, Acc b) { return a + b; }
    static void finish(T& to, Acc a, int64_t)
    {
        if constexpr (kReal<T>)
            storeElement(to, a);
        else
            storeWhole(to, a);
    }
};
template <class T>
struct Average : Sum<T>
{
    static void finish(T& to, typename Sum<T>::Acc a, int64_t count)
    {
        if constexpr (std::is_same_v<T, int32_t>)
            to = count == 0 ? 0 : int32_t(a / count);
        else if constexpr (std::is_same_v<T, int8_t>)
            storeElement(to, count == 0 ? -128.0 : double(a) / double(count));
        else
            storeElement(to, a / double(count)); // 0 / 0 is NaN
    }
};
template <class T>
struct Product
{
    using Acc = std::conditional_t<kReal<T>, double, int64_t>;
    static Acc first() { return 1; }
    static Acc join(Acc a, Acc b)
    {
        if constexpr (kReal<T>)
            return a * b;
        else if constexpr (std::is_same_v<T, int32_t>)
            return Acc(int32_t(uint32_t(uint64_t(a) * uint64_t(b)))); // wraps
        else
            return std::clamp<Acc>(a * b, -1024, 1024); // beyond i8 it stays beyond, unless it becomes 0
    }
    static void finish(T& to, Acc a, int64_t count) { Sum<T>::finish(to, a, count); }
};
// Maximum (kSign 1) or minimum (kSign -1).
template <class T, int kSign>
struct Extreme
{
    using Acc = std::conditional_t<kReal<T>, float, int32_t>;
    static Acc first()
    {
        if constexpr (kReal<T>)
            return -kSign * std::numeric_limits<float>::infinity();
        else
            return kSign > 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    }
    static Acc join(Acc a, Acc b) { return (kSign > 0 ? b > a : b < a) || b != b ? b : a; }
    static void finish(T& to, Acc a, int64_t)
    {
        if constexpr (kReal<T>)
            storeElement(to, a);
        else
            to = T(a);
    }
};

// x with neighbouring axes of the same kind joined and axes of size 1 left out, split into loops.
struct Loops
{
    Extents kept, keptStrides;       // all kept axes but `inner`
    Extents reduced, reducedStrides; // all reduced axes but `inner`
    int64_t inner = 1;               // the last axis, contiguous
    bool innerReduced = true;
    int64_t count = 1; // elements of x in one of y

    Loops(Attrs const& a, Extents const& x)
    {
        Extents size, stride;
        bool isReduced[kMaxRank]{};
        Extents const strides = stridesOf(x);
        for (int i = 0; i < x.rank; ++i) {
            if (a.has(i))
                count *= x[i];
            if (x[i] == 1)
                continue;
            if (size.rank > 0 && isReduced[size.rank - 1] == a.has(i)) {
                size[size.rank - 1] *= x[i];
                stride[size.rank - 1] = strides[i];
            } else {
                isReduced[size.rank] = a.has(i);
                size.push(x[i]);
                stride.push(strides[i]);
            }
        }
        if (size.rank > 0) {
            inner = size[--size.rank];
            innerReduced = isReduced[size.rank];
        }
        for (int i = 0; i < size.rank; ++i) {
            (isReduced[i] ? reduced : kept).push(size[i]);
            (isReduced[i] ? reducedStrides : keptStrides).push(stride[i]);
        }
    }
};

template <class T, class Acc>
Acc load(T v)
{
    if constexpr (kReal<T>)
        return Acc(loadElement(v));
    else
        return Acc(v);
}

// A contiguous row joined into one value; several accumulators, so that it vectorizes.
template <class Op, class T>
typename Op::Acc joinRow(T const* x, int64_t n)
{
    using Acc = typename Op::Acc;
    constexpr int kLanes = 8;
    Acc lanes[kLanes];
    for (Acc& lane : lanes)
        lane = Op::first();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int l = 0; l < kLanes; ++l)
            lanes[l] = Op::join(lanes[l], load<T, Acc>(x[i + l]));
    for (; i < n; ++i)
        lanes[0] = Op::join(lanes[0], load<T, Acc>(x[i]));
    for (int l = 1; l < kLanes; ++l)
        lanes[0] = Op::join(lanes[0], lanes[l]);
    return lanes[0];
}

// Where the piece of x begins that kept index `k` stands for.
int64_t keptOffset(Loops const& loops, int64_t k)
{
    int64_t offset = 0;
    for (int i = loops.kept.rank - 1; i >= 0; --i) {
        offset += k % loops.kept[i] * loops.keptStrides[i];
        k /= loops.kept[i];
    }
    return offset;
}

// For the kept indices [begin, end).
template <class Op, class T>
void reduceWith(Loops const& loops, T const* x, T* y, int64_t begin, int64_t end)
{
    using Acc = typename Op::Acc;
    constexpr int64_t kBlock = 256; // columns that are reduced together
    bool const nothing = loops.count == 0;
    y += begin * (loops.innerReduced ? 1 : loops.inner);
    for (int64_t k = begin; k < end; ++k) {
        T const* from = nothing ? x : x + keptOffset(loops, k);
        if (loops.innerReduced) {
            Acc acc = Op::first();
            Counter reduced(loops.reduced);
            if (!nothing)
                do
                    acc = Op::join(acc, joinRow<Op>(from + reduced.offset(loops.reducedStrides), loops.inner));
                while (reduced.next());
            Op::finish(*y++, acc, loops.count);
            continue;
        }
        for (int64_t first = 0; first < loops.inner; first += kBlock) {
            int64_t const width = std::min(kBlock, loops.inner - first);
            Acc acc[kBlock];
            std::fill(acc, acc + width, Op::first());
            Counter reduced(loops.reduced);
            if (!nothing)
                do {
                    T const* row = from + reduced.offset(loops.reducedStrides) + first;
                    for (int64_t i = 0; i < width; ++i)
                        acc[i] = Op::join(acc[i], load<T, Acc>(row[i]));
                } while (reduced.next());
            for (int64_t i = 0; i < width; ++i)
                Op::finish(*y++, acc[i], loops.count);
        }
    }
}

template <class T>
void reduceAs(Attrs const& a, TensorRef const& x, TensorRef const& y, Workers& workers)
{
    if (y.count() == 0)
        return;
    Loops const loops(a, x.dims);
    auto with = [&](auto reduce) {
        inPieces(workers, loops.kept.volume(), x.sizeBytes(),
                 [&](int64_t begin, int64_t end) { reduce(loops, x.as<T>(), y.as<T>(), begin, end); });
    };
    switch (a.kind) {
    case Kind::kSum:
        return with(reduceWith<Sum<T>, T>);
    case Kind::kProd:
        return with(reduceWith<Product<T>, T>);
    case Kind::kMax:
        return with(reduceWith<Extreme<T, 1>, T>);
    case Kind::kMin:
        return with(reduceWith<Extreme<T, -1>, T>);
    case Kind::kAvg:
        return with(reduceWith<Average<T>, T>);
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (x.type == DataType::kFloat)
        reduceAs<float>(a, x, y, *args.workers);
    else if (x.type == DataType::kHalf)
        reduceAs<uint16_t>(a, x, y, *args.workers);
    else if (x.type == DataType::kInt8)
        reduceAs<int8_t>(a, x, y, *args.workers);
    else
        reduceAs<int32_t>(a, x, y, *args.workers);
    return {};
}

constexpr PlainTactic kPlain{"reduce_any_plain_cpu", 1, run};

constexpr int64_t kPiece = 4096; // floats that are summed in float

// ---- Sums and averages of f32 in vectors: rows of linear tensors, and all pixels of channels-last ones.

bool isSum(Attrs const& a)
{
    return a.kind == Kind::kSum || a.kind == Kind::kAvg;
}

// Rows in the middle of nothing else: [outer, n], n reduced; their number, or 0.
int64_t rowsOf(Attrs const& a, Extents const& x)
{
    int first = x.rank;
    while (first > 0 && a.has(first - 1))
        --first;
    for (int i = 0; i < first; ++i)
        if (a.has(i) && x[i] != 1)
            return 0;
    return first == x.rank ? 0 : x.volume(0, first);
}

Support supportsRows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (!isSum(a))
        return Support::no("sums and averages only");
    bool inner = false, outer = false;
    int const rank = p.inputs[0].dims.rank;
    for (int i = rank - 1; i >= 0; --i) {
        inner = inner || (i == rank - 1 && a.has(i));
        outer = outer || (a.has(i) && i + 1 < rank && !a.has(i + 1));
    }
    return inner && !outer ? Support::yes() : Support::no("reduces the last axes only");
}

Result<void> runRows(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const rows = rowsOf(a, x.dims), n = rows > 0 ? x.count() / rows : 0;
    inPieces(*args.workers, rows, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            double sum = 0; // of pieces that are short enough for float
            for (int64_t at = 0; at < n; at += kPiece)
                sum += double(k.sumRow(x.as<float>() + i * n + at, std::min(kPiece, n - at)));
            y.as<float>()[i] = float(a.kind == Kind::kAvg ? sum / double(n) : sum); // 0 / 0 is NaN
        }
    });
    return {};
}

Support supportsNhwc(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int const rank = p.inputs[0].dims.rank;
    if (!isSum(a) || a.axes != (int64_t(1) << rank) - 4)
        return Support::no("sums and averages of all axes behind the channels only");
    return Support::yes();
}

std::vector<Formats> pixelFormats(Problem const& problem)
{
    int const rank = problem.inputs[0].dims.rank;
    if (rank < 3 || problem.inputs[0].constant)
        return {};
    std::vector<Formats> list{Formats{{Format::kChannelsLast}, {Format::kLinear}}};
    if (problem.outputs[0].dims.rank >= 3)
        list.insert(list.begin(), Formats{{Format::kChannelsLast}, {Format::kChannelsLast}});
    return list;
}

Result<void> runNhwc(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    constexpr int64_t kChannels = 64;
    int64_t const channels = x.dims[1], pixels = pixelsOf(x), blocks = (channels + kChannels - 1) / kChannels;
    float const scale = a.kind == Kind::kAvg ? 1 / float(pixels) : 1; // no pixel: the kernel makes 0 * infinity
    int64_t const yStep = y.format == Format::kChannelsLast ? y.pixelStride() : channels;
    inPieces(*args.workers, x.dims[0] * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t const n = i / blocks, c = i % blocks * kChannels, count = std::min(kChannels, channels - c);
            float const* from = imageOf(x, n) + c;
            float* to = y.as<float>() + n * yStep + c;
            if (y.format == Format::kChannelsLast || count % 16 == 0) {
                k.sum(from, x.pixelStride(), count, pixels, scale, to);
            } else { // the kernel writes whole cache lines
                float line[kChannels];
                k.sum(from, x.pixelStride(), count, pixels, scale, line);
                std::copy_n(line, count, to);
            }
        }
    });
    return {};
}

// ---- f32 over any axes in vectors: runs of reduced elements are joined into one, runs of kept ones into each other.

using kernels::Join;
using kernels::RowKernels;

Support supportsAxes(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Loops const loops(a, p.inputs[0].dims);
    if (a.kind == Kind::kProd && !loops.innerReduced)
        return Support::no("takes products of the last axes only");
    return Support::yes();
}

Join joinOf(Kind kind)
{
    return kind == Kind::kMax ? Join::kMax : kind == Kind::kMin ? Join::kMin : Join::kSum;
}

double joined(Join join, double a, double b)
{
    if (join == Join::kSum)
        return a + b;
    return b != b || (join == Join::kMax ? b > a : b < a) ? b : a;
}

// A run of any length.
double joinRun(RowKernels const& k, Kind kind, float const* x, int64_t n)
{
    if (kind == Kind::kProd)
        return k.productRow(x, n);
    Join const join = joinOf(kind);
    auto const row = k.joinRow[int(join)];
    if (n <= kPiece || join != Join::kSum)
        return double(row(x, n));
    double sum = 0;
    for (int64_t at = 0; at < n; at += kPiece)
        sum += double(row(x + at, std::min(kPiece, n - at)));
    return sum;
}

float finished(Kind kind, double v, int64_t count)
{
    return float(kind == Kind::kAvg ? v / double(count) : v); // 0 / 0 is NaN
}

void joinInner(RowKernels const& k, Kind kind, Loops const& loops, TensorRef const& x, float* y, Workers& workers)
{
    constexpr int64_t kParts = 64;
    int64_t const outputs = loops.kept.volume();
    auto const join = [&](double a, double b) { return kind == Kind::kProd ? a * b : joined(joinOf(kind), a, b); };
    if (outputs == 1 && loops.reduced.rank == 0 && loops.inner > kParts * kPiece) {
        double parts[kParts];
        inPieces(workers, kParts, x.sizeBytes(), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                int64_t const at = loops.inner * i / kParts;
                parts[i] = joinRun(k, kind, x.as<float>() + at, loops.inner * (i + 1) / kParts - at);
            }
        });
        for (int64_t i = 1; i < kParts; ++i)
            parts[0] = join(parts[0], parts[i]);
        y[0] = finished(kind, parts[0], loops.count);
        return;
    }
    inPieces(workers, outputs, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float const* from = x.as<float>() + keptOffset(loops, i);
            Counter reduced(loops.reduced);
            double acc = joinRun(k, kind, from, loops.inner);
            while (reduced.next())
                acc = join(acc, joinRun(k, kind, from + reduced.offset(loops.reducedStrides), loops.inner));
            y[i] = finished(kind, acc, loops.count);
        }
    });
}

void joinOuter(RowKernels const& k, Kind kind, Loops loops, TensorRef const& x, float* y, Workers& workers)
{
    constexpr int64_t kColumns = 512; // of accumulators and eight rows, 18 KiB, in L1
    constexpr int64_t kRun = 512;     // rows that are summed apart, which bounds the error
    Join const join = joinOf(kind);
    float const first = join == Join::kMax   ? -std::numeric_limits<float>::infinity()
                        : join == Join::kMin ? std::numeric_limits<float>::infinity()
                                             : 0.f;
    // The last reduced axis makes the rows of a call.
    int64_t rows = 1, step = 0;
    if (loops.reduced.rank > 0) {
        rows = loops.reduced[--loops.reduced.rank];
        step = loops.reducedStrides[--loops.reducedStrides.rank];
    }
    int64_t const n = loops.inner, kept = loops.kept.volume();
    int64_t const wanted = workers.count() > kept ? (workers.count() + kept - 1) / kept : 1; // blocks of columns
    int64_t const even = ((n + wanted - 1) / wanted + 15) / 16 * 16, width = std::min(kColumns, even);
    int64_t const blocks = (n + width - 1) / width;
    inPieces(workers, kept * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        float acc[kColumns], run[kColumns];
        for (int64_t i = begin; i < end; ++i) {
            int64_t const column = i % blocks * width, columns = std::min(width, n - column);
            float const* from = x.as<float>() + keptOffset(loops, i / blocks) + column;
            std::fill_n(acc, columns, first);
            Counter reduced(loops.reduced);
            do {
                float const* at = from + reduced.offset(loops.reducedStrides);
                if (join != Join::kSum || rows < 8) {
                    k.joinRows[int(join)](at, step, rows, columns, acc);
                    continue;
                }
                for (int64_t r = 0; r < rows; r += kRun) {
                    std::fill_n(run, columns, 0.f);
                    k.joinRows[int(join)](at + r * step, step, std::min(kRun, rows - r), columns, run);
                    k.joinRows[int(join)](run, 0, 1, columns, acc);
                }
            } while (reduced.next());
            float* to = y + i / blocks * n + column;
            float const count = float(loops.count);
            for (int64_t c = 0; c < columns; ++c)
                to[c] = kind == Kind::kAvg ? acc[c] / count : acc[c];
        }
    });
}

template <RowKernels const& k>
Result<void> runAxes(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Loops const loops(a, x.dims);
    if (loops.count == 0 || (a.kind == Kind::kProd && !loops.innerReduced)) // this shape's axes of one element
        return run(node, args);
    if (loops.innerReduced)
        joinInner(k, a.kind, loops, x, y.as<float>(), *args.workers);
    else
        joinOuter(k, a.kind, loops, x, y.as<float>(), *args.workers);
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kAxesAvx512{
    "reduce_f32_axes_avx512", 1, Isa::kAvx512, runAxes<avx512::kRows>, supportsAxes, onlyLinear};
constexpr VectorTactic kAxesAvx2{"reduce_f32_axes_avx2", 1, Isa::kAvx2, runAxes<avx2::kRows>, supportsAxes, onlyLinear};
constexpr VectorTactic kRowsAvx512{"reduce_f32_rows_avx512", 1, Isa::kAvx512, runRows, supportsRows, onlyLinear};
constexpr VectorTactic kRowsAvx2{"reduce_f32_rows_avx2", 1, Isa::kAvx2, runRows, supportsRows, onlyLinear};
constexpr VectorTactic kAvx512{"reduce_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc, supportsNhwc, pixelFormats};
constexpr VectorTactic kAvx2{"reduce_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc, supportsNhwc, pixelFormats};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512,     &kAvx2,     &kRowsAvx512, &kRowsAvx2,
                                              &kAxesAvx512, &kAxesAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::reduce
