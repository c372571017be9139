"""Print what pyproject.toml requires, one requirement per line: the runtime dependencies and those of the extras named.

Use: python tools/requirements.py dev envs. pip cannot install the dependencies of a project without building it.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
print("\n".join(project["dependencies"] + [r for extra in sys.argv[1:] for r in project["optional-dependencies"][extra]]))
