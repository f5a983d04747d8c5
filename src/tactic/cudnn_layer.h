// SPDX-License-Identifier: Apache-2.0
// What tactics by cuDNN share: plans as images, and running them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/cuda/cudnn_graph.h"
#include "tactic/tactic.h"

namespace tw::cuda {
class Libraries;
}

namespace tw::ops {

// A layer as the library sees it.
struct CudnnLayer
{
    std::string text; // all that its graph depends on
    std::function<Result<cuda::CudnnGraph>(cuda::Cudnn const&, cuda::CudnnHandle*)> graph;
};

// One number, a place in the list of the library's heuristic, for each of the first `most` that there are.
std::vector<Config> cudnnConfigs(Problem const& problem, CudnnLayer const& layer, int most);
// The image: the library's version, a hash, and the plan as the library writes it, compiled code included.
Result<std::string> buildCudnn(Problem const& problem, CudnnLayer const& layer, int rank);

// A plan that runs on the problem's GPU. May be shared by threads.
class CudnnRunner
{
public:
    // From the image, or, where that is another version's, made again.
    static Result<CudnnRunner> load(Problem const& problem, CudnnLayer const& layer, int rank,
                                    std::string const& image);

    int64_t workspaceBytes() const { return plan_.workspaceBytes(); }
    // Puts it on the stream; the addresses' form is kept for the next run. The device's context is current.
    Result<void> run(cuda::CudnnAddresses const& at, CUstream_st* stream, std::unique_ptr<Kept>* kept) const;
    // Has the library load the kernels, so that the first run may be captured.
    void warmUp(cuda::CudnnAddresses const& at) const;
    std::shared_ptr<cuda::Device const> const& device() const { return device_; }

private:
    CudnnRunner() = default;
    Result<void> execute(void* pack, CUstream_st* stream) const;
    std::shared_ptr<cuda::Device const> device_;
    std::shared_ptr<cuda::Libraries> libraries_; // keeps the library
    cuda::Cudnn const* cudnn_ = nullptr;
    cuda::CudnnPlan plan_;
};

} // namespace tw::ops
