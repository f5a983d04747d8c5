#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: transformers_models.py [MODEL...] [--json FILE] [--keep FOLDER]      (PYTHONPATH with our Python modules; torch, transformers, optimum-onnx)

No times: tokens. Small models of Transformers with random weights, as optimum exports them (every decoder file that it writes), beside Transformers itself in FP32: 128 greedy
tokens behind 128 and behind 9, and four beams of 24 tokens with their scores.

  greedy, beams     cases with equal tokens, of two; score: the largest difference of scores; caches: the kind that was found
  distinct          different tokens of the greedy answers: a model that repeats one token shows little

JSON by record.py: --json FILE. --keep: where models are written, and found again.
"""
import argparse
import importlib.metadata
import json
import os
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, WhisperForConditionalGeneration

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tensorwright  # noqa: E402
from record import cpu_name, header, write_record  # noqa: E402

VOCABULARY, PLACES = 120, 272
_ENDS = {"bos_token_id": 0, "eos_token_id": 1}
_LLAMA = {"vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": PLACES, "pad_token_id": 0, **_ENDS}
_GROUPS = {**_LLAMA, "num_key_value_heads": 2}
_GPT = {"vocab_size": VOCABULARY, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": PLACES, **_ENDS}
_BART = {"vocab_size": VOCABULARY, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96,
         "max_position_embeddings": PLACES, "pad_token_id": 2, "decoder_start_token_id": 3, "forced_eos_token_id": None, **_ENDS}
_T5 = {"vocab_size": VOCABULARY, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "n_positions": PLACES, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
MODELS = {
    "gpt2": ("GPT2", _GPT), "gptj": ("GPTJ", {**_GPT, "rotary_dim": 8}), "codegen": ("CodeGen", {**_GPT, "n_ctx": PLACES, "rotary_dim": 8}), "gpt_neox": ("GPTNeoX", _LLAMA),
    "opt": ("OPT", {**_LLAMA, "ffn_dim": 96, "word_embed_proj_dim": 64}), "bloom": ("Bloom", {"vocab_size": VOCABULARY, "hidden_size": 64, "n_layer": 2, "n_head": 4, **_ENDS}),
    "falcon": ("Falcon", {**_LLAMA, "multi_query": True, "parallel_attn": True, "alibi": False}), "phi": ("Phi", _LLAMA), "phi3": ("Phi3", _GROUPS), "llama": ("Llama", _GROUPS), "qwen2": ("Qwen2", _GROUPS),
    "qwen3": ("Qwen3", {**_GROUPS, "head_dim": 16}), "mistral": ("Mistral", {**_GROUPS, "sliding_window": 64}), "gemma": ("Gemma", {**_GROUPS, "head_dim": 16}),
    "gemma2": ("Gemma2", {**_GROUPS, "head_dim": 16, "sliding_window": 64, "query_pre_attn_scalar": 16}),
    "t5": ("T5", _T5), "mt5": ("MT5", {**_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}), "bart": ("Bart", _BART), "mbart": ("MBart", _BART), "marian": ("Marian", _BART),
    "pegasus": ("Pegasus", _BART), "m2m_100": ("M2M100", _BART),
    "whisper": ("Whisper", {**_BART, "num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": PLACES, "suppress_tokens": None, "begin_suppress_tokens": [5, 1]}),
}
# What optimum asks of a folder of Whisper's.
_EXTRACTOR = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "nb_max_frames": 3000, "chunk_length": 30, "n_samples": 480000, "hop_length": 160, "n_fft": 400, "sampling_rate": 16000,
              "padding_value": 0.0}


def written(name, folder):
    """The model with random weights, and its files by optimum in folder/onnx."""
    from optimum.exporters.onnx import main_export
    prefix, config = MODELS[name]
    config = getattr(transformers, prefix + "Config")(**config)
    sequences = config.is_encoder_decoder
    kind = WhisperForConditionalGeneration if name == "whisper" else AutoModelForSeq2SeqLM if sequences else AutoModelForCausalLM
    path, made = os.path.join(folder, "torch"), os.path.join(folder, "onnx")
    if not os.path.isdir(made):
        torch.manual_seed(sum(name.encode()))
        model = (kind(config) if name == "whisper" else kind.from_config(config)).eval().float()
        with torch.no_grad():
            for n, p in model.named_parameters():
                if p.dim() > 1:  # so that answers are no single token
                    p.normal_(0, 0.3 if "emb" in n or "wte" in n or "shared" in n else 2.5 * p.shape[-1] ** -0.5)
        model.tie_weights()
        model.save_pretrained(path)
        if name == "whisper":
            with open(os.path.join(path, "preprocessor_config.json"), "w", encoding="utf-8") as file:
                json.dump(_EXTRACTOR, file)
        task = "automatic-speech-recognition" if name == "whisper" else "text2text-generation" if sequences else "text-generation"
        main_export(path, output=made, task=task + "-with-past", do_validation=False)
    return kind.from_pretrained(path).eval().float(), made


def sources(name):
    random = np.random.default_rng(3)
    if name == "whisper":
        return [random.standard_normal((80, 3000)).astype(np.float32) for _ in range(2)]
    return [[int(t) for t in random.integers(6, VOCABULARY, n)] for n in (128, 9)]


def theirs(model, source):
    """(greedy tokens, tokens of beams, their score) behind what a decoder begins with."""
    if isinstance(source, list):
        given = {"input_ids": torch.tensor([source]), "attention_mask": torch.ones(1, len(source), dtype=torch.long)}
    else:
        given = {"input_features": torch.from_numpy(source)[None]}
    with torch.no_grad():
        greedy = model.generate(**given, max_new_tokens=128, do_sample=False, num_beams=1)[0].tolist()
        beams = model.generate(**given, max_new_tokens=24, do_sample=False, num_beams=4, return_dict_in_generate=True, output_scores=True)
    # Whisper's generate() leaves the start token out, sometimes.
    begin = len(source) if not model.config.is_encoder_decoder else int(greedy[0] == model.config.decoder_start_token_id)
    found = beams.sequences[0].tolist()
    begin_of_beams = begin if not model.config.is_encoder_decoder else int(found[0] == model.config.decoder_start_token_id)
    return greedy[begin:], found[begin_of_beams:], float(beams.sequences_scores[0])


def compared(name, folder):
    """A row for each file."""
    model, made = written(name, folder)
    cases = [(s, *theirs(model, s)) for s in sources(name)]
    for file in sorted(f for f in os.listdir(made) if f.endswith(".onnx") and not f.startswith("encoder")):
        generator = tensorwright.Generator(os.path.join(made, file), slots=4, capacity=PLACES, cache=False)
        row = {"model": name, "file": file, "caches": generator.runs.kind, "greedy": 0, "beams": 0, "score": 0.0}
        for source, greedy, beams, score in cases:
            got = generator.generate(source, max_new_tokens=128, do_sample=False, num_beams=1)
            found = generator.generate(source, max_new_tokens=24, do_sample=False, num_beams=4)
            row["greedy"] += got.tokens == greedy
            row["beams"] += found.tokens == [t for t in beams if t != model.config.pad_token_id or t in found.tokens]
            row["score"] = max(row["score"], abs(found.score - score))
        yield {**row, "cases": len(cases), "distinct": len({t for c in cases for t in c[1]})}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--keep")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as other:
        for name in options.models:
            for row in compared(name, os.path.join(options.keep or other, name)):
                rows.append(row)
                print(json.dumps(row), flush=True)
    if options.json:
        versions = {n: importlib.metadata.version(n) for n in ("torch", "transformers", "optimum-onnx")}
        write_record(options.json, {**header(cpu_name(), versions=versions), "rows": rows})
    sys.exit(any(r["greedy"] < r["cases"] or r["score"] > 1e-3 for r in rows))


if __name__ == "__main__":
    main()
