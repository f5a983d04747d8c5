// SPDX-License-Identifier: Apache-2.0
// Energy by counters of a folder that the test writes, by a fake NVML, and what is made of it.
#include "power.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "energy.h"
#include "failure.h"
#include "memory_use.h"

namespace tw::trtexec {
namespace {

namespace fs = std::filesystem;

// A folder like /sys/class/powercap, whose entries are links there.
class Powercap : public testing::Test
{
protected:
    Powercap()
    {
        std::string text = (fs::temp_directory_path() / "powercap.XXXXXX").string();
        root_ = mkdtemp(text.data());
        fs::create_directory(folder());
        add("intel-rapl", "", "0", "");
    }
    ~Powercap() override { fs::remove_all(root_); }

    std::string folder() const { return root_ / "powercap"; }

    static void write(fs::path const& path, std::string const& text) { std::ofstream(path) << text; }

    void set(std::string const& domain, std::string const& microjoules)
    {
        write(root_ / domain / "energy_uj", microjoules);
    }

    void add(std::string const& domain, std::string const& name, std::string const& microjoules,
             std::string const& range = "262143328850\n")
    {
        fs::create_directory(root_ / domain);
        if (!name.empty())
            write(root_ / domain / "name", name + "\n");
        if (!range.empty())
            write(root_ / domain / "max_energy_range_uj", range);
        set(domain, microjoules + "\n");
        fs::create_directory_symlink(root_ / domain, folder() + "/" + domain);
    }

    std::string refusal() const
    {
        try {
            openRapl(folder())->joules();
        } catch (Failure const& failure) {
            return failure.what();
        }
        return "none";
    }

