"""The report in a real browser: silent, offline, every chart drawn from its arrays, sortable."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from priornet.estimators import DistilledRegressor
from priornet.evaluation import evaluate
from priornet.metrics import LEVELS, rejection_curve
from priornet.report import write_report
from priornet.report.html import render_report

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def path(evaluation, tmp_path_factory):
    return write_report(evaluation, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def desktop(open_page, path):
    return open_page(path, viewport={"width": 1280, "height": 900})


def numbers(values) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], float)


def assert_drawn(actual, expected) -> None:
    """The page's numbers have seven digits."""
    np.testing.assert_allclose(numbers(actual), expected, rtol=1e-6, atol=1e-12)


def test_page_complains_about_nothing_and_asks_for_nothing(desktop, path):
    assert desktop.complaints == []
    assert desktop.requests == [path.as_uri()]


def test_every_chart_is_drawn(desktop):
    blank = desktop.page.evaluate(
        """() => [...document.querySelectorAll(".chart")].filter(box =>
            !box.querySelector(".scatterlayer .trace path")).map(box => box.id)"""
    )
    assert blank == []
    assert desktop.page.locator(".chart").count() == 1 + 2 + 3 + 6


def test_every_chart_says_how_to_read_it(desktop):
    missing = desktop.page.evaluate(
        """() => [...document.querySelectorAll(".chart")].filter(box =>
            box.parentElement.querySelector(".how").textContent.length < 20).length"""
    )
    assert missing == 0


def test_predicted_chart_holds_predictions_and_intervals(desktop, evaluation):
    _, inside, outside = desktop.chart("predicted-0")
    level = LEVELS.index(0.9)
    lower, upper = (
        getattr(evaluation.intervals["predictive"], end)[level, :, 0] for end in ("lower", "upper")
    )
    y, mean = evaluation.y[:, 0], evaluation.prediction[:, 0]
    held = (lower <= y) & (y <= upper)
    for drawn, group in ((inside, held), (outside, ~held)):
        assert_drawn(drawn["x"], y[group])
        assert_drawn(drawn["y"], mean[group])
        assert_drawn(drawn["up"], (upper - mean)[group])
        assert_drawn(drawn["down"], (mean - lower)[group])
    assert inside["text"][0] == evaluation.row_labels[np.flatnonzero(held)[0]]
    points = desktop.page.locator("#predicted-0 .scatterlayer .points path").count()
    assert points == len(y)


def test_calibration_chart_holds_the_curve(desktop, evaluation):
    diagonal, curve = desktop.chart("calibration")
    assert diagonal["x"] == diagonal["y"] == [0, 1]
    assert_drawn(curve["x"], evaluation.expected)
    assert_drawn(curve["y"], evaluation.observed[:, 0])
    assert f"{evaluation.metrics['miscalibration_area']:.3g}" in curve["name"]


def test_rejection_chart_holds_oracle_random_and_model(desktop, evaluation):
    random, oracle, total, knowledge = desktop.chart("rejection")
    error = torch.from_numpy(evaluation.error)
    for drawn, measure in ((total, "total_variance"), (knowledge, "variance_of_mean")):
        curve = rejection_curve(error, torch.from_numpy(evaluation.spread.measures[measure]))
        assert_drawn(drawn["x"], curve.fraction)
        assert_drawn(drawn["y"], curve.uncertainty)
        assert_drawn(random["y"], curve.random)
        assert_drawn(oracle["y"], curve.oracle)
        assert f"PRR {evaluation.metrics['prr'][measure]:.3g}" in drawn["name"]


@pytest.mark.parametrize("part", ["total", "data", "knowledge"])
def test_histograms_hold_every_row(desktop, evaluation, part):
    inside, outside = desktop.chart(f"histogram-{part}")
    edges = numbers(inside["x"])
    for drawn, spread in ((inside, evaluation.spread), (outside, evaluation.spread_ood)):
        values = getattr(spread, part)[:, 0]
        counts, _ = np.histogram(values, edges * (1 + 1e-6 * np.linspace(-1, 1, len(edges))))
        assert_drawn(drawn["y"], np.append(counts / len(values), 0.0))
        assert sum(drawn["y"]) == pytest.approx(1)


