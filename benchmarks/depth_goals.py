"""The goals of ``benchmarks/depth.py``, and the rows that answer them."""

from __future__ import annotations

from typing import Any

from torch import nn

GOALS = {
    "training, batch 8, times public code": "goal 2",
    "distillation, batch 8, times public code": "goal 4",
    "training, best batch, times public code": "goal 3",
    "distillation, best batch, times public code": "goal 5",
    "training, peak GB at batch 8": "goal below 18",
    "training, reserved GB at batch 8": "goal below 18",
    "distillation, peak GB at batch 8": "goal below 18",
    "distillation, reserved GB at batch 8": "goal below 18",
    "inference, batch 8, student over ensemble in turn": "goal 4.5",
    "inference, batch 8, student over ensemble on streams": "goal 4.5",
    "inference, best batches, student over ensemble": "goal 4.5",
    "weights, ensemble over student": "goal 5",
}


def weights_bytes(net: nn.Module) -> int:
    return sum(t.numel() * t.element_size() for t in (*net.parameters(), *net.buffers()))


def summary(b: Any) -> dict[str, float | None]:
    """The figures that have goals; each the best of the ways tried."""

    def over(one: dict[str, Any], two: dict[str, Any]) -> float | None:
        return one["images_per_second"] / two["images_per_second"] if one and two else None

    batch, found = b.size.batch, {}
    for part, words in (("training", "Gaussian"), ("distillation", "live teachers")):
        here, best = b.best(part, words, batch=batch), b.best(part, words)
        found |= {
            f"{part}, batch {batch}, times public code": here.get("times_public_code"),
            f"{part}, best batch, times public code": best.get("times_public_code"),
            f"{part}, best batch": best.get("batch"),
            f"{part}, best batch, share of the ceiling": best.get("share_of_ceiling"),
            f"{part}, peak GB at batch {batch}": here.get("peak_gb"),
            f"{part}, reserved GB at batch {batch}": here.get("reserved_gb"),
        }
    kept, live = b.best("distillation", "kept"), b.best("distillation", "live")
    found["distillation, kept averages over live teachers"] = over(kept, live)
    asked = "inference, best batches, student over ensemble"
    found[asked] = over(b.best("inference", "student"), b.best("inference", "ensemble"))
    for way, words in (("in turn", "in turn"), ("streams", "on streams")):
        found[f"inference, batch {batch}, student over ensemble {words}"] = over(
            b.best("inference", "student", batch=batch),
            b.best("inference", "ensemble", way, batch=batch),
        )
    student, ensemble = b.steps.served, b.steps.teachers
    found["weights, student MB"] = weights_bytes(student) / 1e6
    found["weights, ensemble MB"] = sum(map(weights_bytes, ensemble)) / 1e6
    found["weights, ensemble over student"] = (
        found["weights, ensemble MB"] / found["weights, student MB"]
    )
    return found
