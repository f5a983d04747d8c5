// SPDX-License-Identifier: Apache-2.0
// In PTX, which the driver compiles and ties to its own cudaGraphSetConditional: machine code of NVRTC cannot name it.
#include "device/cuda/conditional_nodes.h"

namespace tw::cuda {

// decide: whether the body runs (again): where goesOn is no null, its byte is not 0; where trip is no null, *trip, to
// which `bump` is added first, is below *count (null: no count) and below `limit`. If it is `limit` alone that says no,
// *broken becomes the number of trips and one more. Behind *trip stands whether the loop goes on: once it does not, a
// call with `bump` changes nothing. The answer goes to `handle`, if that is not 0, and its opposite to `otherwise`.
//
// move: for each of the jobs (ConditionalMove), one to a row of the grid, with trip t = min(*trip + shift, most):
// copies `rows` rows of `units` pieces of 2^log bytes from from + t * fromStep to to + t * toStep. Nothing once the loop
// does not go on.
char const* const kConditionalText = R"ptx(.version 7.0
.target sm_80
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry decide(
    .param .u64 handle,
    .param .u64 otherwise,
    .param .u64 goesOn,
    .param .u64 trip,
    .param .u64 count,
    .param .u64 broken,
    .param .u32 limit,
    .param .u32 bump)
{
    .reg .pred %p<8>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<8>;
    .reg .b16 %h<2>;

    mov.u32 %r0, 1;
    ld.param.u64 %rd0, [goesOn];
    setp.eq.u64 %p0, %rd0, 0;
    @%p0 bra COUNT;
    ld.global.u8 %h0, [%rd0];
    setp.ne.u16 %p1, %h0, 0;
    selp.u32 %r0, 1, 0, %p1;
COUNT:
    ld.param.u64 %rd1, [trip];
    setp.eq.u64 %p0, %rd1, 0;
    @%p0 bra SET;
    ld.global.s32 %r1, [%rd1];
    ld.param.u32 %r2, [bump];
    setp.eq.u32 %p5, %r2, 0;
    @%p5 bra TRIP;
    ld.global.u32 %r5, [%rd1+4];
    setp.ne.u32 %p5, %r5, 0;
    @%p5 bra TRIP;
    mov.u32 %r0, 0;
    bra SET;
TRIP:
    add.s32 %r1, %r1, %r2;
    st.global.s32 [%rd1], %r1;
    ld.param.u64 %rd2, [count];
    setp.eq.u64 %p0, %rd2, 0;
    @%p0 bra LIMIT;
    ld.global.s32 %r3, [%rd2];
    setp.lt.s32 %p2, %r1, %r3;
    selp.u32 %r0, %r0, 0, %p2;
LIMIT:
    ld.param.u32 %r4, [limit];
    setp.lt.s32 %p3, %r1, %r4;
    @%p3 bra KEEP;
    setp.eq.u32 %p4, %r0, 0;
    @%p4 bra KEEP;
    mov.u32 %r0, 0;
    ld.param.u64 %rd3, [broken];
    setp.eq.u64 %p0, %rd3, 0;
    @%p0 bra KEEP;
    add.s32 %r5, %r1, 1;
    st.global.s32 [%rd3], %r5;
KEEP:
    st.global.u32 [%rd1+4], %r0;
SET:
    ld.param.u64 %rd4, [handle];
    setp.eq.u64 %p0, %rd4, 0;
    @%p0 bra END;
    {
        .param .b64 h;
        .param .b32 v;
        st.param.b64 [h], %rd4;
        st.param.b32 [v], %r0;
        call.uni cudaGraphSetConditional, (h, v);
    }
    ld.param.u64 %rd5, [otherwise];
    setp.eq.u64 %p0, %rd5, 0;
    @%p0 bra END;
    xor.b32 %r6, %r0, 1;
    {
        .param .b64 h;
        .param .b32 v;
        st.param.b64 [h], %rd5;
        st.param.b32 [v], %r6;
        call.uni cudaGraphSetConditional, (h, v);
    }
END:
    ret;
}

.visible .entry move(
    .param .u64 trip,
    .param .align 8 .b8 jobs[1152])
{
    .reg .pred %p<8>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<32>;
    .reg .b16 %h<2>;

    ld.param.u64 %rd0, [trip];
    ld.global.v2.u32 {%r0, %r1}, [%rd0];
    setp.eq.u32 %p3, %r1, 0;
    @%p3 bra DONE;
    mov.u32 %r1, %ctaid.y;
    mul.wide.u32 %rd1, %r1, 72;
    mov.u64 %rd2, jobs;
    add.u64 %rd2, %rd2, %rd1;
    ld.param.u64 %rd3, [%rd2];
    ld.param.u64 %rd4, [%rd2+8];
    ld.param.s64 %rd5, [%rd2+16];
    ld.param.s64 %rd6, [%rd2+24];
    ld.param.u64 %rd7, [%rd2+32];
    ld.param.u64 %rd8, [%rd2+40];
    ld.param.u32 %r2, [%rd2+48];
    ld.param.u32 %r3, [%rd2+52];
    ld.param.u32 %r4, [%rd2+56];
    ld.param.u32 %r5, [%rd2+60];
    ld.param.u32 %r6, [%rd2+64];

    add.s32 %r0, %r0, %r4;
    min.s32 %r0, %r0, %r5;
    cvt.s64.s32 %rd9, %r0;
    mad.lo.s64 %rd3, %rd9, %rd5, %rd3;
    mad.lo.s64 %rd4, %rd9, %rd6, %rd4;

    mul.wide.u32 %rd10, %r2, %r3;
    mov.u32 %r7, %ctaid.x;
    mov.u32 %r8, %ntid.x;
    mov.u32 %r9, %tid.x;
    mov.u32 %r10, %nctaid.x;
    mul.wide.u32 %rd11, %r7, %r8;
    cvt.u64.u32 %rd12, %r9;
    add.u64 %rd11, %rd11, %rd12;
    mul.wide.u32 %rd13, %r10, %r8;
    cvt.u64.u32 %rd14, %r2;
    shl.b32 %r11, 1, %r6;
    cvt.u64.u32 %rd15, %r11;
    setp.eq.u32 %p1, %r6, 4;
    setp.eq.u32 %p2, %r6, 2;
LOOP:
    setp.ge.u64 %p0, %rd11, %rd10;
    @%p0 bra DONE;
    div.u64 %rd16, %rd11, %rd14;
    mul.lo.u64 %rd17, %rd16, %rd14;
    sub.u64 %rd17, %rd11, %rd17;
    mul.lo.u64 %rd17, %rd17, %rd15;
    mad.lo.u64 %rd18, %rd16, %rd7, %rd17;
    add.u64 %rd18, %rd18, %rd3;
    mad.lo.u64 %rd19, %rd16, %rd8, %rd17;
    add.u64 %rd19, %rd19, %rd4;
    @%p1 bra WIDE;
    @%p2 bra WORD;
    ld.global.u8 %h0, [%rd18];
    st.global.u8 [%rd19], %h0;
    bra NEXT;
WORD:
    ld.global.u32 %r12, [%rd18];
    st.global.u32 [%rd19], %r12;
    bra NEXT;
WIDE:
    ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd18];
    st.global.v4.u32 [%rd19], {%r12, %r13, %r14, %r15};
NEXT:
    add.u64 %rd11, %rd11, %rd13;
    bra LOOP;
DONE:
    ret;
}
)ptx";

} // namespace tw::cuda
