"""Architectures of transformers, small and with random weights: each gives a module of tensors and example inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor, nn

__all__ = ["MODELS"]

Example = tuple[nn.Module, list[Tensor]]
_SMALL: dict[str, Any] = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_LENGTH = 12


class First(nn.Module):
    """A model whose first output is the answer."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self._names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        """The first of what the model answers."""
        found: Tensor = self.model(**dict(zip(self._names, inputs)), return_dict=True)[0]
        return found


def _tokens() -> Tensor:
    return torch.randint(3, 100, (2, _LENGTH))


def _seen() -> Tensor:
    seen = torch.ones(2, _LENGTH, dtype=torch.int64)
    seen[1, -4:] = 0
    return seen


def _built(name: str, options: dict[str, Any], model: str = "Model") -> nn.Module:
    config = getattr(transformers, f"{name}Config")(**{**_SMALL, **options})
    made: nn.Module = getattr(transformers, f"{name}{model}")(config)
    return made


def encoder(name: str, **options: Any) -> Callable[[], Example]:
    """Tokens and a mask of those that count, to a vector for every token."""

    def make() -> Example:
        return First(_built(name, options), "input_ids", "attention_mask"), [_tokens(), _seen()]

    return make


def decoder(name: str, kind: str = "ForCausalLM", **options: Any) -> Callable[[], Example]:
    """Tokens to a score of every next token."""

    def make() -> Example:
        model = _built(name, {"use_cache": False, **options}, kind)
        return First(model, "input_ids"), [_tokens()]

    return make


def both(name: str, **options: Any) -> Callable[[], Example]:
    """Tokens for the encoder and for the decoder, to a score of every next token."""

    def make() -> Example:
        model = _built(name, {"use_cache": False, **options}, "ForConditionalGeneration")
        return First(model, "input_ids", "decoder_input_ids"), [_tokens(), _tokens()[:, :7]]

    return make


def pictures(name: str, model: str = "Model", size: int = 32, **options: Any) -> Callable[[], Example]:
    """Images to vectors or classes."""

    def make() -> Example:
        return First(_built(name, {"image_size": size, **options}, model), "pixel_values"), [
            torch.randn(2, 3, size, size)
        ]

    return make


def _whisper() -> Example:
    options = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 16,
        "max_source_positions": 30, "max_target_positions": 20, "decoder_start_token_id": 1, "use_cache": False,
    }  # fmt: skip
    model = _built("Whisper", options)
    return First(model, "input_features", "decoder_input_ids"), [torch.randn(2, 16, 60), _tokens()[:, :7]]


def _speech() -> Example:
    options = {
        "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 2,
    }  # fmt: skip
    return First(_built("Wav2Vec2", options), "input_values"), [torch.randn(2, 400)]


def _series() -> Example:
    options = {
        "context_length": 32, "patch_length": 4, "patch_stride": 4, "num_input_channels": 3, "d_model": 32,
        "num_attention_heads": 4, "ffn_dim": 48, "prediction_length": 8, "use_cls_token": False,
    }  # fmt: skip
    return First(_built("PatchTST", options, "ForPrediction"), "past_values"), [torch.randn(2, 32, 3)]


_HEADS = {"num_key_value_heads": 2, "head_dim": 8}
_SEQ2SEQ = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
}  # fmt: skip

MODELS: dict[str, Callable[[], Example]] = {
    "BERT": encoder("Bert"),
    "RoBERTa": encoder("Roberta", max_position_embeddings=64),
    "DistilBERT": encoder("DistilBert", dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    "ALBERT": encoder("Albert", embedding_size=16),
    "ELECTRA": encoder("Electra", embedding_size=16),
    "DeBERTa v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    "MPNet": encoder("MPNet", max_position_embeddings=64),
    "SqueezeBERT": encoder("SqueezeBert", embedding_size=32),
    "ConvBERT": encoder("ConvBert", embedding_size=32),
    "FNet": lambda: (First(_built("FNet", {"tpu_short_seq_length": 12}), "input_ids"), [_tokens()]),
    "ModernBERT": encoder("ModernBert", local_attention=8),
    "GPT-2": decoder("GPT2", "LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "GPT-Neo": decoder("GPTNeo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4),
    "GPT-J": decoder("GPTJ", n_embd=32, n_layer=2, n_head=4, rotary_dim=4),
    "GPT-NeoX": decoder("GPTNeoX"),
    "OPT": decoder("OPT", ffn_dim=48, word_embed_proj_dim=32, max_position_embeddings=64),
    "BLOOM": decoder("Bloom", n_layer=2, n_head=4),
    "Llama": decoder("Llama", **_HEADS),
    "Mistral": decoder("Mistral", sliding_window=6, **_HEADS),
    "Mixtral": decoder("Mixtral", num_local_experts=3, num_experts_per_tok=2, **_HEADS),
    "Qwen2": decoder("Qwen2", **_HEADS),
    "Qwen3": decoder("Qwen3", **_HEADS),
    "Gemma": decoder("Gemma", **_HEADS),
    "Gemma 2": decoder("Gemma2", sliding_window=6, query_pre_attn_scalar=8, **_HEADS),
    "Phi": decoder("Phi", partial_rotary_factor=0.5),
    "Falcon": decoder("Falcon", new_decoder_architecture=False),
    "StableLM": decoder("StableLm", num_key_value_heads=4),
    "OLMo": decoder("Olmo"),
    "Mamba": decoder("Mamba", state_size=4, expand=2, time_step_rank=4),
    "T5": both("T5", d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0),
    "BART": both("Bart", **_SEQ2SEQ),
    "Whisper": _whisper,
    "wav2vec 2.0": _speech,
    "PatchTST": _series,
    "ViT": pictures("ViT", patch_size=8),
    "DINOv2": pictures("Dinov2", patch_size=8),
    "BEiT": pictures("Beit", patch_size=8, use_relative_position_bias=True),
    "CLIP, images": pictures("CLIPVision", patch_size=8),
    "SegFormer": pictures("Segformer", "ForSemanticSegmentation", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                          num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16, num_labels=5),
    "MobileViT": pictures("MobileViT", hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 32]),
}  # fmt: skip
