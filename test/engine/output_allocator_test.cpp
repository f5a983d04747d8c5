// SPDX-License-Identifier: Apache-2.0
// IOutputAllocator: the strategies of the guide (A defer, B and C preallocate, D grow, E defer and keep), for outputs
// of fixed, dynamic and empty shape.
#include "engine/engines.h"

using namespace tw::test;

namespace {

class OutputAllocator final : public IOutputAllocator
{
public:
    void* reallocateOutput(char const* name, void* currentMemory, uint64_t size, uint64_t alignment) noexcept override
    {
        calls.push_back("reallocate " + std::string(name) + " " + std::to_string(size));
        current.push_back(currentMemory);
        EXPECT_GT(size, 0U);
        EXPECT_GT(alignment, 0U);
        EXPECT_EQ(alignment & (alignment - 1), 0U);
        if (refuse)
            return nullptr;
        if (size > capacity) {
            memory.reset(static_cast<char*>(std::aligned_alloc(alignment, (size / alignment + 1) * alignment)));
            capacity = size;
        }
        return memory.get();
    }
    void notifyShape(char const* name, Dims const& d) noexcept override
    {
        calls.push_back("notify " + std::string(name));
        shape = list(d);
    }
    float const* values() const { return reinterpret_cast<float const*>(memory.get()); }

    struct Free
    {
        void operator()(char* p) const { std::free(p); }
    };
    std::unique_ptr<char, Free> memory;
    uint64_t capacity = 0;
    bool refuse = false;
    std::vector<std::string> calls;
    std::vector<void*> current;
    std::vector<int32_t> shape;
};

// y = relu(x): [-1,3]; k = relu(c): [2]
struct Outputs : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    Context c;
    std::vector<float> x = ramp(30), fixed = {5, -6};
    void SetUp() override
    {
        ITensor* t = m.input("x", {-1, 3});
        m.output(m.relu(t), "y");
        m.output(m.relu(m.input("f", {2})), "k");
        m.profile({{"x", {0, 3}, {2, 3}, {10, 3}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        c = contextOf(*engine);
        c->setTensorAddress("x", x.data());
        c->setTensorAddress("f", fixed.data());
    }
};

TEST_F(Outputs, EveryOutputMayHaveOne)
{
    OutputAllocator y, k;
    EXPECT_EQ(c->getOutputAllocator("y"), nullptr);
    ASSERT_TRUE(c->setOutputAllocator("y", &y));
    ASSERT_TRUE(c->setOutputAllocator("k", &k));
    EXPECT_EQ(c->getOutputAllocator("y"), &y);
    ASSERT_TRUE(c->setInputShape("x", Dims2(2, 3)));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y.calls, (std::vector<std::string>{"reallocate y 24", "notify y"}));
    EXPECT_EQ(k.calls, (std::vector<std::string>{"reallocate k 8", "notify k"}));
    EXPECT_EQ(y.shape, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(k.shape, (std::vector<int32_t>{2}));
    EXPECT_EQ(y.values()[5], 5);
    EXPECT_EQ(k.values()[0], 5);
    EXPECT_EQ(k.values()[1], 0);
    EXPECT_EQ(y.current[0], nullptr);
    // Strategy E: the memory is kept as long as it is large enough; the context tells what it has.
    void* const first = y.memory.get();
    ASSERT_TRUE(c->setInputShape("x", Dims2(1, 3)));
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(y.current.back(), first);
    EXPECT_EQ(y.shape, (std::vector<int32_t>{1, 3}));
    ASSERT_TRUE(c->setInputShape("x", Dims2(10, 3)));
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(y.current.back(), first);
    EXPECT_EQ(y.values()[29], 29);
    ASSERT_TRUE(c->setInputShape("x", Dims2(0, 3)));
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(y.calls[y.calls.size() - 2], "reallocate y 1") << "an empty tensor has an address";
    EXPECT_EQ(y.shape, (std::vector<int32_t>{0, 3}));
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Outputs, AddressAndAllocator)
{
    // Strategies C and D: memory first, the allocator grows it or refuses.
    OutputAllocator y;
    std::vector<float> mine(6, -1), k(2);
    c->setTensorAddress("k", k.data());
    c->setTensorAddress("y", mine.data());
    c->setOutputAllocator("y", &y);
    ASSERT_TRUE(c->setInputShape("x", Dims2(10, 3)));
    y.refuse = true;
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("output 'y'"));
    EXPECT_EQ(y.current.back(), mine.data());
    EXPECT_EQ(y.calls, (std::vector<std::string>{"reallocate y 120"})) << "no shape after a refusal";
    y.refuse = false;
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(y.current.back(), mine.data());
    EXPECT_EQ(y.values()[29], 29);
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(y.current.back(), y.memory.get());
    EXPECT_EQ(c->getTensorAddress("y"), mine.data()) << "the client's address stays the client's";
    c->setTensorAddress("y", mine.data());
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(y.current.back(), mine.data());
    EXPECT_EQ(mine[0], -1);
    // Without an allocator the address counts again.
    ASSERT_TRUE(c->setOutputAllocator("y", nullptr));
    ASSERT_TRUE(c->setInputShape("x", Dims2(2, 3)));
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(mine, ramp(6));
    // executeV2 has addresses, no allocators.
    size_t const before = y.calls.size();
    c->setOutputAllocator("y", &y);
    std::vector<float> third(6, -1);
    void* bindings[] = {x.data(), fixed.data(), third.data(), k.data()};
    ASSERT_TRUE(c->executeV2(bindings)) << m.errors();
    EXPECT_EQ(third, ramp(6));
    EXPECT_EQ(y.calls.size(), before);
}

TEST_F(Outputs, NothingIsAskedForBeforeAllIsThere)
{
    OutputAllocator y;
    c->setOutputAllocator("y", &y);
    ASSERT_TRUE(c->setInputShape("x", Dims2(2, 3)));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'k'"));
    EXPECT_TRUE(y.calls.empty());
    EXPECT_FALSE(c->setOutputAllocator("x", &y));
    EXPECT_TRUE(m.oneError("'x' is an input"));
    EXPECT_FALSE(c->setOutputAllocator("nobody", &y));
    EXPECT_TRUE(m.oneError("nobody"));
    EXPECT_EQ(c->getOutputAllocator("nobody"), nullptr);
    EXPECT_TRUE(m.oneError("nobody"));
}

TEST_F(Outputs, MaxOutputSize)
{
    EXPECT_EQ(c->getMaxOutputSize("y"), -1) << "no input shape yet";
    m.takeErrors();
    EXPECT_EQ(c->getMaxOutputSize("x"), -1);
    EXPECT_TRUE(m.oneError("'x' is an input"));
    EXPECT_EQ(c->getMaxOutputSize("nobody"), -1);
    EXPECT_TRUE(m.oneError("nobody"));
    ASSERT_TRUE(c->setInputShape("x", Dims2(7, 3)));
    EXPECT_EQ(c->getMaxOutputSize("y"), 7 * 3 * 4);
    EXPECT_EQ(c->getMaxOutputSize("k"), 8);
}

} // namespace
