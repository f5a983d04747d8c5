// SPDX-License-Identifier: Apache-2.0
// What a model says of its inputs' dimensions by their names.
#include "onnx/model.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

std::optional<int> numberIn(std::string const& name)
{
    bool const isNumber =
        !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
    return isNumber ? std::optional(std::stoi(name)) : std::nullopt;
}

namespace {

// "past_sequence_length + 1" as its words; empty where it is no sum.
std::vector<std::string> summandsOf(std::string const& name)
{
    std::vector<std::string> words;
    for (size_t at = 0; at <= name.size();) {
        size_t const end = std::min(name.find('+', at), name.size());
        size_t const first = name.find_first_not_of(' ', at), last = name.find_last_not_of(' ', end - (end > 0));
        if (first >= end || last == std::string::npos || last < first)
            return {};
        words.push_back(name.substr(first, last - first + 1));
        at = end + 1;
    }
    return words.size() > 1 ? words : std::vector<std::string>();
}

} // namespace

void ModelImporter::readSums(tw_onnx::GraphProto const& graph)
{
    tw_onnx::NodeProto helper;
    helper.set_name("dimensions");
    OnnxNode ctx(*this, helper, {}, opset_);
    std::map<std::string, Size> sizes; // by their names: those of an input
    auto const sizeOf = [&](std::string const& word) -> std::optional<Size> {
        if (auto const number = numberIn(word))
            return Size(*number);
        if (auto const it = sizes.find(word); it != sizes.end())
            return it->second;
        for (int i = 0; i < network().getNbInputs(); ++i) {
            ITensor& input = *network().getInput(i);
            for (int d = 0; d < input.getDimensions().nbDims; ++d)
                if (char const* const name = input.getDimensionName(d); name && word == name)
                    return sizes.emplace(word, ctx.sizesOf(input)[size_t(d)]).first->second;
        }
        return std::nullopt;
    };
    for (auto const& input : graph.input()) {
        Value& value = values()[input.name()];
        if (!value.isTensor() || value.type() == DataType::kUINT8)
            continue;
        auto const& shape = input.type().tensor_type().shape();
        Sizes wanted;
        for (int d = 0; d < shape.dim_size(); ++d) {
            std::vector<std::string> const words = summandsOf(shape.dim(d).dim_param());
            std::optional<Size> sum = words.empty() ? std::nullopt : std::optional<Size>(0);
            for (std::string const& word : words)
                if (std::optional<Size> const part = sum ? sizeOf(word) : std::nullopt)
                    sum = ctx.add(*sum, *part);
                else
                    sum.reset();
            if (!sum)
                continue;
            if (wanted.empty())
                wanted = ctx.sizesOf(value.tensor());
            wanted[size_t(d)] = *sum;
        }
        if (!wanted.empty())
            value =
                Value(ctx.slice(value.tensor(), Sizes(wanted.size(), Size(0)), wanted, Sizes(wanted.size(), Size(1))),
                      value.integers());
    }
}

} // namespace tw::onnx
