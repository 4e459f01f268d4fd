"""A test of a kopf operator, on a cluster of its own."""

import cluster  # noqa: F401  (first: it starts the cluster)

import unittest

import kopf.testing
from kubernetes import client, config

import kopf_operator


class Notes(unittest.TestCase):
    def test_note_becomes_a_config_map(self):
        config.load_kube_config()
        kopf_operator.define()
        with kopf.testing.KopfRunner(["run", "--namespace", "default", "--standalone", kopf_operator.__file__]) as runner:
            notes = client.CustomObjectsApi()
            notes.create_namespaced_custom_object(**kopf_operator.PLACE, body=kopf_operator.note("first"))
            kopf_operator.until("created", lambda: kopf_operator.text_of("note-one") == "first")
        self.assertEqual(runner.exit_code, 0)
        print("ok reconciled", flush=True)


if __name__ == "__main__":
    unittest.main()
