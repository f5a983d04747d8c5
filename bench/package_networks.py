# SPDX-License-Identifier: Apache-2.0
"""More networks of timm, torchvision and transformers for bench/torch_networks.py (its group `packages`): name -> (how to make the
module, its inputs). Kinds, not favourites: narrow and wide convolutions, depthwise, grouped and mixed ones, attention over images,
windows and channels, encoders, decoders and both together, speech, video, segmentation. Random weights; where depth only repeats a
block, transformers have four layers."""

TIMM = (
    "convnext_atto", "convnextv2_atto", "mobilenetv3_large_100", "mobilenetv4_conv_small", "ghostnet_100", "efficientvit_b1", "efficientvit_m2",
    "edgenext_small", "repvit_m1", "fastvit_t8", "levit_128", "poolformer_s12", "mixer_b32_224", "resmlp_12_224", "gmlp_ti16_224", "cait_xxs24_224",
    "deit_tiny_patch16_224", "pvt_v2_b0", "twins_pcpvt_small", "coat_lite_tiny", "xcit_nano_12_p16_224", "convit_tiny", "volo_d1_224", "res2net50_14w_8s",
    "resnest14d", "skresnet18", "seresnet50", "ecaresnet26t", "rexnet_100", "dpn68", "dla34", "ese_vovnet19b_dw", "selecsls42b", "mnasnet_100",
    "fbnetv3_b", "lcnet_100", "xception41", "inception_resnet_v2", "cspresnet50", "darknet53", "repvgg_a0", "regnetx_004", "nf_regnet_b0",
    "bat_resnext26ts", "lambda_resnet26t", "halonet26t", "botnet26t_256", "gcresnet33ts", "visformer_tiny", "hiera_tiny_224", "sequencer2d_s",
    "davit_tiny", "focalnet_tiny_srf", "inception_next_tiny", "mambaout_tiny", "starnet_s1", "shvit_s1", "nextvit_small", "swinv2_tiny_window8_256",
    "maxvit_nano_rw_256", "crossvit_9_240", "efficientformer_l1", "tiny_vit_5m_224", "gcvit_xxtiny", "mvitv2_tiny", "nest_tiny", "tf_efficientnetv2_b0",
    "mixnet_s", "hardcorenas_a", "vitamin_small_224", "beit_base_patch16_224", "eva02_tiny_patch14_224", "legacy_senet154", "densenet169", "tresnet_m",
    "coatnet_nano_rw_224", "convmixer_768_32", "rdnet_tiny", "pit_ti_224", "twins_svt_small", "caformer_s18", "efficientformerv2_s0",
    "swiftformer_xs", "fasternet_t0", "hgnetv2_b0", "tinynet_a", "cs3darknet_s", "resnetv2_50", "eca_nfnet_l0", "efficientnet_lite0",
    "ghostnetv2_100", "repghostnet_100", "regnetz_b16", "gernet_s", "gmixer_12_224", "mobilenetv4_hybrid_medium", "seresnext26d_32x4d",
    "skresnext50_32x4d", "mobileone_s0", "coat_tiny", "crossvit_tiny_240", "tf_mixnet_m", "edgenext_x_small", "convnextv2_pico", "hrnet_w18_small",
    "spnasnet_100", "semnasnet_100", "vovnet39a", "res2next50", "dla46x_c",
)
TORCHVISION = ("squeezenet1_1", "shufflenet_v2_x1_0", "googlenet", "alexnet", "vgg11", "mnasnet0_5", "wide_resnet50_2", "maxvit_t", "swin_v2_t")
SIZES = {"botnet26t_256": 256, "halonet26t": 256, "lambda_resnet26t": 256, "bat_resnext26ts": 256, "gcresnet33ts": 256, "swinv2_tiny_window8_256": 256,
         "maxvit_nano_rw_256": 256, "crossvit_9_240": 240, "crossvit_tiny_240": 240, "inception_resnet_v2": 299, "eva02_tiny_patch14_224": 224}
