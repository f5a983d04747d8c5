// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/scale/op.h"

namespace tw::ops::scale {

namespace {

// Coefficients as tensors of x's rank that are broadcast.
void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    auto const& a = node.attrsAs<Attrs>();
    y = operands[0] = args.inputs[0].dims;
    Extents e = y;
    for (int d = 0; d < e.rank; ++d) {
        bool const isOwn =
            (a.mode == Mode::kChannel && d == a.channelAxis) || (a.mode == Mode::kElementwise && d >= a.channelAxis);
        e[d] = isOwn ? y[d] : 1;
    }
    int next = 1;
    for (size_t i = 1; i < args.inputs.size(); ++i)
        if (args.inputs[i].data)
            operands[next++] = e;
}

std::vector<int> operandsOf(Problem const& p)
{
    std::vector<int> list{0};
    for (int i = 1; i < int(p.inputs.size()); ++i)
        if (p.inputs[size_t(i)].present)
            list.push_back(i);
    return list;
}

std::vector<Formats> formats(Problem const& p)
{
    return pointwiseFormats(p, operandsOf(p), views);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    // What is rounded to i8 is exact before: products of two floats fit into a double.
    DataType const x = p.inputs[0].type, y = p.outputs[0].type;
    std::string const number = isQuantized(y) ? "double" : "float", from = cuda::computeOf(x);
    static constexpr char const* kStep[] = {"", "v = v * c1;", "v = v + c2;", "v = pow(v, c3);"};
    Pointwise what{"scale", operandsOf(p), {}, views};
    std::string parameters = from + " x", body = number + " v = x;";
    for (int i = 1; i < int(p.inputs.size()); ++i) {
        if (!p.inputs[size_t(i)].present)
            continue;
        std::string const name = fmt::format("c{}", i);
        parameters += fmt::format(", float f{}", i);
        body += fmt::format(" {} const {} = f{}; {}", number, name, i, kStep[i]);
    }
    what.text = "TW_INLINE " + number + " apply(" + parameters + ")\n{\n    " + body + "\n    return v;\n}\n";
    return pointwiseKernels(p, what);
}

constexpr CudaTactic kPlain{"scale_any_plain_cuda", 1, generate, nullptr, nullptr, formats};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::scale
