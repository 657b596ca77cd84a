"""Names of :mod:`priornet.messages`, until all commands import them from there."""

from priornet.messages import Failure, InputError, blamed_on, called, one_line, printable

__all__ = ["Failure", "InputError", "blamed_on", "called", "one_line", "printable"]
