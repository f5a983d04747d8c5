// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/gemm_kernel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

#include "device/cpu.h"
#include "kernels/cpu/jit/gemm_end_code.h"
#include "kernels/cpu/jit/row_bases.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;

class GemmEmitter : GemmEndCode
{
public:
    GemmEmitter(VectorCode& code, GemmKernelSpec const& spec)
        : GemmEndCode(code, spec), a_(code, spec.rows), shifts_(spec.factors == Factors::kBf16Shifts),
          bytes_(isBytes(spec.factors)), offsets_(offsetsBytes(spec.factors))
    {}

    void emit()
    {
        for (Reg64 const& r : kSaved)
            c.push(r);
        setMask();
        loadOperands(s, a_);
        begin();
        if (s.prefetchC)
            walk(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes), [&](int) { fetchLines(row_, true); });
        if (s.rowsPerRun > 0) {
            load(cNext_, offsetof(GemmArgs, c));
            if (fetchesResidual())
                load(residualNext_, offsetof(GemmArgs, residual));
        }
        products();
        epilogue(beginsWithBias() ? 1 : 0);
        c.vzeroupper();
        for (int i = int(std::size(kSaved)); i-- > 0;)
            c.pop(kSaved[i]);
        c.ret();
        tables();
        if (!offsets_)
            return;
        c.align(64);
        c.L(offsetBytes_);
        for (int i = 0; i < 8; ++i)
            c.dd(0x80808080u);
    }

