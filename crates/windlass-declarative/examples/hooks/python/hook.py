"""A hook: one ConfigMap for each chapter of a Book."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer


def sync(request):
    book = request["parent"]
    name = book["metadata"]["name"]
    children = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{number}"},
            "data": {"title": title},
        }
        for number, title in enumerate(book["spec"].get("chapters", []), start=1)
    ]
    return {
        "children": children,
        "status": {"chapters": len(request["children"]["ConfigMap.v1"])},
    }


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["content-length"])
        answer = json.dumps(sync(json.loads(self.rfile.read(length)))).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", 8080), Hook).serve_forever()
