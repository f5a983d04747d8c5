// SPDX-License-Identifier: Apache-2.0
// The emitted micro-kernel of sums of integers: every tile size of every way of multiplying that this CPU has, with
// random steps, row ranges, strides, types and epilogues, against plain loops, bit for bit. Operands end where a page
// begins that nobody may touch; what may not be written is looked at afterwards.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/types.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "ways.h"

namespace {

using namespace tw::kernels::jit;
using tw::DataType;
using tw::sizeOf;

std::string nameOf(Way const& w)
{
    char const* const kDots[] = {"words", "signs", "pairs", "vnni", "vnni_wide", "word_pairs"};
    return std::string(isaName(w.isa)) + "_" + kDots[int(w.factors) - int(Factors::kByteWords)];
}

// Bytes that end where a page without access begins, and begin 64-byte aligned where the size allows.
class Guarded
{
public:
    explicit Guarded(size_t bytes) : bytes_(bytes)
    {
        size_t const page = size_t(::sysconf(_SC_PAGESIZE));
        mapped_ = (bytes + page - 1) / page * page + page;
        void* const p = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            throw std::bad_alloc();
        memory_ = static_cast<uint8_t*>(p);
        ::mprotect(memory_ + mapped_ - page, page, PROT_NONE);
        data_ = memory_ + mapped_ - page - bytes;
    }
    Guarded(Guarded const&) = delete;
    Guarded& operator=(Guarded const&) = delete;
    Guarded(Guarded&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), data_(other.data_), bytes_(other.bytes_),
          mapped_(other.mapped_)
    {}
    ~Guarded()
    {
        if (memory_)
            ::munmap(memory_, mapped_);
    }
    template <class T>
    T* as()
    {
        return reinterpret_cast<T*>(data_);
    }
    size_t sizeBytes() const { return bytes_; }

private:
    uint8_t* memory_ = nullptr;
    uint8_t* data_ = nullptr;
    size_t bytes_ = 0, mapped_ = 0;
};

float readAs(DataType t, void const* p)
{
    if (t == DataType::kInt8)
        return *static_cast<int8_t const*>(p);
    if (t == DataType::kHalf) {
        uint16_t h;
        std::memcpy(&h, p, 2);
        return tw::halfToFloat(h);
    }
    float f;
    std::memcpy(&f, p, 4);
    return f;
}

void writeAs(DataType t, float x, void* p)
{
    if (t == DataType::kFloat) {
        std::memcpy(p, &x, 4);
    } else if (t == DataType::kHalf) {
        uint16_t const h = tw::floatToHalf(x);
        std::memcpy(p, &h, 2);
    } else {
        float const clamped = std::isnan(x) ? 0 : std::fmin(127.f, std::fmax(-128.f, x));
        *static_cast<int8_t*>(p) = int8_t(std::nearbyint(clamped));
    }
}

float activate(Activation const& a, float x)
{
    if (a.kind == ActivationKind::kRelu)
        return std::isnan(x) || x > 0 ? x : 0;
    if (a.kind == ActivationKind::kClip)
        return std::isnan(x) ? x : std::fmax(a.alpha, std::fmin(a.beta, x));
    if (a.kind == ActivationKind::kLeakyRelu)
        return x < 0 ? a.alpha * x : x;
    return std::tanh(x); // not bit for bit
}

struct Int8Trial
{
    Way way;
    GemmKernelSpec spec; // without its end
    IntegerEnd end;
    int pointers = 1, bodyCount = 0, tailCount = 0, columns = 0; // columns: of C, counted from the tile's first
    int lda = 0, moreC = 0, moreR = 0;                           // bytes; elements behind a row of C, of the residual
    bool extreme = false;                                        // all integers are the least ones
    bool most = false;                                           // or those of B the largest ones
    float scale = 1;                                             // of the sums, about
};

void runTrial(Int8Trial const& t, std::mt19937& rng)
{
    auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
    // Of pairs, those whose sums are the largest and the least ones.
    bool const pairs = t.way.factors == Factors::kBytePairs;
    auto integer = [&](int least, int extreme) { return int8_t(t.extreme ? extreme : pick(least, 127)); };
    auto elementOfA = [&] { return pairs ? integer(0, 127) : integer(-128, -128); };
    auto elementOfB = [&] { return integer(-128, t.most ? 127 : -128); };
    auto real = [&] { return std::uniform_real_distribution<float>(-1, 1)(rng); };
    IntegerEnd const& e = t.end;
    GemmKernelSpec s = t.spec;
    s.factors = t.way.factors;
    addEnd(s, e);
    int const width = vectorWidth(t.way.isa), panel = s.vectors * width, m = s.rows;

    // What steps read of A decides its size: its last byte is the last one before the guard.
    struct Read
    {
        int p, row, at, bytes;
    };
    struct Used // a packed row of B
    {
        int bRow;
        std::vector<Read> reads;
        int bytes;
    };
    std::vector<Used> used;
    std::vector<int> ends(size_t(t.pointers), 0);
    int bBytes = 0;
    for (int p = 0; p < t.pointers; ++p) {
        int at = 0;
        auto run = [&](StepLoop const& l, int count) {
            for (int i = 0; i < count; ++i) {
                for (Step const& step : l.steps) {
                    Used u{(bBytes + step.bBytes) / (4 * panel), {}, step.bytes};
                    for (int r = std::max(step.rowBegin, 0); r < std::min(step.rowEnd, m); ++r) {
                        u.reads.push_back({p, r, r * t.lda + at + step.aBytes, step.bytes});
                        ends[size_t(p)] = std::max(ends[size_t(p)], u.reads.back().at + step.bytes);
                    }
                    used.push_back(u);
                }
                at += l.aAdvance;
                bBytes += l.bAdvance;
            }
        };
        run(s.body, t.bodyCount);
        run(s.tail, t.tailCount);
    }
    std::vector<Guarded> a;
    std::vector<void const*> pointers;
    for (int end : ends) {
        a.emplace_back(size_t(std::max(end, 1)));
        for (size_t i = 0; i < a.back().sizeBytes(); ++i)
            a.back().as<int8_t>()[i] = int8_t(elementOfA() ^ (s.preparedA ? -128 : 0));
        pointers.push_back(a.back().as<int8_t>());
    }
    Guarded b(size_t(std::max(bBytes, 4 * panel)));
    std::memset(b.as<int8_t>(), 0, b.sizeBytes());
    for (Used const& u : used)
        for (int j = 0; j < t.columns; ++j)
            for (int i = 0; i < u.bytes; ++i)
                b.as<int8_t>()[(size_t(u.bRow) * panel + j) * 4 + i] = elementOfB();
    Guarded start(size_t(4 * panel));
    std::memset(start.as<int32_t>(), 0, start.sizeBytes());
    integerStart(t.way.factors, b.as<int8_t>(), bBytes / (4 * panel), panel, start.as<int32_t>());

    int const numberBytes = 4 / bytesOfStep(t.way.factors);
    auto wordAt = [](uint8_t const* from) { return int32_t(int16_t(from[0] | from[1] << 8)); };
    std::vector<uint32_t> sums(size_t(m) * panel, 0);
    Guarded rowStart(size_t(4 * m));
    std::memset(rowStart.as<int32_t>(), 0, rowStart.sizeBytes());
    for (Used const& u : used)
        for (Read const& r : u.reads) {
            for (int i = 0; i < r.bytes; ++i)
                rowStart.as<int32_t>()[r.row] -= std::min<int32_t>(a[size_t(r.p)].as<int8_t>()[r.at + i], 0);
        }
    for (Used const& u : used)
        for (Read const& r : u.reads)
            for (int j = 0; j < t.columns; ++j)
                for (int i = 0; i < r.bytes; i += numberBytes) {
                    uint8_t const* const x16 = a[size_t(r.p)].as<uint8_t>() + r.at + i;
                    uint8_t const* const y16 = b.as<uint8_t>() + (size_t(u.bRow) * panel + j) * 4 + i;
                    if (numberBytes == 2) {
                        sums[size_t(r.row * panel + j)] += uint32_t(wordAt(x16) * wordAt(y16));
                        continue;
                    }
                    int8_t const x = int8_t(a[size_t(r.p)].as<int8_t>()[r.at + i] ^ (s.preparedA ? -128 : 0));
                    int8_t const y = b.as<int8_t>()[(size_t(u.bRow) * panel + j) * 4 + i];
                    sums[size_t(r.row * panel + j)] += uint32_t(int32_t(x) * y);
                }

    int const stored = s.masked ? t.columns : panel; // columns of a row that are read and written
    Guarded scale(e.oneScale ? 4 : size_t(4 * stored)), bias(size_t(4 * stored));
    for (size_t j = 0; j < scale.sizeBytes() / 4; ++j)
        scale.as<float>()[j] = t.scale * real();
    for (int j = 0; j < stored; ++j)
        bias.as<float>()[j] = 40 * real();
    int const cBytes = int(sizeOf(e.store)), ldc = stored + t.moreC, ldr = stored + t.moreR;
    DataType const residualType = e.residual.value_or(DataType::kFloat);
    Guarded c(size_t((m - 1) * ldc + stored) * cBytes),
        residual(size_t((m - 1) * ldr + stored) * int(sizeOf(residualType)));
    std::memset(c.as<uint8_t>(), 0xa5, c.sizeBytes());
    for (size_t i = 0; i < residual.sizeBytes() / int(sizeOf(residualType)); ++i)
        writeAs(residualType, pick(0, 30) == 0 ? std::numeric_limits<float>::quiet_NaN() : 100 * real(),
                residual.as<uint8_t>() + i * int(sizeOf(residualType)));

    Guarded table(256);
    for (int i = 0; i < 256; ++i)
        table.as<int8_t>()[i] = int8_t(rng());
    auto kernel = GemmKernel::emit(t.way.isa, s);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    GemmArgs args;
    args.a = pointers.data();
    args.pointers = t.pointers;
    args.ldaBytes = t.lda;
    args.b = b.as<void>();
    args.start = start.as<int32_t>();
    args.rowStart = rowStart.as<int32_t>();
    args.bodyCount = t.bodyCount;
    args.tailCount = t.tailCount;
    args.c = c.as<void>();
    args.ldcBytes = int64_t(ldc) * cBytes;
    args.scale = scale.as<float>();
    args.bias = bias.as<float>();
    args.residual = residual.as<void>();
    args.ldrBytes = int64_t(ldr) * int(sizeOf(residualType));
    args.numbers.residualScale = 0.37f;
    args.numbers.outputScale = 1.7f;
    args.numbers.innerScale = 0.9f;
    args.numbers.table = table.as<int8_t>();
    args.lastColumns = t.columns - (s.vectors - 1) * width;
    (*kernel)(args);

    for (int r = 0; r < m; ++r)
        for (int j = 0; j < ldc; ++j) {
            size_t const at = size_t(r * ldc + j) * cBytes;
            if (at >= c.sizeBytes())
                break;
            uint8_t const* const got = c.as<uint8_t>() + at;
            uint8_t want[4] = {0xa5, 0xa5, 0xa5, 0xa5};
            float y = 0;
            if (j < stored) {
                y = float(int32_t(sums[size_t(r * panel + j)])) * scale.as<float>()[e.oneScale ? 0 : j];
                if (e.bias)
                    y += bias.as<float>()[j];
                if (e.innerScale) {
                    writeAs(DataType::kInt8, y, want);
                    y = float(int8_t(want[0])) * args.numbers.innerScale;
                    want[0] = 0xa5;
                }
                if (e.residual) {
                    float x =
                        readAs(residualType, residual.as<uint8_t>() + size_t(r * ldr + j) * int(sizeOf(residualType)));
                    if (residualType == DataType::kInt8)
                        x *= args.numbers.residualScale;
                    y += x;
                }
                if (e.activation)
                    y = activate(*e.activation, y);
                if (e.outputScale)
                    y *= args.numbers.outputScale;
                writeAs(e.store, y, want);
                if (e.table)
                    want[0] = uint8_t(table.as<int8_t>()[int8_t(want[0]) + 128]);
            }
            float const g = readAs(e.store, got), w = readAs(e.store, want);
            if (j < stored && e.activation && e.activation->kind == ActivationKind::kTanh) {
                if (std::isnan(w))
                    ASSERT_TRUE(std::isnan(g)) << "row " << r << " column " << j;
                else
                    ASSERT_NEAR(g, w, e.store == DataType::kInt8 ? 1 : 2e-3) << "row " << r << " column " << j;
            } else if (e.store != DataType::kInt8 && (std::isnan(w) || w == 0) && j < stored) { // payloads, zero's sign
                ASSERT_TRUE(std::isnan(w) ? std::isnan(g) : g == 0) << "row " << r << " column " << j << ": " << g;
            } else {
                ASSERT_EQ(std::memcmp(got, want, size_t(cBytes)), 0)
                    << "row " << r << " column " << j << (j < stored ? "" : " (outside)") << ": " << g << ", not " << w
                    << " of " << y;
            }
        }
}

class Int8KernelTest : public testing::TestWithParam<Way>
{};

TEST_P(Int8KernelTest, everyTile)
{
    Way const way = GetParam();
    int const width = vectorWidth(way.isa);
    uint32_t const seed = 11;
    std::mt19937 rng(seed);
    auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
    for (int vectors = 1; vectors <= 4; ++vectors)
        for (int rows = 1; rows <= gemmMaxRows(way.isa, vectors, way.factors); ++rows)
            for (int trial = 0; trial < 16; ++trial) {
                SCOPED_TRACE("seed " + std::to_string(seed) + ", " + nameOf(way) + ", tile " + std::to_string(rows) +
                             "x" + std::to_string(vectors * width) + ", trial " + std::to_string(trial));
                Int8Trial t;
                t.way = way;
                t.spec.rows = rows;
                t.spec.vectors = vectors;
                t.spec.masked = trial % 2;
                t.columns = (vectors - 1) * width + pick(1, width);
                int const rowBytes = 4 * vectors * width;
                if (trial % 4 < 2) { // a matrix product: k / 16, k / 4, the rest in one step
                    t.pointers = 1;
                    t.spec.body = contiguousLoop(way.isa, vectors, 4);
                    t.spec.tail = contiguousLoop(way.isa, vectors, 1);
                    t.bodyCount = pick(0, 5);
                    t.tailCount = pick(0, 3);
                    if (pick(0, 1) && bytesOfStep(way.factors) == 4) {
                        t.spec.tail.steps[0].bytes = pick(1, 3);
                        t.tailCount = 1;
                    }
                    t.lda = pick(0, 1) ? pick(64, 150) : 16 * t.bodyCount + 4;
                } else { // three taps of channels bytes, of which the outer ones leave out rows
                    int const channels = bytesOfStep(way.factors) == 4 ? pick(1, 11) : 4 * pick(1, 3);
                    int const steps = (channels + 3) / 4;
                    for (int tap = 0; tap < 3; ++tap)
                        for (int u = 0; u < steps; ++u)
                            t.spec.body.steps.push_back({tap * channels + 4 * u, rowBytes * (steps * tap + u),
                                                         tap == 0 ? pick(1, 2) : 0, tap == 2 ? rows - pick(1, 2) : rows,
                                                         std::min(4, channels - 4 * u)});
                    t.spec.body.aAdvance = 3 * channels;
                    t.spec.body.bAdvance = 3 * steps * rowBytes;
                    t.pointers = pick(0, 3);
                    t.bodyCount = pick(0, 2);
                    t.lda = pick(0, 1) ? channels : pick(1, 100);
                }
                t.moreC = pick(0, 1) * pick(1, 40);
                t.moreR = pick(0, 1) * pick(1, 40);
                t.extreme = trial % 8 == 7;
                t.most = trial % 16 == 15;
                t.scale = trial % 3 == 0 ? 3e-3f : trial % 3 == 1 ? 1e-4f : 1e6f; // the last: beyond 2^31
                t.spec.preparedA = offsetsBytes(way.factors) && pick(0, 2) == 0;
                constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8};
                t.end.oneScale = pick(0, 1);
                t.end.bias = pick(0, 1);
                t.end.store = kTypes[pick(0, 2)];
                if (pick(0, 1))
                    t.end.residual = kTypes[pick(0, 2)];
                Activation const kinds[] = {{ActivationKind::kRelu, 0, 0},
                                            {ActivationKind::kClip, -20, 70.5f},
                                            {ActivationKind::kLeakyRelu, 0.25f, 0},
                                            {ActivationKind::kTanh, 0, 0}};
                if (pick(0, 1))
                    t.end.activation = kinds[pick(0, 3)];
                t.end.outputScale = pick(0, 1);
                t.end.innerScale = pick(0, 2) == 0;
                // Of tanh's results, some are rounded to the other side.
                bool const isExact = !t.end.activation || t.end.activation->kind != ActivationKind::kTanh;
                if (t.end.store == DataType::kInt8 && isExact && pick(0, 2) == 0)
                    t.end.table = pick(0, 1) ? ByteTable::kBytes : byteTableOf(tw::device::probeCpu(), way.isa);
                bool const floatResidual = t.end.residual.value_or(DataType::kInt8) != DataType::kInt8;
                t.end.bounded = t.scale < 1 && !floatResidual && pick(0, 1);
                t.spec.nextLines = pick(0, 3) == 0 ? 5 : 0;
                t.spec.nextFromA = pick(0, 1);
                t.spec.prefetchC = pick(0, 1);
                runTrial(t, rng);
                if (testing::Test::HasFatalFailure())
                    return;
            }
}

