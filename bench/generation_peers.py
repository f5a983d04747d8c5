# SPDX-License-Identifier: Apache-2.0
"""Other engines that generate on the CPU, for generation.py: the decoders of bench/models/decoder.py by their weights.

Each has begin(ids) and step(ids), which give the last token's logits, and prepare(past), prompt(ids), which give what is timed. All
count and keep in FP32; weights of 4 bits are taken as they are, activations are not rounded where the engine can be told so:

  onnxruntime        by hand, caches that stay where they are; onnxruntime_int8: MatMulNBits with accuracy_level 4 (activations of 8 bits)
  onnxruntime_genai  its Generator
  openvino           a model with states, as OpenVINO GenAI's pipelines run them (bench/generation_openvino.py); openvino_int8: with its own
                     settings, by which activations of products by 4 bits and caches are rounded to 8
  llama_cpp          llama-cpp-python with a GGUF of the weights (bench/generation_gguf.py). Its Q4_0 has scales in FP16, and rounds
                     activations to 8 bits, always
"""
import json
import os
import time

import numpy as np


class OnnxRuntime:
    def __init__(self, path, shape, capacity, prompt, dtype, threads):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        begin = time.time()
        self.session = ort.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.build_s, self.capacity, self.past = time.time() - begin, capacity, 0
        cache = (1, shape.groups, capacity, shape.size)
        self.caches = {f"{i}.{k}": ort.OrtValue.ortvalue_from_numpy(np.zeros(cache, dtype)) for i in range(shape.layers) for k in ("key", "value")}
        self.logits = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 1, shape.vocabulary), dtype))

    def bound(self, ids):
        binding, s = self.session.io_binding(), len(ids)
        binding.bind_cpu_input("input_ids", np.array([ids], np.int64))
        binding.bind_cpu_input("position_ids", np.arange(self.past, self.past + s, dtype=np.int64)[None])
        mask = np.zeros((1, self.capacity), np.int64)
        mask[:, :self.past + s] = 1
        binding.bind_cpu_input("attention_mask", mask)
        for name, value in self.caches.items():
            binding.bind_ortvalue_input("past_key_values." + name, value)
            binding.bind_ortvalue_output("present." + name, value)
        binding.bind_ortvalue_output("logits", self.logits)
        return binding

    def begin(self, ids):
        self.past = 0
        return self.step(ids)

    def step(self, ids):
        binding = self.bound(ids)
        self.past += len(ids)
        self.session.run_with_iobinding(binding)
        return self.logits.numpy().reshape(-1)

    def prepare(self, past):
        self.past = past
        binding = self.bound([5])
        return lambda: self.session.run_with_iobinding(binding)

    def prompt(self, ids):
        self.past = 0
        binding = self.bound(ids)
        return lambda: self.session.run_with_iobinding(binding)


