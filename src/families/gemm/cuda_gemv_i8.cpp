// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_gemv_i8.h"

#include <algorithm>

#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm_i8.h"
#include "kernels/cuda/gemm/gemv_i8.h"

namespace tw::ops::gemv_i8 {

namespace {

namespace kernel = cuda::gemv_i8;
using gemm_i8::PackedB;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 3;

ProductRows rowsOf(ir::Node const& node, Extents const& a, Extents const& b)
{
    return ops::rowsOf(matrix_multiply::geometryOf(node, a, b), true, true);
}

ProductRows rowsOf(Problem const& p, bool most)
{
    auto dims = [&](size_t i) -> Extents const& { return most ? p.inputs[i].maxDims : p.inputs[i].dims; };
    return rowsOf(*p.node, dims(0), dims(1));
}

kernel::Spec baseOf(Problem const& p)
{
    auto const& attrs = p.node->attrsAs<matrix_multiply::Attrs>();
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    kernel::Spec s;
    s.end = integerEndOf(p, attrs.epilogue);
    s.packs = g.k % 16 == 0;
    int64_t const rows = rowsOf(p, true).m;
    while (s.rows < rows && s.rows < kernel::kMostRows)
        s.rows *= 2;
    return s;
}

class VectorKernels final : public CudaKernels
{
public:
    VectorKernels(Problem const& p, kernel::Spec const& spec)
        : CudaKernels(cudaSource(spec)), node_(*p.node), spec_(spec), packed_(gemm_i8::packedB(p))
    {}
    Result<std::vector<std::string>> pack(Problem const& p) const override
    {
        if (!packed_.isNeeded)
            return std::vector<std::string>();
        return std::vector<std::string>{gemm_i8::packB(packed_, *p.inputs[1].constant)};
    }
    bool readsOnDevice(size_t i) const override { return i != 1 || !packed_.isNeeded; }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    static CudaSource cudaSource(kernel::Spec const& spec)
    {
        return wholeSource(kernel::kKernel, kernel::source(spec), kernel::kMostShared);
    }
    ir::Node const& node_;
    kernel::Spec const spec_;
    PackedB const packed_;
};

Result<void> VectorKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &a = args.inputs[0], &b = args.inputs[1];
    Geometry const g = matrix_multiply::geometryOf(node_, a.dims, b.dims);
    ProductRows const rows = rowsOf(node_, a.dims, b.dims);
    char const* const why = rows.batch.volume() != 1 ? "collections that have their own second operands"
                                                     : unsupported(spec_, rows.m, g.n, g.k);
    if (why)
        return Error{ErrorCode::kFailedExecution, "layer '" + node_.name + "': shapes " + a.dims.str() + " and " +
                                                      b.dims.str() +
                                                      " are not among those that its kernel was made for: " + why};
    kernel::Args l;
    l.a = a.as<int8_t>();
    l.b = packed_.isNeeded ? static_cast<int8_t const*>(launch.packed(0)) : b.as<int8_t>();
    l.y = args.outputs[0].data;
    l.end = integerEndArgs(args);
    l.lda = rows.lda;
    l.ldb = packed_.isNeeded ? packed_.row : g.k;
    cuda::LaunchGeometry const geometry = kernel::launch(spec_, rows.m, g.n, g.k, l);
    return geometry.grid ? launch.withGeometry(0, geometry, {&l}) : Result<void>();
}

// False: nothing that configs() makes.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 3, 1, kernel::kMostRows) || c[0] != s.rows)
        return false;
    s.columns = int(c[1]);
    s.warpsK = int(c[2]);
    return !kernel::unsupported(s);
}

} // namespace

Support supports(Problem const& p)
{
    if (Support const s = gemm_i8::supportsSums(p); !s.ok)
        return s;
    if (!p.inputs[1].constant)
        return Support::no("the second operand is no constant");
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    if (p.node->attrsAs<matrix_multiply::Attrs>().a == MatrixOperation::kTranspose && g.aColumn != 1)
        return Support::no("rows of the first operand do not lie together");
    for (bool const most : {false, true}) {
        ProductRows const rows = rowsOf(p, most);
        if (rows.batch.volume() != 1)
            return Support::no("collections that have their own second operands");
        if (char const* const why = kernel::unsupported(baseOf(p), rows.m, g.n, g.k))
            return Support::no(why);
    }
    return Support::yes();
}

std::vector<Config> configs(Problem const& p)
{
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    std::vector<Config> list;
    for (kernel::Spec const& s :
         kernel::candidates(baseOf(p), rowsOf(p, false).m, g.n, g.k, p.cuda->multiprocessors, kMostConfigs))
        list.push_back({s.rows, s.columns, s.warpsK});
    return list;
}

double estimate(Problem const& p, Config const& config)
{
    kernel::Spec s = baseOf(p);
    if (!p.cuda || !decode(config, s))
        return 0;
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    return kernel::estimateUs(s, rowsOf(p, false).m, g.n, g.k, p.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    kernel::Spec s = baseOf(p);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    return std::make_unique<VectorKernels>(p, s);
}

} // namespace tw::ops::gemv_i8
