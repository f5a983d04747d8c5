// SPDX-License-Identifier: Apache-2.0
// The calibration cache: the text of TensorRT 8.5.
//
//   TRT-8503-EntropyCalibration2
//   input: 3c010204
//   (Unnamed Layer* 1) [Convolution]_output: 3d0a1b2c
//
// The first line names version (major * 1000 + minor * 100 + patch) and algorithm. Then comes a line for each tensor: its
// name, a colon, a space, and the bits of its scale, an FP32 number, as hexadecimal digits without leading zeros. 0: the
// tensor has no scale, since it was 0 or not finite. Names may have colons; the last ": " counts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tw::calibrate {

enum class Algorithm : int // same numbers as nvinfer1::CalibrationAlgoType
{
    kLegacy = 0,
    kEntropy = 1,
    kEntropy2 = 2,
    kMinMax = 3,
};
inline constexpr int kAlgorithms = 4;

// "EntropyCalibration2"
char const* nameOf(Algorithm a);

struct Table
{
    int version = 0;
    std::string algorithm;                             // as the first line has it
    std::vector<std::pair<std::string, float>> scales; // in the order of the lines
};

std::string writeTable(Table const& table);
// Strict: each line must be as described above, and no tensor comes twice. Errors name the line.
Result<Table> readTable(std::string_view text);

// Whether a tensor of this name can stand in a table.
bool isWritable(std::string const& name);

} // namespace tw::calibrate
