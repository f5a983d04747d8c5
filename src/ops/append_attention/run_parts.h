// SPDX-License-Identifier: Apache-2.0
// Kernels of the parts of an append_attention, one behind the other: turned rows stand in front of what each of them wants as workspace.
#pragma once

#include <algorithm>

#include "base/round.h"
#include "ops/append_attention/op.h"
#include "tactic/tactic.h"

namespace tw::ops::append_attention {

// Bytes of turned rows, up to where the workspace of a part begins.
inline int64_t turnedRoom(Attrs const& a, std::span<TensorRef const> in)
{
    constexpr int64_t kAlignment = 256;
    TensorRef const& x = in[kQueries];
    return a.isTurned() ? roundUp(x.dims[0] * x.dims[1] * a.turnedWidth() * int64_t(sizeOf(x.type)), kAlignment) : 0;
}

// bytesOf(part, inputs, outputs): what a part's kernel wants.
template <class F>
int64_t workspaceOfParts(Attrs const& a, std::span<TensorRef const> in, std::span<TensorRef const> out,
                         F const& bytesOf)
{
    int64_t most = 0;
    auto const done =
        forParts(a, in, out, nullptr, [&](Part part, auto const& inputs, TensorRef const& y) -> Result<void> {
            TensorRef const outputs[] = {y};
            most = std::max<int64_t>(most, bytesOf(part, inputs, outputs));
            return {};
        });
    (void)done.ok(); // nothing in it fails
    return turnedRoom(a, in) + most;
}

// run(part, args): a part's kernel on its own tensors.
template <class F>
Result<void> runParts(Attrs const& a, RunArgs const& args, F const& run)
{
    return forParts(a, args.inputs, args.outputs, args.workspace,
                    [&](Part part, auto const& inputs, TensorRef const& y) {
                        TensorRef outputs[] = {y};
                        RunArgs own = args;
                        own.inputs = inputs;
                        own.outputs = outputs;
                        own.workspace = static_cast<std::byte*>(args.workspace) + turnedRoom(a, args.inputs);
                        return run(part, own);
                    });
}

} // namespace tw::ops::append_attention
