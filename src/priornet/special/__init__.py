"""Stable scalar functions and the algebra of small triangular matrices; no distribution."""

from priornet.special import elementwise, gamma, student_t, triangular

__all__ = ["elementwise", "gamma", "student_t", "triangular"]
