// SPDX-License-Identifier: Apache-2.0
// Every tile is 16 rows of 64 bytes, whatever is multiplied, so that a thread sets the registers once: the instruction
// that does it takes as long as a dozen products of tiles. Rows of A behind the last one, and columns of B behind it,
// make sums that nobody reads.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/round.h"
#include "kernels/cpu/jit/gemm_end_code.h"
#include "kernels/cpu/jit/pointer_walk.h"

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

// Rows of A in one or two registers of tiles.
struct TileRows
{
    VectorCode& c;
    int const tiles;
    Reg64 const a0 = Xbyak::util::r8, a1 = Xbyak::util::r9, lda = Xbyak::util::rbx;

    void stride(Xbyak::Address const& ldaBytes) { c.mov(lda, ldaBytes); }
    void set(Xbyak::Address const& first)
    {
        c.mov(a0, first);
        if (tiles > 1) {
            c.mov(a1, lda);
            c.shl(a1, 4);
            c.add(a1, a0);
        }
    }
    void advance(int bytes)
    {
        c.add(a0, bytes);
        if (tiles > 1)
            c.add(a1, bytes);
    }
    Reg64 const& first() const { return a0; }
};

class TileEmitter : PointerWalk<GemmArgs>
{
public:
    TileEmitter(VectorCode& code, GemmKernelSpec const& spec)
        : PointerWalk(code), s(spec), rowTiles_(int(divideUp(spec.rows, kRows))), sums_(rowTiles_ * spec.vectors),
          columnTiles_(8 - sums_ - rowTiles_), a_{code, rowTiles_}
    {}

    void emit()
    {
        for (Reg64 const& r : kSaved)
            c.push(r);
        loadOperands(s, a_);
        c.mov(bRow_, s.vectors * kRowBytes);
        for (int i = 0; i < sums_; ++i)
            c.tilezero(Tmm(i));
        walkSteps(
            s, a_, [&](Step const& step) { product(step); }, [](int, int) {});
        load(a_.a0, offsetof(GemmArgs, c));
        for (int r = 0; r < rowTiles_; ++r)
            for (int v = 0; v < s.vectors; ++v)
                c.tilestored(c.ptr[a_.a0 + bRow_ + (r * kRows * s.vectors + v) * kRowBytes], sum(r, v));
        for (int i = int(std::size(kSaved)); i-- > 0;)
            c.pop(kSaved[i]);
        c.ret();
    }

private:
    GemmKernelSpec const& s;
    int const rowTiles_, sums_, columnTiles_; // registers of A, of sums, of B
    TileRows a_;
    Reg64 const bRow_ = Xbyak::util::r10;
    Reg64 const kSaved[2] = {Xbyak::util::rbx, Xbyak::util::r15};

    Tmm sum(int r, int v) const { return Tmm(r * s.vectors + v); }
    Tmm rows(int r) const { return Tmm(sums_ + r); }
    Tmm columns(int v) const { return Tmm(sums_ + rowTiles_ + v % columnTiles_); }

    void product(Step const& step)
    {
        for (int v = 0; v < s.vectors; ++v) {
            c.tileloadd(columns(v), c.ptr[b_ + bRow_ + (step.bBytes + v * kRowBytes)]);
            for (int r = 0; r < rowTiles_; ++r) {
                if (v == 0)
                    c.tileloadd(rows(r), c.ptr[(r == 0 ? a_.a0 : a_.a1) + a_.lda + step.aBytes]);
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
        a.c = static_cast<std::byte*>(args.c) + row * args.ldcBytes;
        a.residual = args.residual ? static_cast<std::byte const*>(args.residual) + row * args.ldrBytes : nullptr;
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
