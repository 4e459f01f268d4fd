#!/bin/sh
# A hook: the keys of a Secret, without its values, in a ConfigMap beside it.
exec jq '{
  labels: {"example.com/keys": (.object.data // {} | length | tostring)},
  attachments: [{
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {name: "\(.object.metadata.name)-keys"},
    data: {keys: (.object.data // {} | keys | join(" "))}
  }]
}'
