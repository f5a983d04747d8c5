// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void one(ImportContext&) {}
void another(ImportContext&) {}

} // namespace

TEST(ImporterMap, OpsetsAreSplit)
{
    ImporterMap map;
    map.add("Softmax", one, 1, 12);
    map.add("Softmax", another, 13);
    EXPECT_EQ(map.find("Softmax", 12), one);
    EXPECT_EQ(map.find("Softmax", 13), another);
    EXPECT_EQ(map.find("Softmax", 21), another);
    EXPECT_EQ(map.find("Hardmax", 13), nullptr);
    EXPECT_TRUE(map.contains("Softmax"));
}

TEST(ImporterMap, TwoImportersOfOneOpsetAreRefused)
{
    ImporterMap map;
    map.add("Softmax", one, 5, 12);
    for (auto const& [first, last] : {std::pair{12, 12}, {1, 5}, {1, ImporterMap::kNewestOpset}, {6, 7}, {5, 12}})
        try {
            map.add("Softmax", another, first, last);
            ADD_FAILURE() << first << " to " << last << " is taken";
        } catch (std::logic_error const& e) {
            EXPECT_EQ(std::string(e.what()).find("Softmax has two importers for opset "), 0u) << e.what();
        }
    EXPECT_EQ(map.find("Softmax", 12), one);
    EXPECT_EQ(map.find("Softmax", 4), nullptr);
    map.add("Softmax", another, 1, 4);
    EXPECT_EQ(map.find("Softmax", 4), another);
}

} // namespace tw::onnx
