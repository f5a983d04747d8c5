// SPDX-License-Identifier: Apache-2.0
// One ONNX backend case: a folder with model.onnx and test_data_set_*/{input,output}_<i>.pb.
#pragma once

#include <set>
#include <string>

namespace tw::test {

struct CaseFacts
{
    std::set<std::string> ops;   // operators of the graph and its subgraphs
    std::set<std::string> types; // element types of inputs, outputs, initializers and attributes
};

struct CaseResult
{
    bool passed = false;
    std::string stage;   // where it failed: read, parse, build, load, run, compare; "baked" for a pass with inputs that
                         // were given as initializers because the parser demands them there
    std::string message; // empty when passed
};

CaseFacts factsOf(std::string const& folder);

// Imports the model, builds an engine through the public API, runs it on the recorded inputs and compares the outputs.
CaseResult runCase(std::string const& folder, bool parseOnly, bool verbose);

// Imports `rounds` models that differ from the case's in a few bytes, or in a few fields: nothing may crash or hang.
// Gives the number of models that were refused. The same seed gives the same models.
// `build`: engines are built from the models that are accepted and have small inputs of fixed shapes.
int runChanged(std::string const& folder, int rounds, unsigned seed, bool build);

} // namespace tw::test
