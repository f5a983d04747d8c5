// SPDX-License-Identifier: Apache-2.0
// The list of stubs (src/api/stubs.def) against the allowed one (stubs_allowed.txt): no feature that may not be
// missing, and for each feature exactly as many calls as the file says, so that the list only gets shorter.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/builder/config.h"
#include "api/client.h"

using namespace tw::test;

namespace {

struct Line
{
    char const* feature;
    char const* call;
};
constexpr Line kStubs[] = {
#define TW_STUB_USE(feature, cls, method) {#feature, #cls "::" #method " (some arguments)"},
#define TW_STUB_FUNCTION(feature, function) {#feature, #function},
#define TW_STUB_ABROAD(feature, cls, method) {#feature, #cls "::" #method},
#include "api/stubs.def"
};

TEST(Stubs, AreTheAllowedOnes)
{
    std::map<std::string, size_t> allowed;
    std::ifstream file(TW_STUBS_ALLOWED);
    ASSERT_TRUE(file) << TW_STUBS_ALLOWED;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string feature;
        size_t count = 0;
        if (words >> feature >> count)
            allowed[feature] = count;
    }
    std::map<std::string, std::vector<std::string>> found;
    for (Line const& l : kStubs)
        found[l.feature].push_back(l.call);

    for (auto const& [feature, calls] : found) {
        ASSERT_TRUE(allowed.contains(feature)) << "'" << feature << "' may not be missing: " << calls[0];
        EXPECT_LE(calls.size(), allowed[feature]) << "'" << feature << "' has more stubs than before";
    }
    for (auto const& [feature, count] : allowed)
        EXPECT_GE(found[feature].size(), count)
            << "'" << feature << "' has fewer stubs now: write the new number into stubs_allowed.txt";

    std::ostringstream report;
    report << "stubs: " << std::size(kStubs) << " calls of " << found.size() << " features that come later\n";
    for (auto const& [feature, calls] : found) {
        report << "  " << feature << " (" << calls.size() << "):";
        for (auto const& c : calls)
            report << ' ' << c;
        report << '\n';
    }
    std::fputs(report.str().c_str(), stdout);
    if (char const* folder = std::getenv("TW_REPORT_DIR")) {
        std::ofstream out(std::string(folder) + "/stubs.txt");
        out << report.str();
        EXPECT_TRUE(out.good()) << folder;
    }
}

TEST(Stubs, GiveOneErrorLineAndChangeNothing)
{
    using namespace nvinfer1;
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter(&logger, &recorder);
    tw::api::BuilderConfigObject config(reporter);
    config.setEngineCapability(EngineCapability::kSAFETY);
    EXPECT_EQ(config.getEngineCapability(), EngineCapability::kSTANDARD);
    EXPECT_EQ(logger.errors(), 1);
    ASSERT_EQ(recorder.getNbErrors(), 1);
    EXPECT_EQ(recorder.getErrorCode(0), ErrorCode::kUNSUPPORTED_STATE);
    EXPECT_TRUE(contains(logger.lastError(), "IBuilderConfig::setEngineCapability")) << logger.lastError();
}

} // namespace
