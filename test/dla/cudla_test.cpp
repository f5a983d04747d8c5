// SPDX-License-Identifier: Apache-2.0
// Loadables by cuDLA: the same numbers as an engine's, what modules tell of themselves, and every status.
#include "cudla.h"

#include <cstring>

#include "dla/dla_maker.h"
#include "dla/half.h"

using namespace tw::test;

namespace {

struct Standalone : DlaMaker
{
    explicit Standalone(char const* model = "orin") : DlaMaker(model)
    {
        config->setEngineCapability(EngineCapability::kDLA_STANDALONE);
        config->setFlag(BuilderFlag::kDIRECT_IO);
    }
    // Two inputs, two outputs: conv(x) + z, and a relu of it.
    void fill(TensorFormat image = TensorFormat::kDLA_HWC4, TensorFormat rest = TensorFormat::kDLA_LINEAR)
    {
        ITensor *x = input("x", {2, 3, 6, 21}, DataType::kHALF), *z = input("z", {2, 18, 6, 21}, DataType::kHALF);
        auto* c = convolution(x, 18, {3, 3});
        c->setPaddingNd(DimsHW(1, 1));
        ITensor* sum = add(c->getOutput(0), z);
        output(sum, "sum");
        output(relu(sum), "y");
        x->setAllowedFormats(1U << int(image));
        z->setAllowedFormats(1U << int(rest));
        for (int i = 0; i < 2; ++i) {
            network->getOutput(i)->setType(DataType::kHALF);
            network->getOutput(i)->setAllowedFormats(1U << int(rest));
        }
    }
};

struct Buffers
{
    std::vector<std::vector<uint64_t>> memory;
    std::vector<uint64_t*> registered;