private:
    RowBases a_;        // r8 .. r11, rbx, rbp, r12
    bool const shifts_; // pairs, whose numbers become floats
    bool const bytes_;
    bool const offsets_; // bytes, multiplied as a + 128
    Reg64 const cNext_ = Xbyak::util::r13, residualNext_ = Xbyak::util::r14, part_ = Xbyak::util::r13;
    Reg64 const kSaved[6] = {Xbyak::util::rbx, Xbyak::util::rbp, Xbyak::util::r12,
                             Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};
    Xbyak::Label offsetBytes_;

    Xbyak::Address element(int row, int bytes, bool broadcast)
    {
        Xbyak::RegExp const at = a_.row(row) + bytes;
        return broadcast ? c.ptr_b[at] : c.ptr[at];
    }

    bool beginsWithBias() const
    {
        return !s.fromSums && !s.epilogue.empty() && s.epilogue[0].kind == EpilogueOp::kBias;
    }

    // The sums begin with zero, or with the bias where it would be added to them first; those of integers with theirs.
    void begin()
    {
        for (int row = 0; s.fromSums && row < s.rows; ++row)
            for (int v = 0; v < s.vectors; ++v)
                c.vmovups(c.vec(acc(row, v)), c.ptr[b_ + (row * s.vectors + v) * c.vectorBytes()]);
        if (s.fromSums)
            return;
        if (s.factors == Factors::kByteSigns) {
            load(row_, offsetof(GemmArgs, rowStart));
            for (int row = 0; row < s.rows; ++row)
                for (int v = 0; v < s.vectors; ++v)
                    v == 0 ? c.vpbroadcastd(c.vec(acc(row, 0)), c.ptr[row_ + 4 * row])
                           : c.vmovaps(c.vec(acc(row, v)), c.vec(acc(row, 0)));
            return loadOnes();
        }
        bool const given = bytes_ || beginsWithBias();
        if (given)
            load(row_, bytes_ ? offsetof(GemmArgs, start) : offsetof(GemmArgs, bias));
        for (int v = 0; v < s.vectors; ++v) {
            if (given)
                read(acc(0, v), isMasked(v) && !s.gated && !bytes_, c.ptr[row_ + v * c.vectorBytes()]);
            for (int row = given ? 1 : 0; row < s.rows; ++row)
                given ? c.vmovaps(c.vec(acc(row, v)), c.vec(acc(0, v))) : c.zero(acc(row, v));
        }
        if (offsets_ && c.avx512())
            c.vbroadcastss(c.vec(offset()), offsetInMemory());
        if (s.factors == Factors::kBytePairs)
            loadOnes();
    }
    void loadOnes() { c.loadConstant(ones(), std::bit_cast<float>(0x00010001u)); } // words

    void products()
    {
        if (s.fromSums)
            return;
        int row = 0;
        walkSteps(
            s, a_,
            [&](Step const& step) {
                s.factors == Factors::kWordPairs ? wordPairs(step)
                : offsets_                       ? dots(step)
                : isBytePairs(s.factors)         ? pairs(step)
                : bytes_                         ? words(step)
                                                 : product(step);
            },
            [&](int i, int steps) {
                for (; row < s.rowsPerRun * (i + 1) / steps; ++row)
                    fetchRow();
            });
    }

    bool fetchesResidual() const
    {
        return (c.avx512() || !(s.masked || s.maskedB)) &&
               std::any_of(s.epilogue.begin(), s.epilogue.end(),
                           [](EpilogueOp const& op) { return op.kind == EpilogueOp::kResidual; });
    }

    // The lines of one row of a tile.
    void fetchLines(Reg64 const& row, bool write)
    {
        for (int at = 0; at < stored() * c.width() * int(sizeOf(s.store.type)); at += 64)
            write ? c.prefetchw(c.ptr[row + at]) : c.prefetcht0(c.ptr[row + at]);
    }

    // The next row of C, and of the residual.
    void fetchRow()
    {
        fetchLines(cNext_, true);
        c.add(cNext_, argument(offsetof(GemmArgs, ldcBytes)));
        if (!fetchesResidual())
            return;
        fetchLines(residualNext_, false);
        c.add(residualNext_, argument(offsetof(GemmArgs, ldrBytes)));
    }

    void product(Step const& step)
    {
        int const begin = std::max(step.rowBegin, 0), end = std::min(step.rowEnd, s.rows);
        if (begin >= end)
            return;
        for (int v = 0; v < s.vectors; ++v) {
            int const at = step.bBytes + v * c.vectorBytes();
            read(tiles_ + v, s.maskedB && v == s.vectors - 1, c.ptr[b_ + at]);
            if (shifts_)
                split(tiles_ + v, tiles_ + s.vectors + v);
            if (s.prefetchBytes > 0 && at % 64 == 0)
                c.prefetcht0(c.ptr[b_ + (at + s.prefetchBytes)]);
        }
        bool const embedded = c.avx512() && s.vectors == 1; // one use of each element: no register for it
        if (shifts_)
            return shiftedProducts(step, begin, end);
        int const firstElement = tiles_ + s.vectors, elements = c.vectorCount() - firstElement;
        for (int row = begin; row < end; ++row) {
            if (embedded) {
                multiply(acc(row, 0), tiles_, element(row, step.aBytes, true));
                continue;
            }
            int const e = firstElement + row % elements;
            c.vbroadcastss(c.vec(e), element(row, step.aBytes, false));
            for (int v = 0; v < s.vectors; ++v)
                multiply(acc(row, v), tiles_ + v, c.vec(e));
        }
    }

    void multiply(int to, int b, Xbyak::Operand const& a)
    {
        s.factors == Factors::kFloat ? c.vfmadd231ps(c.vec(to), c.vec(b), a) : c.vdpbf16ps(c.vec(to), c.vec(b), a);
    }

    // The pairs in register `pairs`: the first numbers stay there, the second ones go to `second`.
    void split(int pairs, int second)
    {
        c.vandps(c.vec(second), c.vec(pairs), c.constantBits(0xffff0000u));
        c.vpslld(c.vec(pairs), c.vec(pairs), 16);
    }

    // In the order of vdpbf16ps: the second number's product first.
    void shiftedProducts(Step const& step, int begin, int end)
    {
        int const a = tiles_ + 2 * s.vectors;
        for (int row = begin; row < end; ++row) {
            c.vbroadcastss(c.vec(a), element(row, step.aBytes, false));
            split(a, a + 1);
            for (int v = 0; v < s.vectors; ++v)
                c.vfmadd231ps(c.vec(acc(row, v)), c.vec(tiles_ + s.vectors + v), c.vec(a + 1));
            for (int v = 0; v < s.vectors; ++v)
                c.vfmadd231ps(c.vec(acc(row, v)), c.vec(tiles_ + v), c.vec(a));
        }
    }

    // --- products of bytes ---

    // Behind the accumulators: where bytes are offset a vector of B for each v, 0x80 in each byte (AVX2 has no register
    // for it), elements of A; by words two vectors of B for each v, two of A, a product; by pairs a vector of B for each v,
    // ones, one or two of A, a product.
    int firstB() const { return tiles_; }
    int offset() const { return tiles_ + s.vectors; }
    int ones() const { return tiles_ + s.vectors; }
    int firstElement() const
    {
        return tiles_ + (offsets_ ? s.vectors + c.avx512() : isBytePairs(s.factors) ? s.vectors + 1 : 2 * s.vectors);
    }
    Xbyak::Address offsetInMemory() { return c.ptr[Xbyak::util::rip + offsetBytes_]; }

    void dots(Step const& step)
    {
        int const begin = std::max(step.rowBegin, 0), end = std::min(step.rowEnd, s.rows);
        bool const used = s.rows > 1; // more than once
        auto b = [&](int v) { return c.ptr[b_ + (step.bBytes + v * c.vectorBytes())]; };
        for (int v = 0; used && v < s.vectors; ++v)
            c.vmovups(c.vec(firstB() + v), b(v));
        int const elements = c.vectorCount() - firstElement();
        for (int row = 0; row < s.rows; ++row) {
            bool const in = row >= begin && row < end;
            int const e = in || !c.avx512() ? firstElement() + row % elements : offset();
            if (in)
                fourBytes(e, row, step);
            else if (!c.avx512())
                c.vmovups(c.vec(e), offsetInMemory());
            for (int v = 0; v < s.vectors; ++v)
                used ? dot(acc(row, v), e, c.vec(firstB() + v)) : dot(acc(row, v), e, b(v));
        }
    }

    void dot(int to, int a, Xbyak::Operand const& b)
    {
        bool const wide = c.avx512() || s.factors == Factors::kByteDotsWide;
        c.vpdpbusd(c.vec(to), c.vec(a), b, wide ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    }

    // Register e: four bytes of a row in every lane, plus 128 where that is how they are multiplied.
    void fourBytes(int e, int row, Step const& step)
    {
        Xbyak::RegExp const at = a_.row(row) + step.aBytes;
        bool const add = offsets_ && !s.preparedA;
        if (step.bytes < 4)
            broadcastPart(e, at, step.bytes);
        else if (add && c.avx512())
            return c.vpxord(c.vec(e), c.vec(offset()), c.ptr_b[at]);
        else
            c.vpbroadcastd(c.vec(e), c.ptr[at]);
        if (add)
            c.avx512() ? c.vpxord(c.vec(e), c.vec(e), c.vec(offset())) : c.vpxor(c.vec(e), c.vec(e), offsetInMemory());
    }

    // The others are zero.
    void broadcastPart(int e, Xbyak::RegExp const& at, int bytes)
    {
        Xbyak::Reg32 const part = part_.cvt32();
        if (bytes < 3) {
            bytes == 1 ? c.movzx(part, c.byte[at]) : c.movzx(part, c.word[at]);
        } else {
            c.movzx(part, c.byte[at + 2]);
            c.shl(part, 16);
            c.mov(part_.cvt16(), c.word[at]);
        }
        if (c.avx512()) {
            c.vpbroadcastd(c.vec(e), part);
        } else {
            c.vmovd(Xbyak::Xmm(e), part);
            c.vpbroadcastd(c.vec(e), Xbyak::Xmm(e));
        }
    }

    // Of bytes without a sign by such with one, two products and their sum at a time: words hold from -2 x 128 x 128 to
    // 2 x 128 x 127. Where a is negative b is made -b - 1 by its bits; a * b is |a| * (-b - 1) + |a| then.
    void pairs(Step const& step)
    {
        int const begin = std::max(step.rowBegin, 0), end = std::min(step.rowEnd, s.rows);
        if (begin >= end)
            return;
        for (int v = 0; v < s.vectors; ++v)
            c.vmovups(c.vec(firstB() + v), c.ptr[b_ + (step.bBytes + v * c.vectorBytes())]);
        bool const signs = s.factors == Factors::kByteSigns;
        int const a = firstElement(), product = a + 1, negative = a + 2;
        for (int row = begin; row < end; ++row) {
            fourBytes(a, row, step);
            if (signs && s.preparedA) {
                c.vpbroadcastd(c.vec(negative), c.ptr[a_.row(row) + (step.aBytes + 4)]);
            } else if (signs) {
                c.vpcmpgtb(c.vec(negative), c.vec(ones()),
                           c.vec(a)); // bytes of ones are 1 and 0: zeros may be among them
                c.vpabsb(c.vec(a), c.vec(a));
            }
            for (int v = 0; v < s.vectors; ++v) {
                if (signs)
                    c.vpxor(c.vec(product), c.vec(firstB() + v), c.vec(negative));
                c.vpmaddubsw(c.vec(product), c.vec(a), c.vec(signs ? product : firstB() + v));
                c.vpmaddwd(c.vec(product), c.vec(product), c.vec(ones()));
                c.vpaddd(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(product));
            }
        }
    }

    void wordPairs(Step const& step)
    {
        int const begin = std::max(step.rowBegin, 0), end = std::min(step.rowEnd, s.rows);
        if (begin >= end)
            return;
        for (int v = 0; v < s.vectors; ++v)
            c.vmovups(c.vec(firstB() + v), c.ptr[b_ + (step.bBytes + v * c.vectorBytes())]);
        int const a = firstB() + s.vectors, product = a + 1;
        for (int row = begin; row < end; ++row) {
            c.vpbroadcastd(c.vec(a), c.ptr[a_.row(row) + step.aBytes]);
            for (int v = 0; v < s.vectors; ++v) {
                c.vpmaddwd(c.vec(product), c.vec(a), c.vec(firstB() + v));
                c.vpaddd(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(product));
            }
        }
    }

    // Of four bytes a[0..3] in a lane, a[0], a[2] and a[1], a[3] as words: two products and their sum at a time.
    void words(Step const& step)
    {
        int const begin = std::max(step.rowBegin, 0), end = std::min(step.rowEnd, s.rows);
        if (begin >= end)
            return;
        auto split = [&](int even, int odd) { // from `odd`
            c.vpsllw(c.vec(even), c.vec(odd), 8);
            c.vpsraw(c.vec(even), c.vec(even), 8);
            c.vpsraw(c.vec(odd), c.vec(odd), 8);
        };
        for (int v = 0; v < s.vectors; ++v) {
            c.vmovups(c.vec(firstB() + 2 * v + 1), c.ptr[b_ + (step.bBytes + v * c.vectorBytes())]);
            split(firstB() + 2 * v, firstB() + 2 * v + 1);
        }
        int const a = firstElement(), product = a + 2;
        for (int row = begin; row < end; ++row) {
            fourBytes(a + 1, row, step);
            split(a, a + 1);
            for (int v = 0; v < s.vectors; ++v)
                for (int odd = 0; odd < 2; ++odd) {
                    c.vpmaddwd(c.vec(product), c.vec(a + odd), c.vec(firstB() + 2 * v + odd));
                    c.vpaddd(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(product));
                }
        }
    }
};

