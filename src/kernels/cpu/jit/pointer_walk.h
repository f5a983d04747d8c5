// SPDX-License-Identifier: Apache-2.0
// The walk over pointers and steps that gemm_kernel.h describes, emitted. Includes Xbyak: for .cpp files only.
#pragma once

#include <cstddef>

#include "kernels/cpu/jit/step_loop.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

// What emitters of kernels with arguments Args are made of. Registers that are not named here are theirs.
template <class Args>
class PointerWalk
{
protected:
    VectorCode& c;
    Xbyak::Reg64 const args_ = Xbyak::util::rdi, list_ = Xbyak::util::rsi, pointers_ = Xbyak::util::rdx,
                       b_ = Xbyak::util::rax, loop_ = Xbyak::util::rcx, next_ = Xbyak::util::r15;

    explicit PointerWalk(VectorCode& code) : c(code) {}

    Xbyak::Address argument(size_t offset) const { return c.ptr[args_ + int(offset)]; }
    void load(Xbyak::Reg64 const& r, size_t offset) { c.mov(r, argument(offset)); }

    // a: how A is walked; stride(Address), set(Address) to a pointer of it, first(), advance(bytes).
    template <class Spec, class A>
    void loadOperands(Spec const& s, A& a)
    {
        load(list_, offsetof(Args, a));
        load(pointers_, offsetof(Args, pointers));
        a.stride(argument(offsetof(Args, ldaBytes)));
        load(b_, offsetof(Args, b));
        if (s.nextLines > 0)
            load(next_, offsetof(Args, next));
    }

    // product(step) is emitted for each step, between(i, steps) behind step i of the body.
    template <class Spec, class A, class Product, class Between>
    void walkSteps(Spec const& s, A& a, Product const& product, Between const& between)
    {
        Xbyak::Label another, done;
        c.test(pointers_, pointers_);
        c.jle(done, c.T_NEAR);
        c.L(another);
        a.set(c.ptr[list_]);
        if (s.nextLines > 0 && s.nextFromA) {
            load(next_, offsetof(Args, next));
            c.add(next_, a.first());
        }
        run(s.body, offsetof(Args, bodyCount), s.nextLines, a, product, between);
        run(s.tail, offsetof(Args, tailCount), 0, a, product, [](int, int) {});
        c.add(list_, 8);
        c.dec(pointers_);
        c.jnz(another, c.T_NEAR);
        c.L(done);
    }

private:
    template <class A, class Product, class Between>
    void run(StepLoop const& l, size_t countOffset, int nextLines, A& a, Product const& product, Between const& between)
    {
        if (l.steps.empty())
            return;
        Xbyak::Label again, done;
        load(loop_, countOffset);
        c.test(loop_, loop_);
        c.jle(done, c.T_NEAR);
        c.align(32);
        c.L(again);
        // Prefetches are spread over the steps, or the load ports would see them all at once.
        int const steps = int(l.steps.size());
        for (int i = 0, line = 0; i < steps; ++i) {
            product(l.steps[size_t(i)]);
            between(i, steps);
            for (; line < nextLines * (i + 1) / steps; ++line)
                c.prefetcht1(c.ptr[next_ + 64 * line]);
        }
        if (nextLines > 0)
            c.add(next_, 64 * nextLines);
        a.advance(l.aAdvance);
        c.add(b_, l.bAdvance);
        c.dec(loop_);
        c.jnz(again, c.T_NEAR);
        c.L(done);
    }
};

} // namespace tw::kernels::jit