    uint8_t* bytes(size_t i) { return reinterpret_cast<uint8_t*>(memory[i].data()); }
};

TEST(Cudla, LoadableEqualsTheEngine)
{
    for (char const* model : {"orin", "xavier"})
        for (auto const& [image, rest] : {std::pair(TensorFormat::kDLA_HWC4, TensorFormat::kDLA_LINEAR),
                                          {TensorFormat::kDLA_LINEAR, TensorFormat::kCHW16},
                                          {TensorFormat::kCHW16, TensorFormat::kCHW16}}) {
            Standalone m(model);
            m.fill(image, rest);
            auto const loadable = m.plan();
            ASSERT_NE(loadable, nullptr) << m.errors();
            EXPECT_TRUE(contains(m.linesWith("candidates"), "1 of 1"));
            // The same network as an engine.
            m.config->setEngineCapability(EngineCapability::kSTANDARD);
            auto const engine = m.engine();
            ASSERT_NE(engine, nullptr) << m.errors();
            Context const context = contextOf(*engine);

            uint64_t count = 0;
            ASSERT_EQ(cudlaDeviceGetCount(&count), cudlaSuccess);
            EXPECT_EQ(count, 2U);
            cudlaDevHandle device = nullptr;
            ASSERT_EQ(cudlaCreateDevice(1, &device, CUDLA_CUDA_DLA), cudlaSuccess);
            cudlaModule module = nullptr;
            ASSERT_EQ(cudlaModuleLoadFromMemory(device, static_cast<uint8_t const*>(loadable->data()), loadable->size(),
                                                &module, 0),
                      cudlaSuccess);
            cudlaModuleAttribute a;
            ASSERT_EQ(cudlaModuleGetAttributes(module, CUDLA_NUM_INPUT_TENSORS, &a), cudlaSuccess);
            ASSERT_EQ(a.numInputTensors, 2U);
            ASSERT_EQ(cudlaModuleGetAttributes(module, CUDLA_NUM_OUTPUT_TENSORS, &a), cudlaSuccess);
            ASSERT_EQ(a.numOutputTensors, 2U);
            std::vector<cudlaModuleTensorDescriptor> d(4);
            a.inputTensorDesc = d.data();
            ASSERT_EQ(cudlaModuleGetAttributes(module, CUDLA_INPUT_TENSOR_DESCRIPTORS, &a), cudlaSuccess);
            a.outputTensorDesc = d.data() + 2;
            ASSERT_EQ(cudlaModuleGetAttributes(module, CUDLA_OUTPUT_TENSOR_DESCRIPTORS, &a), cudlaSuccess);

            Buffers dla, plain;
            std::mt19937 random(3);
            std::uniform_int_distribution<int> small(-8, 8);
            for (cudlaModuleTensorDescriptor const& t : d) {
                std::vector<uint64_t> memory(t.size / 8);
                ASSERT_EQ(t.size % 8, 0U) << t.name;
                for (uint64_t& v : memory)
                    for (int k = 0; k < 4; ++k)
                        v = v << 16 | toHalf(float(small(random)) / 4);
                plain.memory.push_back(memory);
                dla.memory.push_back(std::move(memory));
                EXPECT_EQ(t.n, 2U);
                EXPECT_EQ(t.h, 6U);
                EXPECT_EQ(t.w, 21U);
                EXPECT_EQ(t.dataType, CUDLA_DATA_TYPE_HALF);
                EXPECT_EQ(t.stride[3], t.size / 2);
            }
            EXPECT_STREQ(d[0].name, "x");
            EXPECT_EQ(d[0].c, 3U);
            EXPECT_STREQ(d[1].name, "z");
            EXPECT_EQ(d[1].c, 18U);
            EXPECT_EQ(d[0].dataCategory, image == TensorFormat::kDLA_HWC4     ? CUDLA_DATA_CATEGORY_IMAGE
                                         : image == TensorFormat::kDLA_LINEAR ? CUDLA_DATA_CATEGORY_PLANAR
                                                                              : CUDLA_DATA_CATEGORY_FEATURE);
            for (size_t i = 0; i < 4; ++i) {
                uint64_t* at = nullptr;
                ASSERT_EQ(cudlaMemRegister(device, dla.memory[i].data(), d[i].size, &at, 0), cudlaSuccess);
                dla.registered.push_back(at);
                context->setTensorAddress(d[i].name, plain.memory[i].data());
            }
            cudlaTask task{};
            task.moduleHandle = module;
            task.inputTensor = dla.registered.data();
            task.numInputTensors = 2;
            task.outputTensor = dla.registered.data() + 2;
            task.numOutputTensors = 2;
            auto const before = dla.memory[2];
            ASSERT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, CUDLA_SUBMIT_NOOP), cudlaSuccess);
            EXPECT_EQ(dla.memory[2], before);
            cudaStream_t stream = nullptr;
            ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
            ASSERT_EQ(cudlaSubmitTask(device, &task, 1, stream, 0), cudlaSuccess);
            ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            cudaStreamDestroy(stream);
            EXPECT_EQ(cudlaGetLastError(device), cudlaSuccess);
            ASSERT_TRUE(context->enqueueV3(nullptr)) << m.errors();
            EXPECT_NE(dla.memory[2], before);
            EXPECT_EQ(dla.memory[2], plain.memory[2]) << model;
            EXPECT_EQ(dla.memory[3], plain.memory[3]) << model;
            EXPECT_EQ(cudlaMemUnregister(device, dla.registered[0]), cudlaSuccess);
            EXPECT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, 0), cudlaErrorInvalidAddress);
            EXPECT_EQ(cudlaModuleUnload(module, 0), cudlaSuccess);
            EXPECT_EQ(cudlaModuleUnload(module, 0), cudlaErrorInvalidModule);
            EXPECT_EQ(cudlaDestroyDevice(device), cudlaSuccess);
            EXPECT_EQ(cudlaDestroyDevice(device), cudlaErrorInvalidDevice);
        }
}

TEST(Cudla, WhatStandaloneAsksFor)
{
    auto refuses = [](std::function<void(Standalone&)> const& change, char const* part) {
        Standalone m;
        m.fill();
        change(m);
        EXPECT_FALSE(m.plan()) << part;
        EXPECT_TRUE(contains(m.errors(), part)) << m.errors();
    };
    refuses([](auto& m) { m.config->setDefaultDeviceType(DeviceType::kGPU); }, "default device type kDLA");
    refuses([](auto& m) { m.config->clearFlag(BuilderFlag::kFP16); }, "needs BuilderFlag::kFP16 or kINT8");
    refuses([](auto& m) { m.config->clearFlag(BuilderFlag::kDIRECT_IO); }, "needs BuilderFlag::kDIRECT_IO");
    refuses([](auto& m) { m.config->setFlag(BuilderFlag::kGPU_FALLBACK); }, "clear BuilderFlag::kGPU_FALLBACK");
    refuses([](auto& m) { m.config->setDeviceType(m.network->getLayer(1), DeviceType::kGPU); },
            "device type kGPU is set");
    refuses([](auto& m) { m.network->getInput(1)->setAllowedFormats(1U << int(TensorFormat::kLINEAR)); },
            "network input 'z'");
    refuses([](auto& m) { m.network->getInput(1)->setName(std::string(81, 'n').c_str()); }, "81 bytes");
    Standalone m;
    m.fill();
    std::unique_ptr<ICudaEngine> const engine(m.builder->buildEngineWithConfig(*m.network, *m.config));
    EXPECT_EQ(engine, nullptr);
    EXPECT_TRUE(m.oneError("a loadable is no engine"));
    auto const loadable = m.plan();
    ASSERT_NE(loadable, nullptr) << m.errors();
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(m.logger));
    EXPECT_EQ(runtime->deserializeCudaEngine(loadable->data(), loadable->size()), nullptr);
    EXPECT_TRUE(m.oneError("cuDLA (libcudla) runs it"));
}

