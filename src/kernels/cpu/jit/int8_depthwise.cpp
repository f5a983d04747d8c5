// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/int8_depthwise.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/cpu/jit/byte_code.h"
#include "kernels/cpu/jit/depthwise_runs.h"
#include "kernels/cpu/jit/vector_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;

constexpr int kMagnitude = 5; // from a quad's bytes to their magnitudes
constexpr int kQuad = 4;      // bytes of a dot product; vectors of a block
constexpr int kBeside =
    9; // registers beside the sums: a quad, four to make it of, and what bytes are offset with, or ones
constexpr uint32_t kOnes = 0x00010001; // words

int quadsOf(int rows)
{
    return int(divideUp(rows, kQuad));
}
// Vectors of packed filters for each vector of sums: words take two.
int perVector(Factors factors)
{
    return factors == Factors::kByteWords ? 2 : 1;
}

// Outputs of the widest tile.
int tileWidth(Isa isa)
{
    return ((isa == Isa::kAvx512 ? 32 : 16) - std::max(kBeside, kMathTemps)) / kQuad;
}

using Run = DepthwiseRun;

std::vector<Run> runsOf(Isa isa, Int8DepthwiseSpec const& s)
{
    return depthwiseRuns(std::max(tileWidth(isa), 1), s);
}

class Int8DepthwiseEmitter
{
public:
    Int8DepthwiseEmitter(VectorCode& code, Factors factors, Int8DepthwiseSpec const& spec)
        : c(code), factors_(factors), s(spec)
    {}

    void emit()
    {
        load(rows_, offsetof(Int8DepthwiseArgs, x));
        load(weights_, offsetof(Int8DepthwiseArgs, w));
        load(scale_, offsetof(Int8DepthwiseArgs, scale));
        for (Run const& run : runsOf(c.isa(), s)) {
            c.mov(column_, uint64_t((run.first * s.stride - s.before) * s.xPixelBytes));
            load(y_, offsetof(Int8DepthwiseArgs, y));
            advance(y_, run.first * s.yPixelBytes);
            if (s.end.residual) {
                load(residual_, offsetof(Int8DepthwiseArgs, residual));
                advance(residual_, run.first * s.residualPixelBytes);
            }
            emitRun(
                c, run, tiles_, [&] { tile(run); },
                [&] {
                    advance(column_, run.width * s.stride * s.xPixelBytes);
                    advance(y_, run.width * s.yPixelBytes);
                    if (s.end.residual)
                        advance(residual_, run.width * s.residualPixelBytes);
                });
        }
        c.vzeroupper();
        c.ret();
    }

private:
    VectorCode& c;
    Factors const factors_;
    Int8DepthwiseSpec const& s;
    Reg64 const args_ = Xbyak::util::rdi, rows_ = Xbyak::util::rsi, y_ = Xbyak::util::rdx, residual_ = Xbyak::util::rcx,
                tiles_ = Xbyak::util::r8, column_ = Xbyak::util::r9, scale_ = Xbyak::util::r10,
                weights_ = Xbyak::util::r11, row_ = Xbyak::util::rax;

    void load(Reg64 const& r, size_t offset) { c.mov(r, c.ptr[args_ + int(offset)]); }
    void advance(Reg64 const& r, int64_t bytes)
    {
        if (bytes != 0)
            c.add(r, int(bytes));
    }
    // Of the block's size.
    int width() const { return s.lanes / kQuad; }
    int vectorBytes() const { return s.lanes; }
    Vec vec(int i) const { return Vec(vectorBytes() == 64 ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, i); }
    int acc(int output, int q) const { return output * kQuad + q; }
    bool hasVnni() const { return offsetsBytes(factors_); }
    Xbyak::Address number(size_t offset) { return c.ptr[args_ + int(offsetof(Int8DepthwiseArgs, numbers) + offset)]; }
    Xbyak::Address vectorAt(Reg64 const& base, int i) { return c.ptr[base + i * vectorBytes()]; }

