// SPDX-License-Identifier: Apache-2.0
// What the machine that an engine is built on can do at most: measured once in a process, in some milliseconds, and kept in the
// timing cache, so that equal caches give equal limits.
#pragma once

#include <map>
#include <string>

#include "base/types.h"
#include "tune/options.h"

namespace tw::tune {

class Rates
{
public:
    // Of the options' device and workers; they outlive it.
    explicit Rates(Options const& options) : options_(options) {}

    // Per microsecond; 0: not known. Each is measured when it is first asked for.
    double bytes();                       // of a copy, those read and those written
    double operations(DataType operands); // of sums of products, two for each product
    // Compiles what operations() would measure with, where it would have to; from any thread.
    void prepare(DataType operands) const;

private:
    enum class Kind : int
    {
        kCopy,
        kF32,
        kTf32,
        kF16,
    };
    Kind kindOf(DataType operands) const;
    double of(Kind kind);
    double measureOnCpu(Kind kind) const;
    double onceOnCpu(Kind kind) const;
    std::string keyOf(Kind kind) const;

    Options const& options_;
    std::map<Kind, double> known_;
};

// Of operands FP32 of vector units, TF32 and FP16 of tensor cores, or of a copy: as above, measured now.
double cudaCopyRate(cuda::Target const& target);
double cudaProductRate(cuda::Target const& target, DataType operands, bool tf32);
void compileProductRate(cuda::Target const& target, DataType operands, bool tf32);

} // namespace tw::tune