class OnnxRuntimeGenai:
    """Its Generator, by tokens that are given to it; the same model with batches and caches of any size beside the other."""

    def __init__(self, path, shape, capacity, prompt, dtype, threads):
        import onnxruntime_genai as genai
        folder = os.path.join(os.path.dirname(path), "open")
        names = {f"{a}_{k}_names": f"{b}.%d.{k}" for a, b in (("past", "past_key_values"), ("present", "present")) for k in ("key", "value")}
        sides = [{n: v for n, v in names.items() if n.startswith(a)} for a in ("past", "present")]
        made = {"filename": "model.onnx", "session_options": {"intra_op_num_threads": threads, "provider_options": []}, "head_size": shape.size, "hidden_size": shape.width,
                "num_attention_heads": shape.heads, "num_key_value_heads": shape.groups, "num_hidden_layers": shape.layers,
                "inputs": {**{n: n for n in ("input_ids", "attention_mask", "position_ids")}, **sides[0]}, "outputs": {"logits": "logits", **sides[1]}}
        ends = {n: 0 for n in ("bos_token_id", "eos_token_id", "pad_token_id")}
        config = {"model": {"type": "llama", **ends, "vocab_size": shape.vocabulary, "context_length": capacity, "decoder": made},
                  "search": {"max_length": capacity, "past_present_share_buffer": True, "do_sample": False}}
        with open(os.path.join(folder, "genai_config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        begin = time.time()
        self.model = genai.Model(folder)
        self.build_s, self.new = time.time() - begin, lambda: genai.Generator(self.model, parameters)
        parameters = genai.GeneratorParams(self.model)
        parameters.set_search_options(max_length=capacity)

    def begin(self, ids):
        self.generator = self.new()
        return self.step(ids)

    def step(self, ids):
        self.generator.append_tokens(ids)
        return np.array(self.generator.get_logits()).reshape(-1)

    def prepare(self, past):
        self.begin([5] * past)

        def run():
            self.generator.rewind_to(past)
            self.generator.append_tokens([5])
        return run

    def prompt(self, ids):
        self.begin(ids)

        def run():
            self.generator.rewind_to(0)
            self.generator.append_tokens(ids)
        return run


def with_rounding(path):
    """The model beside it that lets activations be rounded to 8 bits in blocks."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            node.attribute.append(onnx.helper.make_attribute("accuracy_level", 4))
    other = path[:-len(".onnx")] + "-int8.onnx"
    onnx.save(model, f"{other}.{os.getpid()}")
    os.replace(f"{other}.{os.getpid()}", other)
    return other


class OnnxRuntimeInt8(OnnxRuntime):
    """Activations of 8 bits in blocks."""

    def __init__(self, path, **given):
        super().__init__(with_rounding(path), **given)


class OpenVino:
    KEEPS = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}

    def __init__(self, path, shape, capacity, prompt, dtype, threads):
        import openvino
        from generation_openvino import model_of
        model, kept = model_of(path, shape)  # the engine reads what is kept, later too
        begin = time.time()
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, **self.KEEPS}
        self.request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
        self.kept = kept
        self.build_s, self.past = time.time() - begin, 0

    def begin(self, ids):
        self.request.reset_state()
        self.past = 0
        return self.step(ids)

    def step(self, ids):
        s = len(ids)
        places = np.arange(self.past, self.past + s, dtype=np.int64)[None]
        given = {0: np.array([ids], np.int64), 1: np.ones((1, self.past + s), np.int64), 2: places, 3: np.zeros(1, np.int32)}
        self.past += s
        return self.request.infer(given, share_inputs=True, share_outputs=True)[0].reshape(-1)

    def prepare(self, past):
        """A cache is a token longer after each run; it begins anew before that counts."""
        def run():
            self.step([5])

        def before():
            if self.past not in range(past, past + 32):
                self.begin([5] * past)
        run.before = before
        return run

    def prompt(self, ids):
        def run():
            self.begin(ids)
        return run


class OpenVinoInt8(OpenVino):
    KEEPS = {"INFERENCE_PRECISION_HINT": "f32"}


class LlamaCpp:
    def __init__(self, path, shape, capacity, prompt, dtype, threads):
        import generation_gguf
        from generation_openvino import weights_of
        import llama_cpp
        file = os.path.join(os.path.dirname(path), "model.gguf")
        if not os.path.exists(file):
            generation_gguf.write(file, shape, weights_of(path), capacity)
        begin = time.time()
        self.model = llama_cpp.Llama(file, n_ctx=capacity, n_batch=prompt, n_ubatch=prompt, n_threads=threads, n_threads_batch=threads, type_k=0, type_v=0, verbose=False)
        self.build_s = time.time() - begin

    def begin(self, ids):
        self.model.reset()
        return self.step(ids)

    def step(self, ids):
        import llama_cpp
        self.model.eval(ids)
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.model.ctx, -1), (self.model.n_vocab(),)).copy()

    def prepare(self, past):
        self.begin([5] * past)

        def run():
            self.model.n_tokens = past
            self.model.eval([5])
        return run

    def prompt(self, ids):
        def run():
            self.model.reset()
            self.model.eval(ids)
        return run


PEERS = {"onnxruntime": OnnxRuntime, "onnxruntime_int8": OnnxRuntimeInt8, "onnxruntime_genai": OnnxRuntimeGenai, "openvino": OpenVino,
         "openvino_int8": OpenVinoInt8, "llama_cpp": LlamaCpp}
# Where versions are from.
PACKAGES = {"onnxruntime_int8": "onnxruntime", "onnxruntime_genai": "onnxruntime-genai", "openvino_int8": "openvino", "llama_cpp": "llama-cpp-python"}


def rounds_more(kind, bits):
    """Whether it rounds activations by which weights of so many bits are multiplied."""
    return bits != 0 and (kind.endswith("_int8") or kind == "llama_cpp")
