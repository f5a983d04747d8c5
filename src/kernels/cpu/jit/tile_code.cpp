// SPDX-License-Identifier: Apache-2.0
// Every tile is 16 rows of 64 bytes, whatever is multiplied, so that a thread sets the registers once: the instruction
// that does it takes as long as a dozen products of tiles. Rows of A behind the last one, and columns of B behind it,
// make sums that nobody reads.
#include "kernels/cpu/jit/tile_code.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;
using Xbyak::Tmm;

constexpr int kRows = 16, kRowBytes = 64;

struct TileShape
{
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t rowBytes[16] = {};
    uint8_t rows[16] = {};
};
static_assert(sizeof(TileShape) == 64);

// Null where the assembler or the system refuses; kernels with tiles are then not emitted either.
struct ShapeCode
{
    Code set, release;

    ShapeCode()
    {
        auto made = emit(Isa::kAvx512, [](VectorCode& c) {
            c.ldtilecfg(c.ptr[Xbyak::util::rdi]);
            c.ret();
        });
        auto end = emit(Isa::kAvx512, [](VectorCode& c) {
            c.tilerelease();
            c.ret();
        });
        if (made.ok() && end.ok()) {
            set = std::move(*made);
            release = std::move(*end);
        }
    }
};

ShapeCode const& shapeCode()
{
    static ShapeCode const* const code = new ShapeCode; // never destroyed, as the functions that need it
    return *code;
}

class TileEmitter
{
public:
    TileEmitter(VectorCode& code, GemmKernelSpec const& spec)
        : c(code), s(spec), rowTiles_((spec.rows + kRows - 1) / kRows), sums_(rowTiles_ * spec.vectors),
          columnTiles_(8 - sums_ - rowTiles_)
    {}

    void emit()
    {
        for (Reg64 const& r : kSaved)
            c.push(r);
        load(list_, offsetof(GemmArgs, a));
        load(pointers_, offsetof(GemmArgs, pointers));
        load(lda_, offsetof(GemmArgs, ldaBytes));
        load(b_, offsetof(GemmArgs, b));
        if (s.nextLines > 0)
            load(next_, offsetof(GemmArgs, next));
        c.mov(bRow_, s.vectors * kRowBytes);
        for (int i = 0; i < sums_; ++i)
            c.tilezero(Tmm(i));
        products();
        load(a0_, offsetof(GemmArgs, c));
        for (int r = 0; r < rowTiles_; ++r)
            for (int v = 0; v < s.vectors; ++v)
                c.tilestored(c.ptr[a0_ + bRow_ + (r * kRows * s.vectors + v) * kRowBytes], sum(r, v));
        for (int i = int(std::size(kSaved)); i-- > 0;)
            c.pop(kSaved[i]);
        c.ret();
    }

private:
    VectorCode& c;
    GemmKernelSpec const& s;
    int const rowTiles_, sums_, columnTiles_; // registers of A, of sums, of B
    Reg64 const args_ = Xbyak::util::rdi, list_ = Xbyak::util::rsi, pointers_ = Xbyak::util::rdx, b_ = Xbyak::util::rax,
                loop_ = Xbyak::util::rcx, a0_ = Xbyak::util::r8, a1_ = Xbyak::util::r9, bRow_ = Xbyak::util::r10,
                lda_ = Xbyak::util::rbx, next_ = Xbyak::util::r15;
    Reg64 const kSaved[2] = {Xbyak::util::rbx, Xbyak::util::r15};

    void load(Reg64 const& r, size_t offset) { c.mov(r, c.ptr[args_ + int(offset)]); }
    Tmm sum(int r, int v) const { return Tmm(r * s.vectors + v); }
    Tmm rows(int r) const { return Tmm(sums_ + r); }
    Tmm columns(int v) const { return Tmm(sums_ + rowTiles_ + v % columnTiles_); }

    void products()
    {
        Xbyak::Label next, done;
        c.test(pointers_, pointers_);
        c.jle(done, c.T_NEAR);
        c.L(next);
        c.mov(a0_, c.ptr[list_]);
        if (rowTiles_ > 1) {
            c.mov(a1_, lda_);
            c.shl(a1_, 4);
            c.add(a1_, a0_);
        }
        if (s.nextLines > 0 && s.nextFromA) {
            load(next_, offsetof(GemmArgs, next));
            c.add(next_, a0_);
        }
        loop(s.body, offsetof(GemmArgs, bodyCount), s.nextLines);
        loop(s.tail, offsetof(GemmArgs, tailCount), 0);
        c.add(list_, 8);
        c.dec(pointers_);
        c.jnz(next, c.T_NEAR);
        c.L(done);
    }