    void tile(Run const& run)
    {
        int const quad = run.width * kQuad, offset = quad + kBeside - 1;
        if (hasVnni())
            emitBytes(c, vec(offset), -128, row_);
        if (factors_ == Factors::kBytePairs) {
            c.mov(row_.cvt32(), kOnes);
            c.vmovd(Xbyak::Xmm(offset), row_.cvt32());
            c.vpbroadcastd(vec(offset), Xbyak::Xmm(offset));
        }
        load(row_, offsetof(Int8DepthwiseArgs, start));
        for (int q = 0; q < kQuad; ++q) {
            c.vmovups(vec(acc(0, q)), vectorAt(row_, q));
            for (int i = 1; i < run.width; ++i)
                c.vmovaps(vec(acc(i, q)), vec(acc(0, q)));
        }
        int64_t const left = run.first * s.stride - s.before; // column of the tile's first tap
        for (int64_t j = 0; j <= (run.width - 1) * s.stride + (s.taps - 1) * s.dilation; ++j) {
            bool const exists = run.inside || (left + j >= 0 && left + j < s.inWidth);
            if (!exists && !hasVnni())
                continue;
            std::vector<ColumnUse> const uses = usesOf(s, run.width, j);
            if (uses.empty())
                continue;
            for (int r = 0; r < quadsOf(s.rows); ++r) {
                if (exists)
                    interleave(quad, offset, r * kQuad, j);
                for (ColumnUse const& u : uses)
                    for (int q = 0; q < kQuad; ++q)
                        dot(acc(u.output, q), exists ? quad + q : offset, quad + kQuad,
                            ((u.tap * quadsOf(s.rows) + r) * kQuad + q) * perVector(factors_));
            }
        }
        if (s.prefetch)
            fetchNext(run.width);
        end(run.width);
    }

    void fetchNext(int outputs)
    {
        load(row_, offsetof(Int8DepthwiseArgs, next));
        c.add(row_, column_);
        for (int64_t r = 0; r < s.stride; ++r) {
            for (int64_t j = 0; j < outputs * s.stride; ++j)
                c.prefetcht1(c.ptr[row_ + int(j * s.xPixelBytes)]);
            c.add(row_, c.ptr[args_ + int(offsetof(Int8DepthwiseArgs, xRowBytes))]);
        }
        for (int i = 0; i < outputs; ++i)
            for (int at = 0; at < s.channels * int(sizeOf(s.end.store)); at += 64)
                c.prefetchw(c.ptr[y_ + int((outputs + i) * s.yPixelBytes + at)]);
    }

    // Column j of rows from `first` on to registers quad .. quad + 3.
    void interleave(int quad, int offset, int first, int64_t j)
    {
        int const temp = quad + kQuad, count = std::min(s.rows - first, kQuad);
        auto v = [&](int i) { return vec(i); };
        auto read = [&](int to, int row) {
            c.mov(row_, c.ptr[rows_ + row * int(sizeof(void*))]);
            Xbyak::Address const from = c.ptr[row_ + column_ + int(j * s.xPixelBytes)];
            if (!hasVnni())
                c.vmovups(v(to), from);
            else
                c.avx512() ? c.vpxord(v(to), v(offset), from) : c.vpxor(v(to), v(offset), from);
        };
        // What stands for rows that are not there is multiplied by zeros.
        read(temp, first);
        if (count > 1)
            read(temp + 1, first + 1);
        int const second = count > 1 ? temp + 1 : temp;
        c.vpunpcklbw(v(quad), v(temp), v(second));
        c.vpunpckhbw(v(quad + 2), v(temp), v(second));
        int low = quad, high = quad + 2;
        if (count > 2) {
            read(temp, first + 2);
            if (count > 3)
                read(temp + 1, first + 3);
            int const fourth = count > 3 ? temp + 1 : temp;
            low = temp + 2;
            high = temp + 3;
            c.vpunpcklbw(v(low), v(temp), v(fourth));
            c.vpunpckhbw(v(high), v(temp), v(fourth));
        }
        c.vpunpckhwd(v(quad + 1), v(quad), v(low));
        c.vpunpcklwd(v(quad), v(quad), v(low));
        c.vpunpckhwd(v(quad + 3), v(quad + 2), v(high));
        c.vpunpcklwd(v(quad + 2), v(quad + 2), v(high));
        for (int q = 0; factors_ == Factors::kByteSigns && q < kQuad; ++q)
            c.vpabsb(v(quad + q + kMagnitude), v(quad + q));
    }

    // sum += the dot products of `bytes` with vector `w` of the packed filters.
    void dot(int sum, int bytes, int temp, int w)
    {
        if (hasVnni()) {
            bool const vex = !c.avx512() && factors_ == Factors::kByteDots;
            c.vpdpbusd(vec(sum), vec(bytes), vectorAt(weights_, w), vex ? Xbyak::VexEncoding : Xbyak::EvexEncoding);
            return;
        }
        if (isBytePairs(factors_))
            return dotPairs(sum, bytes, temp, vectorAt(weights_, w));
        c.vpsllw(vec(temp), vec(bytes), 8); // bytes 0 and 2 as words
        c.vpsraw(vec(temp), vec(temp), 8);
        c.vpmaddwd(vec(temp), vec(temp), vectorAt(weights_, w));
        c.vpaddd(vec(sum), vec(sum), vec(temp));
        c.vpsraw(vec(temp), vec(bytes), 8); // bytes 1 and 3
        c.vpmaddwd(vec(temp), vec(temp), vectorAt(weights_, w + 1));
        c.vpaddd(vec(sum), vec(sum), vec(temp));
    }

