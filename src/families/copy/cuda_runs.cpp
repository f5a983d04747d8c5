// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_runs.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace {

constexpr size_t kMostSources = 8;
constexpr int64_t kPack = 16;
constexpr int64_t kLeastRow = 32, kMostRow = 1024; // bytes: below all are ends, above words of one row are what counts
constexpr int64_t kLeastRows = 4096;               // fewer are too few for all the blocks
constexpr int64_t kBarrierBytes = 128;             // in front of the rest
constexpr int64_t kLine = 128, kMostUnrolled = 64;

struct Params
{
    void const* x[kMostSources] = {};
    void const* fill = nullptr;
    void* y = nullptr;
};

constexpr char const* kText = R"(
struct Params { void const* x[8]; void const* fill; void* y; };
// In bytes but for column and length; at: place of the run in shared memory.
$sources$extern __shared__ unit16 shared[];
TW_INLINE void barrierInit(u32 at)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
}
TW_INLINE void barrierExpect(u32 at, u32 bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
TW_INLINE void barrierArrive(u32 at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
TW_INLINE void barrierWait(u32 at)
{
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(at) : "memory");
    } while (!done);
}
TW_INLINE void bring(u32 to, char const* from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                 "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}
TW_INLINE void takeAway(char* to, u32 from, u32 bytes) // and waits until it is read
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::"l"(__cvta_generic_to_global(to)), "r"(from), "r"(bytes) : "memory");
}
TW_INLINE u32 elementAt(u32 at)
{
    u32 v;
    if constexpr (kSize == 1) asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(at));
    else if constexpr (kSize == 4) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
    else asm volatile("{\n.reg .u16 h;\nld.shared.u16 h, [%1];\ncvt.u32.u16 %0, h;\n}" : "=r"(v) : "r"(at));
    return v;
}
TW_INLINE void put(u32 at, u32 v)
{
    if constexpr (kSize == 1) asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(v));
    else if constexpr (kSize == 4) asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v));
    else asm volatile("{\n.reg .u16 h;\ncvt.u16.u32 h, %1;\nst.shared.u16 [%0], h;\n}" ::"r"(at), "r"(v));
}
TW_INLINE u32 globalAt(void const* x)
{
    if constexpr (kSize == 1) return *static_cast<u8 const*>(x);
    else if constexpr (kSize == 4) return *static_cast<u32 const*>(x);
    else return *static_cast<unsigned short const*>(x);
}
TW_INLINE void putGlobal(void* y, u32 v)
{
    if constexpr (kSize == 1) *static_cast<u8*>(y) = u8(v);
    else if constexpr (kSize == 4) *static_cast<u32*>(y) = v;
    else *static_cast<unsigned short*>(y) = (unsigned short)v;
}
// Bytes of x that rows of a chunk come from.
struct Run { i64 begin, end; };
// Where the first row begins, from y's row `row` on, that is no border.
template <class S> TW_INLINE i64 placeOf(u32 row)
{
    i32 plane = i32(row / kLines), line = i32(row - plane * kLines) - kLow;
    if (line < 0) line = 0;
    if (line >= kHigh - kLow) line = 0, ++plane;
    return S::first + plane * S::planeStep + line * S::lineStep;
}
template <class S> TW_INLINE Run runOf(u32 chunk)
{
    u32 const a = chunk * kRows, last = (a + kRows < kAllRows ? a + kRows : kAllRows) - 1;
    if constexpr (kIsFlat) return {S::first + i64(a) * S::lineStep, S::first + i64(last) * S::lineStep + S::length * kSize};
    i32 to = i32(last / kLines), end = i32(last - to * kLines) - kLow;
    if (end >= kHigh - kLow) end = kHigh - kLow - 1;
    if (end < 0) end = kHigh - kLow - 1, --to;
    Run const run = {placeOf<S>(a), S::first + to * S::planeStep + end * S::lineStep + S::length * kSize};
    return run.begin < run.end ? run : Run{0, 0}; // nothing but border
}
// Begins to bring what the copy engine can, which is not the last word of x where that is not whole.
template <int K, class S> TW_INLINE void ask(Params const& p, u32 chunk, u32 in, u32 barrier)
{
    constexpr i64 kWhole = S::bytes & -16;
    Run const run = runOf<S>(chunk);
    i64 const begin = run.begin & -16, up = (run.end + 15) & -16, end = up < kWhole ? up : kWhole;
    if (begin >= end) return;
    barrierExpect(barrier, u32(end - begin));
    bring(in + S::at, static_cast<char const*>(p.x[K]) + begin, u32(end - begin), barrier);
}
// Elements behind the last whole word of x, by a warp, where the chunk has them.
template <int K, class S> TW_INLINE void bringTail(Params const& p, u32 chunk, u32 in, u32 lane)
{
    constexpr i64 kWhole = S::bytes & -16;
    if constexpr (S::bytes != kWhole) {
        Run const run = runOf<S>(chunk);
        i64 const at = kWhole + lane * kSize;
        if (run.end > kWhole && at < S::bytes)
            put(in + S::at + u32(at - (run.begin & -16)), globalAt(static_cast<char const*>(p.x[K]) + at));
    }
}
// A piece of each row, all at places known now. Each warp has kOwnRows, one behind the other.
template <class S> TW_INLINE void placePieces(u32 in, u32 out, u32 warp, u32 lane)
{
    u32 const from = in + S::at + S::first % 16 + warp * (kOwnRows * S::lineStep) + lane * kSize,
              to = out + warp * (kOwnRows * kColumns * kSize) + (S::column + lane) * kSize;
#pragma unroll $rows$
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int j = 0; j < S::length; j += 32)
            if (j + 32 <= S::length || lane < S::length - j)
                put(to + (r * kColumns + j) * kSize, elementAt(from + r * u32(S::lineStep) + j * kSize));
}
// The same with borders, or planes apart from each other.
template <class S> TW_INLINE void placeRows(u32 chunk, u32 in, u32 out, u32 warp, u32 lane, u32 fill)
{
    u32 const row = chunk * kRows + warp * kOwnRows;
    i64 const begin = runOf<S>(chunk).begin & -16; // 0 where all is border
    u32 from = in + S::at + u32(placeOf<S>(row) - begin) + (lane - S::column) * kSize,
        to = out + warp * (kOwnRows * kColumns * kSize) + lane * kSize, line = row % kLines;
    u32 rows = kOwnRows;
    if constexpr (kAllRows % kRows != 0) { // behind the last row of y would be places that nothing was brought to
        u32 const left = row < kAllRows ? kAllRows - row : 0;
        rows = rows < left ? rows : left;
    }
#pragma unroll 2
    for (u32 r = 0; r < rows; ++r) {
        if (line - kLow < u32(kHigh - kLow)) {
#pragma unroll
            for (int j = 0; j < kColumns; j += 32) {
                u32 v = fill;
                if (j + lane - S::column < S::length) v = elementAt(from + j * kSize);
                if (j + 32 <= kColumns || lane < kColumns - j) put(to + j * kSize, v);
            }
            from += u32(S::lineStep);
        } else {
#pragma unroll
            for (int j = 0; j < kColumns; j += 32)
                if (j + 32 <= kColumns || lane < kColumns - j) put(to + j * kSize, fill);
        }
        to += kColumns * kSize;
        ++line;
        if (line == kHigh) from += u32(S::planeStep - (kHigh - kLow) * S::lineStep);
        if (line == kLines) line = 0;
    }
}
TW_KERNEL __launch_bounds__(kWarps * 32) move_runs(const __grid_constant__ Params p)
{
    u32 const lane = threadIdx.x & 31, warp = threadIdx.x >> 5, chunk = blockIdx.x,
              barrier = u32(__cvta_generic_to_shared(shared)), in = barrier + kBarrierBytes, out = in + kIn;
    if (threadIdx.x == 0) {
        barrierInit(barrier);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    waitForPrevious();
    releaseDependents();
    if (threadIdx.x == 0) {
        $asks$barrierArrive(barrier);
    }
    u32 const fill = p.fill ? globalAt(p.fill) : 0;
    if (warp == 0) { $tails$ }
    __syncthreads(); // the barrier is there for all
    barrierWait(barrier);
    $places$asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u32 const bytes = chunk + 1 < kChunks ? kOut : kLastBytes;
    char* const y = static_cast<char*>(p.y) + i64(chunk) * kOut;
    if (warp == 0 && bytes % 16 != 0) {
        u32 const at = (bytes & -16) + lane * kSize;
        if (at < bytes) putGlobal(y + at, elementAt(out + at));
    }
    if (threadIdx.x == 0 && bytes >= 16) takeAway(y, out, bytes & -16);
}
)";

