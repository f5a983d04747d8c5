// SPDX-License-Identifier: Apache-2.0
// cuBLASLt and cuDNN as sources of tactics, on machines that may have neither, nor a GPU.
#include <gtest/gtest.h>

#include "families/elementwise/activate.h"
#include "ops/matrix_multiply/op.h"
#include "runtime/engine.h"
#include "support/case_problem.h"
#include "support/cuda_libraries.h"
#include "support/graph_maker.h"
#include "tactic/cuda_library.h"
#include "tune/candidates.h"
#include "tune/region_key.h"
#include "tune/tuner.h"

namespace tw::test {

namespace {

using ops::Source;

std::shared_ptr<cuda::Target> targetWith(cuda::SearchPath const& lt, cuda::SearchPath const& dnn)
{
    auto target = std::make_shared<cuda::Target>();
    target->compiler = std::make_shared<cuda::LazyCompiler>(cuda::SearchPath{});
    target->libraries = std::make_shared<cuda::Libraries>(lt, dnn);
    target->architecture = "sm_90a";
    target->capability = 90;
    target->multiprocessors = 132;
    return target;
}

cuda::SearchPath const kNowhere{{"/nowhere/lib"}, {}, {}};

ops::Tactic const* tacticOf(ir::OpDef const& op, std::string const& name)
{
    for (ops::Tactic const* t : *op.cudaTactics)
        if (name == t->name())
            return t;
    return nullptr;
}

// Why the tactic refuses the op's case.
std::string refusal(char const* opName, std::string const& tactic, std::string const& caseName,
                    cuda::Target const& target)
{
    ir::OpDef const& op = *ops::find(opName);
    for (ops::CaseList const list = ops::casesOf(opName); ops::Case const& c : list.cases) {
        if (c.name != caseName)
            continue;
        auto graph = makeCase(op, c);
        if (!graph.ok())
            return "no case: " + graph.error().message;
        auto const want = interp::runNode(*(*graph)->node, (*graph)->nodeInputs, {});
        if (!want.ok())
            return "no results: " + want.error().message;
        ops::Problem problem = caseProblem(**graph, *want);
        problem.target.cuda = &target;
        ops::Tactic const* t = tacticOf(op, tactic);
        if (!t)
            return "no tactic";
        auto const formats = t->formats(problem);
        if (formats.empty())
            return "no formats";
        ops::setFormats(problem, formats[0]);
        ops::Support const s = t->supports(problem);
        return s.ok ? "it is supported" : s.reason;
    }
    return "no such case";
}

} // namespace

TEST(CudaLibraries, MissingOnesAreNamed)
{
    auto const lt = cuda::CublasLt::open(kNowhere);
    ASSERT_FALSE(lt.ok());
    EXPECT_NE(lt.error().message.find("cuBLASLt is not at /nowhere/lib, which the environment names"),
              std::string::npos)
        << lt.error().message;
    auto const dnn = cuda::Cudnn::open({{}, {"/nowhere"}, {}});
    std::string const why = dnn.ok() ? "cuDNN 9 (libcudnn.so.9): it is there" : dnn.error().message;
    EXPECT_NE(why.find("cuDNN 9 (libcudnn.so.9)"), std::string::npos) << why;
    // What was found out holds.
    cuda::Libraries libraries(kNowhere, kNowhere);
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(libraries.cublasLt().ok());
        EXPECT_FALSE(libraries.cudnn().ok());
    }
}

TEST(CudaLibraries, OthersOfTheNameAreRefused)
{
    cuda::SearchPath const other{{TW_LIBRARY_TO_FIND}, {}, {}};
    auto const lt = cuda::CublasLt::open(other);
    ASSERT_FALSE(lt.ok());
    EXPECT_NE(lt.error().message.find("has no cublasLtGetVersion: it is too old"), std::string::npos);
    auto const dnn = cuda::Cudnn::open(other);
    ASSERT_FALSE(dnn.ok());
    EXPECT_NE(dnn.error().message.find("has no cudnnGetVersion: it is no cuDNN 9"), std::string::npos);
}

