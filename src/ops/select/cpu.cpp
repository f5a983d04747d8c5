// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast.h"
#include "ops/select/op.h"

namespace tw::ops::select {

namespace {

// Elements are moved as bits: T is an unsigned integer of the type's size.
template <class T>
void choose(BroadcastLoop const& loop, uint8_t const* c, T const* a, T const* b, T* y)
{
    int64_t const n = loop.rowLength(), cStep = loop.rowStride(0), aStep = loop.rowStride(1), bStep = loop.rowStride(2);
    loop.forEachRow([&](int64_t at, int64_t const* from) {
        uint8_t const* cRow = c + from[0];
        T const *aRow = a + from[1], *bRow = b + from[2];
        T* yRow = y + at;
        if (cStep == 1 && aStep == 1 && bStep == 1) {
            for (int64_t i = 0; i < n; ++i)
                yRow[i] = cRow[i] != 0 ? aRow[i] : bRow[i];
        } else {
            for (int64_t i = 0; i < n; ++i)
                yRow[i] = cRow[i * cStep] != 0 ? aRow[i * aStep] : bRow[i * bStep];
        }
    });
}

// A bool that is not 0 comes out as 1, whatever byte stood for it.
void chooseBools(BroadcastLoop const& loop, uint8_t const* c, uint8_t const* a, uint8_t const* b, uint8_t* y)
{
    int64_t const n = loop.rowLength();
    loop.forEachRow([&](int64_t at, int64_t const* from) {
        for (int64_t i = 0; i < n; ++i) {
            bool const left = a[from[1] + i * loop.rowStride(1)] != 0, right = b[from[2] + i * loop.rowStride(2)] != 0;
            y[at + i] = c[from[0] + i * loop.rowStride(0)] != 0 ? left : right;
        }
    });
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const &c = args.inputs[0], &a = args.inputs[1], &b = args.inputs[2], &y = args.outputs[0];
    BroadcastLoop const loop = broadcastLoop(y.dims, {&c.dims, &a.dims, &b.dims});
    auto const* condition = c.as<uint8_t>();
    if (y.type == DataType::kBool)
        chooseBools(loop, condition, a.as<uint8_t>(), b.as<uint8_t>(), y.as<uint8_t>());
    else if (sizeOf(y.type) == 4)
        choose(loop, condition, a.as<uint32_t>(), b.as<uint32_t>(), y.as<uint32_t>());
    else if (sizeOf(y.type) == 2)
        choose(loop, condition, a.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>());
    else
        choose(loop, condition, a.as<uint8_t>(), b.as<uint8_t>(), y.as<uint8_t>());
    return {};
}

constexpr PlainTactic kPlain{"select_plain", 1, run};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::select
