"""Stable special functions and the algebra of small matrices."""

from priornet.special import gamma, normal, phi, student_t, triangular

__all__ = ["gamma", "normal", "phi", "student_t", "triangular"]
