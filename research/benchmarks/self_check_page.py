"""The printed table of `wayveil audit self-check`, as Markdown, from what `--json` gave.

usage: wayveil audit self-check --all --json > src/wayveil/evaluation/verdicts.json
       python research/benchmarks/self_check_page.py src/wayveil/evaluation/verdicts.json [--output self-check.md]
"""

import argparse
import json
from pathlib import Path


def page(check: dict) -> str:
    """The verdict, one row per method, and what was found."""
    lines = [
        "# Every method under attack", "",
        f"{check['verdict']} Bounds on ε at {check['confidence']:.1%} confidence; one run of `wayveil audit self-check "
        f"--all`, {check['seconds']:.0f} s on a busy machine.", "",
        "| method | claims | allowed | bound | verdict | runs |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {case['method']} | {case['epsilon']:g} | {case['allowed']:g} | {case['bound']:.2f} | {case['verdict']} | "
        f"2 × {case['runs']} |"
        for case in check["methods"]
    ]
    return "\n".join([*lines, "", "What was found:", "", *(f"- {c['method']}: {c['seen']}" for c in check["methods"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    text = page(json.loads(options.verdicts.read_text(encoding="utf-8"))) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
