"""Charts as Vega-Lite specifications, and as files: made beside the server."""

from collections.abc import Mapping
from typing import Any

PIXELS = 2.0  # of a PNG, for each point of the chart


def specification(chart: Any) -> dict[str, Any]:
    """Return an Altair chart as a Vega-Lite specification that holds its rows where they are drawn.

    Rows that are named at the top would be turned into data frames by Streamlit.
    """
    spec: dict[str, Any] = chart.to_dict()
    datasets = spec.pop("datasets", {})
    inlined: dict[str, Any] = _inlined(spec, datasets)
    return inlined


def svg(spec: Mapping[str, Any]) -> str:
    """Return a chart as an SVG file."""
    import vl_convert

    from calibration.report.charts import VEGA_LITE

    return str(vl_convert.vegalite_to_svg(_on_paper(spec), vl_version=VEGA_LITE))


def png(spec: Mapping[str, Any]) -> bytes:
    """Return a chart as a PNG file."""
    import vl_convert

    from calibration.report.charts import VEGA_LITE

    return bytes(vl_convert.vegalite_to_png(_on_paper(spec), vl_version=VEGA_LITE, scale=PIXELS))


def _on_paper(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart without what only a click needs, on white."""
    drawn_parts = {key: value for key, value in spec.items() if key != "params"}
    return drawn_parts | {"config": {**spec.get("config", {}), "background": "white"}}


def _inlined(part: Any, datasets: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inlined(item, datasets) for item in part]
    if not isinstance(part, dict):
        return part
    inlined = {key: _inlined(value, datasets) for key, value in part.items()}
    data = inlined.get("data")
    if isinstance(data, dict) and data.get("name") in datasets:
        inlined["data"] = {"values": datasets[data["name"]]}
    return inlined