def test_feature_panels_hold_rows_and_sweep(desktop, evaluation):
    for j, panel in enumerate(evaluation.panels):
        traces = desktop.chart(f"feature-{j}")
        if panel.kind == "numeric":
            high, low, median, sweep = traces
            assert_drawn(high["y"], panel.high)
            assert_drawn(low["y"], panel.low)
        else:
            median, sweep = traces
            assert_drawn(median["up"], panel.high - panel.median)
        assert_drawn(median["y"], panel.median)
        assert_drawn(sweep["y"], panel.sweep)


def test_training_range_is_marked(desktop, evaluation):
    shapes = desktop.page.evaluate(
        "document.getElementById('feature-0').layout.shapes.map(s => [s.x0, s.x1])"
    )
    panel = evaluation.panels[0]
    assert_drawn(shapes[0], [panel.sweep_at[0], panel.train_low])
    assert_drawn(shapes[1], [panel.train_high, panel.sweep_at[-1]])


def column(page, index: int) -> list[str]:
    return page.locator(f"#rows tbody td:nth-child({index + 1})").all_inner_texts()


def test_table_sorts_by_its_headers(desktop, evaluation):
    page = desktop.page
    labels = [row.label for row in evaluation.rows]
    assert column(page, 0) == labels
    predicted = {row.label: evaluation.prediction[row.position, 0] for row in evaluation.rows}
    page.get_by_role("button", name="Predicted").click()
    assert column(page, 0) == sorted(labels, key=lambda label: predicted[label])
    page.get_by_role("button", name="Predicted").click()
    assert column(page, 0) == sorted(labels, key=lambda label: -predicted[label])
    assert page.locator("#rows th[aria-sort=descending]").inner_text() == "Predicted"
    page.get_by_role("button", name="Row").click()
    natural = sorted(labels, key=lambda label: int(re.sub(r"\D", "", label)))
    assert column(page, 0) == natural
    page.get_by_role("button", name="Verdict").click()
    assert column(page, 1) == sorted(row.verdict for row in evaluation.rows)


def test_hostile_names_are_shown_and_do_nothing(desktop):
    page = desktop.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("h3", has_text="<script>window.hacked = 1</script>").count() == 1
    titles = page.locator(".chart .xtitle").all_text_contents()
    assert any(title.startswith("<script>window.hacked") for title in titles)
    ticks = page.locator("#feature-2 .xtick text").all_text_contents()
    assert any(tick.startswith("<img src=x") for tick in ticks)
    assert any("Atlantis (new)" in tick for tick in ticks)


def test_phone_needs_no_sideways_scrolling(open_page, path):
    phone = open_page(path, **PHONE)
    widths = phone.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths == [390, 390]
    boxes = phone.page.locator(".chart").evaluate_all(
        "boxes => boxes.map(b => [b.getBoundingClientRect().left, b.getBoundingClientRect().right])"
    )
    assert all(0 <= left < right <= 390 for left, right in boxes)
    lefts = {round(left) for left, _ in boxes}
    assert len(lefts) == 1  # one column
    assert phone.complaints == []


COLOURS = """() => {
    const box = document.getElementById("calibration");
    return [getComputedStyle(document.body).backgroundColor, box._fullLayout.font.color,
            box._fullData[0].line.color, box._fullData[1].line.color];
}"""


def brightness(colour: str) -> float:
    channels = [int(c) for c in re.findall(r"\d+", colour)[:3]]
    if colour.startswith("#"):
        channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return sum(channels) / 3


def test_dark_mode_changes_page_and_charts_at_once(desktop):
    page = desktop.page
    light = page.evaluate(COLOURS)
    page.emulate_media(color_scheme="dark")
    desktop.wait_until_drawn("dark")
    dark = page.evaluate(COLOURS)
    page.emulate_media(color_scheme="light")
    desktop.wait_until_drawn("light")
    assert page.evaluate(COLOURS) == light
    assert brightness(light[0]) > 200 > 60 > brightness(dark[0])
    assert brightness(light[1]) < 110 < 160 < brightness(dark[1])
    assert light[3] == "rgb(0,114,178)"  # the ensemble's colour
    assert brightness(dark[3]) > brightness(light[3])
    assert desktop.complaints == []


def test_print_is_light_and_fits_the_paper(desktop):
    page = desktop.page
    page.emulate_media(media="print", color_scheme="dark")
    desktop.wait_until_drawn("print")
    assert page.evaluate(COLOURS)[0] == "rgb(255, 255, 255)"
    widths = page.locator(".chart .main-svg").evaluate_all("all => all.map(s => s.clientWidth)")
    assert max(widths) <= 690
    ends = page.evaluate(
        "['main', '#rows'].map(s => document.querySelector(s).getBoundingClientRect().right)"
    )
    assert ends[1] <= ends[0]
    page.emulate_media(media="screen", color_scheme="light")
    desktop.wait_until_drawn("light")
    pdf = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 3


