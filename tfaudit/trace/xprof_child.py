"""Run XProf on copies of trace files and write what it says: ``python xprof_child.py OUT FILE...``.

A script of its own, because XProf's native code may crash or hang: only the parent imports tfaudit.
"""

import json
import sys
from importlib import metadata
from pathlib import Path

TOOLS = ("overview_page", "input_pipeline_analyzer")


def main(out: str, *files: str) -> None:
    sys.path.pop(0)  # the folder of this script, whose xprof.py is not the one meant
    from xprof.convert import raw_to_tool_data

    told = {"version": metadata.version("xprof")}
    for tool in TOOLS:
        content, _ = raw_to_tool_data.xspace_to_tool_data(list(files), tool, {})
        told[tool] = json.loads(content) if content else []
    Path(out).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
