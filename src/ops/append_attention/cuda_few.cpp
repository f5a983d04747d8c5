// SPDX-License-Identifier: Apache-2.0
// Few queries on a head of keys: kernels/cuda/attention/few_rows. The config: {warps, blocks}.
#include "families/attention/cuda_fused.h"
#include "kernels/cuda/attention/few_rows.h"
#include "ops/append_attention/cuda_parts.h"

namespace tw::ops::append_attention {

namespace {

namespace few = cuda::attention_few_rows;

few::Spec specOf(Problem const& problem, Config const& config)
{
    auto const parts = Parts::of(problem);
    Problem const& attending = (*parts)[Part::kAttention];
    few::Spec s = attention::fewRowsSpec(attending, config, attention::maskPlan(attending).masks);
    auto const& a = problem.node->attrsAs<Attrs>();
    s.appends = true;
    s.rotary = int(a.rotarySize);
    s.interleaved = a.interleaved;
    auto const isByPair = [&](int i) {
        Extents const& e = problem.inputs[size_t(i)].maxDims;
        return a.isTurned() && e[3] * 2 == a.rotarySize;
    };
    s.cosinesByPair = isByPair(kCosines);
    s.sinesByPair = isByPair(kSines);
    return s;
}

// Whether the rows that new keys (or values) are read from have places that are multiples of 8 elements.
bool isOfUnits(int64_t offset, int64_t headStride, Extents const& u)
{
    constexpr int64_t kUnit = 8;
    return u[u.rank - 1] % kUnit == 0 && offset % kUnit == 0 && headStride % kUnit == 0;
}

Support supports(Problem const& problem)
{
    auto const parts = Parts::of(problem);
    auto const& a = problem.node->attrsAs<Attrs>();
    TW_SUPPORTS(attention::supportsFewRows((*parts)[Part::kAttention]));
    bool const areUnits = isOfUnits(a.valueOffset, a.valueHeadStride, problem.inputs[kNewValues].dims) &&
                          (a.isTurned() ? isOfUnits(a.attention.q.offset, 0, problem.inputs[kQueries].dims)
                                        : isOfUnits(a.keyOffset, a.keyHeadStride, problem.inputs[kNewKeys].dims));
    if (!areUnits)
        return Support::no("takes new rows that begin at multiples of 8 elements");
    if (char const* const reason = unsupported(specOf(problem, {1, 1})))
        return Support::no(reason);
    return Support::yes();
}

std::vector<Config> configs(Problem const& problem)
{
    return attention::fewRowsConfigs((*Parts::of(problem))[Part::kAttention]);
}

class Kernels final : public CudaKernels
{
public:
    Kernels(Problem const& problem, few::Spec const& spec)
        : CudaKernels(wholeSource(cuda::attention_f16::kKernel, spec)), spec_(spec),
          attrs_(problem.node->attrsAs<Attrs>()), plan_(attention::maskPlan((*Parts::of(problem))[Part::kAttention]))
    {}
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        for (int i : {0, 1})
            TW_TRY(copyCache(launch, args.inputs[size_t(kKeyCache + i)], args.outputs[size_t(1 + i)]));
        AttentionInputs const attended(args.inputs[kQueries], args.inputs, args.outputs);
        RunArgs own = args;
        own.inputs = attended;
        attention::FusedRun const r = attention::fusedRun(attrs_.attention, plan_, own);
        few::AppendingArgs whole;
        static_cast<cuda::AttentionArgs&>(whole) = r.args;
        whole.fresh = newRows(args);
        return launch.withGeometry(0, few::launch(spec_, r.shape), {&whole});
    }

private:
    // Where the caches do not stay where they are.
    static Result<void> copyCache(CudaLaunch const& launch, TensorRef const& from, TensorRef const& to)
    {
        if (from.data == to.data || to.count() == 0)
            return {};
        cuda::Driver const& driver = launch.device().driver();
        return driver.check(driver.cuMemcpyDtoDAsync(cuda::addressOf(to.data), cuda::addressOf(from.data),
                                                     size_t(to.sizeBytes()), launch.stream()),
                            "cuMemcpyDtoDAsync");
    }
    decltype(few::AppendingArgs::fresh) newRows(RunArgs const& args) const
    {
        auto const& in = args.inputs;
        decltype(few::AppendingArgs::fresh) fresh;
        auto const place = [](cache_update::Attrs const& a, TensorRef const& cache, TensorRef const& u,
                              void const*& data, cuda::AttentionStrides& strides) {
            cache_update::Layout const at(a, cache.dims, u.dims);
            data = u.as<std::byte>() + at.offset * int64_t(sizeOf(u.type));
            strides = {at.imageStride, at.groupStride, at.rowStride};
            return at.rows;
        };
        fresh.index = in[kIndex].as<int32_t>();
        fresh.rows = int32_t(place(attrs_.valueUpdate(), in[kValueCache], in[kNewValues], fresh.v, fresh.vStride));
        if (!attrs_.isTurned()) {
            place(attrs_.keyUpdate(), in[kKeyCache], in[kNewKeys], fresh.k, fresh.kStride);
            return fresh;
        }
        cache_update::Attrs keys = attrs_.keyUpdate();
        keys.offset += attrs_.attention.q.offset; // of rows before they are turned
        place(keys, in[kKeyCache], in[kQueries], fresh.k, fresh.kStride);
        auto const weights = [](TensorRef const& t, void const*& data, int64_t& batch, int64_t& row) {
            data = t.data;
            row = t.dims[1] == 1 ? 0 : t.dims[3];
            batch = t.dims[0] == 1 ? 0 : t.dims[1] * t.dims[3];
        };
        weights(in[kCosines], fresh.cosines, fresh.cosineBatch, fresh.cosineRow);
        weights(in[kSines], fresh.sines, fresh.sineBatch, fresh.sineRow);
        return fresh;
    }

    few::Spec const spec_;
    Attrs const& attrs_;
    attention::MaskPlan const plan_;
};

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    if (isConfig(config, 2, 1, 256))
        if (few::Spec const spec = specOf(problem, config); !unsupported(spec))
            return std::make_unique<Kernels>(problem, spec);
    return attention::noAttention();
}

} // namespace

constinit CudaTactic const kF16Few{"append_attention_f16_few_rows_sm80", 1, generate, supports, configs};

} // namespace tw::ops::append_attention
