"""A belief on top of a Hugging Face encoder: here a small BERT with random weights.

Sentences are rows of tokens; the target is how many of them are "positive" less "negative". Tokens
that were never seen in training stand for words from another field.

    pip install transformers
    python examples/transformers_encoder.py
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded: the weights are random

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from priornet import losses
from priornet.nn import NormalWishartHead
from priornet.priors import semi_informative_prior
from priornet.uncertainty import uncertainty

KNOWN, STRANGE = 40, 80  # tokens 1 to 39 occur in training, 40 to 79 do not


class Reader(nn.Module):
    """An encoder, the mean of what it says of the tokens, and a head."""

    def __init__(self) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=STRANGE,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=16,
        )
        self.encoder = BertModel(config, add_pooling_layer=False)
        self.head = NormalWishartHead(32)

    def forward(self, tokens: Tensor):
        """A belief per sentence."""
        hidden = self.encoder(tokens).last_hidden_state
        return self.head(hidden.mean(1))


def sentences(n: int) -> tuple[Tensor, Tensor]:
    """Tokens ``(n, 12)`` and their standardised balance ``(n, 1)``."""
    tokens = torch.randint(1, KNOWN, (n, 12))
    balance = (tokens < 10).sum(1) - (tokens >= 30).sum(1)
    return tokens, (balance[:, None] / 2.4) + 0.1 * torch.randn(n, 1)


def out_of_domain(n: int) -> Tensor:
    """Sentences in which most words are unknown."""
    tokens, _ = sentences(n)
    return torch.where(torch.rand(n, 12) < 0.7, torch.randint(KNOWN, STRANGE, (n, 12)), tokens)


def main() -> None:
    """Train with and against out-of-domain sentences (reverse KL), then compare."""
    torch.manual_seed(0)
    model = Reader()
    prior = semi_informative_prior(sentences(1000)[1], match="variance")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(250):
        tokens, y = sentences(64)
        own, other = model(tokens), model(out_of_domain(64))
        loss, _ = losses.multi_task(
            losses.reverse_kl(own, y, prior.expand(own.batch_shape), beta=30.0),
            losses.reverse_kl(other, None, prior.expand(other.batch_shape), beta=0.0),
            gamma=min(1.0, step / 100),
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    tokens, y = sentences(500)
    with torch.no_grad():
        known, unknown = model(tokens), model(out_of_domain(500))
    print(f"rmse {(known.loc - y).square().mean().sqrt():.2f} of targets with deviation 1")
    for name, belief in (("known words", known), ("unknown words", unknown)):
        found = uncertainty(belief)
        print(
            f"{name:<14} data sd {found.data_variance.mean().sqrt():.2f}, "
            f"knowledge sd {found.knowledge_variance.mean().sqrt():.2f}"
        )


if __name__ == "__main__":
    main()