// Every function of the lists is in the libraries, wherever they are.
TEST(CudaLibraries, FunctionsAreThere)
{
    auto const libraries = testLibraries();
    auto const lt = libraries->cublasLt();
    auto const dnn = libraries->cudnn();
    if (!lt.ok() || !dnn.ok())
        GTEST_SKIP() << (lt.ok() ? dnn.error() : lt.error()).message;
    EXPECT_GE((*lt)->version(), 120000);
    EXPECT_EQ((*dnn)->version() / 10000, 9);
}

TEST(CudaLibraries, RefusalsHaveReasons)
{
    auto const target = targetWith(kNowhere, kNowhere);
    auto product = [&](char const* name) {
        return refusal("matrix_multiply", "matrix_multiply_any_cublaslt_cuda", std::string("epilogue_") + name,
                       *target);
    };
    EXPECT_NE(product("half_gelu").find("ReLU, GELU by tanh, or nothing"), std::string::npos) << product("half_gelu");
    EXPECT_NE(product("no_inner").find("nothing is summed"), std::string::npos) << product("no_inner");
    EXPECT_NE(product("half_residual").find("cuBLASLt is not at"), std::string::npos) << product("half_residual");
    EXPECT_NE(product("half_batch").find("cuBLASLt is not at"), std::string::npos) << product("half_batch");
    EXPECT_NE(refusal("matrix_multiply", "matrix_multiply_tf32_cublaslt_cuda", "epilogue_half_no_bias", *target)
                  .find("computes in f32, input 0 is f16"),
              std::string::npos);
    auto convolution = [&](char const* name) {
        return refusal("convolution", "convolution_f16_cudnn_cuda", std::string("epilogue_") + name, *target);
    };
    EXPECT_NE(convolution("half_1x1_residual").find("cuDNN 9 is not at"), std::string::npos)
        << convolution("half_1x1_residual");
    EXPECT_NE(convolution("half_1x1_residual_tails").find("channels in multiples of 8, not 20 and 37"),
              std::string::npos)
        << convolution("half_1x1_residual_tails");
    EXPECT_NE(convolution("half_groups_residual").find("takes one group"), std::string::npos)
        << convolution("half_groups_residual");
    for (auto const& [name, why] :
         {std::pair{"f16_packed", "cuDNN 9 is not at"}, std::pair{"f16_mask_of_odd_all", "cuDNN 9 is not at"},
          std::pair{"f16_causal_keep", "cuDNN 9 is not at"},
          std::pair{"f16_causal_behind", "takes causal masks of as many queries as keys"},
          std::pair{"f16_causal_without_columns", "no constant masks that hide all keys"},
          std::pair{"f16_keep_keys", "takes no tensors of what to keep"},
          std::pair{"f16_size_20", "heads of up to 128 elements in steps of 8"},
          std::pair{"f16_no_columns", "there is nothing to compute"}, std::pair{"negative_scale", "takes f16 only"}}) {
        std::string const got = refusal("attention", "attention_f16_cudnn_sm90a", name, *target);
        EXPECT_NE(got.find(why), std::string::npos) << name << ": " << got;
    }
    // A plan's numbers come from outside.
    ops::Problem problem;
    problem.target.cuda = target.get();
    for (ops::Config const& config : {ops::Config{}, ops::Config{-1}, ops::Config{99}, ops::Config{0, 0}})
        for (auto const& [op, tactic] : {std::pair{"matrix_multiply", "matrix_multiply_any_cublaslt_cuda"},
                                         std::pair{"convolution", "convolution_f16_cudnn_cuda"},
                                         std::pair{"attention", "attention_f16_cudnn_sm90a"}}) {
            auto const loaded = tacticOf(*ops::find(op), tactic)->load(problem, config, "");
            ASSERT_FALSE(loaded.ok());
            EXPECT_NE(loaded.error().message.find("names no "), std::string::npos) << loaded.error().message;
        }
}

