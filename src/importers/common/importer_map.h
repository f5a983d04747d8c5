// SPDX-License-Identifier: Apache-2.0
// The table from foreign operators to what makes layers of them: ONNX's operators by their opset, and the operators of other
// formats and libraries, whose domain is theirs, by their version. One function may serve the operators of several domains
// that mean the same under names and attributes of their own.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tw::importers {

class ImportContext;

using Importer = void (*)(ImportContext& ctx);

class ImporterMap
{
public:
    struct Entry
    {
        Importer run;
        int firstOpset, lastOpset;
    };
    static constexpr int kNewestOpset = 1 << 30;
    // Several entries for one operator may split the opsets between them; throws std::logic_error when two share one. The
    // domain of ONNX's own operators is "".
    void add(char const* opType, Importer run, int firstOpset = 1, int lastOpset = kNewestOpset,
             char const* domain = "");
    void remove(char const* opType, char const* domain = "");
    Importer find(std::string const& opType, int opset, std::string const& domain = "") const; // nullptr: there is none
    bool contains(std::string const& opType, std::string const& domain = "") const;

private:
    std::map<std::pair<std::string, std::string>, std::vector<Entry>> entries_; // by domain and operator
};

} // namespace tw::importers
