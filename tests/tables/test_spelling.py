"""Text that spells numbers is read as they are meant, and not where nobody can tell."""

import numpy as np
import pytest

from priornet.tables.spelling import decimals_among_thousands, parse_labels

NAN = np.nan


@pytest.mark.parametrize(
    ("words", "parser", "numbers"),
    [
        (["12 ", "1e-3", "-.5"], "number", [12, 1e-3, -0.5]),
        (["1,5", "n/a", "12"], "comma", [1.5, NAN, 12]),
        (["1970-01-02", "1970-01-01T12:00Z", ""], "date", [1, 0.5, NAN]),
        (["NULL", "7"], "number", [NAN, 7]),
        (["True", "FALSE", ""], "boolean", [1, 0, NAN]),
    ],
)
def test_text_that_spells_numbers(words, parser, numbers):
    found = parse_labels(words)
    assert found is not None
    assert found[0] == parser
    np.testing.assert_array_equal(found[1], numbers)


@pytest.mark.parametrize(
    "words",
    [
        ["1", "two"],
        ["1,234", "5,678"],  # thousands or thousandths: nobody can tell
        ["1,5", "2.5"],
        ["1,234,5"],
        ["1_000"],
    ],
)
def test_text_that_does_not(words):
    assert parse_labels(words) is None


def test_a_known_parser_reads_what_it_could_not_have_guessed():
    found = parse_labels(["1,234"], "comma")
    assert found is not None
    assert found[1].tolist() == [1.234]


GROUPED = [f"{n // 1000},{n % 1000:03d}" for n in range(1001, 5000, 7)]


@pytest.mark.parametrize("odd", ["12,5", "0,123", "1234,567"])
def test_one_odd_cell_does_not_turn_thousands_into_decimals(odd):
    assert parse_labels([*GROUPED, odd]) is None
    assert decimals_among_thousands([*GROUPED, "950", odd]) == [odd]
    assert decimals_among_thousands(GROUPED) == []


def test_three_decimals_without_their_last_zeros_are_decimals():
    numbers = np.random.default_rng(0).uniform(1, 100, 300).round(3)
    words = [str(number).replace(".", ",") for number in numbers]
    found = parse_labels(words)
    assert found is not None
    assert found[0] == "comma"
    np.testing.assert_array_equal(found[1], numbers)
    assert decimals_among_thousands(words) == []
