"""What xarray's tests find in the conftest.py of its repository, which is not shipped."""

from __future__ import annotations

import pytest

pytest_plugins = ["xarray.tests.conftest"]


def pytest_configure(config: pytest.Config) -> None:
    for name in ("skip_if_param(**params): not with these parameters", "flaky: may fail", "network: needs a network"):
        config.addinivalue_line("markers", name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        for mark in item.iter_markers("skip_if_param"):
            given = {k: v for k, v in mark.kwargs.items() if k not in ("reason", "condition")}
            if mark.kwargs.get("condition", True) and any(params.get(k) == v for k, v in given.items()):
                item.add_marker(pytest.mark.skip(reason=mark.kwargs.get("reason", "not with this parameter")))
