"""A cluster for tests, there as soon as this is imported and gone with the process.

It comes before the clients: the Python client reads KUBECONFIG when it is imported.
"""

import atexit
import os
import subprocess
import tempfile
import time

WINDLASS = os.environ.get("WINDLASS", "windlass")
FOLDER = tempfile.mkdtemp()


def windlass(*command):
    subprocess.run([WINDLASS, *command, "--data-dir", FOLDER], check=True, stdout=subprocess.DEVNULL)


began = time.monotonic()
windlass("up", "--in-memory", "--no-node", "--detach")
atexit.register(windlass, "down", "--purge")
os.environ["KUBECONFIG"] = f"{FOLDER}/kubeconfig"
print(f"ok cluster in {1000 * (time.monotonic() - began):.0f} ms", flush=True)
