// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/element.h"
#include "ops/reduce/op.h"
#include "ops/vector_tactic.h"

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

template <class Op, class T>
void reduceWith(Loops const& loops, T const* x, T* y, int64_t outputs)
{
    using Acc = typename Op::Acc;
    constexpr int64_t kBlock = 256; // columns that are reduced together
    if (outputs == 0)
        return;
    bool const nothing = loops.count == 0;
    Counter kept(loops.kept);
    do {
        T const* from = x + kept.offset(loops.keptStrides);
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
    } while (kept.next());
}

template <class T>
void reduceAs(Attrs const& a, TensorRef const& x, TensorRef const& y)
{
    Loops const loops(a, x.dims);
    int64_t const outputs = y.count();
    switch (a.kind) {
    case Kind::kSum:
        return reduceWith<Sum<T>>(loops, x.as<T>(), y.as<T>(), outputs);
    case Kind::kProd:
        return reduceWith<Product<T>>(loops, x.as<T>(), y.as<T>(), outputs);
    case Kind::kMax:
        return reduceWith<Extreme<T, 1>>(loops, x.as<T>(), y.as<T>(), outputs);
    case Kind::kMin:
        return reduceWith<Extreme<T, -1>>(loops, x.as<T>(), y.as<T>(), outputs);
    case Kind::kAvg:
        return reduceWith<Average<T>>(loops, x.as<T>(), y.as<T>(), outputs);
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (x.type == DataType::kFloat)
        reduceAs<float>(a, x, y);
    else if (x.type == DataType::kHalf)
        reduceAs<uint16_t>(a, x, y);
    else if (x.type == DataType::kInt8)
        reduceAs<int8_t>(a, x, y);
    else
        reduceAs<int32_t>(a, x, y);
    return {};
}

constexpr PlainTactic kPlain{"reduce_plain", 1, run};

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
    constexpr int64_t kPiece = 4096;
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

Support supportsPixels(Problem const& p)
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

Result<void> runPixels(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
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

using kernels::jit::Isa;
constexpr VectorTactic kRowsAvx512{"reduce_f32_rows_avx512", 1, Isa::kAvx512, runRows, supportsRows, onlyLinear};
constexpr VectorTactic kRowsAvx2{"reduce_f32_rows_avx2", 1, Isa::kAvx2, runRows, supportsRows, onlyLinear};
constexpr VectorTactic kAvx512{"reduce_f32_pixels_avx512", 1, Isa::kAvx512, runPixels, supportsPixels, pixelFormats};
constexpr VectorTactic kAvx2{"reduce_f32_pixels_avx2", 1, Isa::kAvx2, runPixels, supportsPixels, pixelFormats};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kRowsAvx512, &kRowsAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::reduce