    // As GemmEmitter::pairs() does it, but with -w for w, which is above -128.
    void dotPairs(int sum, int bytes, int temp, Xbyak::Address const& w)
    {
        Vec const t = vec(temp);
        if (factors_ == Factors::kByteSigns) {
            c.vmovups(t, w);
            c.vpsignb(t, t, vec(bytes));
            c.vpmaddubsw(t, vec(bytes + kMagnitude), t);
            c.vpmaddwd(t, t, c.constantBits(kOnes));
        } else {
            c.vpmaddubsw(t, vec(bytes), w);
            c.vpmaddwd(t, t, vec(temp + kBeside - 1 - kQuad)); // ones
        }
        c.vpaddd(vec(sum), vec(sum), t);
    }

    void end(int outputs)
    {
        IntegerEnd const& e = s.end;
        int const sums = outputs * kQuad, temp = sums;
        auto each = [&](auto f) {
            for (int i = 0; i < sums; ++i)
                f(vec(i), i);
        };
        each([&](Vec const& x, int) { c.vcvtdq2ps(x, x); });
        each([&](Vec const& x, int i) { c.vmulps(x, x, vectorAt(scale_, i % kQuad)); });
        if (e.bias) {
            load(row_, offsetof(Int8DepthwiseArgs, bias));
            each([&](Vec const& x, int i) { c.vaddps(x, x, vectorAt(row_, i % kQuad)); });
        }
        if (e.innerScale) {
            int const least = temp, most = temp + 1, factor = temp + 3;
            c.loadConstant(least, -128.F);
            c.loadConstant(most, 127.F);
            c.vbroadcastss(vec(factor), number(offsetof(IntegerNumbers, innerScale)));
            each([&](Vec const& x, int i) {
                emitRoundToByte(c, i, least, most, temp + 2);
                c.vmulps(x, x, vec(factor));
            });
        }
        if (e.residual)
            addResidual(outputs, temp);
        if (e.activation && !e.clipsBytes())
            emitEach(c, *e.activation, sums, temp);
        if (e.outputScale) {
            c.vbroadcastss(vec(temp), number(offsetof(IntegerNumbers, outputScale)));
            each([&](Vec const& x, int) { c.vmulps(x, x, vec(temp)); });
        }
        if (isQuantized(e.store))
            return storeBytes(outputs, temp);
        for (int i = 0; i < outputs; ++i)
            for (int q = 0; q < kQuad; ++q)
                storePieces(i, q, temp);
    }

    // Bytes are interleaved with themselves, as those of x are, and shifted to their place with their sign.
    void addResidual(int outputs, int temp)
    {
        int const bytes = temp, words = temp + 1, value = temp + 2, factor = temp + 3;
        c.vbroadcastss(vec(factor), number(offsetof(IntegerNumbers, residualScale)));
        for (int i = 0; i < outputs; ++i) {
            c.vmovups(vec(bytes), c.ptr[residual_ + int(i * s.residualPixelBytes)]);
            for (int q = 0; q < kQuad; ++q) {
                if (q == 0)
                    c.vpunpcklbw(vec(words), vec(bytes), vec(bytes));
                if (q == 2)
                    c.vpunpckhbw(vec(words), vec(bytes), vec(bytes));
                if (q % 2 == 0)
                    c.vpunpcklwd(vec(value), vec(words), vec(words));
                else
                    c.vpunpckhwd(vec(value), vec(words), vec(words));
                c.vpsrad(vec(value), vec(value), 24);
                c.vcvtdq2ps(vec(value), vec(value));
                c.vmulps(vec(value), vec(value), vec(factor));
                c.vaddps(vec(acc(i, q)), vec(acc(i, q)), vec(value));
            }
        }
    }

    // As GemmEndCode does it; packs undo what interleaving did.
    void storeBytes(int outputs, int temp)
    {
        if (!s.end.bounded)
            c.loadConstant(temp, 127.F);
        for (int i = 0; i < outputs; ++i) {
            for (int q = 0; q < kQuad; ++q)
                emitToIntegers(c, vec(acc(i, q)), s.end.bounded, vec(temp), vec(temp + 1));
            Vec const y = vec(acc(i, 0));
            c.vpackssdw(y, y, vec(acc(i, 1)));
            c.vpackssdw(vec(acc(i, 2)), vec(acc(i, 2)), vec(acc(i, 3)));
            c.vpacksswb(y, y, vec(acc(i, 2)));
        }
        if (s.end.clipsBytes()) {
            Activation const& a = *s.end.activation;
            bool const clip = a.kind == ActivationKind::kClip;
            emitBytes(c, vec(temp), clip ? a.alpha : 0, row_);
            if (clip)
                emitBytes(c, vec(temp + 1), a.beta, row_);
            for (int i = 0; i < outputs; ++i) {
                Vec const y = vec(acc(i, 0));
                if (clip)
                    c.vpminsb(y, y, vec(temp + 1));
                c.vpmaxsb(y, y, vec(temp));
            }
        }
        if (s.end.table == ByteTable::kPermutes) {
            load(row_, offsetof(Int8DepthwiseArgs, numbers) + offsetof(IntegerNumbers, table));
            for (int i = 0; i < outputs; ++i)
                emitByteTable(c, acc(i, 0), temp, row_);
        }
        for (int i = 0; i < outputs; ++i)
            c.vmovups(c.ptr[y_ + int(i * s.yPixelBytes)], vec(acc(i, 0)));
        if (s.end.table == ByteTable::kBytes) {
            load(rows_, offsetof(Int8DepthwiseArgs, numbers) + offsetof(IntegerNumbers, table));
            for (int i = 0; i < outputs; ++i)
                for (int channel = 0; channel < s.lanes; ++channel)
                    emitByteTable(c, y_ + int(i * s.yPixelBytes + channel), rows_);
            load(rows_, offsetof(Int8DepthwiseArgs, x));
        }
    }

