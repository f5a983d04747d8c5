// SPDX-License-Identifier: Apache-2.0
#include "base/element.h"
#include "ops/non_zero/op.h"
#include "tactic/tactic.h"

namespace tw::ops::non_zero {

namespace {

bool isSet(auto v)
{
    if constexpr (requires { loadElement(v); })
        return loadElement(v) != 0;
    else
        return v != 0;
}

template <class T>
void find(TensorRef const& x, TensorRef& y)
{
    T const* px = x.as<T>();
    int64_t const count = x.count();
    int const rank = x.dims.rank;
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i)
        n += isSet(px[i]);
    y.dims = {rank, n};
    if (n == 0)
        return;
    auto* to = y.as<int32_t>();
    Counter c(x.dims);
    int64_t i = 0;
    do {
        if (!isSet(px[i++]))
            continue;
        for (int d = 0; d < rank; ++d)
            to[d * n] = int32_t(c.at[d]);
        ++to;
    } while (c.next());
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    TensorRef& y = args.outputs[0];
    if (isFloating(x.type))
        withFloat(x.type, [&](auto element) { find<decltype(element)>(x, y); });
    else if (sizeOf(x.type) == sizeof(int32_t))
        find<int32_t>(x, y);
    else
        find<uint8_t>(x, y);
    return {};
}

constexpr PlainTactic kPlain{"non_zero_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::non_zero