std::string check(Isa isa, GemmKernelSpec const& s)
{
    if (s.vectors < 1 || s.vectors > 4)
        return fmt::format("{} vectors (allowed: 1..4)", s.vectors);
    if (isa != Isa::kAvx512 && (s.factors == Factors::kBf16Dots || s.factors == Factors::kBf16Tiles))
        return "AVX-512's or AMX's products of BF16 on " + std::string(isaName(isa));
    int const most = gemmMaxRows(isa, s.vectors, s.factors);
    if (s.rows < 1 || s.rows > most)
        return fmt::format("{} rows (allowed: 1..{} with {} vectors on {})", s.rows, most, s.vectors, isaName(isa));
    if (s.factors == Factors::kBf16Tiles)
        for (StepLoop const* l : {&s.body, &s.tail})
            for (Step const& step : l->steps)
                if (s.maskedB || step.rowBegin > 0 || step.rowEnd < s.rows)
                    return "tiles without all rows, or with a second operand that is not packed";
    if (s.nextLines < 0 || s.nextLines > 256)
        return fmt::format("{} lines to prefetch (allowed: 0..256)", s.nextLines);
    if (s.rowsPerRun < 0 || s.rowsPerRun > 32)
        return fmt::format("{} rows to prefetch (allowed: 0..32)", s.rowsPerRun);
    if (s.body.steps.size() + s.tail.steps.size() > 1024)
        return fmt::format("{} steps (allowed: up to 1024)", s.body.steps.size() + s.tail.steps.size());
    for (StepLoop const* l : {&s.body, &s.tail})
        for (Step const& step : l->steps)
            if (step.bytes < 1 || step.bytes > 4 || (s.factors == Factors::kWordPairs && step.bytes < 4))
                return fmt::format("a step of {} bytes (allowed: 1..4, of pairs of words 4)", step.bytes);
    if ((s.factors == Factors::kByteDotsWide || s.factors == Factors::kByteSigns) && isa == Isa::kAvx512)
        return "AVX2's products of bytes with AVX-512's registers";
    if (s.store.table && !isQuantized(s.store.type))
        return "a table for other outputs than i8";
    if (!isBytes(s.factors) && !(isFullFloat(s.store.type) && isFullFloat(s.residualType)))
        return "sums of floats that are stored as anything else";
    bool const hasOfFloats = s.gated || s.maskedB || s.fromSums || s.rowsPerRun > 0;
    if (isBytes(s.factors) ? hasOfFloats || (s.storesSums && !s.epilogue.empty()) : s.storesSums)
        return "sums of integers with what only floats have, or the other way round";
    if (s.gated && s.vectors % 2 != 0)
        return fmt::format("a gated tile of {} vectors (allowed: 2, 4)", s.vectors);
    if (s.gated && !s.steps.empty())
        return "a gated tile with an expression";
    int seen[EpilogueOp::kKinds] = {};
    for (EpilogueOp const& op : s.epilogue) {
        if (s.gated && op.kind != EpilogueOp::kBias && op.kind != EpilogueOp::kResidual &&
            op.kind != EpilogueOp::kActivation)
            return "more than a residual, a bias and an activation in front of a gate";
        if (op.kind != EpilogueOp::kActivation && seen[op.kind]++ > 0)
            return "one kind of epilogue twice";
        if (op.kind == EpilogueOp::kActivation &&
            (int(op.activation.kind) < 0 || int(op.activation.kind) >= kActivationKinds))
            return fmt::format("activation kind {} (allowed: 0..{})", int(op.activation.kind), kActivationKinds - 1);
    }
    return {};
}

} // namespace

