"""ikigai doctor: what fence holds here, in words and as JSON, and as an exit status."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ikigai_actors.shell.cli.main import cli
from ikigai_actors.tools.fence.doctor import examined
from ikigai_actors.tools.fence.policy import Network
from ikigai_actors.tools.fence.tiers import TIER_VARIABLE, Kernel, Tier, candidates, shortfall
from ikigai_actors.verbs.upkeep.doctor import STATUS

FIELDS = {
    "tier": str, "landlock_abi": int, "errata": int, "namespaces": bool, "seccomp": bool, "network": list, "open": list,
    "advice": list,
}  # fmt: skip
"""What it says as JSON, and in which form."""


@pytest.mark.sample(1, "tiers")
@pytest.mark.slow("starts programs in fences")
@pytest.mark.parametrize("strongest", ["", "landlock", "none"])
def test_it_reports_the_tier_that_starts_as_the_fields_of_its_schema(
    strongest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TIER_VARIABLE, strongest)
    ran = CliRunner().invoke(cli, ["doctor", "--json"])
    report = json.loads(ran.stdout)
    assert {name: type(value) for name, value in report.items()} == FIELDS
    assert ran.exit_code == {"namespaces": 0, "landlock": 1, "none": 2}[report["tier"]]
    assert not strongest or report["tier"] in (strongest, "none")
    assert (report["open"] == []) == (report["tier"] == "namespaces")
    words = CliRunner().invoke(cli, ["doctor"])
    assert words.exit_code == ran.exit_code
    assert words.stdout.startswith(f"tier        {report['tier']}\n")


@pytest.mark.slow("starts programs in fences")
def test_it_looks_at_the_workspace_that_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    options = ["--workspace", str(tmp_path / "work"), "--read", str(tmp_path / "none"), "doctor", "--json"]
    report = json.loads(CliRunner().invoke(cli, options).stdout)
    assert f"there is no {tmp_path / 'none'} to read" in report["advice"]
    refused = CliRunner().invoke(cli, ["--workspace", str(tmp_path), "--database", str(tmp_path / "d.db"), "doctor"])
    assert (refused.exit_code, "Move one of them" in str(refused.exception)) == (1, True)


def test_macos_has_its_row() -> None:
    of = Kernel("Darwin", "arm64", seccomp=False, seatbelt=True)
    [way] = candidates("auto", Network(), of)
    report = examined(way, of, shortfall("required", Network(), of), [])
    assert (report.tier, report.network) == (Tier.SEATBELT, ("all", "none", "ports", "proxy"))
    assert "unproven by us" in report.open[0]
    assert "unproven by us" in report.advice[0]
    assert STATUS[report.tier] == 1


@pytest.mark.parametrize("version", range(12))
def test_each_version_of_landlock_has_its_row(version: int) -> None:
    of = Kernel(landlock=version)
    ways = candidates("auto", Network(), of)
    whole = examined(ways[0], of, "why", [])
    assert (whole.tier, whole.open, whole.advice) == (Tier.NAMESPACES, (), ())
    assert ("ports" in whole.network) == (version >= 4)
    alone = examined(ways[1] if version else None, of, "why", [])
    assert (alone.tier == Tier.LANDLOCK) == (version >= 6)
    assert (len(alone.open) == 2) == (version == 0 or version >= 6)
    assert alone.advice == ("why",)
