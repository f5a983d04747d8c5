// SPDX-License-Identifier: Apache-2.0
// Recorded tensors of the ONNX cases and how they compare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "tw_onnx.pb.h"

namespace tw::test {

// A recorded tensor in the type that the network uses for it: INT64 is clamped to INT32, DOUBLE becomes FLOAT.
struct Recorded
{
    int onnxType = 0;
    nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
    std::vector<int64_t> dims;
    std::vector<double> values;
    std::vector<unsigned char> bytes; // values as `type`
};

size_t sizeOf(nvinfer1::DataType type);
std::string typeName(nvinfer1::DataType type);
std::string str(std::vector<int64_t> const& dims);
nvinfer1::Dims toDims(std::vector<int64_t> const& dims);
int64_t volume(std::vector<int64_t> const& dims);

std::string readFile(std::string const& path); // throws std::runtime_error
// isOptional: the file holds a tensor that could be missing (OptionalProto).
Recorded readRecorded(std::string const& path, bool isOptional = false); // throws std::runtime_error
std::vector<Recorded> readSequence(std::string const& path);             // likewise
// As the model says: BFLOAT16 was recorded as UINT16, the upper halves of floats.
void readAs(Recorded& r, int onnxType);
std::vector<double> toDoubles(void const* data, nvinfer1::DataType type, int64_t count);

// What a recorded result may differ by, relative to it: the tolerance of the ONNX suite, for numbers of few digits two units of
// the last one (BFLOAT16 is FP32 here, and not rounded on the way); integers and truth values must be equal.
double toleranceFor(Recorded const& want);
// Empty when |y - want| <= 1e-7 + tolerance |want| for every element, or y = want with a tolerance of 0, NaN equal to NaN and
// infinities to themselves; else the first difference and how many there are.
std::string compare(std::vector<double> const& got, std::vector<double> const& want, double tolerance);

} // namespace tw::test
