// SPDX-License-Identifier: Apache-2.0
#include "tactic/cudnn_layer.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "device/cuda/device.h"
#include "tactic/cuda_library.h"

namespace tw::ops {

namespace {

using cuda::Cudnn;

Result<Cudnn const*> open(Problem const& p)
{
    if (!p.target.cuda || !p.target.cuda->device || !p.target.cuda->libraries)
        return internalError("cuDNN is asked without a GPU");
    return p.target.cuda->libraries->cudnn();
}

std::string keyOf(Problem const& p, CudnnLayer const& layer)
{
    return p.target.cuda->device->info().fingerprint() + "|" + layer.text + "|";
}

// Two lines before the plan: the library, and hashes of the plan and of the layer that it is for.
std::string headOf(Cudnn const& cudnn, CudnnLayer const& layer, std::string const& plan)
{
    return fmt::format("cuDNN {}\n{} {}\n", cudnn.version(), hashBytes(plan.data(), plan.size()), hashText(layer.text));
}
std::optional<std::string> planIn(std::string const& image, Cudnn const& cudnn, CudnnLayer const& layer)
{
    size_t const first = image.find('\n'), second = first == std::string::npos ? first : image.find('\n', first + 1);
    if (second == std::string::npos || second + 1 == image.size())
        return std::nullopt;
    std::string plan = image.substr(second + 1);
    if (image.substr(0, second + 1) != headOf(cudnn, layer, plan))
        return std::nullopt;
    return plan;
}

struct KeptPack final : Kept
{
    cuda::CudnnAddresses at;
    cuda::CudnnDescriptor pack;
};

} // namespace

std::vector<Config> cudnnConfigs(Problem const& p, CudnnLayer const& layer, int most)
{
    std::vector<Config> list;
    auto const opened = open(p);
    if (!opened.ok())
        return list;
    Cudnn const& cudnn = **opened;
    auto const count = cudnn.once(keyOf(p, layer) + "engines", [&]() -> Result<std::string> {
        cuda::Current const current(*p.target.cuda->device);
        TW_ASSIGN(auto const handle, cudnn.lend(p.target.cuda->device));
        TW_ASSIGN(cuda::CudnnGraph graph, layer.graph(cudnn, handle->get()));
        TW_ASSIGN(int64_t const engines, graph.engines());
        return std::to_string(engines);
    });
    for (int rank = 0; count.ok() && rank < std::min(most, std::stoi(*count)); ++rank)
        list.push_back({rank});
    return list;
}

Result<std::string> buildCudnn(Problem const& p, CudnnLayer const& layer, int rank)
{
    TW_ASSIGN(Cudnn const* const cudnn, open(p));
    return cudnn->once(fmt::format("{}{}", keyOf(p, layer), rank), [&]() -> Result<std::string> {
        cuda::Current const current(*p.target.cuda->device);
        TW_ASSIGN(auto const handle, cudnn->lend(p.target.cuda->device));
        TW_ASSIGN(cuda::CudnnGraph graph, layer.graph(*cudnn, handle->get()));
        TW_ASSIGN(cuda::CudnnPlan const plan, graph.plan(rank));
        auto text = plan.text();
        return text.ok() ? headOf(*cudnn, layer, *text) + *text : headOf(*cudnn, layer, ""); // it is made again at load
    });
}

Result<CudnnRunner> CudnnRunner::load(Problem const& p, CudnnLayer const& layer, int rank, std::string const& image)
{
    CudnnRunner r;
    TW_ASSIGN(r.cudnn_, open(p));
    r.device_ = p.target.cuda->device;
    r.libraries_ = p.target.cuda->libraries;
    cuda::Current const current(*r.device_);
    TW_ASSIGN(auto const handle, r.cudnn_->lend(r.device_));
    if (auto const text = planIn(image, *r.cudnn_, layer))
        if (auto restored = cuda::CudnnPlan::restore(*r.cudnn_, handle->get(), *text); restored.ok()) {
            r.plan_ = std::move(*restored);
            return r;
        }
    TW_ASSIGN(cuda::CudnnGraph graph, layer.graph(*r.cudnn_, handle->get()));
    TW_ASSIGN(r.plan_, graph.plan(rank));
    return r;
}

Result<void> CudnnRunner::execute(void* pack, CUstream_st* stream) const
{
    TW_ASSIGN(auto const handle, cudnn_->lend(device_));
    TW_TRY(cudnn_->check(cudnn_->cudnnSetStream(handle->get(), stream), "cudnnSetStream"));
    return cudnn_->check(cudnn_->cudnnBackendExecute(handle->get(), plan_.get(), pack), "cudnnBackendExecute");
}

Result<void> CudnnRunner::run(cuda::CudnnAddresses const& at, CUstream_st* stream, std::unique_ptr<Kept>* kept) const
{
    if (kept && *kept && static_cast<KeptPack&>(**kept).at == at)
        return execute(static_cast<KeptPack&>(**kept).pack.get(), stream);
    TW_ASSIGN(cuda::CudnnDescriptor pack, cuda::makePack(*cudnn_, at));
    TW_TRY(execute(pack.get(), stream));
    if (kept) {
        auto made = std::make_unique<KeptPack>();
        made->at = at;
        made->pack = std::move(pack);
        *kept = std::move(made);
    }
    return {};
}

void CudnnRunner::warmUp(cuda::CudnnAddresses const& at) const
{
    cuda::warmUp(device_, [&](CUstream_st* stream) { return run(at, stream, nullptr); });
}

} // namespace tw::ops
