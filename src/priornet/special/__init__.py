"""Stable special functions and the algebra of small matrices."""

from priornet.special import gamma, student_t, triangular

__all__ = ["gamma", "student_t", "triangular"]