    void loop(GemmLoop const& l, size_t countOffset, int nextLines)
    {
        if (l.steps.empty())
            return;
        Xbyak::Label again, done;
        load(loop_, countOffset);
        c.test(loop_, loop_);
        c.jle(done, c.T_NEAR);
        c.align(32);
        c.L(again);
        int const steps = int(l.steps.size());
        for (int i = 0, line = 0; i < steps; ++i) {
            product(l.steps[size_t(i)]);
            for (; line < nextLines * (i + 1) / steps; ++line)
                c.prefetcht1(c.ptr[next_ + 64 * line]);
        }
        if (nextLines > 0)
            c.add(next_, 64 * nextLines);
        c.add(a0_, l.aAdvance);
        if (rowTiles_ > 1)
            c.add(a1_, l.aAdvance);
        c.add(b_, l.bAdvance);
        c.dec(loop_);
        c.jnz(again, c.T_NEAR);
        c.L(done);
    }

    void product(GemmStep const& step)
    {
        for (int v = 0; v < s.vectors; ++v) {
            c.tileloadd(columns(v), c.ptr[b_ + bRow_ + (step.bBytes + v * kRowBytes)]);
            for (int r = 0; r < rowTiles_; ++r) {
                if (v == 0)
                    c.tileloadd(rows(r), c.ptr[(r == 0 ? a0_ : a1_) + lda_ + step.aBytes]);
                c.tdpbf16ps(sum(r, v), rows(r), columns(v));
            }
        }
    }
};

} // namespace

void emitTileProducts(VectorCode& c, GemmKernelSpec const& spec)
{
    TileEmitter(c, spec).emit();
}

// Kernels without products, for some rows at a time.
struct GemmKernel::TileEnd
{
    int rows = 0, rowFloats = 0; // of the sums
    int height = 0;              // rows of the first kernel; the last rows have their own
    GemmKernel some, last;
};

Result<std::shared_ptr<GemmKernel::TileEnd const>> GemmKernel::emitTileEnd(Isa isa, GemmKernelSpec const& spec)
{
    auto end = std::make_shared<TileEnd>();
    end->rows = spec.rows;
    end->rowFloats = spec.vectors * vectorWidth(isa);
    end->height = std::min(gemmMaxRows(isa, spec.vectors), spec.rows);
    GemmKernelSpec s;
    s.vectors = spec.vectors;
    s.epilogue = spec.epilogue;
    s.masked = spec.masked;
    s.gated = spec.gated;
    s.fromSums = true;
    s.rows = end->height;
    TW_ASSIGN(end->some, emit(isa, s));
    s.rows = spec.rows % end->height;
    if (s.rows > 0) {
        TW_ASSIGN(end->last, emit(isa, s));
    }
    return std::shared_ptr<TileEnd const>(std::move(end));
}

void GemmKernel::runTiles(GemmArgs const& args) const
{
    alignas(64) float sums[kTileSums];
    GemmArgs a = args;
    a.c = sums;
    code_.entry<void (*)(GemmArgs const*)>()(&a);
    for (int row = 0; row < tileEnd_->rows; row += tileEnd_->height) {
        a.b = sums + row * tileEnd_->rowFloats;
        a.c = args.c + row * args.ldcBytes / 4;
        a.residual = args.residual ? args.residual + row * args.ldrBytes / 4 : nullptr;
        a.rowScale = args.rowScale ? args.rowScale + row : nullptr;
        (row + tileEnd_->height <= tileEnd_->rows ? tileEnd_->some : tileEnd_->last)(a);
    }
}

TileScope::TileScope(Factors factors) : active_(factors == Factors::kBf16Tiles && shapeCode().set.sizeBytes() > 0)
{
    if (!active_)
        return;
    TileShape shape;
    for (int i = 0; i < 8; ++i) {
        shape.rowBytes[i] = kRowBytes;
        shape.rows[i] = kRows;
    }
    shapeCode().set.entry<void (*)(TileShape const*)>()(&shape);
}

TileScope::~TileScope()
{
    if (active_)
        shapeCode().release.entry<void (*)()>()();
}

} // namespace tw::kernels::jit
