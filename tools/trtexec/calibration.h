// SPDX-License-Identifier: Apache-2.0
// Gives the builder an INT8 calibration cache that was written earlier; the tool has no images to calibrate with.
#pragma once

#include <string_view>

#include <NvInfer.h>

#include "files.h"

namespace tw::trtexec {

class CalibrationCache : public nvinfer1::IInt8EntropyCalibrator2
{
public:
    explicit CalibrationCache(std::string const& path) : bytes_(readFile(path)) {}

    // That of the cache's first line, TRT-<version>-<algorithm>, so that scales of other calibrators serve, too.
    nvinfer1::CalibrationAlgoType getAlgorithm() noexcept override
    {
        using nvinfer1::CalibrationAlgoType;
        std::string_view const text(reinterpret_cast<char const*>(bytes_.data()), bytes_.size());
        std::string_view const line = text.substr(0, text.find_first_of("\r\n"));
        if (line.ends_with("-MinMaxCalibration"))
            return CalibrationAlgoType::kMINMAX_CALIBRATION;
        return line.ends_with("-EntropyCalibration") ? CalibrationAlgoType::kENTROPY_CALIBRATION
                                                     : CalibrationAlgoType::kENTROPY_CALIBRATION_2;
    }
    int32_t getBatchSize() const noexcept override { return 1; }
    bool getBatch(void*[], char const*[], int32_t) noexcept override { return false; }
    void const* readCalibrationCache(std::size_t& length) noexcept override
    {
        length = bytes_.size();
        return bytes_.empty() ? nullptr : bytes_.data();
    }
    void writeCalibrationCache(void const*, std::size_t) noexcept override {}

private:
    std::vector<std::byte> bytes_;
};

} // namespace tw::trtexec