// IBuilderConfig::setTacticSources, trtexec --tacticSources=-CUBLAS_LT,-CUDNN.
TEST(CudaLibraries, SourcesAreChosen)
{
    ir::Node node;
    tune::Options options;
    options.backend = ops::Backend::kCuda;
    options.permits.set(Permission::kTf32);
    auto count = [&](char const* op, Source source) {
        node.op = ops::find(op);
        auto const list = tune::candidates(node, options);
        return std::count_if(list.begin(), list.end(), [&](ops::Tactic const* t) { return t->source() == source; });
    };
    options.sources = ~0u;
    EXPECT_EQ(count("matrix_multiply", Source::kCublasLt), 2);
    options.sources = 1u << int(Source::kOwn) | 1u << int(Source::kCudnn);
    EXPECT_EQ(count("matrix_multiply", Source::kCublasLt), 0);
    EXPECT_GT(count("matrix_multiply", Source::kOwn), 0);
    for (char const* op : {"convolution", "attention"}) {
        options.sources = ~0u;
        EXPECT_EQ(count(op, Source::kCudnn), op == std::string("attention") ? 1 : 2) << op;
        options.sources = 1u << int(Source::kOwn) | 1u << int(Source::kCublasLt);
        EXPECT_EQ(count(op, Source::kCudnn), 0) << op;
        EXPECT_GT(count(op, Source::kOwn), 0) << op;
    }
}

// A timing cache that was made without a library, or with another version of it, does not decide when it is there.
TEST(CudaLibraries, KeysOfTheTimingCacheNameVersions)
{
    ir::Node node;
    ir::Value x;
    node.inputs = {&x}; // of no known size: tactics are not asked
    auto const target = targetWith(kNowhere, kNowhere);
    tune::Options options;
    options.backend = ops::Backend::kCuda;
    options.target.cuda = target.get();
    auto keyOf = [&](char const* op) {
        node.op = ops::find(op);
        node.attrs = node.op->makeAttrs();
        ops::Problem problem;
        problem.node = &node;
        return tune::cacheKey(problem, options);
    };
    auto has = [](std::string const& key, std::string const& part) { return key.find(part) != std::string::npos; };
    EXPECT_TRUE(has(keyOf("matrix_multiply"), "|cuBLASLt none")) << keyOf("matrix_multiply");
    EXPECT_FALSE(has(keyOf("matrix_multiply"), "cuDNN"));
    EXPECT_TRUE(has(keyOf("convolution"), "|cuDNN none"));
    EXPECT_FALSE(has(keyOf("softmax"), "none")) << "no kernel of a library is a candidate";
    auto const compiler = target->compiler->get();
    std::string const version = compiler.ok() ? std::to_string((*compiler)->version()) : "";
    EXPECT_EQ(has(keyOf("softmax"), "|compiler " + version), compiler.ok());
    auto const real = testLibraries();
    auto const lt = real->cublasLt();
    if (!lt.ok())
        GTEST_SKIP() << lt.error().message;
    target->libraries = real;
    EXPECT_TRUE(has(keyOf("matrix_multiply"), "|cuBLASLt " + std::to_string((*lt)->version())));
}

// An engine whose kernels are the library's does not run slowly without it, it says what is missing.
TEST(CudaLibraries, PlansNameTheLibraryTheyNeed)
{
    GraphMaker m;
    ir::Value* const x = m.input("x", {4, 8});
    m.output(
        m.add(*ops::find("matrix_multiply"), ops::matrix_multiply::Attrs(), {x, m.constant("w", {8, 16})}, "dense"),
        "y");
    plan::Contents c;
    c.graph = m.take();
    c.graph->form = ir::Form::kScheduled;
    c.io = {plan::IoTensor{"x", true, false, true, false, {}}, plan::IoTensor{"y", false, false, true, false, {}}};
    c.profiles.emplace_back();
    ops::Tactic const* const t = tacticOf(*ops::find("matrix_multiply"), "matrix_multiply_any_cublaslt_cuda");
    ASSERT_NE(t, nullptr);
    plan::Target target{"cuda", "test", {}};
    target.root.steps.resize(1);
    target.root.steps[0].choice = plan::Choice{t->id(), t->name(), t->version(), {0}, "cuBLASLt 130000", 1, {}};
    c.targets.push_back(std::move(target));
    runtime::LoadOptions options;
    options.fingerprint = "test";
    options.cuda = targetWith(kNowhere, kNowhere);
    auto const engine = runtime::Engine::load(std::move(c), options);
    ASSERT_FALSE(engine.ok());
    for (char const* part : {"layer 'dense'", "matrix_multiply_any_cublaslt_cuda", "cuBLASLt", "/nowhere/lib",
                             "TENSORWRIGHT_CUBLASLT", "--tacticSources=-CUBLAS_LT"})
        EXPECT_NE(engine.error().message.find(part), std::string::npos) << part << " in: " << engine.error().message;
}

} // namespace tw::test
