"""Words that people type into the search, and that a page says otherwise or seldom.

They are entries of an index that no reader sees, which the search looks into.
"""

from __future__ import annotations

from typing import Any

KEYWORDS = {  # of each page
    "axes": "sharding",
    "checkpoints": "resume, restart, state_dict, snapshot",
    "coming-from-pytorch": "torch, no_grad, backward, nn.Module, nn.Linear, BatchNorm",
    "data": "dataset, DataLoader, tf.data, sampler, prefetch, shuffle",
    "debugging-nan": "detect_anomaly",
    "elastic": "fault tolerance, torchrun, preemptible, spot instances",
    "evaluation": "validation, metrics, accuracy, drop_last, early stopping",
    "examples": "example programs, gallery, demo",
    "faq": "double precision, reproducible, OOM",
    "fsdp": "ZeRO, FullyShardedDataParallel",
    "installation": "pip, macOS, Windows, Docker, conda, requirements, WSL",
    "lanes-at-once": "microbatch",
    "mixed-precision": "bf16, fp16, half precision, AMP, autocast, GradScaler",
    "optimizers": "SGD, AdamW, weight decay",
    "profiling": "perfetto, tracing",
    "quick-start": "tutorial, getting started, jupyter",
    "same-script": "wandb, tensorboard, tqdm, torchrun, logging",
    "saving": "pickle, npz, weights, save model",
    "schedules": "warmup, cosine, lr_scheduler",
    "training": "tutorial, CNN, conv2d, MNIST, classifier, cross entropy, progress bar, notebook",
    "transformer": "transformer, GPT, LLM, language model",
}


def add(_: Any, page: str, source: list[str]) -> None:
    """Give a page its entries, below the title."""
    if page in KEYWORDS:
        title, rest = source[0].split("\n", 1)
        words = ", ".join(f"! {word}" for word in KEYWORDS[page].split(", "))  # ! puts it first
        source[0] = f"{title}\n\n```{{index}} {words}\n```\n{rest}"