int gemmMaxRows(Isa isa, int vectors, Factors factors)
{
    static constexpr int kRows[2][5] = {{0, 12, 6, 4, 2}, {0, 28, 14, 9, 6}};
    static constexpr int kShiftedRows[2][5] = {{0, 12, 5, 2, 1}, {0, 28, 13, 8, 5}};
    static constexpr int kTileRows[5] = {0, 32, 32, 16, 16};
    static constexpr int kWordRows[2][5] = {{0, 11, 4, 2, 1}, {0, 27, 12, 7, 5}};
    static constexpr int kWordPairRows[2][5] = {{0, 12, 6, 3, 2}, {0, 28, 14, 9, 6}};
    static constexpr int kSignRows[5] = {0, 11, 5, 3, 2};
    static constexpr int kPairRows[2][5] = {{0, 12, 5, 3, 2}, {0, 28, 13, 8, 6}};
    if (vectors < 1 || vectors > 4)
        return 0;
    return factors == Factors::kBf16Tiles    ? kTileRows[vectors]
           : factors == Factors::kBf16Shifts ? kShiftedRows[int(isa)][vectors]
           : factors == Factors::kByteWords  ? kWordRows[int(isa)][vectors]
           : factors == Factors::kByteSigns  ? kSignRows[vectors]
           : factors == Factors::kWordPairs  ? kWordPairRows[int(isa)][vectors]
           : factors == Factors::kBytePairs  ? kPairRows[int(isa)][vectors]
                                             : kRows[int(isa)][vectors];
}

