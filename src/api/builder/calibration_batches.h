// SPDX-License-Identifier: Apache-2.0
// Batches of a client's calibrator.
#pragma once

#include "NvInfer.h"
#include "calibrate/calibrate.h"

namespace tw::cuda {
struct Target;
}

namespace tw::api {

// Asks getBatch() for all inputs but shape tensors and copies what they point to. Elements have the type of the network's
// input; those of INT8 inputs are FP32 numbers in [-128, 127].
class CalibrationBatches final : public calibrate::BatchSource
{
public:
    // `gpu`: addresses may be on it; null: they are on the host.
    CalibrationBatches(nvinfer1::IInt8Calibrator& calibrator, cuda::Target const* gpu)
        : calibrator_(calibrator), gpu_(gpu)
    {}
    Result<bool> next(std::vector<calibrate::Network::Input>& inputs) override;

private:
    Result<void> take(calibrate::Network::Input& input, void const* from) const;
    Result<void> copy(void* to, void const* from, size_t bytes) const;

    nvinfer1::IInt8Calibrator& calibrator_;
    cuda::Target const* gpu_;
    int batch_ = 0;
};

} // namespace tw::api
