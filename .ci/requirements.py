"""Print the requirements of pyproject.toml, one a line: the build's, the package's, and those of the named extras.

Relies on the standard library. The Makefile relies on it, so that versions are written in pyproject.toml only.
"""

import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    config = tomllib.load(file)
wanted = config["build-system"]["requires"] + config["project"]["dependencies"]
for extra in sys.argv[1:]:
    wanted += config["project"]["optional-dependencies"][extra]
print("\n".join(dict.fromkeys(wanted)))