    fs::path root_;
};

TEST_F(Powercap, SumsPackagesAndNothingTwice)
{
    add("intel-rapl:0", "package-0", "1000000");
    add("intel-rapl:0:0", "core", "1000000");
    add("intel-rapl:0:1", "dram", "1000000");
    add("intel-rapl:1", "package-1", "7");
    add("intel-rapl:2", "psys", "5");
    add("intel-rapl-mmio:0", "package-0", "1000000");
    add("intel-rapl:10", "package-2-die-1", "0");
    auto const counter = openRapl(folder());
    EXPECT_EQ(counter->source(), "RAPL, 3 CPU packages");
    double const first = counter->joules();
    set("intel-rapl:0", "6000000\n");
    set("intel-rapl:0:0", "9000000\n");
    set("intel-rapl:0:1", "9000000\n");
    set("intel-rapl:1", "2500007\n");
    set("intel-rapl:2", "9000000\n");
    set("intel-rapl-mmio:0", "9000000\n");
    set("intel-rapl:10", "250000");
    EXPECT_EQ(counter->joules() - first, 5 + 2.5 + 0.25);
    EXPECT_EQ(counter->joules() - first, 5 + 2.5 + 0.25);
}

TEST_F(Powercap, CountersRunOver)
{
    add("intel-rapl:0", "package-0", "9000000", "10000000");
    auto const counter = openRapl(folder());
    EXPECT_EQ(counter->source(), "RAPL, 1 CPU package");
    EXPECT_EQ(counter->joules(), 0);
    set("intel-rapl:0", "2000000");
    EXPECT_EQ(counter->joules(), 3);
    set("intel-rapl:0", "10000000");
    EXPECT_EQ(counter->joules(), 11);
    set("intel-rapl:0", "0");
    EXPECT_EQ(counter->joules(), 11);
    // Random steps below the range, beside a sum that does not run over.
    std::mt19937 random(37);
    uint64_t at = 0, total = 0;
    for (int i = 0; i < 1000; ++i) {
        uint64_t const step = random() % 9999999;
        total += step;
        at += step;
        at = at > 10000000 ? at - 10000000 : at;
        set("intel-rapl:0", std::to_string(at));
        ASSERT_NEAR(counter->joules(), 11 + static_cast<double>(total) / 1e6, 1e-6) << i;
    }
}

TEST_F(Powercap, CounterThatBeginsAgain)
{
    add("intel-rapl:0", "package-0", "9000000", "5000000"); // above its range
    auto const counter = openRapl(folder());
    set("intel-rapl:0", "1000000");
    EXPECT_EQ(counter->joules(), 1);
}

TEST_F(Powercap, WhatCannotBeReadHasAReason)
{
    EXPECT_NE(refusal().find("has no counter of a CPU's package"), std::string::npos) << refusal();
    add("intel-rapl:0", "package-0", "0");
    EXPECT_EQ(refusal(), "none");
    for (char const* bad : {"x", "-1", "1.5", " 1", "99999999999999999999", "1 2"}) {
        set("intel-rapl:0", bad);
        EXPECT_NE(refusal().find("which is no count of microjoules"), std::string::npos) << bad << ": " << refusal();
        EXPECT_NE(refusal().find("intel-rapl:0/energy_uj"), std::string::npos) << refusal();
    }
    set("intel-rapl:0", "");
    EXPECT_NE(refusal().find("it is empty"), std::string::npos) << refusal();
    set("intel-rapl:0", std::string(100000, '1'));
    EXPECT_NE(refusal().find("no count of microjoules"), std::string::npos);
    fs::remove(root_ / "intel-rapl:0/energy_uj");
    EXPECT_NE(refusal().find("No such file or directory"), std::string::npos) << refusal();
    fs::create_directory(root_ / "intel-rapl:0/energy_uj");
    EXPECT_NE(refusal().find("Is a directory"), std::string::npos) << refusal();
    fs::remove_all(root_ / "intel-rapl:0/name");
    EXPECT_NE(refusal().find("intel-rapl:0/name"), std::string::npos) << refusal();
    fs::remove_all(folder());
    EXPECT_NE(refusal().find("the kernel shows no energy counters"), std::string::npos) << refusal();
    write(folder(), "a file");
    EXPECT_NE(refusal().find("Not a directory"), std::string::npos) << refusal();
}

TEST_F(Powercap, SecretCountersNameThePermission)
{
    if (geteuid() == 0)
        GTEST_SKIP() << "root reads every file";
    add("intel-rapl:0", "package-0", "0");
    fs::permissions(root_ / "intel-rapl:0/energy_uj", fs::perms::none);
    EXPECT_NE(refusal().find("Permission denied (most kernels let root alone"), std::string::npos) << refusal();
}

// Some watts, by the clock.
class Steady : public EnergyCounter
{
public:
    Steady(double& watts, int reads = 1 << 30) : watts_(watts), reads_(reads) {}
    std::string source() const override { return "a test"; }
    double joules() override
    {
        if (--reads_ < 0)
            throw Failure("the counter is gone");
        auto const now = PowerMeter::Clock::now();
        total_ += watts_ * std::chrono::duration<double>(now - last_).count();
        last_ = now;
        return total_;
    }

private:
    double& watts_;
    int reads_;
    PowerMeter::Clock::time_point last_ = PowerMeter::Clock::now();
    double total_ = 0;
};

void sleepMs(int ms)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

TEST(PowerMeter, RunBesideIdle)
{
    double watts = 10;
    PowerMeter meter([&] { return std::make_unique<Steady>(watts); }, std::chrono::milliseconds(100));
    watts = 50;
    meter.start();
    sleepMs(100); // warm-up
    auto const from = PowerMeter::Clock::now();
    sleepMs(300);
    auto const to = PowerMeter::Clock::now();
    sleepMs(50);
    meter.stop();
    PowerUse const use = meter.use(from, to, 60);
    EXPECT_EQ(use.reason, "");
    // What a busy machine does between a reading and its time.
    EXPECT_NEAR(use.idleWatts, 10, 3);
    EXPECT_NEAR(use.watts(), 50, 8);
    EXPECT_DOUBLE_EQ(use.joulesPerInference() * 60, use.joules);
    EXPECT_NEAR(use.joulesAboveIdle(), use.joulesPerInference() - use.idleWatts * use.seconds / 60, 1e-9);
    // Twice as long a part has twice the energy, wherever it lies.
    PowerUse const half = meter.use(from, from + (to - from) / 2, 30);
    EXPECT_NEAR(half.joules, use.joules / 2, use.joules / 10);
}

TEST(PowerMeter, NothingFails)
{
    auto const now = PowerMeter::Clock::now();
    PowerMeter none([]() -> std::unique_ptr<EnergyCounter> { throw Failure("no counter here"); });
    none.start();
    none.stop();
    EXPECT_EQ(none.use(now, now + std::chrono::seconds(1), 5).reason, "no counter here");

    double watts = 10;
    PowerMeter gone([&] { return std::make_unique<Steady>(watts, 4); }, std::chrono::milliseconds(0));
    gone.start();
    sleepMs(200);
    gone.stop();
    EXPECT_EQ(gone.use(now, now + std::chrono::seconds(1), 5).reason, "the counter is gone");

    double nothing = 0;
    PowerMeter still([&] { return std::make_unique<Steady>(nothing); }, std::chrono::milliseconds(0));
    still.start();
    still.stop();
    EXPECT_EQ(still.use(now, now + std::chrono::seconds(2), 5).reason, "a test: the counter did not move in 2 s");
    EXPECT_EQ(still.use(now, now, 5).reason, "nothing was measured");
    EXPECT_EQ(still.use(now, now + std::chrono::seconds(2), 0).reason, "nothing was measured");
}

TEST(PowerMeter, EndsWithItsReader)
{
    double watts = 10;
    PowerMeter meter([&] { return std::make_unique<Steady>(watts); }, std::chrono::milliseconds(0));
    meter.start(); // and no stop()
}

TEST(PowerReport, LinesAndJson)
{
    PowerUse use;
    use.source = "RAPL, 2 CPU packages";
    use.joules = 128;
    use.seconds = 2;
    use.inferences = 512;
    use.idleWatts = 16;
    EXPECT_EQ(powerLines(use), (std::vector<std::string>{"=== Power summary ===", "Energy Source: RAPL, 2 CPU packages",
                                                         "Mean Power: 64 W", "Idle Power: 16 W",
                                                         "Energy per Inference: 0.25 J (0.1875 J above idle)",
                                                         "Inferences per Joule: 4"}));
    auto const json = nlohmann::json::parse(powerJson(use));
    EXPECT_EQ(json, (nlohmann::json{{"source", use.source},
                                    {"meanPowerW", 64},
                                    {"idlePowerW", 16},
                                    {"energyPerInferenceJ", 0.25},
                                    {"energyAboveIdlePerInferenceJ", 0.1875},
                                    {"inferencesPerJoule", 4},
                                    {"inferences", 512},
                                    {"seconds", 2}}));
    use.reason = "it is '\xff'";
    EXPECT_EQ(powerLines(use).back(), "Power is not readable here: it is '\xff'");
    EXPECT_EQ(nlohmann::json::parse(powerJson(use)), (nlohmann::json{{"notReadable", "it is '\xef\xbf\xbd'"}}));
}

// Below LD_LIBRARY_PATH stands the fake (test/trtexec/CMakeLists.txt).
class FakeNvml : public testing::Test
{
protected:
    void SetUp() override
    {
        void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        sessions_ = library ? reinterpret_cast<int (*)()>(dlsym(library, "fakeNvmlSessions")) : nullptr;
        if (!sessions_)
            GTEST_SKIP() << "this run is not the one beside the fake NVML";
    }
    void TearDown() override
    {
        unsetenv("FAKE_NVML");
        unsetenv("FAKE_NVML_WATTS");
        if (sessions_) {
            EXPECT_EQ(sessions_(), 0);
        }
    }