bool isFlat(Runs const& r)
{
    int64_t covered = 0;
    for (RunSource const& s : r.sources)
        covered += s.length;
    return r.lines == r.rows && r.low == 0 && r.high == r.lines && covered == r.columns;
}

// What a block does: rows of about so many bytes of y.
struct Way
{
    int64_t bytes;
    int warps;
};
constexpr Way kWays[] = {{8192, 8}, {4096, 4}, {16384, 16}};

Way const& wayOf(Config const& config)
{
    return kWays[isConfig(config, 1, 0, std::size(kWays) - 1) ? size_t(config[0]) : 0];
}

struct Shape
{
    int64_t rows = 0, in = 0, out = 0; // rows of y; bytes of shared memory
    std::vector<int64_t> at;           // of sources there
    int64_t sharedBytes() const { return kBarrierBytes + in + out; }
};

Shape shapeOf(Runs const& r, Way const& way)
{
    int64_t const size = r.elementBytes, row = r.columns * size;
    int64_t unit = std::max<int64_t>(kPack / std::gcd(kPack, row), way.warps); // powers of 2
    for (RunSource const& s : r.sources)
        unit = std::max(unit, kPack / std::gcd(kPack, s.lineStep * size));
    int64_t const whole = std::max(unit, kLine / std::gcd(kLine, row)); // and y's chunks are whole lines
    if (whole * row <= way.bytes * 3 / 2)
        unit = whole;
    Shape shape;
    shape.rows = unit * std::max<int64_t>(1, (way.bytes + unit * row / 2) / (unit * row));
    shape.out = shape.rows * row;
    for (RunSource const& s : r.sources) {
        int64_t const planes = (shape.rows + r.lines - 2) / r.lines,
                      apart = std::max<int64_t>(0, s.planeStep - r.lines * s.lineStep),
                      length = (shape.rows - 1) * s.lineStep + planes * apart + s.length;
        shape.at.push_back(shape.in);
        shape.in += roundUp(roundUp(length * size, kPack) + kPack, kLine);
    }
    return shape;
}

} // namespace

