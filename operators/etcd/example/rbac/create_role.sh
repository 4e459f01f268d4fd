#!/usr/bin/env bash
# Creates the service accounts and roles of the three operators, each with no more than it needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for file in etcd-cluster-operator etcd-backup-operator etcd-restore-operator install-crds; do
  "${KUBECTL:-kubectl}" create -f "$file.yaml"
done