ByteTable byteTableOf(device::CpuInfo const& cpu, Isa isa)
{
    return isa == Isa::kAvx512 && cpu.avx512vbmi ? ByteTable::kPermutes : ByteTable::kBytes;
}

void addEnd(GemmKernelSpec& spec, SumEnd const& end, bool residual)
{
    spec.steps = end.steps;
    spec.stepsResidual = residual && !end.steps.empty();
    bool const adds = residual && end.steps.empty();
    if (adds && !end.residualLast)
        spec.epilogue.push_back(EpilogueOp::kResidual);
    if (end.activation)
        spec.epilogue.push_back(*end.activation);
    if (adds && end.residualLast)
        spec.epilogue.push_back(EpilogueOp::kResidual);
}

void addEnd(GemmKernelSpec& spec, IntegerEnd const& end)
{
    auto& ops = spec.epilogue;
    ops.push_back(end.oneScale ? EpilogueOp::kOneScale : EpilogueOp::kScale);
    if (end.bias)
        ops.push_back(EpilogueOp::kBias);
    if (end.innerScale)
        ops.push_back(EpilogueOp::kToByte);
    if (end.residual)
        ops.push_back(EpilogueOp::kResidual);
    spec.residualType = end.residual.value_or(DataType::kFloat);
    spec.store = {end.store, end.bounded, std::nullopt, end.table};
    if (end.clipsBytes())
        spec.store.clip = end.activation;
    else if (end.activation)
        ops.push_back(*end.activation);
    if (end.outputScale)
        ops.push_back(EpilogueOp::kOutputScale);
}

