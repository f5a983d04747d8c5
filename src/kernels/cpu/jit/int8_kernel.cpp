// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/int8_kernel.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "device/cpu.h"
#include "kernels/cpu/jit/int8_epilogue_code.h"
#include "kernels/cpu/jit/pointer_walk.h"
#include "kernels/cpu/jit/row_bases.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Address;
using Xbyak::Reg64;

class Int8Emitter : PointerWalk<Int8Args>
{
public:
    Int8Emitter(VectorCode& code, Dots dots, Int8KernelSpec const& spec)
        : PointerWalk(code), s(spec), dots_(dots), tiles_(spec.rows * spec.vectors), a_(code, spec.rows),
          epilogue_(code, spec.epilogue, spec.rows, spec.vectors, args_, offsetof(Int8Args, output))
    {}

    void emit()
    {
        for (Reg64 const& r : kSaved)
            c.push(r);
        loadOperands(s, a_);
        if (s.prefetchC)
            epilogue_.prefetch();
        begin();
        walkSteps(
            s, a_, [&](Step const& step) { vnni() ? dots(step) : words(step); }, [](int, int) {});
        epilogue_.emit();
        c.vzeroupper();
        for (int i = int(std::size(kSaved)); i-- > 0;)
            c.pop(kSaved[i]);
        c.ret();
        epilogue_.tables();
        c.align(64);
        c.L(offsets_);
        for (int i = 0; i < 8; ++i)
            c.dd(0x80808080u);
    }

private:
    Int8KernelSpec const& s;
    Dots const dots_;
    int const tiles_; // accumulators are the registers 0 .. tiles_ - 1: see acc()
    RowBases a_;      // r8 .. r11, rbx, rbp, r12
    Reg64 const part_ = Xbyak::util::r13, more_ = Xbyak::util::r14;
    Reg64 const kSaved[6] = {Xbyak::util::rbx, Xbyak::util::rbp, Xbyak::util::r12,
                             Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};
    Reg64 const row_ = Xbyak::util::r8; // before the products
    Int8EpilogueCode epilogue_;         // behind them
    Xbyak::Label offsets_;

    int acc(int row, int v) const { return row * s.vectors + v; }
    bool vnni() const { return dots_ != Dots::kWords; }

    // Behind the accumulators: with VNNI a vector of B for each v, 0x80 in each byte (AVX2 has no register for it),
    // elements of A; without two vectors of B for each v, two of A, a product.
    int firstB() const { return tiles_; }
    int offset() const { return tiles_ + s.vectors; }
    int firstElement() const { return tiles_ + (vnni() ? s.vectors + c.avx512() : 2 * s.vectors); }
    Address offsetInMemory() { return c.ptr[Xbyak::util::rip + offsets_]; }

    void begin()
    {
        load(row_, offsetof(Int8Args, start));
        for (int v = 0; v < s.vectors; ++v)
            for (int row = 0; row < s.rows; ++row)
                row == 0 ? c.vmovups(c.vec(acc(0, v)), c.ptr[row_ + v * c.vectorBytes()])
                         : c.vmovaps(c.vec(acc(row, v)), c.vec(acc(0, v)));
        if (vnni() && c.avx512())
            c.vbroadcastss(c.vec(offset()), offsetInMemory());
    }

    // --- products of bytes ---

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
                element(e, row, step);
            else if (!c.avx512())
                c.vmovups(c.vec(e), offsetInMemory());
            for (int v = 0; v < s.vectors; ++v)
                used ? dot(acc(row, v), e, c.vec(firstB() + v)) : dot(acc(row, v), e, b(v));
        }
    }

    void dot(int to, int a, Xbyak::Operand const& b)
    {
        bool const wide = c.avx512() || dots_ == Dots::kVnniWide;
        c.vpdpbusd(c.vec(to), c.vec(a), b, wide ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    }

    // Register e: four bytes of a row in every lane, plus 128 where that is how they are multiplied.
    void element(int e, int row, Step const& step)
    {
        Xbyak::RegExp const at = a_.row(row) + step.aBytes;
        bool const add = vnni() && !s.offsetA;
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
        Xbyak::Reg32 const low = part_.cvt32(), high = more_.cvt32();
        bytes == 1 ? c.movzx(low, c.byte[at]) : c.movzx(low, c.word[at]);
        if (bytes == 3) {
            c.movzx(high, c.byte[at + 2]);
            c.shl(high, 16);
            c.or_(low, high);
        }
        if (c.avx512()) {
            c.vpbroadcastd(c.vec(e), low);
        } else {
            c.vmovd(Xbyak::Xmm(e), low);
            c.vpbroadcastd(c.vec(e), Xbyak::Xmm(e));
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
            element(a + 1, row, step);
            split(a, a + 1);
            for (int v = 0; v < s.vectors; ++v)
                for (int odd = 0; odd < 2; ++odd) {
                    c.vpmaddwd(c.vec(product), c.vec(a + odd), c.vec(firstB() + 2 * v + odd));
                    c.vpaddd(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(product));
                }
        }
    }
};

