# SPDX-License-Identifier: Apache-2.0
"""What the Python tests know about the server that they talk to."""
import os

KIND = os.environ["CLIENTS_SERVER"]  # cordon or docker
IMAGE = os.environ["CLIENTS_IMAGE"]
ON_DOCKER = KIND == "docker"
# Made by mmdebstrap; run says so where it cannot be had.
DEBIAN = os.environ.get("CLIENTS_DEBIAN", "")
# In Cordon `host` is an image that is always there.
IMAGES = tuple(name for name in (IMAGE, DEBIAN, "" if ON_DOCKER else "host")
               if name)
# Everything, where there is time for it (CI).
FULL = os.environ.get("CLIENTS_FULL", "") not in ("", "0")


def remove_all(client):
    """The server is the tests' own: each test leaves it empty."""
    for box in client.api.containers(all=True):
        try:
            client.api.remove_container(box["Id"], force=True)
        except Exception as error:  # it was about to be removed by itself
            if "in progress" not in str(error) and "No such" not in str(error):
                raise
