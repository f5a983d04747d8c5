// SPDX-License-Identifier: Apache-2.0
// docs/fusions.md names passes and graphs that exist, and every pass that fuses.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "passes/list.h"

namespace tw::test {

namespace {

namespace fs = std::filesystem;

// What stands between backquotes.
std::vector<std::string> quotedIn(std::string const& cell)
{
    static std::regex const quoted("`([^`]+)`");
    std::vector<std::string> words;
    for (auto it = std::sregex_iterator(cell.begin(), cell.end(), quoted); it != std::sregex_iterator(); ++it)
        words.push_back((*it)[1]);
    return words;
}

// Cells of the table's rows, the two lines of its head left out.
std::vector<std::vector<std::string>> rowsOf(fs::path const& page)
{
    std::vector<std::vector<std::string>> rows;
    std::ifstream file(page);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("| "))
            continue;
        std::vector<std::string> cells;
        for (size_t at = 1; at < line.size();) {
            size_t const end = line.find('|', at);
            cells.push_back(line.substr(at, end - at));
            at = end == std::string::npos ? end : end + 1;
        }
        rows.push_back(std::move(cells));
    }
    if (rows.size() >= 2)
        rows.erase(rows.begin(), rows.begin() + 2);
    return rows;
}

bool isPass(std::string const& name)
{
    auto const& list = passes::pipeline();
    return std::any_of(list.begin(), list.end(), [&](passes::Pass const& p) { return p.name == name; });
}

} // namespace

TEST(FusionsPage, NamesPassesAndGraphsThatExist)
{
    auto const rows = rowsOf(TW_FUSIONS_PAGE);
    ASSERT_GT(rows.size(), 25u);
    std::set<std::string> named;
    for (auto const& row : rows) {
        SCOPED_TRACE(row[0]);
        ASSERT_EQ(row.size(), 4u);
        auto const passes = quotedIn(row[1]), graphs = quotedIn(row[2]);
        EXPECT_EQ(passes.empty(), graphs.empty()) << "a fusion has a pass and a graph that shows it, or neither";
        EXPECT_TRUE(!passes.empty() || row[3].find("always") != std::string::npos) << "no word on why it is not made";
        for (std::string const& pass : passes) {
            EXPECT_TRUE(isPass(pass)) << pass;
            named.insert(pass);
        }
        for (std::string const& graph : graphs) {
            EXPECT_TRUE(fs::exists(fs::path(TW_PASS_GRAPHS) / (graph + ".graph"))) << graph;
            EXPECT_EQ(graph.substr(0, graph.find('/')), passes[0]) << "a graph of the pass shows the fusion";
        }
    }
    for (char const* pass : {"fuse_reduce", "fuse_log_softmax", "fuse_shuffle_reduce", "fuse_activation",
                             "fuse_pointwise", "merge_convolutions", "merge_unrolled_products", "remove_identities"})
        EXPECT_TRUE(named.contains(pass)) << pass << " is not on the page";
}

} // namespace tw::test
