"""A tiny operator with nothing but the standard library: each Note gets a ConfigMap and a Secret.

`--forgetful` makes the Secret only in the branch that makes the ConfigMap: killed between the two,
it never makes the Secret. `--only-adds-labels` gives the ConfigMap the labels that the Note asks for,
and leaves those that it asked for before.
"""

import base64
import http.client
import json
import os
import ssl
import sys
import tempfile
import time

GROUP = "/apis/example.com/v1/namespaces/default/notes"
CORE = "/api/v1/namespaces/default/"


class Server:
    def __init__(self, path):
        config = json.load(open(path))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = cluster["server"].removeprefix("https://")
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
            for field in ["client-certificate-data", "client-key-data"]:
                pem.write(base64.b64decode(user[field]))
            pem.flush()
            self.tls.load_cert_chain(pem.name)

    def open(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection(self.address, context=self.tls)
        body = json.dumps(body) if body else None
        connection.request(method, path, body, {"Content-Type": kind})
        return connection.getresponse()

    def call(self, method, path, body=None, kind="application/json"):
        answer = self.open(method, path, body, kind)
        return answer.status, json.loads(answer.read())

    def make(self, plural, kind, note):
        owner = {"apiVersion": "example.com/v1", "kind": "Note", "name": note["metadata"]["name"],
                 "uid": note["metadata"]["uid"]}
        body = {"apiVersion": "v1", "kind": kind,
                "metadata": {"name": note["metadata"]["name"], "ownerReferences": [owner]}}
        status, answer = self.call("POST", CORE + plural, body)
        if status not in (201, 409):
            raise RuntimeError(answer)

    def is_there(self, plural, note):
        return self.call("GET", CORE + plural + "/" + note["metadata"]["name"])[0] == 200

    def label(self, note, only_adds):
        wanted = note.get("spec", {}).get("labels", {})
        path = CORE + "configmaps/" + note["metadata"]["name"]
        there = self.call("GET", path)[1]["metadata"].get("labels", {})
        patch = dict(wanted)
        if not only_adds:
            patch.update({key: None for key in there if key not in wanted})
        if any(there.get(key) != value for key, value in patch.items()):
            body = {"metadata": {"labels": patch}}
            status, answer = self.call("PATCH", path, body, "application/merge-patch+json")
            if status != 200:
                raise RuntimeError(answer)


def reconcile(server, note, forgetful, only_adds):
    if not server.is_there("configmaps", note):
        server.make("configmaps", "ConfigMap", note)
        if forgetful:
            server.make("secrets", "Secret", note)
    if not forgetful and not server.is_there("secrets", note):
        server.make("secrets", "Secret", note)
    server.label(note, only_adds)


def main():
    server = Server(os.environ["KUBECONFIG"])
    mistakes = "--forgetful" in sys.argv, "--only-adds-labels" in sys.argv
    while True:
        try:
            notes = server.call("GET", GROUP)[1]
            for note in notes["items"]:
                reconcile(server, note, *mistakes)
            version = notes["metadata"]["resourceVersion"]
            with server.open("GET", f"{GROUP}?watch=1&resourceVersion={version}") as events:
                for line in events:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] in ("ADDED", "MODIFIED"):
                        reconcile(server, event["object"], *mistakes)
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            print(f"again in a moment: {error}", flush=True)
            time.sleep(0.05)


main()
