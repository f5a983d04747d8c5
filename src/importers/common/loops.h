// SPDX-License-Identifier: Apache-2.0
// Loops of the network, as importers make them.
#pragma once

#include <string>
#include <vector>

#include "importers/common/node.h"

namespace tw::importers {

nvinfer1::ILoop& addLoop(ImportContext& ctx, std::string const& name);

// Values that go from trip to trip.
class Carried
{
public:
    Carried(ImportContext& ctx, nvinfer1::ILoop& loop) : ctx_(ctx), loop_(loop) {}

    ITensor& add(ITensor& first);
    void setNext(size_t i, ITensor& next, std::string const& what);
    ITensor& last(size_t i);

private:
    ImportContext& ctx_;
    nvinfer1::ILoop& loop_;
    std::vector<nvinfer1::IRecurrenceLayer*> layers_;
};

ITensor& stacked(ImportContext& ctx, nvinfer1::ILoop& loop, ITensor& x, int axis, bool reverse, ITensor* length);

} // namespace tw::importers