def test_printed_row_numbers_stay_on_one_line(open_page, path):
    page = open_page(path).page
    page.emulate_media(media="print")
    lines = page.locator("#rows tbody td:first-child").evaluate_all(
        """cells => cells.map((cell, i) => {
            cell.textContent = 1234567 + i;
            const text = document.createRange();
            text.selectNodeContents(cell);
            return text.getClientRects().length;
        })"""
    )
    assert len(lines) > 0
    assert set(lines) == {1}
    ends = page.evaluate(
        "['main', '#rows'].map(s => document.querySelector(s).getBoundingClientRect().right)"
    )
    assert ends[1] <= ends[0]


@pytest.mark.parametrize("width", [390, 768, 1100, 1240])
def test_titles_of_axes_are_whole(open_page, evaluation, tmp_path, width):
    name = "compressive_strength_after_28_days"
    scores = evaluation.metrics | {"targets": {name: evaluation.metrics["targets"]["price"]}}
    named = replace(evaluation, target_names=(name,), metrics=scores)
    path = write_report(named, tmp_path / "report.html")
    page = open_page(path, viewport={"width": width, "height": 900}).page
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".chart")].flatMap(box => {
            const room = box.getBoundingClientRect();
            return [...box.querySelectorAll(".xtitle, .ytitle")].filter(title => {
                const own = title.getBoundingClientRect();
                return own.left < room.left || own.right > room.right ||
                    own.top < room.top || own.bottom > room.bottom;
            }).map(title => box.id + ": " + title.textContent);
        })"""
    )
    assert cut == []
    assert page.locator("#feature-0 .ytitle").text_content() == "knowledge sd"
    assert page.get_by_text(f"standard deviation (sd) of {name}").count() == 1


def facts_of(page: str) -> dict[str, str]:
    section = page.split("<h2>The model</h2>")[1].split("</section>")[0]
    return dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", section))


def test_student_tells_its_transfer_inputs_from_its_teachers_rows(make_table):
    X, y = make_table(200, seed=0)
    model = DistilledRegressor(
        n_members=2, hidden=(8,), epochs=2, student_epochs=1, n_transfer=1500, random_state=0
    ).fit(X, y)
    facts = facts_of(render_report(evaluate(model, X, y)))
    teacher = model.teacher_.fitted_.training
    assert facts["Transfer inputs"] == "1,500"
    assert facts["Learnt of the teacher"] == "likelihood"
    assert facts["Training rows"] == str(teacher["n_rows"])
    assert facts["Teacher: epochs"] == "2"
    assert len(facts["Teacher: best epoch of each network"].split(", ")) == 2
    assert "None" not in facts.values()
    assert not any("{" in value for value in facts.values())


def test_ensemble_has_training_rows_of_its_own(evaluation):
    facts = facts_of(render_report(evaluation))
    assert facts["Training rows"] == str(evaluation.model.training["n_rows"])
    assert not any(name.startswith(("Teacher", "Transfer")) for name in facts)


def test_single_network_has_no_knowledge_to_show(single):
    page = render_report(single.evaluate())
    assert "This model has no knowledge uncertainty" in page
    assert 'id="histogram-knowledge"' not in page
    assert "OOD AUC" not in page
    assert "Total uncertainty along each feature" in page


def test_several_targets_have_a_chart_each(two_targets):
    page = render_report(two_targets.evaluate())
    assert 'id="predicted-0"' in page
    assert 'id="predicted-1"' in page
    assert "Predicted and actual: size &lt;b&gt;" in page
    assert "size <b>" not in page


def test_large_sets_are_sampled_and_say_so(evaluation):
    times = 20
    many = replace(
        evaluation,
        y=np.tile(evaluation.y, (times, 1)),
        prediction=np.tile(evaluation.prediction, (times, 1)),
        row_labels=evaluation.row_labels * times,
        intervals={
            name: replace(
                ends, lower=np.tile(ends.lower, (times, 1)), upper=np.tile(ends.upper, (times, 1))
            )
            for name, ends in evaluation.intervals.items()
        },
    )
    page = render_report(many)
    assert "A random 2,000 of 3,000 rows are drawn." in page
    assert page == render_report(many)  # the same sample every time