std::string check(Isa isa, Dots dots, Int8KernelSpec const& s)
{
    if (s.vectors < 1 || s.vectors > 4)
        return std::to_string(s.vectors) + " vectors (allowed: 1..4)";
    int const most = int8MaxRows(isa, dots, s.vectors);
    if (s.rows < 1 || s.rows > most)
        return std::to_string(s.rows) + " rows (allowed: 1.." + std::to_string(most) + " with " +
               std::to_string(s.vectors) + " vectors on " + isaName(isa) + ")";
    if (s.nextLines < 0 || s.nextLines > 256)
        return std::to_string(s.nextLines) + " lines to prefetch (allowed: 0..256)";
    if (s.body.steps.size() + s.tail.steps.size() > 1024)
        return std::to_string(s.body.steps.size() + s.tail.steps.size()) + " steps (allowed: up to 1024)";
    for (StepLoop const* l : {&s.body, &s.tail})
        for (Step const& step : l->steps)
            if (step.bytes < 1 || step.bytes > 4)
                return "a step of " + std::to_string(step.bytes) + " bytes (allowed: 1..4)";
    if (dots == Dots::kVnniWide && isa == Isa::kAvx512)
        return "AVX2's dot products with AVX-512's registers";
    return s.epilogue.refusal();
}

} // namespace

Dots dotsOf(device::CpuInfo const& cpu, Isa isa)
{
    return (isa == Isa::kAvx512 ? cpu.avx512vnni : cpu.avxVnni) ? Dots::kVnni : Dots::kWords;
}

ByteTable byteTableOf(device::CpuInfo const& cpu, Isa isa)
{
    return isa == Isa::kAvx512 && cpu.avx512vbmi ? ByteTable::kPermutes : ByteTable::kBytes;
}

std::string Int8Epilogue::refusal() const
{
    if (table && store != Int8Type::kInt8)
        return "a table for other outputs than i8";
    if (activation && (int(activation->kind) < 0 || int(activation->kind) >= kActivationKinds))
        return "activation kind " + std::to_string(int(activation->kind)) + " (allowed: 0.." +
               std::to_string(kActivationKinds - 1) + ")";
    return {};
}

int int8MaxRows(Isa isa, Dots dots, int vectors)
{
    static constexpr int kVnniRows[2][5] = {{0, 12, 6, 4, 2}, {0, 28, 14, 9, 6}};
    static constexpr int kWordsRows[2][5] = {{0, 11, 4, 2, 1}, {0, 27, 12, 7, 5}};
    if (vectors < 1 || vectors > 4)
        return 0;
    return dots == Dots::kWords ? kWordsRows[int(isa)][vectors] : kVnniRows[int(isa)][vectors];
}

StepLoop contiguousInt8Loop(Isa isa, int vectors, int unroll)
{
    return evenSteps(unroll, 4, int8Row(isa, vectors));
}

void int8Start(Dots dots, int8_t const* b, int64_t rows, int64_t columns, int32_t* start)
{
    if (dots == Dots::kWords)
        return;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j, b += 4)
            start[j] = int32_t(uint32_t(start[j]) - 128u * uint32_t(b[0] + b[1] + b[2] + b[3]));
}

Result<Int8Kernel> Int8Kernel::emit(Isa isa, Dots dots, Int8KernelSpec const& spec)
{
    if (std::string const why = check(isa, dots, spec); !why.empty())
        return internalError("an INT8 kernel was asked for " + why);
    Int8Kernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { Int8Emitter(c, dots, spec).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