    // Four channels at a time to floats and halves.
    void storePieces(int i, int q, int temp)
    {
        using namespace Xbyak;
        int const from = acc(i, q), bytes = int(sizeOf(s.end.store));
        for (int piece = 0; piece * 4 < width(); ++piece) {
            int const channel = int8DepthwiseChannel(q, 4 * piece);
            if (channel >= s.channels)
                continue;
            Address const to = c.ptr[y_ + int(i * s.yPixelBytes + channel * bytes)];
            if (piece > 0)
                c.avx512() ? width() == 16 ? c.vextractf32x4(Xmm(temp), Zmm(from), uint8_t(piece))
                                           : c.vextractf32x4(Xmm(temp), Ymm(from), uint8_t(piece))
                           : c.vextractf128(Xmm(temp), Ymm(from), uint8_t(piece));
            Xmm const four(piece > 0 ? temp : from);
            isFullFloat(s.end.store) ? c.vmovups(to, four) : c.vcvtps2ph(to, four, 0);
        }
    }
};

} // namespace

int64_t int8DepthwiseWeightBytes(int lanes, Factors factors, int rows, int taps)
{
    return int64_t(taps) * quadsOf(rows) * kQuad * perVector(factors) * lanes;
}

void int8DepthwisePack(int lanes, Factors factors, int rows, int taps, int channel, int8_t const* w, void* packed,
                       int32_t* start)
{
    int const width = lanes / kQuad, q = channel % 16 / 4, lane = channel / 16 * 4 + channel % 4;
    int32_t sum = 0;
    for (int s = 0; s < taps; ++s)
        for (int r = 0; r < rows; ++r) {
            int8_t const v = w[r * taps + s];
            int64_t const vector = (s * quadsOf(rows) + r / kQuad) * kQuad + q;
            sum += v;
            if (factors != Factors::kByteWords)
                static_cast<int8_t*>(packed)[(vector * width + lane) * kQuad + r % kQuad] = v;
            else // words of bytes 0 and 2, then of 1 and 3
                static_cast<int16_t*>(packed)[((2 * vector + r % 2) * width + lane) * 2 + r % kQuad / 2] = v;
        }
    if (offsetsBytes(factors))
        start[q * width + lane] += -128 * sum;
}

char const* int8DepthwiseMisfit(Isa isa, Int8DepthwiseSpec const& s)
{
    if (s.end.residual && !isQuantized(*s.end.residual))
        return "takes residuals of i8 only";
    if (s.lanes != 32 && s.lanes != int8DepthwiseLanes(isa))
        return "blocks have 32 or, with AVX-512, 64 channels";
    if (s.taps < 1 || s.taps > 64 || s.rows < 1 || s.rows > 64 || s.dilation > 1024 || s.stride < 1 || s.stride > 1024)
        return "windows of up to 64 rows and columns, strides and dilations up to 1024 are taken";
    if (!reachesRows(s))
        return kFarRows;
    constexpr int kActivationSize = 40; // of the longest, in instructions
    int64_t size = 0;
    for (Run const& run : runsOf(isa, s))
        size += run.width * (s.taps * quadsOf(s.rows) * (14 + 2 * kQuad + s.stride) + kQuad * (kActivationSize + 8) +
                             (s.end.table == ByteTable::kBytes ? 3 * s.lanes : 0));
    return size > 60'000 ? "the window or its padding is too large" : nullptr;
}

Result<Int8DepthwiseKernel> Int8DepthwiseKernel::emit(Isa isa, Factors factors, Int8DepthwiseSpec const& spec)
{
    if (char const* why = int8DepthwiseMisfit(isa, spec))
        return internalError(std::string("a depthwise kernel cannot be made: ") + why);
    Int8DepthwiseKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { Int8DepthwiseEmitter(c, factors, spec).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
