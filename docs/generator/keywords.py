"""Words that people type into the search, and that a page says otherwise or seldom.

The search finds them where pages are marked with them; readers do not see them.
"""

from __future__ import annotations

from typing import Any

KEYWORDS = {  # of each page; the search knows single words
    "checkpoints": "resume restart state_dict orbax snapshot",
    "coming-from-pytorch": "torch cuda state_dict no_grad autocast AMP backward",
    "data": "dataset DataLoader tf.data sampler prefetch shuffle",
    "debugging-nan": "inf exploding detect_anomaly",
    "evaluation": "validation metrics accuracy drop_last early stopping",
    "faq": "double reproducible OOM immutable",
    "fsdp": "ZeRO FullyShardedDataParallel",
    "installation": "macOS Windows Docker conda requirements WSL",
    "lanes-at-once": "accumulate microbatch no_sync",
    "mixed-precision": "bf16 fp16 half AMP autocast GradScaler",
    "optimizers": "SGD AdamW decay clip",
    "profiling": "perfetto trace slow timing",
    "quick-start": "tutorial hello jupyter notebook",
    "same-script": "wandb tensorboard tqdm torchrun logging",
    "saving": "pickle npz weights model",
    "schedules": "warmup cosine lr_scheduler",
    "training": "tutorial CNN conv2d MNIST classifier cross entropy tqdm progress bar notebook",
    "transformer": "GPT LLM Megatron language",
}


def add(_: Any, page: str, source: list[str]) -> None:
    """Mark a page with its words."""
    if page in KEYWORDS:
        words = ", ".join(KEYWORDS[page].split())
        source[0] = f'---\nmyst:\n  html_meta:\n    keywords: "{words}"\n---\n\n{source[0]}'
