// SPDX-License-Identifier: Apache-2.0
// Calibration and histogram caches from untrusted bytes: what is taken is the same when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "calibrate/histogram.h"
#include "calibrate/table.h"
#include "calibrate/threshold.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    using namespace tw::calibrate;
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const table = readTable(text); table.ok()) {
        auto const again = readTable(writeTable(*table));
        if (!again.ok() || again->scales != table->scales || again->algorithm != table->algorithm ||
            again->version != table->version)
            std::abort();
    }
    if (auto const list = readHistograms(text); list.ok()) {
        auto const again = readHistograms(writeHistograms(*list, 8503));
        if (!again.ok() || *again != *list)
            std::abort();
        // And thresholds come of it, whatever it says.
        for (auto const& [name, h] : *list)
            if (!(scaleOf(largestThreshold(h)) >= 0) || !(scaleOf(quantileThreshold(h, 0.999, 0.5)) >= 0))
                std::abort();
    }
    return 0;
}