Runs runsOf(Box const& whole, int64_t xCount, int64_t first)
{
    Box const b = simplified(whole);
    Runs r;
    int const rank = b.dims.rank, last = rank - 1;
    bool const bordered = b.low.rank > 0;
    r.fits = rank >= 2 && rank <= 3 && b.dims.volume() > 0 && b.from[last] == 1 && b.elementBytes <= 4;
    int64_t dense = 1;
    for (int d = last; d >= 0; --d) {
        r.fits = r.fits && b.to[d] == dense;
        dense *= b.dims[d];
    }
    if (!r.fits)
        return r;
    auto low = [&](int d) { return bordered ? b.low[d] : 0; };
    auto high = [&](int d) { return bordered ? b.high[d] : b.dims[d]; };
    r.elementBytes = b.elementBytes;
    r.columns = b.dims[last];
    r.lines = b.dims[last - 1];
    r.rows = b.dims.volume() / r.columns;
    r.low = low(last - 1);
    r.high = high(last - 1);
    RunSource s;
    s.count = xCount;
    s.first = first;
    s.lineStep = b.from[last - 1];
    s.planeStep = rank == 3 ? b.from[0] : r.lines * s.lineStep;
    s.column = low(last);
    s.length = high(last) - low(last);
    int64_t const real = r.high - r.low, planes = r.rows / r.lines,
                  span = (planes - 1) * s.planeStep + (real - 1) * s.lineStep + s.length;
    // Runs go forward, and most of them is used.
    r.fits = real > 0 && s.length > 0 && s.lineStep >= s.length && (rank < 3 || (low(0) == 0 && high(0) == planes)) &&
             s.planeStep >= (real - 1) * s.lineStep + s.length && first >= 0 && first + span <= xCount &&
             span / 4 <= planes * real * s.length / 3;
    r.sources.push_back(s);
    return r;
}