    static std::string refusal(std::string const& mode, std::string const& busId = "0000:65:00.0")
    {
        setenv("FAKE_NVML", mode.c_str(), 1);
        try {
            openNvml(busId)->joules();
        } catch (Failure const& failure) {
            return failure.what();
        }
        return "none";
    }

    int (*sessions_)() = nullptr;
};

TEST_F(FakeNvml, EnergyAndPower)
{
    for (auto const& [mode, source] : {std::pair("energy", "NVML, the GPU's energy counter"),
                                       std::pair("power", "NVML, the GPU's power, summed up")}) {
        SCOPED_TRACE(mode);
        setenv("FAKE_NVML", mode, 1);
        setenv("FAKE_NVML_WATTS", "80", 1);
        PowerMeter meter([] { return openNvml("0000:65:00.0"); }, std::chrono::milliseconds(100));
        setenv("FAKE_NVML_WATTS", "400", 1);
        sleepMs(30);
        meter.start();
        sleepMs(60);
        auto const from = PowerMeter::Clock::now();
        sleepMs(300);
        auto const to = PowerMeter::Clock::now();
        meter.stop();
        PowerUse const use = meter.use(from, to, 10);
        EXPECT_EQ(use.reason, "");
        EXPECT_EQ(use.source, source);
        EXPECT_NEAR(use.idleWatts, 80, 20);
        EXPECT_NEAR(use.watts(), 400, 60);
    }
}

TEST_F(FakeNvml, Refusals)
{
    EXPECT_EQ(refusal("energy"), "none");
    EXPECT_EQ(refusal("power"), "none");
    EXPECT_EQ(refusal("nothing"), "NVML: nvmlDeviceGetPowerUsage: Not Supported (3)");
    EXPECT_EQ(refusal("init"), "NVML: nvmlInit_v2: Insufficient Permissions (4)");
    EXPECT_EQ(refusal("energy", "0000:66:00.0"), "NVML: nvmlDeviceGetHandleByPciBusId_v2: Not Found (6)");
}

TEST(Nvml, MayBeMissing)
{
    if (void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY)) {
        dlclose(library);
        GTEST_SKIP() << "this machine has NVML";
    }
    try {
        openNvml("0000:65:00.0");
        FAIL();
    } catch (Failure const& failure) {
        EXPECT_NE(std::string(failure.what()).find("NVML, which tells a GPU's energy, cannot be loaded"),
                  std::string::npos)
            << failure.what();
    }
}

TEST(MemoryUse, PeakIsSeenAfterItIsGone)
{
    constexpr size_t kBytes = 96 << 20;
    HostPeak const before;
    {
        HostPeak const peak;
        std::vector<char> block(kBytes, 1);
        EXPECT_NE(block[kBytes / 2], 0);
        block = {};
        EXPECT_GE(peak.rise(), kBytes * 9 / 10);
        EXPECT_LT(peak.rise(), kBytes * 8); // with the shadows of sanitizers
        EXPECT_GE(peak.highest(), peak.rise());
    }
    // A later part that needs little is not blamed for the mark.
    HostPeak const later;
    EXPECT_LT(later.rise(), kBytes / 2);
    EXPECT_GE(before.rise(), kBytes * 9 / 10);
}

} // namespace
} // namespace tw::trtexec
