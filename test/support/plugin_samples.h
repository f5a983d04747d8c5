// SPDX-License-Identifier: Apache-2.0
// A plugin of each kind that libnvinfer_plugin has, with fields and inputs on which it gives something: for tests that go
// through all of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace tw::test {

struct PluginSample
{
    char const *name, *version;
    // "a=1 b=0.5,2. c=w24": integers; floats, by their point; weights, 24 random floats.
    char const* fields;
    // "t2x3 f4*2 i5<7 i3=0,4,9": t FP32 or FP16, as the test wants, f FP32, i INT32; dimensions; floats in 0..1, or with
    // * in -2..2; integers in 0..6; or these numbers, over and over.
    char const* inputs;
};
std::span<PluginSample const> pluginSamples();

struct SampleField
{
    std::string name;
    nvinfer1::PluginFieldType type{};
    std::vector<float> floats; // one of the two lists
    std::vector<int32_t> integers;
    nvinfer1::PluginField field() const;
};
std::vector<SampleField> fieldsOf(PluginSample const& sample);

struct SampleInput
{
    char letter = 't';
    std::vector<int32_t> shape;
    std::vector<double> values;
};
std::vector<SampleInput> inputsOf(PluginSample const& sample, unsigned seed);

// Null where it is refused. Split, which no creator makes of fields, is read from bytes.
nvinfer1::IPluginV2* makePlugin(nvinfer1::IPluginCreator& creator, std::vector<SampleField> const& fields);

} // namespace tw::test