TEST(Int8Kernel, refusesWhatItCannotEmit)
{
    for (Way const& way : ways()) {
        GemmKernelSpec fine;
        fine.factors = way.factors;
        EXPECT_TRUE(GemmKernel::emit(way.isa, fine).ok());
        auto refused = [&](auto const& change) {
            GemmKernelSpec spec = fine;
            change(spec);
            return !GemmKernel::emit(way.isa, spec).ok();
        };
        EXPECT_TRUE(refused([&](auto& s) { s.rows = gemmMaxRows(way.isa, 1, way.factors) + 1; }));
        EXPECT_TRUE(refused([](auto& s) { s.rows = 0; }));
        EXPECT_TRUE(refused([](auto& s) { s.vectors = 5; }));
        EXPECT_TRUE(refused([](auto& s) { s.epilogue.push_back(Activation{ActivationKind(99), 0, 0}); }));
        EXPECT_TRUE(refused([](auto& s) { s.body.steps.push_back({0, 0, 0, 1, 5}); }));
    }
}

// No CPU here may have AVX-VNNI: its code is that of kVnniWide but for the encoding of the dot products, VEX (C4, map 2,
// 66) for EVEX (62).
TEST(Int8Kernel, encodesAvxVnni)
{
    GemmKernelSpec spec;
    spec.rows = 4;
    spec.vectors = 3;
    spec.factors = Factors::kByteDots;
    spec.body = contiguousLoop(Isa::kAvx2, 3, 2);
    auto const vex = GemmKernel::emit(Isa::kAvx2, spec);
    ASSERT_TRUE(vex.ok());
    std::span<uint8_t const> const code = vex->code();
    int count = 0;
    for (size_t i = 0; i + 4 < code.size(); ++i)
        count += code[i] == 0xc4 && (code[i + 1] & 31) == 2 && (code[i + 2] & 0x87) == 5 && code[i + 3] == 0x50;
    EXPECT_EQ(count, 4 * 3 * 2);
}

std::vector<Way> allWays()
{
    std::vector<Way> list = ways();
    for (Isa isa : isas())
        list.push_back({isa, Factors::kWordPairs});
    return list;
}

INSTANTIATE_TEST_SUITE_P(Ways, Int8KernelTest, testing::ValuesIn(allWays()),
                         [](auto const& info) { return nameOf(info.param); });

} // namespace