Support supportsRuns(Problem const& p, Runs const& runs)
{
    if (!p.cuda || p.cuda->capability < 90)
        return Support::no("runs on GPUs of capability 9.0 and up");
    int64_t const row = runs.columns * runs.elementBytes;
    if (!runs.fits || runs.sources.empty() || runs.sources.size() > kMostSources)
        return Support::no("takes rows of y from runs of memory, of elements of up to 4 bytes");
    if (row < kLeastRow || row > kMostRow || runs.rows < kLeastRows || runs.rows > INT32_MAX)
        return Support::no("is for " + std::to_string(kLeastRows) + " rows and more, of " + std::to_string(kLeastRow) +
                           " to " + std::to_string(kMostRow) + " bytes");
    bool aligned = row % kPack == 0;
    for (RunSource const& s : runs.sources)
        aligned = aligned && s.lineStep * runs.elementBytes % kPack == 0 && s.first * runs.elementBytes % kPack == 0 &&
                  s.column * runs.elementBytes % kPack == 0;
    if (aligned)
        return Support::no("is for rows off 16-byte boundaries");
    if (configsOfRuns(runs).empty())
        return Support::no("has too little shared memory for such rows");
    return Support::yes();
}

std::vector<Config> configsOfRuns(Runs const& runs)
{
    std::vector<Config> list;
    for (int64_t i = 0; i < int64_t(std::size(kWays)); ++i)
        if (shapeOf(runs, kWays[i]).sharedBytes() <= cuda::kSharedLimit)
            list.push_back({i});
    return list;
}

CudaKernels runsKernels(Runs const& r, Config const& config, int fillInput)
{
    int64_t const size = r.elementBytes;
    Way const way = wayOf(config);
    Shape const shape = shapeOf(r, way);
    int64_t const chunks = cuda::ceilDiv(r.rows, shape.rows);
    bool const flat = isFlat(r);
    CudaKernels out;
    out.isDependent = true;
    out.alignment = kPack;
    out.names = {"move_runs"};
    out.sharedBytes = shape.sharedBytes();
    std::string sources =
        cuda::constant("kSize", size) + cuda::constant("kRows", shape.rows) + cuda::constant("kColumns", r.columns) +
        cuda::constant("kIn", shape.in) + cuda::constant("kOut", shape.out) + cuda::constant("kWarps", way.warps) +
        cuda::constant("kOwnRows", shape.rows / way.warps) + cuda::constant("kBarrierBytes", kBarrierBytes) +
        cuda::flag("kIsFlat", flat) + cuda::constant("kLow", r.low) + cuda::constant("kHigh", r.high) +
        "constexpr u32 kLines = " + std::to_string(r.lines) + ", kAllRows = " + std::to_string(r.rows) +
        ", kChunks = " + std::to_string(chunks) +
        ", kLastBytes = " + std::to_string((r.rows - (chunks - 1) * shape.rows) * r.columns * size) + ";\n";
    std::string asks, tails, places;
    int64_t pieces = 0; // that a warp moves of a row
    for (size_t k = 0; k < r.sources.size(); ++k) {
        RunSource const& s = r.sources[k];
        pieces += cuda::ceilDiv(s.length, 32);
        std::string const n = std::to_string(k), name = "Source" + n;
        sources += "struct " + name + " { static constexpr i64 bytes = " + std::to_string(s.count * size) +
                   ", first = " + std::to_string(s.first * size) +
                   ", planeStep = " + std::to_string(s.planeStep * size) +
                   ", lineStep = " + std::to_string(s.lineStep * size) +
                   "; static constexpr u32 column = " + std::to_string(s.column) +
                   ", length = " + std::to_string(s.length) + ", at = " + std::to_string(shape.at[k]) + "; };\n";
        std::string const of = "<" + n + ", " + name + ">(p, chunk, in, ";
        asks += "ask" + of + "barrier);\n        ";
        tails += "bringTail" + of + "lane); ";
        places += flat ? "placePieces<" + name + ">(in, out, warp, lane);\n    "
                       : "placeRows<" + name + ">(chunk, in, out, warp, lane, fill);\n    ";
    }
    out.source = cuda::expand(kText, {{"sources", sources},
                                      {"asks", asks},
                                      {"tails", tails},
                                      {"places", places},
                                      {"rows", std::to_string(std::max<int64_t>(1, kMostUnrolled / pieces))}}) +
                 cuda::sizeCheck<Params>();
    out.run = [=, list = r.sources, shared = out.sharedBytes](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params p;
        for (size_t k = 0; k < list.size(); ++k)
            p.x[k] = args.inputs[size_t(list[k].input)].data;
        if (fillInput >= 0 && fillInput < int(args.inputs.size()))
            p.fill = args.inputs[size_t(fillInput)].data;
        p.y = args.outputs[0].data;
        return launch(0, chunks, way.warps * 32, p, shared);
    };
    return out;
}

} // namespace tw::ops
