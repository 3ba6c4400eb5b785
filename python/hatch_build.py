"""Puts the program zarrdb into a wheel: $ZARRDB_WHEEL_BINARY, for the platform
$ZARRDB_WHEEL_PLATFORM. Without them the wheel is for any platform and has none."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program, platform = os.environ.get("ZARRDB_WHEEL_BINARY"), os.environ.get("ZARRDB_WHEEL_PLATFORM")
        if version == "standard" and program and platform:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["shared_scripts"] = {program: "zarrdb"}
