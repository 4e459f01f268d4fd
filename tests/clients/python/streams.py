"""What people do to pods with the Python client: commands, input, port-forwarding, proxies. It makes a pod."""

import sys
import time

from kubernetes import client, config
from kubernetes.stream import portforward, stream

PATIENCE = 60
NAME = "python-streams"
PROGRAM = """
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *args):
        print("asked", flush=True)
http.server.ThreadingHTTPServer((os.environ.get("POD_IP", "0.0.0.0"), 18201), Page).serve_forever()
"""


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def until(what, happens):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = happens()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {PATIENCE} s")


def pod(core):
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {"name": "main", "image": "busybox", "command": ["python3", "-c", PROGRAM], "env": [address]}
    until("an account", lambda: [a for a in core.list_namespaced_service_account("default").items if a.metadata.name == "default"])
    core.create_namespaced_pod("default", {"metadata": {"name": NAME}, "spec": {"containers": [container]}})
    until("a running pod", lambda: core.read_namespaced_pod(NAME, "default").status.phase == "Running")


def command(core):
    call = (core.connect_get_namespaced_pod_exec, NAME, "default")
    out = stream(*call, command=["echo", "hello"], stdout=True, stderr=True, stdin=False, tty=False)
    expect(out == "hello\n", out)
    talk = stream(*call, command=["sh", "-c", "read line; echo heard $line; exit 3"], stdout=True, stdin=True,
                  stderr=True, tty=False, _preload_content=False)
    talk.write_stdin("you\n")
    talk.run_forever(timeout=PATIENCE)
    expect(talk.read_stdout() == "heard you\n" and talk.returncode == 3, talk.returncode)


def forward(core):
    # A fresh pod may still be starting its server.
    def page():
        ports = portforward(core.connect_get_namespaced_pod_portforward, NAME, "default", ports="18201")
        socket = ports.socket(18201)
        socket.setblocking(True)
        answer = b""
        try:
            socket.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while piece := socket.recv(4096):
                answer += piece
        except ConnectionError:
            return None
        return None if ports.error(18201) else answer
    expect(until("a page", page).endswith(b"\r\n\r\nhello"), "the page comes")
    ports = portforward(core.connect_get_namespaced_pod_portforward, NAME, "default", ports="18299")
    expect(until("an error", lambda: ports.error(18299)), "a port that nobody listens on is an error")


def proxy(core):
    page = core.connect_get_namespaced_pod_proxy_with_path(f"{NAME}:18201", "default", path="")
    expect(page == "hello", page)
    try:
        core.connect_get_namespaced_pod_proxy_with_path(f"{NAME}:18299", "default", path="")
        raise AssertionError("a port that nobody listens on answers")
    except client.ApiException as error:
        expect(error.status == 503, error.status)


def logs(core):
    expect("asked" in core.read_namespaced_pod_log(NAME, "default"), "the log has what was printed")


def main():
    core = client.CoreV1Api(config.new_client_from_config())
    for step in (pod, command, forward, proxy, logs):
        step(core)
        print("ok", step.__name__)


if __name__ == "__main__":
    sys.exit(main())