TEST(Cudla, Statuses)
{
    uint64_t version = 0, count = 9;
    EXPECT_EQ(cudlaGetVersion(&version), cudlaSuccess);
    EXPECT_EQ(version, 1002001U);
    EXPECT_EQ(cudlaGetVersion(nullptr), cudlaErrorInvalidParam);
    cudlaDevHandle device = nullptr;
    {
        DlaModel const none(nullptr);
        EXPECT_EQ(cudlaDeviceGetCount(&count), cudlaSuccess);
        EXPECT_EQ(count, 0U);
        EXPECT_EQ(cudlaCreateDevice(0, &device, CUDLA_CUDA_DLA), cudlaErrorInvalidDevice);
    }
    Standalone m;
    m.fill();
    auto const loadable = m.plan();
    ASSERT_NE(loadable, nullptr) << m.errors();
    auto const* const bytes = static_cast<uint8_t const*>(loadable->data());
    EXPECT_EQ(cudlaDeviceGetCount(nullptr), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaCreateDevice(2, &device, CUDLA_CUDA_DLA), cudlaErrorInvalidDevice);
    EXPECT_EQ(cudlaCreateDevice(0, nullptr, CUDLA_CUDA_DLA), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaCreateDevice(0, &device, 7), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaCreateDevice(0, &device, CUDLA_STANDALONE), cudlaErrorUnsupportedOperation);
    ASSERT_EQ(cudlaCreateDevice(0, &device, CUDLA_CUDA_DLA), cudlaSuccess);

    cudlaDevAttribute attribute{};
    EXPECT_EQ(cudlaDeviceGetAttribute(device, CUDLA_UNIFIED_ADDRESSING, &attribute), cudlaSuccess);
    EXPECT_EQ(cudlaDeviceGetAttribute(device, static_cast<cudlaDevAttributeType>(7), &attribute),
              cudlaErrorInvalidAttribute);
    EXPECT_EQ(cudlaDeviceGetAttribute(nullptr, CUDLA_UNIFIED_ADDRESSING, &attribute), cudlaErrorInvalidDevice);
    EXPECT_EQ(cudlaSetTaskTimeoutInMs(device, 100), cudlaSuccess);
    EXPECT_EQ(cudlaSetTaskTimeoutInMs(device, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaGetNvSciSyncAttributes(nullptr, 0), cudlaErrorUnsupportedOperation);
    EXPECT_EQ(cudlaImportExternalMemory(device, nullptr, nullptr, 0), cudlaErrorUnsupportedOperation);
    EXPECT_EQ(cudlaImportExternalSemaphore(device, nullptr, nullptr, 0), cudlaErrorUnsupportedOperation);

    std::vector<uint64_t> memory(8192);
    uint64_t* at = nullptr;
    EXPECT_EQ(cudlaMemRegister(device, nullptr, 8, &at, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaMemRegister(device, memory.data(), 0, &at, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaMemRegister(device, memory.data(), 8, nullptr, 0), cudlaErrorInvalidParam);
    ASSERT_EQ(cudlaMemRegister(device, memory.data(), 16, &at, 0), cudlaSuccess);
    EXPECT_EQ(at, memory.data());
    EXPECT_EQ(cudlaMemRegister(device, memory.data(), 16, &at, 0), cudlaErrorMemoryRegistered);
    EXPECT_EQ(cudlaMemUnregister(device, memory.data() + 1), cudlaErrorInvalidAddress);

    cudlaModule module = nullptr;
    EXPECT_EQ(cudlaModuleLoadFromMemory(device, nullptr, 8, &module, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaModuleLoadFromMemory(device, bytes, loadable->size(), nullptr, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaModuleLoadFromMemory(device, bytes, loadable->size(), &module, 1), cudlaErrorUnsupportedOperation);
    ASSERT_EQ(cudlaModuleLoadFromMemory(device, bytes, loadable->size(), &module, 0), cudlaSuccess);
    cudlaModuleAttribute a{};
    EXPECT_EQ(cudlaModuleGetAttributes(module, CUDLA_INPUT_TENSOR_DESCRIPTORS, &a), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaModuleGetAttributes(module, static_cast<cudlaModuleAttributeType>(9), &a),
              cudlaErrorInvalidAttribute);
    EXPECT_EQ(cudlaModuleGetAttributes(nullptr, CUDLA_NUM_INPUT_TENSORS, &a), cudlaErrorInvalidModule);

    uint64_t* list[2] = {at, at};
    cudlaTask task{};
    task.moduleHandle = module;
    task.inputTensor = task.outputTensor = list;
    task.numInputTensors = task.numOutputTensors = 2;
    EXPECT_EQ(cudlaSubmitTask(device, nullptr, 1, nullptr, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaSubmitTask(device, &task, 0, nullptr, 0), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, 64), cudlaErrorInvalidParam);
    EXPECT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, 0), cudlaErrorInvalidParam); // 16 bytes are too few
    task.numInputTensors = 1;
    EXPECT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, 0), cudlaErrorInvalidParam);
    task.numInputTensors = 2;
    cudlaWaitEvents wait{};
    task.waitEvents = &wait;
    EXPECT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, 0), cudlaErrorUnsupportedOperation);
    task.waitEvents = nullptr;
    task.moduleHandle = nullptr;
    EXPECT_EQ(cudlaSubmitTask(device, &task, 1, nullptr, 0), cudlaErrorInvalidModule);

    // 16 loadables a core, whichever handle has them.
    cudlaDevHandle second = nullptr;
    ASSERT_EQ(cudlaCreateDevice(0, &second, CUDLA_CUDA_DLA), cudlaSuccess);
    for (int i = 1; i < 16; ++i)
        ASSERT_EQ(cudlaModuleLoadFromMemory(i % 2 ? second : device, bytes, loadable->size(), &module, 0), cudlaSuccess)
            << i;
    EXPECT_EQ(cudlaModuleLoadFromMemory(device, bytes, loadable->size(), &module, 0), cudlaErrorOutOfResources);
    cudlaDevHandle other = nullptr;
    ASSERT_EQ(cudlaCreateDevice(1, &other, CUDLA_CUDA_DLA), cudlaSuccess);
    EXPECT_EQ(cudlaModuleLoadFromMemory(other, bytes, loadable->size(), &module, 0), cudlaSuccess);
    for (cudlaDevHandle d : {device, second, other})
        EXPECT_EQ(cudlaDestroyDevice(d), cudlaSuccess);
}

