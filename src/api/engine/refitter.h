// SPDX-License-Identifier: Apache-2.0
// The object behind IRefitter.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/engine/engine.h"

namespace tw::api {

struct RefitterObject final : nvinfer1::IRefitter
{
    // Weights that a refit replaces; the texts are the engine's.
    struct Source
    {
        char const* layer;
        std::string name; // of the client's array, empty: none
        nvinfer1::WeightsRole role;
        DataType type;
        int64_t count;
        size_t constant;                // position among the constants of the recipes
        int64_t begin = 0, ofArray = 0; // its elements are [begin, begin + count) of the client's array of `ofArray`
        bool hasTwins = false;          // other weights of the layer have its role, too: only a name tells them apart
    };

    // Tensors whose ranges INT8 steps were made of.
    struct Range
    {
        char const* tensor;
        std::vector<size_t> constants;
        std::optional<float> given; // the largest magnitude
    };

    RefitterObject(nvinfer1::ILogger* logger, std::shared_ptr<EngineState> s);

    mutable Reporter reporter;
    LoggerUse use;
    std::shared_ptr<EngineState> state;
    std::vector<Source> sources;
    std::vector<Range> ranges;
    std::map<size_t, nvinfer1::Weights> given; // by source: the client's memory until the refit
    int32_t maxThreads = 0;                    // 0: not set, the whole pool

    // Of constant `v` of the recipes, of position `constant`.
    void addSource(ir::Constant const& c, ir::Value const& v, size_t constant);
    // Takes weights for all of `wanted`, or an error for none.
    Result<void> take(char const* method, std::vector<size_t> const& wanted, nvinfer1::Weights const& weights);
    Result<Range*> rangeOf(char const* method, char const* tensor);
    // The range of the next refit, else of the engine as it is.
    float largestOf(Range const& range) const;
    Result<void> refit();
};
TW_OBJECT(nvinfer1::IRefitter, RefitterObject)

} // namespace tw::api
