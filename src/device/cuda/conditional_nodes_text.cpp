// SPDX-License-Identifier: Apache-2.0
// In PTX, which the driver compiles and ties to its own cudaGraphSetConditional: machine code of NVRTC cannot name it.
#include "device/cuda/conditional_nodes.h"

namespace tw::cuda {

// advance: the end of a turn of `trips` trips, or what comes before the first one (lead = 0, trips = 1). Parameters:
//   0 yes   8 no   16 trip   24 count   32 broken   40 limit   44 lead   48 trips   52 isLast   56 hasWarps   60 moves
//   64 goesOn, 4 addresses   96 ConditionalMove, 32 of them
// Lane i of every warp asks whether the loop goes on behind trip i of the turn: n = *trip + lead + i trips are done
// then. It does where the byte at goesOn[i] is not 0 (null: it is not), n is below *count (null: no count) and n is
// below `limit`. The first lane of whose trip that is not so tells how many trips the turn has made. If it is `limit`
// alone that says no, *broken becomes n + 1.
// Then bytes move: a move to a warp (hasWarps; one block), else a move to a row of the grid. The last launch of a turn
// writes *trip and the answer, to `yes` and, if that is not 0, its opposite to `no`; its last block does, when all others
// have read *trip, which they count at trip + 4.
char const* const kConditionalText = R"ptx(.version 7.0
.target sm_80
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry advance(.param .align 8 .b8 p[2400])
{
    .reg .pred %p<16>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<40>;
    .reg .b16 %h<2>;

    mov.u64 %rd0, p;
    ld.param.u64 %rd1, [p+16];
    ld.param.u64 %rd2, [p+24];
    ld.param.u32 %r1, [p+40];
    ld.param.u32 %r2, [p+44];
    ld.param.u32 %r3, [p+48];
    mov.u32 %r4, %tid.x;
    and.b32 %r5, %r4, 31;
    shr.u32 %r6, %r4, 5;

    // What lane r5 sees: trips that are done r0, then r8; its byte h0; count r9.
    mov.u32 %r0, 0;
    setp.ne.u64 %p0, %rd1, 0;
    @%p0 ld.global.s32 %r0, [%rd1];
    setp.lt.u32 %p1, %r5, %r3;
    min.u32 %r7, %r5, 3;
    mul.wide.u32 %rd3, %r7, 8;
    add.u64 %rd3, %rd0, %rd3;
    ld.param.u64 %rd3, [%rd3+64];
    setp.ne.and.u64 %p2, %rd3, 0, %p1;
    mov.u16 %h0, 1;
    @%p2 ld.global.u8 %h0, [%rd3];
    mov.u32 %r9, 0x7fffffff;
    setp.ne.u64 %p3, %rd2, 0;
    @%p3 ld.global.s32 %r9, [%rd2];
    add.s32 %r8, %r0, %r2;
    add.s32 %r8, %r8, %r5;
    setp.ne.u16 %p4, %h0, 0;
    setp.lt.and.s32 %p4, %r8, %r9, %p4;
    setp.ge.and.s32 %p5, %r8, %r1, %p4;
    setp.lt.and.s32 %p4, %r8, %r1, %p4;
    not.pred %p6, %p4;
    and.pred %p6, %p6, %p1;
    vote.sync.ballot.b32 %r10, %p6, 0xffffffff;
    setp.eq.u32 %p7, %r10, 0;
    // r11: the lane that tells; r12: trips of the turn.
    brev.b32 %r11, %r10;
    clz.b32 %r11, %r11;
    sub.u32 %r12, %r3, 1;
    min.u32 %r11, %r11, %r12;
    add.u32 %r12, %r11, %r2;

    // r13: the move; rd10, rd11: the first piece, and how many threads there are.
    ld.param.u32 %r14, [p+56];
    setp.ne.u32 %p8, %r14, 0;
    mov.u32 %r15, %ctaid.y;
    selp.u32 %r13, %r6, %r15, %p8;
    mov.u32 %r16, %ctaid.x;
    mov.u32 %r17, %ntid.x;
    mov.u32 %r18, %nctaid.x;
    mad.lo.u32 %r19, %r16, %r17, %r4;
    selp.u32 %r19, %r5, %r19, %p8;
    mul.lo.u32 %r20, %r18, %r17;
    selp.u32 %r20, 32, %r20, %p8;
    cvt.u64.u32 %rd10, %r19;
    cvt.u64.u32 %rd11, %r20;
    ld.param.u32 %r14, [p+60];
    setp.ge.u32 %p9, %r13, %r14;
    @%p9 bra MOVED;

    mul.wide.u32 %rd4, %r13, 72;
    add.u64 %rd4, %rd0, %rd4;
    ld.param.u64 %rd5, [%rd4+96];
    ld.param.u64 %rd6, [%rd4+104];
    ld.param.s64 %rd7, [%rd4+112];
    ld.param.s64 %rd8, [%rd4+120];
    ld.param.u64 %rd12, [%rd4+128];
    ld.param.u64 %rd13, [%rd4+136];
    ld.param.u32 %r21, [%rd4+144];
    ld.param.u32 %r22, [%rd4+148];
    ld.param.s32 %r23, [%rd4+152];
    ld.param.s32 %r24, [%rd4+156];
    ld.param.u32 %r25, [%rd4+160];
    ld.param.u32 %r26, [%rd4+164];
    // The number: r12 (0), r0 (1), both (2); and the shift.
    setp.eq.u32 %p10, %r26, 0;
    setp.eq.u32 %p11, %r26, 1;
    selp.s32 %r27, 0, %r0, %p10;
    selp.s32 %r28, 0, %r12, %p11;
    setp.ge.and.s32 %p9, %r23, %r12, %p11;
    @%p9 bra MOVED;
    add.s32 %r27, %r27, %r28;
    add.s32 %r27, %r27, %r23;
    min.s32 %r27, %r27, %r24;
    cvt.s64.s32 %rd14, %r27;
    mad.lo.s64 %rd5, %rd14, %rd7, %rd5;
    mad.lo.s64 %rd6, %rd14, %rd8, %rd6;

    mul.wide.u32 %rd15, %r21, %r22;
    cvt.u64.u32 %rd16, %r21;
    setp.le.u32 %p12, %r22, 1;
    setp.eq.u32 %p13, %r25, 4;
    setp.eq.u32 %p14, %r25, 2;
LOOP:
    setp.ge.u64 %p9, %rd10, %rd15;
    @%p9 bra MOVED;
    mov.u64 %rd17, 0;
    mov.u64 %rd18, %rd10;
    @%p12 bra PIECE;
    div.u64 %rd17, %rd10, %rd16;
    mul.lo.u64 %rd18, %rd17, %rd16;
    sub.u64 %rd18, %rd10, %rd18;
PIECE:
    shl.b64 %rd18, %rd18, %r25;
    mad.lo.u64 %rd19, %rd17, %rd12, %rd18;
    add.u64 %rd19, %rd19, %rd5;
    mad.lo.u64 %rd20, %rd17, %rd13, %rd18;
    add.u64 %rd20, %rd20, %rd6;
    @%p13 bra WIDE;
    @%p14 bra WORD;
    ld.global.u8 %h1, [%rd19];
    st.global.u8 [%rd20], %h1;
    bra NEXT;
WORD:
    ld.global.u32 %r29, [%rd19];
    st.global.u32 [%rd20], %r29;
    bra NEXT;
WIDE:
    ld.global.v4.u32 {%r29, %r30, %r31, %r32}, [%rd19];
    st.global.v4.u32 [%rd20], {%r29, %r30, %r31, %r32};
NEXT:
    add.u64 %rd10, %rd10, %rd11;
    bra LOOP;

MOVED:
    ld.param.u32 %r14, [p+52];
    setp.eq.u32 %p9, %r14, 0;
    @%p9 bra END;
    bar.sync 0;
    setp.ge.u32 %p9, %r4, 32;
    @%p9 bra END;
    mov.u32 %r21, %nctaid.y;
    mul.lo.u32 %r20, %r18, %r21;
    setp.eq.u32 %p9, %r20, 1;
    @%p9 bra LAST;
    sub.u32 %r20, %r20, 1;
    mov.u32 %r22, 0;
    setp.eq.u32 %p9, %r5, 0;
    @%p9 atom.acq_rel.gpu.global.inc.u32 %r22, [%rd1+4], %r20;
    shfl.sync.idx.b32 %r22, %r22, 0, 31, 0xffffffff;
    setp.ne.u32 %p9, %r22, %r20;
    @%p9 bra END;
LAST:
    // The lane that tells is the one whose n counts.
    setp.ne.u32 %p9, %r5, %r11;
    @%p9 bra END;
    ld.param.u64 %rd21, [p];
    selp.u32 %r23, 1, 0, %p7;
    {
        .param .b64 h;
        .param .b32 v;
        st.param.b64 [h], %rd21;
        st.param.b32 [v], %r23;
        call.uni cudaGraphSetConditional, (h, v);
    }
    @%p0 st.global.s32 [%rd1], %r8;
    ld.param.u64 %rd22, [p+32];
    setp.ne.and.u64 %p9, %rd22, 0, %p5;
    add.s32 %r24, %r8, 1;
    @%p9 st.global.s32 [%rd22], %r24;
    ld.param.u64 %rd21, [p+8];
    setp.eq.u64 %p9, %rd21, 0;
    @%p9 bra END;
    xor.b32 %r23, %r23, 1;
    {
        .param .b64 h;
        .param .b32 v;
        st.param.b64 [h], %rd21;
        st.param.b32 [v], %r23;
        call.uni cudaGraphSetConditional, (h, v);
    }
END:
    ret;
}
)ptx";

} // namespace tw::cuda