// Damage anywhere, and the right bytes under another model.
TEST(Cudla, DamagedLoadables)
{
    Standalone m;
    m.fill();
    auto const loadable = m.plan();
    ASSERT_NE(loadable, nullptr) << m.errors();
    std::string const good(static_cast<char const*>(loadable->data()), loadable->size());
    cudlaDevHandle device = nullptr;
    ASSERT_EQ(cudlaCreateDevice(0, &device, CUDLA_CUDA_DLA), cudlaSuccess);
    auto load = [&](std::string const& bytes) {
        cudlaModule module = nullptr;
        return cudlaModuleLoadFromMemory(device, reinterpret_cast<uint8_t const*>(bytes.data()), bytes.size(), &module,
                                         0);
    };
    for (size_t i = 0; i < good.size(); i += i < 1024 ? 1 : 97) {
        std::string bad = good;
        bad[i] = char(bad[i] ^ 0x41);
        EXPECT_EQ(load(bad), cudlaErrorUmd) << i;
    }
    EXPECT_EQ(load(good.substr(0, good.size() - 1)), cudlaErrorUmd);
    EXPECT_EQ(load("TWPLAN"), cudlaErrorUmd);
    EXPECT_EQ(load(good), cudlaSuccess);
    EXPECT_EQ(cudlaDestroyDevice(device), cudlaSuccess);
    DlaModel const xavier("xavier");
    ASSERT_EQ(cudlaCreateDevice(0, &device, CUDLA_CUDA_DLA), cudlaSuccess);
    EXPECT_EQ(load(good), cudlaErrorUmd);
    EXPECT_EQ(cudlaDestroyDevice(device), cudlaSuccess);
}

} // namespace
