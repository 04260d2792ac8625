"""Forms of text that the tests of objects do not show."""

from __future__ import annotations

import pytest

from gpuyard.manifests.schemas.text import (
    config_key_problem,
    count_or_percent_problem,
    schedule_problem,
    time_zone_problem,
)

DESCRIPTORS = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every 1h30m"


@pytest.mark.parametrize(
    "schedule",
    ["* * * * *", "0 0 1 1 0", "*/5 0-6/2,12 ? JAN-mar Mon", "59 23 31 12 6", "5/10 * * * *", "@daily",
     "@every 1h30m", "@every 1.5h", "  0   0 * * * "],
)  # fmt: skip
def test_schedules(schedule: str):
    assert schedule_problem(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("* * * *", "`* * * *` has 4 fields; a schedule has 5: minute, hour, day of the month, month, day of the week"),
        ("", "`` has 0 fields; a schedule has 5: minute, hour, day of the month, month, day of the week"),
        ("60 * * * *", "minute `60`: `60` is not one of 0 to 59"),
        ("* 24 * * *", "hour `24`: `24` is not one of 0 to 23"),
        ("* * 0 * *", "day of the month `0`: `0` is not one of 1 to 31"),
        ("* * * sept *", "month `sept`: `sept` is not one of 1 to 12"),
        ("* * * * 7", "day of the week `7`: `7` is not one of 0 to 6"),
        ("30-10 * * * *", "minute `30-10`: 30-10 ends before it begins"),
        ("*/0 * * * *", "minute `*/0`: `0` is no step; a step is a whole number from 1"),
        ("*/x * * * *", "minute `*/x`: `x` is no step; a step is a whole number from 1"),
        ("*-5 * * * *", "minute `*-5`: `*-5` is no range"),
        ("1-2-3 * * * *", "minute `1-2-3`: `2-3` is not one of 0 to 59"),
        ("@reboot", f"`@reboot` is no schedule; accepted: {DESCRIPTORS}"),
        ("@every day", f"`@every day` is no schedule; accepted: {DESCRIPTORS}"),
        ("CRON_TZ=UTC 0 0 * * *", "a time zone does not stand in the schedule; use timeZone"),
    ],
)
def test_no_schedules(schedule: str, problem: str):
    assert schedule_problem(schedule) == problem


@pytest.mark.parametrize("key", ["a", ".dockerconfigjson", "a..b", "A_1-b.txt"])
def test_keys_of_config_maps(key: str):
    assert config_key_problem(key) == ""


@pytest.mark.parametrize("key", ["", ".", "..", "..a", "a/b", "a b"])
def test_no_keys_of_config_maps(key: str):
    assert config_key_problem(key).startswith(f"`{key}` must be a file name")


@pytest.mark.parametrize("zone", ["Etc/UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
def test_time_zones(zone: str):
    assert time_zone_problem(zone) == ""


@pytest.mark.parametrize("zone", ["", "local", "Europe//Zurich", "../etc", "-a", "Europe/Zurich on the lake"])
def test_no_time_zones(zone: str):
    assert time_zone_problem(zone) == f"`{zone}` is no time zone; write one such as Europe/Zurich or Etc/UTC"


@pytest.mark.parametrize("value", [0, 5, "0%", "250%", None, True, 1.5])
def test_counts_and_percentages(value: object):
    # What is of a wrong type is the schema's business.
    assert count_or_percent_problem(value) == ""
