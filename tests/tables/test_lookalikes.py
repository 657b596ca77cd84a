"""Numbers, dates and times in spellings of people are told from labels, with what to write."""

import pytest

from priornet.tables.lookalikes import find_lookalike

ISO = [f"2022-01-{day:02d}" for day in range(1, 10)]


@pytest.mark.parametrize(
    ("labels", "kind", "advice"),
    [
        (["1,200", "950", "12,000"], "number", 'write "1,200" as 1200'),
        (["$950", "$1,200.50", "$3"], "number", 'write "$950" as 950'),
        (["1,200.50 €", "3 €", "4 €"], "number", 'write "1,200.50 €" as 1200.50'),
        (["1.200,50", "3,25", "1.000.000"], "number", 'write "1.200,50" as 1200.50'),
        (["5%", "12.5 %", "7%"], "number", 'write "5%" as 5'),
        (["1 200", "950", "1 000 000"], "number", 'write "1 200" as 1200'),
        (["1\u00a0200", "2\u202f950", "3'000"], "number", 'write "1\u00a0200" as 1200'),
        (["-$5", "\u22125", "$-7"], "number", 'write "-$5" as -5'),
        (["1,200", "2,400", "3,600"], "number", 'write "1,200" as 1200'),
        (["12", "15.5", "7", "9", "unknown"], "number", 'leave "unknown" and other words empty'),
        (["2012/01/01", "2012/1/5", "2013/12/31"], "date", 'write "2012/01/01" as 2012-01-01'),
        (["31.01.2012", "1.2.2012", "3.3.2013"], "date", "as YEAR-MONTH-DAY, such as 2012-01-31"),
        (["5 Jan 2012", "6 Feb 2012", "Mar 3, 2012"], "date", "as YEAR-MONTH-DAY"),
        (["12:30", "7:15", "23:59:30"], "time", 'write "12:30" as hours, 12.5'),
        (["01:30 PM", "7:15 AM", "12:00 am"], "time", 'write "01:30 PM" as hours, 13.5'),
        ([*ISO, "2020-02-30"], "date", '"2020-02-30" is no date: correct it, or leave it empty'),
        ([*ISO, "unknown"], "date", 'leave "unknown" and other words empty'),
        ([*ISO, "2022-1-5"], "date", 'write "2022-1-5" as 2022-01-05'),
        ([*ISO, "9999-12-31", "?", "none yet"], "date", 'leave "none yet"'),
        (["2022-01", "2022-02", "2022-12"], "date", 'write "2022-01" as YEAR-MONTH-DAY'),
        (["01/2022", "2/2022", "12/2022"], "date", "as YEAR-MONTH-DAY"),
        (["Jan 2020", "February 2021", "Sept. 2022"], "date", "as YEAR-MONTH-DAY"),
        ([f"{day} 01:30 PM" for day in ISO], "date", "2022-01-01, the time behind it such as 13"),
        ([f"{day} 01:30:00 CET" for day in ISO], "date", "or 13:30+01:00"),
    ],
)
def test_spellings_of_people(labels, kind, advice):
    found = find_lookalike(labels)
    assert found is not None
    assert found.kind == kind
    assert advice in found.advice


@pytest.mark.parametrize(
    "labels",
    [
        ["red", "blue", "green"],
        ["A1", "B2", "C3", "D4"],
        ["S", "M", "L", "38", "40"],
        ["10.0.0.1", "10.0.0.2", "192.168.0.1"],
        ["1-2", "3-5", "6-9"],
        ["4.3.16", "4.3.17", "5.0.1"],
        ["45-67-89", "52-78-91", "60-60-60"],
        ["4.45.2016", "7.99.2017", "1.50.2018"],
        ["3012-44-1", "4012-44-2", "5012-44-3"],
        ["Model 2020", "Model 2021", "Type 2022"],
        ["2010/45", "2011/46", "2012/47"],
        ["12a", "13b", "14c"],
        ["5 km", "6 km", "7 km"],
        ["2012/01/01", "5%", "12:30", "red"],
        ["1,200", "?"],
        ["", "n/a", "-"],
        [],
    ],
)
def test_labels_that_are_labels(labels):
    assert find_lookalike(labels) is None
