"""Quiet for a while, then as before."""

import logging
import warnings

import pytest

from priornet.export.quiet import quiet


def test_a_logger_and_warnings_are_silent_inside_only(caplog):
    logger = logging.getLogger("some.library")
    with quiet("some.library"):
        logger.warning("inside")
        warnings.warn("inside", stacklevel=1)
    logger.warning("after")
    assert [record.message for record in caplog.records] == ["after"]
    with pytest.warns(match="after"):
        warnings.warn("after", stacklevel=1)
