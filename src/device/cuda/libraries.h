// SPDX-License-Identifier: Apache-2.0
// cuBLASLt and cuDNN, opened when a tactic first asks for them: they are large, and many machines have neither. What
// was found, or why not, holds as long as this lives.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "device/cuda/cublaslt.h"
#include "device/cuda/cudnn.h"

namespace tw::cuda {

class Libraries
{
public:
    Libraries(SearchPath cublasLt, SearchPath cudnn) : cublasLtPath_(std::move(cublasLt)), cudnnPath_(std::move(cudnn))
    {}
    Result<CublasLt const*> cublasLt();
    Result<Cudnn const*> cudnn();

private:
    SearchPath cublasLtPath_, cudnnPath_;
    std::mutex mutex_;
    std::unique_ptr<CublasLt> cublasLt_;
    std::unique_ptr<Cudnn> cudnn_;
    std::optional<Error> noCublasLt_, noCudnn_;
};

} // namespace tw::cuda