# name: (torchvision's model, inputs)
DENSE = {
    "deeplabv3_mobilenet": ("deeplabv3_mobilenet_v3_large", ((1, 3, 256, 256),)), "lraspp": ("lraspp_mobilenet_v3_large", ((1, 3, 320, 320),)),
    "deeplabv3_resnet50": ("deeplabv3_resnet50", ((1, 3, 192, 192),)), "s3d": ("s3d", ((1, 3, 16, 224, 224),)),
    "r2plus1d_18": ("r2plus1d_18", ((1, 3, 8, 112, 112),)), "mc3_18": ("mc3_18", ((1, 3, 8, 112, 112),)),
}
WORDS = {"vocab_size": 5000}
FOUR = {"num_hidden_layers": 4}
TEXT = {**WORDS, **FOUR}
SMALL = {**TEXT, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}
DECODER = {**SMALL, "use_cache": False}
GROUPED = {**DECODER, "num_key_value_heads": 2}
BOTH = {**WORDS, "d_model": 512, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
        "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}


def tokens(count):
    return (((1, count), 5, 1000),)


PICTURE, SOUND = ((1, 3, 224, 224),), ((1, 16000),)
# name: (transformers' kind, options, inputs)
TRANSFORMERS = {
    "distilbert": ("DistilBert", {**WORDS, "n_layers": 4}, tokens(128)),
    "albert": ("Albert", {**TEXT, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}, tokens(128)),
    "electra": ("Electra", TEXT, tokens(128)),
    "mobilebert": ("MobileBert", {**WORDS, "num_hidden_layers": 8}, tokens(128)),
    "mpnet": ("MPNet", TEXT, tokens(128)),
    "deberta": ("Deberta", {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, tokens(128)),
    "convbert": ("ConvBert", TEXT, tokens(128)),
    "funnel": ("Funnel", WORDS, tokens(128)),
    "roformer": ("RoFormer", TEXT, tokens(128)),
    "xlnet": ("XLNet", {**WORDS, "n_layer": 4, "d_model": 512, "n_head": 8, "d_inner": 2048}, tokens(128)),
    "nystromformer": ("Nystromformer", SMALL, tokens(128)),
    "t5_encoder": ("T5Encoder", {**WORDS, "num_layers": 4}, tokens(128)),
    "bart": ("Bart", BOTH, tokens(128)),
    "opt": ("OPT", {**SMALL, "ffn_dim": 2048, "word_embed_proj_dim": 512}, tokens(128)),
    "gpt_neox": ("GPTNeoX", DECODER, tokens(128)),
    "bloom": ("Bloom", {**WORDS, "n_layer": 4, "hidden_size": 512, "n_head": 8, "use_cache": False}, tokens(128)),
    "qwen2": ("Qwen2", GROUPED, tokens(128)),
    "qwen3": ("Qwen3", {**GROUPED, "head_dim": 64}, tokens(128)),
    "gemma": ("Gemma", {**GROUPED, "head_dim": 64}, tokens(128)),
    "phi": ("Phi", DECODER, tokens(128)),
    "falcon": ("Falcon", DECODER, tokens(128)),
    "starcoder2": ("Starcoder2", GROUPED, tokens(128)),
    "mamba": ("Mamba", {**TEXT, "hidden_size": 256, "use_cache": False}, tokens(32)),
    "rwkv": ("Rwkv", {**TEXT, "hidden_size": 256, "use_cache": False}, tokens(16)),
    "hubert": ("Hubert", FOUR, SOUND),
    "wavlm": ("WavLM", FOUR, SOUND),
    "sew": ("SEW", FOUR, SOUND),
    "unispeech": ("UniSpeech", FOUR, SOUND),
    "data2vec_audio": ("Data2VecAudio", FOUR, SOUND),
    "conformer": ("Wav2Vec2Conformer", {**FOUR, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}, SOUND),
    "ast": ("AST", FOUR, ((1, 1024, 128),)),
    "vit_hf": ("ViT", FOUR, PICTURE),
    "dinov2": ("Dinov2", FOUR, PICTURE),
    "segformer": ("Segformer", {}, ((1, 3, 256, 256),)),
    "mobilevitv2": ("MobileViTV2", {}, ((1, 3, 256, 256),)),
    "yolos": ("Yolos", {**FOUR, "image_size": [256, 256]}, ((1, 3, 256, 256),)),
    "bit": ("Bit", {"depths": [2, 2, 2, 2]}, PICTURE),
    "siglip_vision": ("SiglipVision", FOUR, PICTURE),
    "clip_vision": ("CLIPVision", FOUR, PICTURE),
    "clip_text": ("CLIPText", TEXT, tokens(77)),
    "swin2sr": ("Swin2SR", {"depths": [2, 2], "num_heads": [6, 6], "embed_dim": 90}, ((1, 3, 64, 64),)),
    "videomae": ("VideoMAE", {**FOUR, "num_frames": 8, "image_size": 112}, ((1, 8, 3, 112, 112),)),
}


def specs(package, transformer):
    """name -> (maker, inputs), by torch_networks' makers of packages' modules."""
    found = {}
    for name in TIMM:
        size = SIZES.get(name, 224)
        found[name] = (lambda name=name: package("timm", name), ((1, 3, size, size),))
    for name in TORCHVISION:
        found[name] = (lambda name=name: package("torchvision", name), ((1, 3, 224, 224),))
    for name, (model, inputs) in DENSE.items():
        found[name] = (lambda model=model: package("torchvision", model), inputs)
    for name, (kind, options, inputs) in TRANSFORMERS.items():
        found[name] = (lambda kind=kind, options=options: transformer(kind, **options), inputs)
    return found
