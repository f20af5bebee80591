"""Plots: whole SVG documents with honest scales, and text that cannot break out."""

from xml.etree import ElementTree

import pytest

from rss_pipeline.features.statistics import plots
from rss_pipeline.features.statistics.plots import Bar

SVG = ElementTree.Element


def parsed(markup: str) -> SVG:
    return ElementTree.fromstring(markup)


def bars(*values: tuple[int, ...], **more: object) -> SVG:
    series = ("one", "two")[: len(values[0])]
    return parsed(
        plots.bars(
            id="x",
            title="A <title>",
            description='Said "so" & more',
            unit="items",
            series=series,
            bars=[Bar(label=f"day {n}", tick=f"{n} <b>", values=value) for n, value in enumerate(values)],
        )
    )


def drawn(svg: SVG, kind: str) -> list[SVG]:
    return [rect for rect in svg.iter("rect") if rect.get("class") == kind]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (5, [0, 1, 2, 3, 4, 5]),
        (6, [0, 2, 4, 6]),
        (41, [0, 10, 20, 30, 40, 50]),
        (1_001, [0, 500, 1000, 1500]),
    ],
)
def test_a_scale_begins_at_zero_and_goes_in_round_steps_to_the_highest_value(
    most: int, expected: list[int]
) -> None:
    found = plots.scale(plots.scale_top(most))
    assert (found[0], found[-1]) == (expected[0], expected[-1])
    assert found[-1] >= most
    assert len(found) <= 7


def test_the_height_of_a_bar_is_its_part_of_the_scale() -> None:
    svg = bars((50,), (25,), (0,))
    heights = [float(rect.get("height", "")) for rect in drawn(svg, "plot-1")]
    assert heights == [150, 75]


def test_a_small_value_beside_a_large_one_is_still_seen() -> None:
    svg = bars((100_000,), (1,))
    assert float(drawn(svg, "plot-1")[1].get("height", "")) >= 1


def test_series_are_stacked() -> None:
    svg = bars((10, 30))
    [below], [above] = drawn(svg, "plot-1"), drawn(svg, "plot-2")
    assert float(above.get("y", "")) + float(above.get("height", "")) == float(below.get("y", ""))
    assert "10 one, 30 two" in ElementTree.tostring(svg, "unicode")


def test_a_plot_is_one_image_with_a_title_and_a_description() -> None:
    svg = bars((1,))
    ids = {element.get("id"): element.text for element in svg if element.get("id")}
    assert svg.get("role") == "img"
    assert [ids[id] for id in (svg.get("aria-labelledby") or "").split()] == ["A <title>", 'Said "so" & more']


def test_no_plot_has_a_style_of_its_own() -> None:
    week = plots.heat(id="h", title="t", description="d", unit="items", counts={(0, 0): 1})
    for markup in (ElementTree.tostring(bars((1,)), "unicode"), week, plots.small_bars([1, 2])):
        assert "style" not in markup
        assert "<script" not in markup


def test_a_week_of_hours_has_a_cell_for_each_and_the_fullest_is_the_strongest() -> None:
    svg = parsed(plots.heat(id="h", title="t", description="d", unit="items", counts={(0, 9): 8, (6, 23): 4}))
    assert len(list(svg.iter("rect"))) == 7 * 24
    assert len(drawn(svg, "plot-none")) == 7 * 24 - 2
    shades = [float(rect.get("fill-opacity", "")) for rect in drawn(svg, "plot-1")]
    assert shades[0] == 1 > shades[1]
    says = [title.text for title in svg.iter("title")]
    assert "Monday 09:00: 8 items" in says
    assert "Sunday 23:00: 4 items" in says


@pytest.mark.parametrize("values", [[], [0], [0, 3, 1]])
def test_small_bars_leave_out_what_is_zero(values: list[int]) -> None:
    path = parsed(plots.small_bars(values)).find("path")
    assert path is not None
    assert (path.get("d") or "").count("M") == sum(value > 0 for value in values)
