"""Pure functions from arrays and labels to Plotly figures."""

import pandas  # type: ignore[import-untyped]  # noqa: F401 - Plotly takes it half-loaded where another thread is just loading it