void integerStart(Factors factors, int8_t const* b, int64_t rows, int64_t columns, int32_t* start)
{
    for (int64_t i = 0; offsetsBytes(factors) && i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j, b += 4)
            start[j] = int32_t(uint32_t(start[j]) - 128u * uint32_t(b[0] + b[1] + b[2] + b[3]));
}

StepLoop contiguousLoop(Isa isa, int vectors, int unroll, Factors factors)
{
    int const elements = elementsOfStep(factors);
    return evenSteps(unroll, 4 * elements, 4 * vectorWidth(isa) * vectors * elements);
}

Result<GemmKernel> GemmKernel::emit(Isa isa, GemmKernelSpec const& spec)
{
    if (std::string const why = check(isa, spec); !why.empty())
        return internalError("a matrix kernel was asked for " + why);
    GemmKernel kernel;
    kernel.rows_ = spec.rows;
    kernel.columns_ = (spec.vectors - (spec.masked ? 1 : 0)) * vectorWidth(isa);
    kernel.isMasked_ = spec.masked;
    TW_ASSIGN(kernel.steps_, StepsKernel::emit(isa, spec.steps, spec.stepsResidual));
    if (spec.factors == Factors::kBf16Tiles) {
        TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { emitTileProducts(c, spec); }));
        TW_ASSIGN(kernel.tileEnd_, emitTileEnd(isa, spec));
        return kernel;
    }
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { GemmEmitter(c, spec).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
