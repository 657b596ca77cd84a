"""The official division of the labelled NYU set: 795 images to learn from, 654 to test."""

from __future__ import annotations

__all__ = ["N_IMAGES", "nyu_parts"]

N_IMAGES = 1449

# A bit for each image in the order of the release, 1 for test: ``splits.mat`` of the set's authors.
_IS_TEST = (
    "c087c81fffe601be001e1fe000000e0fbc8000e003bf1fffffc3f01c00000040010383f801fc0738"
    "0ffe00033ff00001fc38003c0007e0ff0007cff80000001fbffc38e00e3fffe03e03c03e18f800fc"
    "1861c31f9f87cce07f8c1f3c030003ffffffe001f07c0e00fffc70fc0e00000000700e071e00e003"
    "ce7f8003e0f0700e01c60198c0003ff1ff7f780e3fe301fffc7e673f01f0fff1f07ce003c7ff803f"
    "0ffee7f06000f3f038f0198001fe7f83fc0f0780ff80"
)


def nyu_parts() -> list[str]:
    """``"train"`` or ``"test"`` for each image.

    Example:
        >>> nyu_parts()[:3]
        ['test', 'test', 'train']
    """
    bits = "".join(f"{byte:08b}" for byte in bytes.fromhex(_IS_TEST))
    return ["test" if bit == "1" else "train" for bit in bits[:N_IMAGES]]
