// SPDX-License-Identifier: Apache-2.0
// Addresses of up to 28 rows that follow each other at one stride, by seven registers. Row 7 q + i is at base q + i lda:
// i = 0, 1, 2, 4 of lda, 3 and 6 of 3 lda, 5 of 5 lda. Includes Xbyak: for .cpp files only.
#pragma once

#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

class RowBases
{
public:
    static constexpr int kMostRows = 28;

    RowBases(VectorCode& code, int rows) : c(code), rows_(rows) {}

    // Before anything else; rbx, rbp and r12 are the caller's to save.
    void stride(Xbyak::Address const& ldaBytes)
    {
        c.mov(lda_, ldaBytes);
        c.lea(lda3_, c.ptr[lda_ + lda_ * 2]);
        c.lea(lda5_, c.ptr[lda_ + lda_ * 4]);
    }
    // Row 0 is where the pointer at `first` points to.
    void set(Xbyak::Address const& first)
    {
        c.mov(bases_[0], first);
        for (int q = 1; q * kRowsPerBase < rows_; ++q) {
            c.lea(bases_[q], c.ptr[bases_[q - 1] + lda3_ * 2]);
            c.add(bases_[q], lda_);
        }
    }
    void advance(int bytes)
    {
        for (int q = 0; q * kRowsPerBase < rows_; ++q)
            c.add(bases_[q], bytes);
    }
    Xbyak::RegExp row(int i) const
    {
        Xbyak::Reg64 const& base = bases_[i / kRowsPerBase];
        switch (i % kRowsPerBase) {
        case 1:
            return base + lda_;
        case 2:
            return base + lda_ * 2;
        case 3:
            return base + lda3_;
        case 4:
            return base + lda_ * 4;
        case 5:
            return base + lda5_;
        case 6:
            return base + lda3_ * 2;
        default:
            return Xbyak::RegExp(base);
        }
    }
    Xbyak::Reg64 const& first() const { return bases_[0]; }

private:
    static constexpr int kRowsPerBase = 7;
    VectorCode& c;
    int rows_;
    Xbyak::Reg64 const lda_ = Xbyak::util::rbx, lda3_ = Xbyak::util::rbp, lda5_ = Xbyak::util::r12;
    Xbyak::Reg64 const bases_[4] = {Xbyak::util::r8, Xbyak::util::r9, Xbyak::util::r10, Xbyak::util::r11};
};

} // namespace tw::kernels::jit
